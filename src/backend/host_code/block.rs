//! Runs blocks on one thread of the machine. The threads of a block run one after the other on one
//! stack. Once one of them waits for others, its stack is kept, the next thread gets another one,
//! and from then on each thread of the block has a stack of its own.

use std::cell::RefCell;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::runtime::{LANES, LaunchParameters, Progress, RUNTIME, RunBlocks};
use super::waiting::{Answer, SWITCH, Switch, Wait, prepare_dynamic_shared};

/// The size of the stack of one thread of a block. Pages are backed at first use.
const STACK_BYTES: usize = 256 << 10;

/// A stack on which threads of a block run.
struct Fiber {
    coroutine: Coroutine<Answer, Wait, (), DefaultStack>,
    /// The way from this stack back to the scheduler, once the fiber has waited.
    switch: *const Switch,
}

thread_local! {
    /// Stacks that no thread uses.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A block's code and how far it has come.
pub(super) struct BlockRunner<'a> {
    run: RunBlocks,
    launch: &'a LaunchParameters,
    progress: Box<Progress>,
    end: u64,
}

/// A thread of a block that has a stack of its own.
struct WaitingThread {
    thread: u32,
    fiber: Fiber,
    wait: Wait,
    values: Box<[u64; LANES]>,
}

/// The outcome of running a fiber for a while.
enum Ran {
    Ended,
    Waits(Fiber, Wait),
}

impl<'a> BlockRunner<'a> {
    /// # Safety
    ///
    /// `run` is the entry of a kernel whose parameters those of `launch` are, and the kernel
    /// accesses only memory that its caller allows.
    pub(super) unsafe fn new(run: RunBlocks, launch: &'a LaunchParameters) -> Self {
        Self { run, launch, progress: Box::default(), end: 0 }
    }

    /// Runs these blocks. The error says why the launch failed.
    pub(super) fn run(&mut self, blocks: std::ops::Range<u64>) -> Result<(), String> {
        prepare_dynamic_shared(self.launch.shared_bytes as usize);
        self.progress.block.set(blocks.start);
        while self.progress.block.get() < blocks.end {
            self.end = blocks.end;
            if let Ran::Waits(fiber, wait) = resume(self.start(0)?, Answer::Start) {
                let block = self.progress.block.get();
                self.run_waiting_block(fiber, wait)?;
                self.progress.block.set(block + 1);
            }
        }
        Ok(())
    }

    /// Runs a block one of whose threads waits.
    fn run_waiting_block(&mut self, fiber: Fiber, wait: Wait) -> Result<(), String> {
        let mut waiting = vec![self.waiting(fiber, wait)];
        let block = self.progress.block.get();
        let outcome = self.start_others(&mut waiting).and_then(|()| schedule(&mut waiting, block));
        waiting.into_iter().for_each(|thread| reclaim(thread.fiber));
        outcome
    }

    /// Runs the threads that have no stack yet until they wait or end.
    fn start_others(&mut self, waiting: &mut Vec<WaitingThread>) -> Result<(), String> {
        let block = self.progress.block.get();
        self.end = block + 1;
        while failure(waiting).is_none() && self.progress.next.get() < self.launch.threads() {
            self.progress.block.set(block);
            let fiber = self.start(self.progress.next.get())?;
            if let Ran::Waits(fiber, wait) = resume(fiber, Answer::Start) {
                waiting.push(self.waiting(fiber, wait));
            }
        }
        // No stack goes on with another thread.
        self.progress.next.set(u32::MAX);
        Ok(())
    }

    /// The thread that has just begun to wait for the first time.
    fn waiting(&self, fiber: Fiber, wait: Wait) -> WaitingThread {
        let values = Box::new([0; LANES]);
        WaitingThread { thread: self.progress.next.get() - 1, fiber, wait, values }
    }

    /// A stack that runs threads from `first` on.
    fn start(&mut self, first: u32) -> Result<Fiber, String> {
        let (run, launch, end) = (self.run, std::ptr::from_ref(self.launch), self.end);
        let progress = std::ptr::from_ref(&*self.progress);
        let coroutine = Coroutine::with_stack(stack()?, move |switch: &Switch, _start| {
            SWITCH.set(switch);
            // SAFETY: `new`'s caller promises that the entry fits the launch. The launch and the
            // progress outlive the fiber, which `run` ends before it returns.
            unsafe { run(launch, &raw const RUNTIME, progress, end, first) };
        });
        Ok(Fiber { coroutine, switch: std::ptr::null() })
    }
}

