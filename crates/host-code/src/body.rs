//! A kernel's body made of compiled CUDA C.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::kernel_list::ListedKernel;
use super::library::Library;
use super::parallel::run_in_turns;
use super::runtime::LaunchParameters;
use super::sanitizer::{CheckedLaunch, Findings, ParameterNames};
use super::waiting::SHARED_BYTES_MAX;
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::{KernelAttributes, KernelBody, ParameterLayout};

/// A compiled kernel whose parameters fit a signature.
#[derive(Clone)]
pub(super) struct CompiledBody {
    name: Arc<str>,
    library: Arc<Library>,
    kernel: Arc<KernelOfBody>,
    parameters: Arc<[ParameterLayout]>,
    /// Where to put what a check finds, if the launches are checked.
    findings: Option<Arc<Findings>>,
    /// The names of the arrays of the only launch, and its line, if they are known.
    array_names: Vec<String>,
    site: Option<CallSite>,
}

/// The kernel in the library, and the names of its parameters, for findings.
struct KernelOfBody {
    listed: ListedKernel,
    names: Option<ParameterNames>,
    attributes: KernelAttributes,
}

/// The parameters as the kernel gets them, and the word at which each starts. Compiled code copies
/// them to where they are aligned (`entry.hpp`).
#[derive(Default)]
struct Packed {
    words: SmallVec<[u64; 24]>,
    starts: SmallVec<[usize; 16]>,
}

impl CompiledBody {
    pub(super) fn new(
        name: &Arc<str>,
        library: Arc<Library>,
        listed: ListedKernel,
        parameters: Box<[ParameterLayout]>,
        findings: Option<Arc<Findings>>,
    ) -> Self {
        let (name, parameters) = (Arc::clone(name), parameters.into());
        let names = library.checked().map(|checked| checked.parameter_names(&listed.name));
        let threads_max = listed.threads_max.unwrap_or(u32::MAX);
        let attributes = KernelAttributes::of_host_code(listed.shared_bytes, threads_max);
        let kernel = Arc::new(KernelOfBody { listed, names, attributes });
        let (array_names, site) = (Vec::new(), None);
        Self { name, library, kernel, parameters, findings, array_names, site }
    }

    /// The parameters as the kernel gets them.
    fn pack(&self, words: &[u64], pointers: &[*mut u8]) -> Result<Packed, String> {
        let (all, starts) = (SmallVec::from_slice(words), SmallVec::new());
        let mut packed = Packed { words: all, starts };
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
            let start = words.len() - rest.len();
            packed.starts.push(start);
            rest = &rest[parameter.words(first).min(rest.len())..];
            if parameter.access().is_some() {
                packed.words[start] =
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
        let first = packed.words.as_mut_ptr();
        let parameters: SmallVec<[*mut c_void; 16]> =
            packed.starts.iter().map(|start| first.wrapping_add(*start).cast()).collect();
        let blocks = grid.blocks();
        let threads = grid.threads();
        let launch = LaunchParameters {
            parameters: parameters.as_ptr(),
            grid: [blocks.x, blocks.y, blocks.z],
            block: [threads.x, threads.y, threads.z],
            shared_bytes: grid.dynamic_shared_bytes(),
            kernel: self.kernel.listed.c_name.as_ptr(),
        };
        let entry = self.kernel.listed.run;
        let _running = self.library.run();
        let (Some(findings), Some(library), Some(parameter_names)) =
            (&self.findings, self.library.checked(), &self.kernel.names)
        else {
            // SAFETY: the entry is that of a library whose parameters `pack` has packed; the caller
            // of `Kernel::cuda` vouches for what the code accesses.
            return unsafe { run_in_turns(entry, &launch, self.library.thread_memory()) };
        };
        let checked = CheckedLaunch {
            kernel: &self.name,
            library,
            thread_memory: self.library.thread_memory(),
            parameter_names,
            entry,
            launch: &launch,
            parameters: &self.parameters,
            words,
            pointers,
            array_names: &self.array_names,
            site: self.site,
        };
        // SAFETY: as above.
        unsafe { checked.run(findings) }
    }
}

// SAFETY: `pack` interprets the words as the signature packed them, which the compiled parameters
// fit (`code::signature`). The code accesses only the footprints of its arrays: the caller of
// `Kernel::cuda` vouches for that.
unsafe impl KernelBody for CompiledBody {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn attributes(&self) -> KernelAttributes {
        self.kernel.attributes
    }

    fn for_launch(
        &self,
        array_names: &dyn Fn() -> Vec<String>,
        site: CallSite,
    ) -> Option<Arc<dyn KernelBody>> {
        // Only findings name arrays.
        self.findings.as_ref()?;
        Some(Arc::new(Self { array_names: array_names(), site: Some(site), ..self.clone() }))
    }

    fn tracks_contents(&self) -> bool {
        self.findings.is_some()
    }

    fn may_leave_out(&self) -> bool {
        // The author of CUDA C vouches for what it leaves out (`Kernel::cuda`).
        false
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
