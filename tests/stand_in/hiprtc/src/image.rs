//! What the stand-in for hiprtc makes of a library: a code object with the library in a section.

#![forbid(unsafe_code)]

use crate::code_library::{CodeParameter, Kernel, ParameterKind};
use crate::code_object::{self, Described, Kind};
use crate::options::Options;

/// What a compilation yields.
pub(crate) type Code = Vec<u8>;

/// The maximum number of threads per block without launch bounds.
const THREADS_MAX: u32 = 1024;

/// The code object of kernels, and of the library behind them.
pub(crate) fn code(options: &Options, kernels: &[Kernel], library: &[u8]) -> Result<Code, String> {
    let mut described: Vec<Described> = Vec::new();
    for kernel in kernels {
        // A name expression may name a kernel that is no template.
        if described.iter().all(|other| other.name != kernel.symbol) {
            described.push(Described {
                name: kernel.symbol.clone(),
                parameters: kernel.parameters.iter().map(parameter).collect(),
                threads_max: kernel.max_threads.unwrap_or(THREADS_MAX),
            });
        }
    }
    code_object::write(&options.target, &described, library)
}

fn parameter(parameter: &CodeParameter) -> (usize, usize, Kind) {
    let kind = match parameter.kind() {
        ParameterKind::Pointer { .. } => Kind::Pointer,
        _ => Kind::Value,
    };
    (parameter.len_bytes as usize, parameter.align_bytes as usize, kind)
}
