//! Runs the blocks of a launch on several threads of the machine.

use super::block::BlockRunner;
use super::output::LaunchOutput;
use super::runtime::{LaunchParameters, RunBlocks};
use super::thread_memory::ThreadMemory;
use super::work::Work;
use resident_backend::parallel::Threads;

/// Launches of fewer threads run on the calling thread: waking another takes longer.
const PARALLEL_THREADS_MIN: u64 = 8 << 10;

/// The most threads that run kernels. Each may need 1,024 stacks of two mappings each, and Linux
/// allows a process 65,530 mappings by default.
const THREADS_MAX: usize = 24;

/// The threads that run kernels.
static THREADS: Threads = Threads::new("resident kernel", THREADS_MAX);

/// How many parts of a launch there are for each thread of the machine, so that all end together.
const PARTS_PER_THREAD: u64 = 8;

/// As `run_in_turns`, whose blocks run one after the other on each thread.
///
/// # Safety
///
/// As for `BlockRunner::new`.
pub unsafe fn run_all(entry: RunBlocks, launch: &LaunchParameters) -> Result<(), String> {
    // SAFETY: the caller promises this.
    unsafe { run_in_turns(entry, launch, None) }
}

/// Runs all blocks of a launch, on several threads if there are many, and passes what they print to
/// the listener. The caller holds no lock. The error says why the launch failed.
///
/// # Safety
///
/// As for `BlockRunner::new`. The memory is that of the entry's library.
pub(super) unsafe fn run_in_turns(
    entry: RunBlocks,
    launch: &LaunchParameters,
    memory: Option<&ThreadMemory>,
) -> Result<(), String> {
    let output = LaunchOutput::of_launch();
    // SAFETY: the caller promises this.
    let outcome = unsafe { run_blocks(entry, launch, memory, output.as_ref()) };
    output.into_iter().for_each(LaunchOutput::pass_on);
    outcome
}

/// As `run_in_turns`, printing to `output`.
///
/// # Safety
///
/// As for `run_in_turns`.
unsafe fn run_blocks(
    entry: RunBlocks,
    launch: &LaunchParameters,
    memory: Option<&ThreadMemory>,
    output: Option<&LaunchOutput>,
) -> Result<(), String> {
    let blocks = launch.blocks();
    let is_small = blocks.saturating_mul(u64::from(launch.threads())) < PARALLEL_THREADS_MIN;
    let threads = THREADS.count() as u64;
    if blocks == 1 || is_small || threads == 1 {
        // SAFETY: the caller promises this.
        let mut runner = unsafe { BlockRunner::new(entry, launch) };
        let work = Work::new(blocks, 1, launch.threads());
        return runner.in_turns(memory).printing_to(output).run(&work);
    }
    let parts = (threads * PARTS_PER_THREAD).min(blocks);
    let work = Work::new(blocks, parts, launch.threads());
    let shared = SharedLaunch(launch);
    // Each worker takes parts until there are none: one whose blocks wait for others takes more.
    THREADS.run(threads.min(parts), &|_worker| {
        // SAFETY: the caller promises this.
        let mut runner = unsafe { BlockRunner::new(entry, shared.get()) };
        if let Err(text) = runner.in_turns(memory).printing_to(output).run(&work) {
            work.fail(text);
        }
    });
    work.outcome()
}

/// A launch that several threads read.
struct SharedLaunch<'a>(&'a LaunchParameters);

// SAFETY: all threads only read the launch, and what its pointers lead to.
unsafe impl Sync for SharedLaunch<'_> {}

impl SharedLaunch<'_> {
    fn get(&self) -> &LaunchParameters {
        self.0
    }
}
