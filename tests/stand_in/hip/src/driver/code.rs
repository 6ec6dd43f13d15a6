//! Results of HIP's functions.

use std::ffi::CStr;

/// A hipError_t.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub(super) u32);

/// The result of a function.
pub(super) type Outcome<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $number:literal, $known:literal, $text:literal;)*) => {
        impl Code {
            $(pub(super) const $name: Self = Self($number);)*

            /// Its name and description in HIP, if HIP has it.
            pub(super) fn texts(self) -> Option<(&'static CStr, &'static CStr)> {
                match self {
                    Self::SUCCESS => Some((c"hipSuccess", c"no error")),
                    $(Self::$name => Some(($known, $text)),)*
                    _ => None,
                }
            }
        }
    };
}

impl Code {
    pub(super) const SUCCESS: Self = Self(0);
    /// Calls from host functions and kernels. HIP has no code for them.
    pub(super) const NOT_PERMITTED: Self = Self::NOT_SUPPORTED;

    /// Whether a device that returns it is lost.
    pub(super) fn is_sticky(self) -> bool {
        let sticky = [
            Self::ECC_UNCORRECTABLE,
            Self::ILLEGAL_ADDRESS,
            Self::LAUNCH_TIMEOUT,
            Self::ASSERT,
            Self::LAUNCH_FAILED,
        ];
        sticky.contains(&self)
    }
}

codes! {
    INVALID_VALUE = 1, c"hipErrorInvalidValue", c"invalid argument";
    OUT_OF_MEMORY = 2, c"hipErrorOutOfMemory", c"out of memory";
    NOT_INITIALIZED = 3, c"hipErrorNotInitialized", c"initialization error";
    DEINITIALIZED = 4, c"hipErrorDeinitialized", c"driver shutting down";
    INVALID_CONFIGURATION = 9, c"hipErrorInvalidConfiguration", c"invalid configuration argument";
    INVALID_PITCH = 12, c"hipErrorInvalidPitchValue", c"invalid pitch argument";
    INVALID_DEVICE_POINTER = 17, c"hipErrorInvalidDevicePointer", c"invalid device pointer";
    INVALID_DIRECTION = 21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy";
    INSUFFICIENT_DRIVER = 35, c"hipErrorInsufficientDriver", c"driver version is insufficient for \
        runtime version";
    INVALID_DEVICE_FUNCTION = 98, c"hipErrorInvalidDeviceFunction", c"invalid device function";
    NO_DEVICE = 100, c"hipErrorNoDevice", c"no ROCm-capable device is detected";
    INVALID_DEVICE = 101, c"hipErrorInvalidDevice", c"invalid device ordinal";
    INVALID_IMAGE = 200, c"hipErrorInvalidImage", c"device kernel image is invalid";
    INVALID_CONTEXT = 201, c"hipErrorInvalidContext", c"invalid device context";
    NO_BINARY_FOR_GPU = 209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for \
        execution on the device";
    ECC_UNCORRECTABLE = 214, c"hipErrorECCNotCorrectable", c"uncorrectable ECC error encountered";
    PEER_ACCESS_UNSUPPORTED = 217, c"hipErrorPeerAccessUnsupported", c"peer access is not \
        supported between these two devices";
    INVALID_KERNEL_FILE = 218, c"hipErrorInvalidKernelFile", c"invalid kernel file";
    OPERATING_SYSTEM = 304, c"hipErrorOperatingSystem", c"OS call failed or operation not \
        supported on this OS";
    INVALID_HANDLE = 400, c"hipErrorInvalidHandle", c"invalid resource handle";
    NOT_FOUND = 500, c"hipErrorNotFound", c"named symbol not found";
    NOT_READY = 600, c"hipErrorNotReady", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, c"hipErrorLaunchOutOfResources", c"too many resources requested \
        for launch";
    LAUNCH_TIMEOUT = 702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is \
        already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been \
        enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, c"hipErrorSetOnActiveProcess", c"cannot set while device is \
        active in this process";
    CONTEXT_IS_DESTROYED = 709, c"hipErrorContextIsDestroyed", c"context is destroyed";
    ASSERT = 710, c"hipErrorAssert", c"device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of \
        the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, c"hipErrorHostMemoryNotRegistered", c"pointer does not \
        correspond to a registered memory region";
    LAUNCH_FAILED = 719, c"hipErrorLaunchFailure", c"unspecified launch failure";
    NOT_SUPPORTED = 801, c"hipErrorNotSupported", c"operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"hipErrorStreamCaptureUnsupported", c"operation not \
        permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, c"hipErrorStreamCaptureInvalidated", c"operation failed due \
        to a previous error during capture";
    STREAM_CAPTURE_UNMATCHED = 903, c"hipErrorStreamCaptureUnmatched", c"the capture was not \
        initiated in this stream";
    UNKNOWN = 999, c"hipErrorUnknown", c"unknown error";
}
