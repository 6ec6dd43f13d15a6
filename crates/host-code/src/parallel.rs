//! Runs the blocks of a launch on several threads of the machine.

use std::ops::Range;
use std::sync::OnceLock;

use super::block::BlockRunner;
use super::output::LaunchOutput;
use super::runtime::{LaunchParameters, RunBlocks};
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

/// Runs all blocks of a launch, on several threads if there are many, and passes what they print to
/// the listener. The caller holds no lock. The error says why the launch failed.
///
/// # Safety
///
/// As for `BlockRunner::new`.
pub unsafe fn run_all(entry: RunBlocks, launch: &LaunchParameters) -> Result<(), String> {
    let output = LaunchOutput::of_launch();
    // SAFETY: the caller promises this.
    let outcome = unsafe { run_blocks(entry, launch, output.as_ref()) };
    output.into_iter().for_each(LaunchOutput::pass_on);
    outcome
}

/// As [`run_all`], printing to `output`.
///
/// # Safety
///
/// As for [`run_all`].
unsafe fn run_blocks(
    entry: RunBlocks,
    launch: &LaunchParameters,
    output: Option<&LaunchOutput>,
) -> Result<(), String> {
    let blocks = launch.blocks();
    let is_small = blocks.saturating_mul(u64::from(launch.threads())) < PARALLEL_THREADS_MIN;
    let threads = THREADS.count() as u64;
    if blocks == 1 || is_small || threads == 1 {
        // SAFETY: the caller promises this.
        let mut runner = unsafe { BlockRunner::new(entry, launch) };
        return runner.printing_to(output).run(0..blocks);
    }
    let parts = (threads * PARTS_PER_THREAD).min(blocks);
    let failed = OnceLock::new();
    let shared = SharedLaunch(launch);
    THREADS.run(parts, &|number| {
        if failed.get().is_some() {
            return;
        }
        // SAFETY: the caller promises this.
        let mut runner = unsafe { BlockRunner::new(entry, shared.get()) };
        if let Err(text) = runner.printing_to(output).run(part(blocks, parts, number)) {
            let _is_first = failed.set(text);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
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

/// The blocks of one of the parts.
fn part(blocks: u64, parts: u64, number: u64) -> Range<u64> {
    let start = |number| (u128::from(blocks) * u128::from(number) / u128::from(parts)) as u64;
    start(number)..start(number + 1)
}
