//! Names of results.

use resident_stand_in_gpu::code::Code;

pub(crate) const INVALID_PTX: Code = Code(218);
pub(crate) const UNSUPPORTED_PTX_VERSION: Code = Code(222);
/// A hardware error that is contained in a process.
pub(crate) const CONTAINED: Code = Code(226);
pub(crate) const HARDWARE_STACK_ERROR: Code = Code(714);
pub(crate) const ILLEGAL_INSTRUCTION: Code = Code(715);
pub(crate) const MISALIGNED_ADDRESS: Code = Code(716);
pub(crate) const INVALID_ADDRESS_SPACE: Code = Code(717);
pub(crate) const INVALID_PC: Code = Code(718);
pub(crate) const NOT_PERMITTED: Code = Code(800);
