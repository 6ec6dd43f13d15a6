//! Results of driver calls.

use std::ffi::CStr;

/// A CUresult.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub(super) u32);

/// A CUresult: the result of a driver call.
pub(super) type Outcome<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Code {
            $(#[allow(dead_code, reason = "only tests use some of them")]
            pub(super) const $name: Self = Self($number);)*

            /// Its name and description in CUDA, if the stand-in knows it.
            pub(super) fn texts(self) -> Option<(&'static CStr, &'static CStr)> {
                match self {
                    Self::SUCCESS => Some((c"CUDA_SUCCESS", c"no error")),
                    $(Self::$name => {
                        Some((c_str(concat!("CUDA_ERROR_", stringify!($name), "\0")), $text))
                    })*
                    _ => None,
                }
            }
        }
    };
}

const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with a zero"),
    }
}

impl Code {
    pub(super) const SUCCESS: Self = Self(0);

    /// Whether a context that returns it is lost.
    pub(super) fn is_sticky(self) -> bool {
        let sticky = [
            Self::ECC_UNCORRECTABLE,
            Self::CONTAINED,
            Self::ILLEGAL_ADDRESS,
            Self::LAUNCH_TIMEOUT,
            Self::ASSERT,
        ];
        sticky.contains(&self)
            || (Self::HARDWARE_STACK_ERROR.0..=Self::LAUNCH_FAILED.0).contains(&self.0)
    }
}

codes! {
    INVALID_VALUE = 1, c"invalid argument";
    OUT_OF_MEMORY = 2, c"out of memory";
    NOT_INITIALIZED = 3, c"initialization error";
    DEINITIALIZED = 4, c"driver shutting down";
    STUB_LIBRARY = 34, c"CUDA driver is a stub library";
    DEVICE_UNAVAILABLE = 46, c"CUDA-capable device(s) is/are busy or unavailable";
    NO_DEVICE = 100, c"no CUDA-capable device is detected";
    INVALID_DEVICE = 101, c"invalid device ordinal";
    INVALID_IMAGE = 200, c"device kernel image is invalid";
    INVALID_CONTEXT = 201, c"invalid device context";
    NO_BINARY_FOR_GPU = 209, c"no kernel image is available for execution on the device";
    ECC_UNCORRECTABLE = 214, c"uncorrectable ECC error encountered";
    PEER_ACCESS_UNSUPPORTED = 217, c"peer access is not supported between these two devices";
    INVALID_PTX = 218, c"a PTX JIT compilation failed";
    UNSUPPORTED_PTX_VERSION = 222, c"the provided PTX was compiled with an unsupported toolchain.";
    CONTAINED = 226, c"Invalid access of peer GPU memory over nvlink or a hardware error";
    INVALID_SOURCE = 300, c"device kernel image is invalid";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, c"shared object symbol not found";
    OPERATING_SYSTEM = 304, c"OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400, c"invalid resource handle";
    NOT_FOUND = 500, c"named symbol not found";
    NOT_READY = 600, c"device not ready";
    ILLEGAL_ADDRESS = 700, c"an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, c"too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, c"the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, c"peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, c"cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, c"context is destroyed";
    ASSERT = 710, c"device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"part or all of the requested memory range is already \
        mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, c"pointer does not correspond to a registered memory region";
    HARDWARE_STACK_ERROR = 714, c"hardware stack error";
    ILLEGAL_INSTRUCTION = 715, c"an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, c"misaligned address";
    LAUNCH_FAILED = 719, c"unspecified launch failure";
    NOT_PERMITTED = 800, c"operation not permitted";
    NOT_SUPPORTED = 801, c"operation not supported";
    SYSTEM_NOT_READY = 802, c"system not yet initialized";
    SYSTEM_DRIVER_MISMATCH = 803, c"system has unsupported display driver / cuda driver \
        combination";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, c"operation failed due to a previous error during capture";
    STREAM_CAPTURE_UNMATCHED = 903, c"the capture was not initiated in this stream";
    UNKNOWN = 999, c"unknown error";
}
