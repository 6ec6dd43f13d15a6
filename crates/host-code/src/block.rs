//! Runs blocks on one thread of the machine. The threads of a block run one after the other on one
//! stack. Once one of them waits for others, its stack is kept, the next thread gets another one,
//! and from then on each thread of the block has a stack of its own. A block whose threads only
//! wait for memory is set aside, the next one begins, and all those aside go on in turns.

use std::collections::VecDeque;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use super::faults;
use super::fiber::Fiber;
use super::launch_timeout;
use super::meetings::{
    Meeting, Step, failure, give_turns, missing_lane, release, resume_until_failure, stuck, votes,
};
use super::output::{LaunchOutput, Printing};
use super::runtime::{BlockProgress, LANES, LaunchParameters, RUNTIME, RunBlocks};
use super::sanitizer::CheckOfBlock;
use super::thread_memory::{KeptMemory, ThreadMemory};
use super::turns;
use super::waiting::{self, Answer, Wait};
use super::work::Work;

/// What watches the threads of blocks.
pub(super) trait Observer {
    /// Threads wait at a barrier, in order, each at a place in the library. Says why that fails the
    /// launch, if it does: some of the block's threads may have ended.
    fn judge_barrier(&self, block: u64, waiting: &[(u32, usize)], threads: u32) -> Option<String>;
    /// All threads of the block have come to a barrier.
    fn pass_barrier(&self, block: u64);
    /// Lanes of a warp have met.
    fn pass_meeting(&self, block: u64, meeting: &Meeting);
    /// A thread waits at a place in the library for lanes of its warp, of which one does not come.
    /// Says why that fails the launch.
    fn judge_stuck(&self, block: u64, waiting: u32, code: usize, missing: u32) -> Option<String>;
    /// The block that runs is set aside. Returns what is known of it.
    fn set_aside(&self) -> CheckOfBlock;
    /// A block that was set aside goes on.
    fn bring_back(&self, of_block: CheckOfBlock);
}

/// After so many steps in which its threads only wait for memory, a block is set aside.
const TURNS_MAX: u32 = 4;

/// Whether the blocks that are set aside on this thread of the machine only wait.
#[derive(Default)]
struct Watch {
    /// The changes of the launch when they last went on.
    changes: u64,
    /// How often they have gone on since then.
    rounds: u32,
}

impl Watch {
    fn begin(&mut self, changes: u64) {
        if changes != self.changes {
            *self = Self { changes, rounds: 0 };
        }
    }

    /// Whether nothing has changed in two rounds, for the first time. In the second one all threads
    /// have seen what others wrote before the last change was seen.
    fn is_still(&mut self, changes: u64) -> bool {
        self.rounds = if changes == self.changes { self.rounds.saturating_add(1) } else { 0 };
        self.rounds == 2
    }

    /// Leaves the processor to others if there is nothing else to do.
    fn pause(&self) {
        match self.rounds {
            0 => {}
            1..50 => thread::yield_now(),
            _ => thread::sleep(PAUSE),
        }
    }
}

/// How long blocks rest that wait for others for long.
const PAUSE: Duration = Duration::from_micros(200);

/// A block's code and how far it has come.
pub(super) struct BlockRunner<'a> {
    run: RunBlocks,
    launch: &'a LaunchParameters,
    progress: Box<BlockProgress>,
    end: u64,
    /// The threads of the block that have a stack of their own, in order.
    threads: Vec<Fiber>,
    observer: Option<&'a dyn Observer>,
    /// Where the blocks print, if a listener wants it.
    output: Option<&'a LaunchOutput>,
    /// The memory of a block, without which blocks run one after the other.
    memory: Option<&'a ThreadMemory>,
    /// The blocks that wait for others.
    aside: VecDeque<SetAside>,
}

/// A block that waits for others.
struct SetAside {
    block: u64,
    threads: Vec<Fiber>,
    memory: KeptMemory,
    check: Option<CheckOfBlock>,
}

impl<'a> BlockRunner<'a> {
    /// # Safety
    ///
    /// `run` is the entry of a kernel whose parameters those of `launch` are, and the kernel
    /// accesses only memory that its caller allows.
    pub(super) unsafe fn new(run: RunBlocks, launch: &'a LaunchParameters) -> Self {
        Self {
            run,
            launch,
            progress: Box::default(),
            end: 0,
            threads: Vec::new(),
            observer: None,
            output: None,
            memory: None,
            aside: VecDeque::new(),
        }
    }

    /// The same, whose blocks take turns if they wait for each other. The memory is that of the
    /// entry's library.
    pub(super) fn in_turns(&mut self, memory: Option<&'a ThreadMemory>) -> &mut Self {
        self.memory = memory;
        self
    }

