//! A kernel's body made of compiled CUDA C.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use smallvec::SmallVec;

use super::block::BlockRunner;
use super::library::Library;
use super::runtime::{LaunchParameters, RunBlocks};
use crate::backend::{KernelBody, ParameterLayout};
use crate::grid::Grid;

/// Launches of fewer threads run on the calling thread: waking another takes longer.
const PARALLEL_THREADS_MIN: u64 = 8 << 10;

/// How many parts of a launch there are for each thread of the machine, so that all end together.
const PARTS_PER_THREAD: u64 = 8;

/// A compiled kernel whose parameters fit a signature.
pub(super) struct CompiledBody {
    name: Arc<str>,
    library: Arc<Library>,
    parameters: Box<[ParameterLayout]>,
}

/// The words of a launch, in which addresses replace what they replace in device code; and where
/// each parameter starts.
#[derive(Default)]
struct Packed {
    words: SmallVec<[u64; 32]>,
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
            let start = packed.words.len();
            packed.starts.push(start);
            packed.words.extend_from_slice(own);
            if !matches!(parameter, ParameterLayout::Scalar(_)) {
                packed.words[start] =
                    pointers.next().map_or(0, |pointer| pointer.expose_provenance() as u64);
            }
        }
        Ok(packed)
    }

    fn launch(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) -> Result<(), String> {
        let mut packed = self.pack(words, pointers)?;
        let first = packed.words.as_mut_ptr();
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

/// Runs all blocks of a launch, on all cores if there are many.
fn run_all(entry: RunBlocks, launch: &LaunchParameters) -> Result<(), String> {
    let blocks = launch.blocks();
    let is_small = blocks.saturating_mul(u64::from(launch.threads())) < PARALLEL_THREADS_MIN;
    match pool() {
        Some(pool) if blocks > 1 && !is_small => {
            let parts = (pool.current_num_threads() as u64 * PARTS_PER_THREAD).min(blocks);
            let part = |number: u64| blocks * number / parts..blocks * (number + 1) / parts;
            pool.install(|| {
                (0..parts)
                    .into_par_iter()
                    .try_for_each(|number| run_part(entry, launch, part(number)))
            })
        }
        _ => run_part(entry, launch, 0..blocks),
    }
}

fn run_part(entry: RunBlocks, launch: &LaunchParameters, part: Range<u64>) -> Result<(), String> {
    // SAFETY: the entry is that of a library whose parameters `CompiledBody::pack` has packed.
    unsafe { BlockRunner::new(entry, launch) }.run(part)
}

/// The threads that run kernels; `None` if the system refuses them.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let name = |number| format!("resident kernel {number}");
    POOL.get_or_init(|| ThreadPoolBuilder::new().thread_name(name).build().ok()).as_ref()
}
