//! Runs blocks on one thread of the machine. The threads of a block run one after the other on one
//! stack. Once one of them waits for others, its stack is kept, the next thread gets another one,
//! and from then on each thread of the block has a stack of its own.

use super::faults;
use super::fiber::Fiber;
use super::launch_timeout;
use super::output::{LaunchOutput, Printing};
use super::runtime::{BlockProgress, Exchanged, LANES, LaunchParameters, RUNTIME, RunBlocks};
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
        let threads = &mut *self.threads;
        let observer = self.observer;
        loop {
            if let Some(text) = failure(&*threads) {
                return Err(text);
            }
            match (threads.iter().all(|thread| thread.wait.is_none()), votes(threads)) {
                (true, _) => return Ok(()),
                (false, Some(count)) => {
                    if let Some(observer) = observer {
                        observe_barrier(observer, threads, block, self.launch.threads())?;
                    }
                    let waiting = threads.iter_mut().filter(|thread| thread.wait.is_some());
                    resume_until_failure(waiting, |thread| thread.resume(Answer::Count(count)));
                }
                (false, None) => {
                    let warp = |thread: &Fiber| thread.thread / LANES as u32;
                    let warps = threads.chunk_by_mut(|one, next| warp(one) == warp(next));
                    let on_meeting = |meeting: &Meeting| {
                        observer.inspect(|observer| observer.pass_meeting(block, meeting));
                    };
                    let runs = |lanes: &mut [Fiber]| release(lanes, &on_meeting).then_some(());
                    if warps.filter_map(runs).count() == 0 {
                        let judged = observer.and_then(|observer| {
                            let (waiting, code, missing) = missing_lane(threads)?;
                            observer.judge_stuck(block, waiting, code, missing)
                        });
                        return Err(judged.unwrap_or_else(|| stuck(threads, block)));
                    }
                }
            }
        }
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
        let Wait::Block { predicate, .. } = wait else { return None };
        count += u32::from(*predicate);
    }
    Some(count)
}

/// Runs the lanes of a warp whose partners have all come; if there are none, the lanes that want to
/// know each other. Returns whether there are any. Tells `on_meeting` of lanes that met.
fn release(lanes: &mut [Fiber], on_meeting: &impl Fn(&Meeting)) -> bool {
    release_exchanges(lanes, on_meeting) || release_active(lanes)
}

/// Resumes threads. After a failure the others do not run.
fn resume_until_failure<'f>(
    mut threads: impl Iterator<Item = &'f mut Fiber>,
    resume: impl Fn(&mut Fiber),
) {
    let _failed = threads.find_map(|thread| {
        resume(thread);
        matches!(thread.wait, Some(Wait::Failed(_))).then_some(())
    });
}

fn release_active(lanes: &mut [Fiber]) -> bool {
    let bit = |lane: &Fiber| match lane.wait {
        Some(Wait::Active) => 1 << (lane.thread % LANES as u32),
        _ => 0,
    };
    let mask = lanes.iter().map(bit).fold(0, |all: u32, bit| all | bit);
    let active = lanes.iter_mut().filter(|lane| matches!(lane.wait, Some(Wait::Active)));
    resume_until_failure(active, |lane| lane.resume(Answer::Count(mask)));
    mask != 0
}

fn release_exchanges(lanes: &mut [Fiber], on_meeting: &impl Fn(&Meeting)) -> bool {
    let mut released = 0_u64;
    for index in 0..lanes.len() {
        let Some(Wait::Lanes { mask, is_barrier, code, .. }) = lanes[index].wait else { continue };
        if let Some(values) = exchanged(lanes, mask) {
            let thread = lanes[index].thread;
            let came = values[LANES] as u32;
            if thread % LANES as u32 == came.trailing_zeros() {
                let warp = thread / LANES as u32;
                on_meeting(&Meeting { warp, came, mask, is_barrier, code });
            }
            lanes[index].keep_values(&values);
            released |= 1 << index;
        }
    }
    let partners = lanes.iter_mut().enumerate().filter(|(index, _)| released >> index & 1 == 1);
    resume_until_failure(partners.map(|(_, lane)| lane), Fiber::resume_with_values);
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
            Some(Wait::Lanes { mask: same, value, .. }) if same == mask => {
                values[number] = value;
                values[LANES] |= 1 << number;
            }
            Some(_) => return None,
        }
    }
    Some(values)
}

/// A lane that waits for others of its warp and the place where it does, and one of these that
/// waits elsewhere.
fn missing_lane(threads: &[Fiber]) -> Option<(u32, usize, u32)> {
    let waiting = threads.iter().find_map(|thread| match thread.wait {
        Some(Wait::Lanes { mask, code, .. }) => Some((thread.thread, mask, code)),
        _ => None,
    });
    let (first, mask, code) = waiting?;
    let lanes = LANES as u32;
    let waits_elsewhere = |thread: &&Fiber| {
        let is_named =
            thread.thread / lanes == first / lanes && mask >> (thread.thread % lanes) & 1 == 1;
        let is_there = matches!(thread.wait, Some(Wait::Lanes { mask: same, .. }) if same == mask);
        is_named && thread.wait.is_some() && !is_there
    };
    let missing = threads.iter().find(waits_elsewhere)?;
    Some((first, code, missing.thread))
}

#[cold]
fn ending_thread() -> String {
    String::from(
        "the thread that waits for it is ending, and runs no CUDA C in destructors of its \
         thread-locals: wait for a seeded device before",
    )
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