    /// The same, watched by an observer.
    pub(super) fn observed_by(&mut self, observer: &'a dyn Observer) -> &mut Self {
        self.observer = Some(observer);
        self
    }

    /// The same, whose blocks print to a listener's output.
    pub(super) fn printing_to(&mut self, output: Option<&'a LaunchOutput>) -> &mut Self {
        self.output = output;
        self
    }

    /// How far the blocks have come, as long as this value lives.
    pub(super) fn progress(&self) -> *const BlockProgress {
        std::ptr::from_ref(&*self.progress)
    }

    /// Runs blocks until none is left. The error says why the launch failed.
    pub(super) fn run(&mut self, work: &Work) -> Result<(), String> {
        if !waiting::can_run_blocks() {
            return Err(ending_thread());
        }
        faults::prepare_thread();
        turns::begin();
        let _watched = faults::Watched::new();
        // SAFETY: the output outlives this value, and so the call.
        let _printing = unsafe { Printing::to(self.output) };
        work.begin_worker();
        let outcome = self.run_parts(work);
        work.end_worker();
        let aside = self.aside.drain(..).flat_map(|block| block.threads);
        self.threads.drain(..).chain(aside).for_each(Fiber::end);
        outcome
    }

    fn run_parts(&mut self, work: &Work) -> Result<(), String> {
        while let Some(blocks) = work.take() {
            launch_timeout::start();
            self.run_part(blocks, work)?;
        }
        let mut watch = Watch::default();
        while !self.aside.is_empty() {
            self.go_on(work, &mut watch)?;
        }
        Ok(())
    }

    fn run_part(&mut self, blocks: Range<u64>, work: &Work) -> Result<(), String> {
        self.progress.block.set(blocks.start);
        while self.progress.block.get() < blocks.end {
            self.make_room(work)?;
            self.end = blocks.end;
            if self.run_from(0)? {
                let block = self.progress.block.get();
                self.start_others()?;
                if self.schedule(block, work)? {
                    work.end_block();
                } else {
                    self.set_aside(block);
                    work.set_aside();
                }
                self.progress.block.set(block + 1);
            } else {
                work.end_block();
            }
        }
        Ok(())
    }

    /// Lets the blocks that are set aside go on until the next one can begin.
    fn make_room(&mut self, work: &Work) -> Result<(), String> {
        let (next, mut watch) = (self.progress.block.get(), Watch::default());
        while !self.aside.is_empty() {
            if work.begin_another() {
                self.progress.block.set(next);
                return Ok(());
            }
            self.go_on(work, &mut watch)?;
            if let Some(text) = work.hang() {
                return Err(text);
            }
        }
        work.begin_block();
        self.progress.block.set(next);
        Ok(())
    }

    /// Lets each block that is set aside go on for a while.
    fn go_on(&mut self, work: &Work, watch: &mut Watch) -> Result<(), String> {
        watch.begin(work.changes());
        for _ in 0..self.aside.len() {
            let Some(next) = self.aside.pop_front() else { break };
            let block = next.block;
            self.bring_back(next);
            if self.schedule(block, work)? {
                work.end_set_aside();
            } else {
                self.set_aside(block);
            }
        }
        if watch.is_still(work.changes()) {
            work.be_still(watch.changes);
        }
        watch.pause();
        Ok(())
    }

    /// Sets the block that runs aside, with its memory.
    fn set_aside(&mut self, block: u64) {
        let Some(memory) = self.memory else { return };
        let memory = memory.keep(self.launch.shared_bytes as usize);
        let check = self.observer.map(Observer::set_aside);
        let threads = std::mem::take(&mut self.threads);
        self.aside.push_back(SetAside { block, threads, memory, check });
    }

    fn bring_back(&mut self, aside: SetAside) {
        let SetAside { block, threads, memory, check } = aside;
        if let Some(of_thread) = self.memory {
            of_thread.bring_back(&memory);
        }
        if let (Some(observer), Some(check)) = (self.observer, check) {
            observer.bring_back(check);
        }
        self.threads = threads;
        self.progress.block.set(block);
    }

    /// Runs threads from `first` on. Returns whether one of them waits, or was stopped, so that
    /// there may be further ones.
    fn run_from(&mut self, first: u32) -> Result<bool, String> {
        let mut fiber = self.fiber(first)?;
        fiber.resume(Answer::Start);
        if fiber.wait.is_none() {
            let is_stopped = fiber.is_stopped();
            fiber.end();
            return Ok(is_stopped);
        }
        // A thread that has failed at once has not said which it is.
        fiber.thread = self.progress.next.get().wrapping_sub(1);
        self.threads.push(fiber);
        Ok(true)
    }

