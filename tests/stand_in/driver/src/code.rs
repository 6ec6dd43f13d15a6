//! Names of results.

use std::ffi::CStr;

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

/// The name of a code and its description in CUDA.
pub(crate) struct Texts {
    pub(crate) name: &'static CStr,
    pub(crate) description: &'static CStr,
}

macro_rules! texts {
    ($($number:literal, $name:literal, $description:literal;)*) => {
        /// The texts of a code, if the stand-in knows it.
        pub(crate) fn texts(code: u32) -> Option<Texts> {
            let (name, description) = match code {
                0 => (c"CUDA_SUCCESS", c"no error"),
                $($number => (c_str(concat!("CUDA_ERROR_", $name, "\0")), $description),)*
                _ => return None,
            };
            Some(Texts { name, description })
        }
    };
}

const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with a zero"),
    }
}

texts! {
    1, "INVALID_VALUE", c"invalid argument";
    2, "OUT_OF_MEMORY", c"out of memory";
    3, "NOT_INITIALIZED", c"initialization error";
    4, "DEINITIALIZED", c"driver shutting down";
    34, "STUB_LIBRARY", c"CUDA driver is a stub library";
    46, "DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable";
    100, "NO_DEVICE", c"no CUDA-capable device is detected";
    101, "INVALID_DEVICE", c"invalid device ordinal";
    200, "INVALID_IMAGE", c"device kernel image is invalid";
    201, "INVALID_CONTEXT", c"invalid device context";
    209, "NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device";
    214, "ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered";
    217, "PEER_ACCESS_UNSUPPORTED", c"peer access is not supported between these two devices";
    218, "INVALID_PTX", c"a PTX JIT compilation failed";
    222, "UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain.";
    226, "CONTAINED", c"Invalid access of peer GPU memory over nvlink or a hardware error";
    300, "INVALID_SOURCE", c"device kernel image is invalid";
    302, "SHARED_OBJECT_SYMBOL_NOT_FOUND", c"shared object symbol not found";
    304, "OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS";
    400, "INVALID_HANDLE", c"invalid resource handle";
    500, "NOT_FOUND", c"named symbol not found";
    600, "NOT_READY", c"device not ready";
    700, "ILLEGAL_ADDRESS", c"an illegal memory access was encountered";
    701, "LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch";
    702, "LAUNCH_TIMEOUT", c"the launch timed out and was terminated";
    704, "PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled";
    705, "PEER_ACCESS_NOT_ENABLED", c"peer access has not been enabled";
    708, "PRIMARY_CONTEXT_ACTIVE", c"cannot set while device is active in this process";
    709, "CONTEXT_IS_DESTROYED", c"context is destroyed";
    710, "ASSERT", c"device-side assert triggered";
    712, "HOST_MEMORY_ALREADY_REGISTERED", c"part or all of the requested memory range \
        is already mapped";
    713, "HOST_MEMORY_NOT_REGISTERED", c"pointer does not correspond to a registered memory region";
    714, "HARDWARE_STACK_ERROR", c"hardware stack error";
    715, "ILLEGAL_INSTRUCTION", c"an illegal instruction was encountered";
    716, "MISALIGNED_ADDRESS", c"misaligned address";
    719, "LAUNCH_FAILED", c"unspecified launch failure";
    800, "NOT_PERMITTED", c"operation not permitted";
    801, "NOT_SUPPORTED", c"operation not supported";
    802, "SYSTEM_NOT_READY", c"system not yet initialized";
    803, "SYSTEM_DRIVER_MISMATCH", c"system has unsupported display driver / cuda \
        driver combination";
    900, "STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing";
    901, "STREAM_CAPTURE_INVALIDATED", c"operation failed due to a previous error during capture";
    903, "STREAM_CAPTURE_UNMATCHED", c"the capture was not initiated in this stream";
    999, "UNKNOWN", c"unknown error";
}
