//! Launches of kernels that the stand-in for NVRTC compiled.

use std::ffi::c_void;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::call;
use crate::code::{Code, Outcome};
use crate::kernel::{Packing, Prepared, Shape};
use crate::work;
use resident_backend::grid::Grid;
use resident_backend::{KernelBody, rust_body};
use resident_host_code::parallel::run_all;
use resident_host_code::runtime::LaunchParameters;
use resident_stand_in_client::protocol::{Access, Length, Parameter};
use resident_stand_in_code::library::{CodeLibrary, CodeParameter, ParameterKind};

/// One launch.
pub(crate) struct CodeLaunch {
    name: Arc<str>,
    library: Arc<CodeLibrary>,
    index: usize,
    shape: Shape,
    /// The parameters, one after the other.
    pairs: SmallVec<[Pair; 24]>,
    /// The pair at which each parameter starts.
    starts: SmallVec<[usize; 16]>,
    /// The addresses among the parameters: the index of the word, and of the engine's pointer.
    addresses: SmallVec<[(usize, usize); 16]>,
}

/// Two words of a parameter. Parameters start at multiples of 16 bytes, the largest alignment of
/// vector types.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Pair([u64; 2]);

impl CodeLaunch {
    /// The launch of a kernel of a library, whose parameters may be declared.
    pub(crate) fn new(
        name: Arc<str>,
        (library, index): (Arc<CodeLibrary>, usize),
        shape: Shape,
        packing: &mut Packing<'_>,
        declared: Option<&[Parameter]>,
    ) -> Outcome<Self> {
        let no_addresses = SmallVec::new();
        let (pairs, starts) = Default::default();
        let mut launch =
            Self { name, library, index, shape, pairs, starts, addresses: no_addresses };
        let library = Arc::clone(&launch.library);
        for (index, parameter) in library.kernels[launch.index].parameters.iter().enumerate() {
            let start = launch.push(&packing.values[index]);
            let declared = declared.and_then(|declared| declared.get(index));
            launch.find_addresses(packing, index, start, *parameter, declared)?;
        }
        Ok(launch)
    }

    /// Adds a parameter, and returns the index of its first word.
    fn push(&mut self, value: &[u8]) -> usize {
        let start = self.pairs.len();
        self.starts.push(start);
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        };
        let pair = |bytes: &[u8]| {
            let (first, second) = bytes.split_at(bytes.len().min(8));
            Pair([word(first), word(second)])
        };
        self.pairs.extend(value.chunks(16).map(pair));
        2 * start
    }

    fn find_addresses(
        &mut self,
        packing: &mut Packing<'_>,
        index: usize,
        start: usize,
        parameter: CodeParameter,
        declared: Option<&Parameter>,
    ) -> Outcome {
        let known = match declared {
            Some(Parameter::Scalar { .. }) | None => of_type(parameter),
            Some(known) => Some(*known),
        };
        if let Some(known) = known {
            if packing.word(index, 0) != 0 {
                packing.add(index, known)?;
                if let Some(Prepared::Array { pointer, .. }) = packing.prepared.pop() {
                    self.addresses.push((start, pointer));
                }
            }
        } else if parameter.kind() != ParameterKind::Floating {
            for word in 0..parameter.len_bytes as usize / 8 {
                let pointer = packing.pointer(packing.word(index, word));
                self.addresses.extend(pointer.map(|pointer| (start + word, pointer)));
            }
        }
        Ok(())
    }

    /// The launch as a body of the engine.
    pub(crate) fn into_body(self) -> Arc<dyn KernelBody> {
        let name = Arc::clone(&self.name);
        let run = move |_: Grid, _: &[u64], pointers: &[*mut u8]| self.run_or_fail(pointers);
        // SAFETY: the engine computed the pointers from the footprints that `Packing` made of the
        // same parameters. That the kernel accesses nothing else is the promise of the driver's
        // caller.
        unsafe { rust_body(name, run) }
    }

    fn run_or_fail(&self, pointers: &[*mut u8]) {
        if let Err(text) = self.run(pointers) {
            let is_assertion = text.contains("assert");
            call::note(format!("kernel \"{}\" failed: {text}", self.name));
            work::fail_with(if is_assertion { Code::ASSERT } else { Code::LAUNCH_FAILED });
        }
    }

    fn run(&self, pointers: &[*mut u8]) -> Result<(), String> {
        let mut pairs = self.pairs.clone();
        for (word, pointer) in &self.addresses {
            pairs[word / 2].0[word % 2] = pointers[*pointer].expose_provenance() as u64;
        }
        let first = pairs.as_mut_ptr();
        let parameters: SmallVec<[*mut c_void; 16]> =
            self.starts.iter().map(|start| first.wrapping_add(*start).cast()).collect();
        let Shape { grid, block, shared_bytes } = self.shape;
        let launch = LaunchParameters {
            parameters: parameters.as_ptr(),
            grid,
            block,
            shared_bytes,
            kernel: c"resident_no_kernel".as_ptr(),
        };
        // SAFETY: the entry is that of the kernel whose parameters these are, of the sizes that the
        // library tells. The caller of the driver guarantees that the kernel accesses only memory
        // that it may.
        unsafe { run_all(self.library.kernels[self.index].run, &launch) }
    }
}

/// What the type of a parameter tells of the memory that a kernel accesses. A value is nothing.
fn of_type(parameter: CodeParameter) -> Option<Parameter> {
    let access = |is_const| if is_const { Access::Read } else { Access::ReadWrite };
    match parameter.kind() {
        ParameterKind::Pointer { is_const } => {
            Some(Parameter::Pointer { access: access(is_const), length: Length::ToEnd })
        }
        ParameterKind::View { is_const } => Some(Parameter::View {
            dimensions: parameter.len_bytes.saturating_sub(8) / 16,
            element_bytes: parameter.element_bytes,
            access: access(is_const),
        }),
        ParameterKind::Whole | ParameterKind::Floating | ParameterKind::Aggregate => None,
    }
}