/// Runs the waiting threads of a block until all have ended.
fn schedule(waiting: &mut Vec<WaitingThread>, block: u64) -> Result<(), String> {
    while !waiting.is_empty() {
        if let Some(text) = failure(waiting) {
            return Err(text);
        }
        let answers = match block_answers(waiting) {
            Some(answers) => answers,
            None => lane_answers(waiting),
        };
        if answers.iter().all(Option::is_none) {
            return Err(stuck(waiting, block));
        }
        let threads = std::mem::take(waiting);
        for (mut thread, answer) in threads.into_iter().zip(answers) {
            let Some(answer) = answer else {
                waiting.push(thread);
                continue;
            };
            match resume(thread.fiber, answer) {
                Ran::Ended => {}
                Ran::Waits(fiber, wait) => {
                    (thread.fiber, thread.wait) = (fiber, wait);
                    waiting.push(thread);
                }
            }
        }
    }
    Ok(())
}

fn failure(waiting: &[WaitingThread]) -> Option<String> {
    waiting.iter().find_map(|thread| match &thread.wait {
        Wait::Failed(text) => Some(text.clone()),
        _ => None,
    })
}

/// The answers if all threads wait for the block. Threads that have ended do not count, as on a
/// GPU.
fn block_answers(waiting: &[WaitingThread]) -> Option<Vec<Option<Answer>>> {
    let mut count = 0;
    for thread in waiting {
        match thread.wait {
            Wait::Block { predicate } => count += u32::from(predicate),
            _ => return None,
        }
    }
    Some(waiting.iter().map(|_| Some(Answer::Count(count))).collect())
}

/// The answers for threads whose lanes have all come. The threads are in order.
fn lane_answers(waiting: &mut [WaitingThread]) -> Vec<Option<Answer>> {
    let warp = |thread: &WaitingThread| thread.thread / LANES as u32;
    let mut answers = Vec::with_capacity(waiting.len());
    for lanes in waiting.chunk_by_mut(|one, next| warp(one) == warp(next)) {
        let values: Vec<_> = lanes.iter().map(|lane| exchanged(lanes, lane)).collect();
        for (lane, values) in lanes.iter_mut().zip(values) {
            answers.push(values.map(|values| {
                *lane.values = values;
                Answer::Lanes(lane.values.as_ptr())
            }));
        }
    }
    answers
}

/// What the lanes passed for which one of them waits; `None` if some have not come. Lanes that have
/// ended do not count.
fn exchanged(lanes: &[WaitingThread], of: &WaitingThread) -> Option<[u64; LANES]> {
    let Wait::Lanes { mask, .. } = of.wait else { return None };
    let mut values = [0; LANES];
    for lane in lanes {
        let number = lane.thread as usize % LANES;
        match lane.wait {
            _ if mask >> number & 1 == 0 => {}
            Wait::Lanes { mask: same, value } if same == mask => values[number] = value,
            _ => return None,
        }
    }
    Some(values)
}

#[cold]
fn stuck(waiting: &[WaitingThread], block: u64) -> String {
    let at_barrier =
        waiting.iter().filter(|thread| matches!(thread.wait, Wait::Block { .. })).count();
    format!(
        "the threads of block {block} wait for each other for ever: {at_barrier} at \
         `__syncthreads` and {} at operations of a warp whose mask names lanes that do not come; \
         let all threads of the block, and all lanes of the mask, reach the same one",
        waiting.len() - at_barrier
    )
}

/// Runs a fiber until it ends or waits.
fn resume(mut fiber: Fiber, answer: Answer) -> Ran {
    SWITCH.set(fiber.switch);
    match fiber.coroutine.resume(answer) {
        CoroutineResult::Yield(wait) => {
            fiber.switch = SWITCH.get();
            Ran::Waits(fiber, wait)
        }
        CoroutineResult::Return(()) => {
            keep(fiber.coroutine.into_stack());
            Ran::Ended
        }
    }
}

fn stack() -> Result<DefaultStack, String> {
    let kept = STACKS.with_borrow_mut(Vec::pop);
    kept.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok).map_err(|fault| {
        format!(
            "the system has no memory for a stack of {STACK_BYTES} bytes: {fault}; use smaller \
             blocks, or raise the number of mappings (vm.max_map_count)"
        )
    })
}

fn keep(stack: DefaultStack) {
    STACKS.with_borrow_mut(|stacks| stacks.push(stack));
}

/// Ends a fiber without running the rest of its code.
fn reclaim(mut fiber: Fiber) {
    // SAFETY: nothing on the stack must be dropped: the closure of `start` owns plain data, and
    // CUDA C has no destructors that matter once a launch has failed.
    unsafe { fiber.coroutine.force_reset() };
    keep(fiber.coroutine.into_stack());
}
