//! What the stand-in for hiprtc makes of a library: a code object with the library in a section.

#![forbid(unsafe_code)]

use resident_stand_in_code::library::{CodeParameter, Kernel, ParameterKind};
use resident_stand_in_code::object::{self, Described, Kind};
use resident_stand_in_compiler::options::without_repetitions;

/// The maximum number of threads per block without launch bounds.
const THREADS_MAX: u32 = 1024;

/// The code object of kernels for a target, and of the library behind them.
pub(crate) fn code(target: &str, kernels: &[Kernel], library: &[u8]) -> Result<Vec<u8>, String> {
    let described: Vec<Described> = without_repetitions(kernels).map(describe).collect();
    object::write(target, &described, library)
}

fn describe(kernel: &Kernel) -> Described {
    Described {
        name: kernel.symbol.clone(),
        parameters: kernel.parameters.iter().map(parameter).collect(),
        threads_max: kernel.max_threads.unwrap_or(THREADS_MAX),
    }
}

fn parameter(parameter: &CodeParameter) -> (usize, usize, Kind) {
    let kind = match parameter.kind() {
        ParameterKind::Pointer { .. } => Kind::Pointer,
        _ => Kind::Value,
    };
    (parameter.len_bytes as usize, parameter.align_bytes as usize, kind)
}