    /// Runs the threads that have no stack yet until they wait or end.
    fn start_others(&mut self) -> Result<(), String> {
        let block = self.progress.block.get();
        self.end = block + 1;
        // Only the last thread can have failed.
        while failure(self.threads.last()).is_none()
            && self.progress.next.get() < self.launch.threads()
        {
            self.progress.block.set(block);
            self.run_from(self.progress.next.get())?;
        }
        // No stack goes on with another thread, or has gone on to the next block.
        self.progress.next.set(u32::MAX);
        self.progress.block.set(block);
        Ok(())
    }

    /// Runs the threads of a block until all have ended, or all that can run have waited for memory
    /// several times. Returns whether they have ended.
    fn schedule(&mut self, block: u64, work: &Work) -> Result<bool, String> {
        let (mut step, mut turns) = (Step::Went, 0);
        while turns < TURNS_MAX || self.memory.is_none() {
            step = self.step(block, step)?;
            if let Some(text) = work.failure() {
                return Err(text.clone());
            }
            turns = if step == Step::Turned { turns + 1 } else { 0 };
            if work.has_set_aside()
                && (step != Step::Turned || work.is_full() && self.have_changed())
            {
                work.change();
            }
            if step == Step::Done {
                self.threads.drain(..).for_each(Fiber::end);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether threads that have turns keep something else than before their last one.
    fn have_changed(&mut self) -> bool {
        self.threads.iter_mut().filter_map(|thread| thread.has_changed().then_some(())).count() > 0
    }

    /// Runs all threads of a block that can run until they wait again.
    fn step(&mut self, block: u64, last: Step) -> Result<Step, String> {
        if let Some(text) = failure(&self.threads) {
            return Err(text);
        }
        if self.threads.iter().all(|thread| thread.wait.is_none()) {
            return Ok(Step::Done);
        }
        if let Some(count) = votes(&self.threads) {
            if let Some(observer) = self.observer {
                observe_barrier(observer, &self.threads, block, self.launch.threads())?;
            }
            let waiting = self.threads.iter_mut().filter(|thread| thread.wait.is_some());
            resume_until_failure(waiting, |thread| thread.resume(Answer::Count(count)));
            return Ok(Step::Went);
        }
        let has_released = self.release_lanes(block, last);
        let (turns, has_gone_on) = give_turns(&mut self.threads);
        match (has_released || has_gone_on, turns) {
            (true, _) => Ok(Step::Went),
            (false, 1..) => Ok(Step::Turned),
            (false, 0) => Err(self.stuck(block)),
        }
    }

    /// Runs the lanes of warps that can go on. Returns whether there are any.
    fn release_lanes(&mut self, block: u64, last: Step) -> bool {
        let observer = self.observer;
        let warp = |thread: &Fiber| thread.thread / LANES as u32;
        let warps = self.threads.chunk_by_mut(|one, next| warp(one) == warp(next));
        let on_meeting = |meeting: &Meeting| {
            observer.inspect(|observer| observer.pass_meeting(block, meeting));
        };
        let runs = |lanes: &mut [Fiber]| release(lanes, last, &on_meeting).then_some(());
        warps.filter_map(runs).count() > 0
    }

    #[cold]
    fn stuck(&self, block: u64) -> String {
        let judged = self.observer.and_then(|observer| {
            let (waiting, code, missing) = missing_lane(&self.threads)?;
            observer.judge_stuck(block, waiting, code, missing)
        });
        judged.unwrap_or_else(|| stuck(&self.threads, block))
    }

    /// A stack that runs threads from `first` on.
    fn fiber(&self, first: u32) -> Result<Fiber, String> {
        let (run, launch, end) = (self.run, std::ptr::from_ref(self.launch), self.end);
        let progress = std::ptr::from_ref(&*self.progress);
        Fiber::new(progress, move || {
            // SAFETY: `new`'s caller promises that the entry fits the launch. The launch and the
            // progress outlive the fiber, which `run` ends before it returns.
            unsafe { run(launch, &raw const RUNTIME, progress, end, first) };
        })
    }
}

/// The barrier at which threads wait, as an observer sees it.
fn observe_barrier(
    observer: &dyn Observer,
    threads: &[Fiber],
    block: u64,
    threads_of_block: u32,
) -> Result<(), String> {
    let at_barrier = |thread: &Fiber| match thread.wait {
        Some(Wait::Block { code, .. }) => Some((thread.thread, code)),
        _ => None,
    };
    let waiting: Vec<_> = threads.iter().filter_map(at_barrier).collect();
    match observer.judge_barrier(block, &waiting, threads_of_block) {
        Some(text) => Err(text),
        None => {
            observer.pass_barrier(block);
            Ok(())
        }
    }
}

#[cold]
fn ending_thread() -> String {
    String::from(
        "the thread that waits for it is ending, and runs no CUDA C in destructors of its \
         thread-locals: wait for a seeded device before",
    )
}
