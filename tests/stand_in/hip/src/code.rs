//! Names of results.

use resident_stand_in_gpu::code::Code;
use resident_stand_in_gpu::texts::{self, Names, Texts};

pub(crate) const INVALID_CONFIGURATION: Code = Code(9);
pub(crate) const INVALID_PITCH: Code = Code(12);
pub(crate) const INVALID_DIRECTION: Code = Code(21);
pub(crate) const INVALID_DEVICE_FUNCTION: Code = Code(98);

/// The texts of a code. HIP has some for each number.
pub(crate) fn texts(code: u32) -> Texts {
    const UNKNOWN: Texts = Texts { name: c"hipErrorUnknown", description: c"unknown error" };
    texts::texts(Names::Hip, code).unwrap_or(UNKNOWN)
}
