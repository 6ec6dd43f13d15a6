//! A kernel's body made of compiled CUDA C.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};
use smallvec::SmallVec;

use super::block::BlockRunner;
use super::library::Library;
use super::runtime::{LaunchParameters, RunBlocks};
use super::waiting::SHARED_BYTES_MAX;
use crate::backend::{KernelBody, ParameterLayout};
use crate::grid::Grid;

/// Launches of fewer threads run on the calling thread: waking another takes longer.
const PARALLEL_THREADS_MIN: u64 = 8 << 10;

/// The most threads that run kernels. Each may need 1,024 stacks of two mappings each, and Linux
/// allows a process 65,530 mappings by default.
const THREADS_MAX: usize = 24;

/// How many parts of a launch there are for each thread of the machine, so that all end together.
const PARTS_PER_THREAD: u64 = 8;

/// A compiled kernel whose parameters fit a signature.
pub(super) struct CompiledBody {
    name: Arc<str>,
    library: Arc<Library>,
    parameters: Box<[ParameterLayout]>,
}

/// Two words of a parameter. Parameters start at multiples of 16 bytes, the largest alignment of
/// vector types.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Pair([u64; 2]);

/// The parameters as the kernel gets them, and where each starts.
#[derive(Default)]
struct Packed {
    pairs: SmallVec<[Pair; 24]>,
    starts: SmallVec<[usize; 16]>,
}

impl CompiledBody {
    pub(super) fn new(
        name: &Arc<str>,
        library: Arc<Library>,
        parameters: Box<[ParameterLayout]>,
    ) -> Self {
        Self { name: Arc::clone(name), library, parameters }
    }

    /// The parameters as the kernel gets them.
    fn pack(&self, words: &[u64], pointers: &[*mut u8]) -> Result<Packed, String> {
        let mut packed = Packed::default();
        let (mut rest, mut pointers) = (words, pointers.iter());
        for (index, parameter) in self.parameters.iter().enumerate() {
            let first = rest.first().copied().unwrap_or_default();
            if let ParameterLayout::Sized { ndim: Some(ndim), .. } = *parameter
                && first != ndim as u64
            {
                return Err(format!(
                    "parameter {index} of the kernel is a view of {ndim} axes, and the argument \
                     has {first}"
                ));
            }
            let (own, behind) = rest.split_at(parameter.words(first).min(rest.len()));
            rest = behind;
            let start = packed.pairs.len();
            packed.starts.push(start);
            let pairs = own.chunks(2).map(|two| Pair([two[0], two.get(1).copied().unwrap_or(0)]));
            packed.pairs.extend(pairs);
            if !matches!(parameter, ParameterLayout::Scalar(_)) {
                packed.pairs[start].0[0] =
                    pointers.next().map_or(0, |pointer| pointer.expose_provenance() as u64);
            }
        }
        Ok(packed)
    }

    fn launch(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) -> Result<(), String> {
        if grid.dynamic_shared_bytes() as usize > SHARED_BYTES_MAX {
            return Err(format!(
                "{} bytes of shared memory were asked for a block, which has at most \
                 {SHARED_BYTES_MAX}; use smaller blocks or tiles",
                grid.dynamic_shared_bytes()
            ));
        }
        let mut packed = self.pack(words, pointers)?;
        let first = packed.pairs.as_mut_ptr();
        let parameters: SmallVec<[*mut c_void; 16]> =
            packed.starts.iter().map(|start| first.wrapping_add(*start).cast()).collect();
        let (blocks, threads) = (grid.blocks(), grid.threads());
        let launch = LaunchParameters {
            parameters: parameters.as_ptr(),
            grid: [blocks.x, blocks.y, blocks.z],
            block: [threads.x, threads.y, threads.z],
            shared_bytes: grid.dynamic_shared_bytes(),
        };
        run_all(self.library.entry(), &launch)
    }
}

// SAFETY: `pack` interprets the words as the signature packed them, which the compiled parameters
// fit (`code::signature`). The code accesses only the footprints of its arrays: the caller of
// `Kernel::cuda` vouches for that.
unsafe impl KernelBody for CompiledBody {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) {
        if let Err(text) = self.launch(grid, words, pointers) {
            // The launch fails as one whose body panics, without the panic hook's message.
            std::panic::resume_unwind(Box::new(text));
        }
    }
}

impl fmt::Debug for CompiledBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledBody({})", self.name)
    }
}

/// Runs all blocks of a launch, on several cores if there are many.
fn run_all(entry: RunBlocks, launch: &LaunchParameters) -> Result<(), String> {
    let blocks = launch.blocks();
    let is_small = blocks.saturating_mul(u64::from(launch.threads())) < PARALLEL_THREADS_MIN;
    let Some(pool) = pool().filter(|_| blocks > 1 && !is_small) else {
        return run_part(entry, launch, 0..blocks);
    };
    let threads = pool.current_num_threads();
    let parts = (threads as u64 * PARTS_PER_THREAD).min(blocks);
    let (next, failed) = (AtomicU64::new(0), OnceLock::new());
    let take_parts = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= parts || failed.get().is_some() {
                break;
            }
            let part = blocks * number / parts..blocks * (number + 1) / parts;
            if let Err(text) = run_part(entry, launch, part) {
                let _is_first = failed.set(text);
            }
        }
    };
    // The calling thread may belong to another pool of rayon's. It takes parts and then waits: with
    // `install` it would run jobs of its pool meanwhile, which may need what the caller holds.
    pool.in_place_scope(|scope| {
        (1..threads).for_each(|_| scope.spawn(|_| take_parts()));
        take_parts();
    });
    failed.into_inner().map_or(Ok(()), Err)
}

fn run_part(entry: RunBlocks, launch: &LaunchParameters, part: Range<u64>) -> Result<(), String> {
    // SAFETY: the entry is that of a library whose parameters `CompiledBody::pack` has packed.
    unsafe { BlockRunner::new(entry, launch) }.run(part)
}

/// The threads that run kernels, with the one that launches; `None` if the system refuses them.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let name = |number| format!("resident kernel {number}");
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let builder = || ThreadPoolBuilder::new().num_threads(threads.min(THREADS_MAX));
    POOL.get_or_init(|| builder().thread_name(name).build().ok()).as_ref()
}
