//! Runs blocks on one thread of the machine. The threads of a block run one after the other on one
//! stack. Once one of them waits for others, its stack is kept, the next thread gets another one,
//! and from then on each thread of the block has a stack of its own.

use super::fiber::Fiber;
use super::runtime::{Exchanged, LANES, LaunchParameters, Progress, RUNTIME, RunBlocks};
use super::waiting::{Answer, Wait};

/// A block's code and how far it has come.
pub(super) struct BlockRunner<'a> {
    run: RunBlocks,
    launch: &'a LaunchParameters,
    progress: Box<Progress>,
    end: u64,
    /// The threads of the block that have a stack of their own, in order.
    threads: Vec<Fiber>,
}

impl<'a> BlockRunner<'a> {
    /// # Safety
    ///
    /// `run` is the entry of a kernel whose parameters those of `launch` are, and the kernel
    /// accesses only memory that its caller allows.
    pub(super) unsafe fn new(run: RunBlocks, launch: &'a LaunchParameters) -> Self {
        Self { run, launch, progress: Box::default(), end: 0, threads: Vec::new() }
    }

    /// Runs these blocks. The error says why the launch failed.
    pub(super) fn run(&mut self, blocks: std::ops::Range<u64>) -> Result<(), String> {
        self.progress.block.set(blocks.start);
        while self.progress.block.get() < blocks.end {
            self.end = blocks.end;
            if self.run_from(0)? {
                let block = self.progress.block.get();
                let outcome = self.start_others().and_then(|()| schedule(&mut self.threads, block));
                self.threads.drain(..).for_each(Fiber::end);
                outcome?;
                self.progress.block.set(block + 1);
            }
        }
        Ok(())
    }

    /// Runs threads from `first` on. Returns whether one of them waits.
    fn run_from(&mut self, first: u32) -> Result<bool, String> {
        let mut fiber = self.fiber(first)?;
        fiber.resume(Answer::Start);
        if fiber.wait.is_none() {
            fiber.end();
            return Ok(false);
        }
        fiber.thread = self.progress.next.get() - 1;
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
        // No stack goes on with another thread.
        self.progress.next.set(u32::MAX);
        Ok(())
    }

    /// A stack that runs threads from `first` on.
    fn fiber(&self, first: u32) -> Result<Fiber, String> {
        let (run, launch, end) = (self.run, std::ptr::from_ref(self.launch), self.end);
        let progress = std::ptr::from_ref(&*self.progress);
        Fiber::new(move || {
            // SAFETY: `new`'s caller promises that the entry fits the launch. The launch and the
            // progress outlive the fiber, which `run` ends before it returns.
            unsafe { run(launch, &raw const RUNTIME, progress, end, first) };
        })
    }
}

/// Runs the threads of a block until all have ended.
fn schedule(threads: &mut [Fiber], block: u64) -> Result<(), String> {
    loop {
        if let Some(text) = failure(&*threads) {
            return Err(text);
        }
        match (threads.iter().all(|thread| thread.wait.is_none()), votes(threads)) {
            (true, _) => return Ok(()),
            (false, Some(count)) => {
                let waiting = threads.iter_mut().filter(|thread| thread.wait.is_some());
                waiting.for_each(|thread| thread.resume(Answer::Count(count)));
            }
            (false, None) => {
                let warp = |thread: &Fiber| thread.thread / LANES as u32;
                let warps = threads.chunk_by_mut(|one, next| warp(one) == warp(next));
                if warps.filter_map(|lanes| release(lanes).then_some(())).count() == 0 {
                    return Err(stuck(threads, block));
                }
            }
        }
    }
}

/// Why a thread has failed.
fn failure<'f>(threads: impl IntoIterator<Item = &'f Fiber>) -> Option<String> {
    threads.into_iter().find_map(|thread| match &thread.wait {
        Some(Wait::Failed(text)) => Some(text.clone()),
        _ => None,
    })
}

/// For how many threads the predicate holds, if all threads wait for the block. Threads that have
/// ended do not count, as on a GPU.
fn votes(threads: &[Fiber]) -> Option<u32> {
    let mut count = 0;
    for wait in threads.iter().filter_map(|thread| thread.wait.as_ref()) {
        let Wait::Block { predicate } = wait else { return None };
        count += u32::from(*predicate);
    }
    Some(count)
}

/// Runs the lanes of a warp whose partners have all come; if there are none, the lanes that want to
/// know each other. Returns whether there are any.
fn release(lanes: &mut [Fiber]) -> bool {
    release_exchanges(lanes) || release_active(lanes)
}

fn release_active(lanes: &mut [Fiber]) -> bool {
    let bit = |lane: &Fiber| match lane.wait {
        Some(Wait::Active) => 1 << (lane.thread % LANES as u32),
        _ => 0,
    };
    let mask = lanes.iter().map(bit).fold(0, |all: u32, bit| all | bit);
    let active = lanes.iter_mut().filter(|lane| matches!(lane.wait, Some(Wait::Active)));
    active.for_each(|lane| lane.resume(Answer::Count(mask)));
    mask != 0
}

fn release_exchanges(lanes: &mut [Fiber]) -> bool {
    let mut released = 0_u64;
    for index in 0..lanes.len() {
        let Some(Wait::Lanes { mask, .. }) = lanes[index].wait else { continue };
        if let Some(values) = exchanged(lanes, mask) {
            lanes[index].keep_values(&values);
            released |= 1 << index;
        }
    }
    for (index, lane) in lanes.iter_mut().enumerate() {
        if released >> index & 1 == 1 {
            lane.resume_with_values();
        }
    }
    released != 0
}

/// What the lanes in `mask` passed; `None` if some have not come. Lanes that have ended do not
/// count.
fn exchanged(lanes: &[Fiber], mask: u32) -> Option<Exchanged> {
    let mut values = [0; LANES + 1];
    for lane in lanes {
        let number = lane.thread as usize % LANES;
        match lane.wait {
            _ if mask >> number & 1 == 0 => {}
            None => {}
            Some(Wait::Lanes { mask: same, value }) if same == mask => {
                values[number] = value;
                values[LANES] |= 1 << number;
            }
            Some(_) => return None,
        }
    }
    Some(values)
}

#[cold]
fn stuck(threads: &[Fiber], block: u64) -> String {
    let waiting = threads.iter().filter(|thread| thread.wait.is_some()).count();
    let at_barrier =
        threads.iter().filter(|thread| matches!(thread.wait, Some(Wait::Block { .. }))).count();
    format!(
        "the threads of block {block} wait for each other for ever: {at_barrier} at \
         `__syncthreads` and {} at operations of a warp whose mask names lanes that do not come; \
         let all threads of the block, and all lanes of the mask, reach the same one",
        waiting - at_barrier
    )
}
