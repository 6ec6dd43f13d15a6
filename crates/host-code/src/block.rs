//! Runs blocks on one thread of the machine. The threads of a block run one after the other on one
//! stack. Once one of them waits for others, its stack is kept, the next thread gets another one,
//! and from then on each thread of the block has a stack of its own.

use super::faults;
use super::fiber::Fiber;
use super::launch_timeout;
use super::meetings::{
    failure, give_turns, missing_lane, release, resume_until_failure, stuck, votes,
};
use super::output::{LaunchOutput, Printing};
use super::runtime::{BlockProgress, LANES, LaunchParameters, RUNTIME, RunBlocks};
use super::turns;
use super::waiting::{self, Answer, Wait};

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
}

/// Lanes of a warp that meet, at `__syncwarp` or to exchange values.
#[derive(Debug)]
pub(super) struct Meeting {
    pub(super) warp: u32,
    /// The lanes that have come.
    pub(super) came: u32,
    /// Those that they name, of which the others have ended.
    pub(super) mask: u32,
    pub(super) is_barrier: bool,
    /// Where the first of them waits, if the code is checked.
    pub(super) code: usize,
}

/// What threads of a block did in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// All have ended.
    Done,
    /// Some have come to something else than before.
    Went,
    /// Some had a turn, and ask for the next one.
    Turned,
}

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
        }
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

    /// Runs these blocks. The error says why the launch failed.
    pub(super) fn run(&mut self, blocks: std::ops::Range<u64>) -> Result<(), String> {
        if !waiting::can_run_blocks() {
            return Err(ending_thread());
        }
        launch_timeout::start();
        faults::prepare_thread();
        turns::begin();
        // SAFETY: the output outlives this value, and so the call.
        let _printing = unsafe { Printing::to(self.output) };
        self.progress.block.set(blocks.start);
        while self.progress.block.get() < blocks.end {
            self.end = blocks.end;
            if self.run_from(0)? {
                let block = self.progress.block.get();
                let outcome = self.start_others().and_then(|()| self.schedule(block));
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

    /// Runs the threads of a block until all have ended.
    fn schedule(&mut self, block: u64) -> Result<(), String> {
        let mut step = Step::Went;
        while step != Step::Done {
            step = self.step(block, step)?;
        }
        Ok(())
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
        let has_released = self.release_lanes(block, last == Step::Went);
        let (turns, has_gone_on) = give_turns(&mut self.threads);
        match (has_released || has_gone_on, turns) {
            (true, _) => Ok(Step::Went),
            (false, 1..) => Ok(Step::Turned),
            (false, 0) => Err(self.stuck(block)),
        }
    }

    /// Runs the lanes of warps that can go on. Returns whether there are any.
    fn release_lanes(&mut self, block: u64, is_patient: bool) -> bool {
        let observer = self.observer;
        let warp = |thread: &Fiber| thread.thread / LANES as u32;
        let warps = self.threads.chunk_by_mut(|one, next| warp(one) == warp(next));
        let on_meeting = |meeting: &Meeting| {
            observer.inspect(|observer| observer.pass_meeting(block, meeting));
        };
        let runs = |lanes: &mut [Fiber]| release(lanes, is_patient, &on_meeting).then_some(());
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
