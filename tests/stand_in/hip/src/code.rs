//! Names of results.

use std::ffi::CStr;

use resident_stand_in_gpu::code::Code;

pub(crate) const INVALID_CONFIGURATION: Code = Code(9);
pub(crate) const INVALID_PITCH: Code = Code(12);
pub(crate) const INVALID_DIRECTION: Code = Code(21);

/// The name of a code and its description in HIP.
pub(crate) struct Texts {
    pub(crate) name: &'static CStr,
    pub(crate) description: &'static CStr,
}

/// The texts of a code. HIP has some for each number.
pub(crate) fn texts(code: u32) -> Texts {
    const UNKNOWN: (u32, &CStr, &CStr) = (999, c"hipErrorUnknown", c"unknown error");
    let known = TEXTS.iter().find(|(number, ..)| *number == code);
    let (_, name, description) = *known.unwrap_or(&UNKNOWN);
    Texts { name, description }
}

static TEXTS: [(u32, &CStr, &CStr); 38] = [
    (0, c"hipSuccess", c"no error"),
    (1, c"hipErrorInvalidValue", c"invalid argument"),
    (2, c"hipErrorOutOfMemory", c"out of memory"),
    (3, c"hipErrorNotInitialized", c"initialization error"),
    (4, c"hipErrorDeinitialized", c"driver shutting down"),
    (9, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
    (12, c"hipErrorInvalidPitchValue", c"invalid pitch argument"),
    (17, c"hipErrorInvalidDevicePointer", c"invalid device pointer"),
    (21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (35, c"hipErrorInsufficientDriver", c"driver version is insufficient for runtime version"),
    (98, c"hipErrorInvalidDeviceFunction", c"invalid device function"),
    (100, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
    (101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (200, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    (201, c"hipErrorInvalidContext", c"invalid device context"),
    (209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    (214, c"hipErrorECCNotCorrectable", c"uncorrectable ECC error encountered"),
    (
        217,
        c"hipErrorPeerAccessUnsupported",
        c"peer access is not supported between these two devices",
    ),
    (218, c"hipErrorInvalidKernelFile", c"invalid kernel file"),
    (304, c"hipErrorOperatingSystem", c"OS call failed or operation not supported on this OS"),
    (400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (500, c"hipErrorNotFound", c"named symbol not found"),
    (600, c"hipErrorNotReady", c"device not ready"),
    (700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    (701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
    (702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
    (704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    (705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
    (708, c"hipErrorSetOnActiveProcess", c"cannot set while device is active in this process"),
    (709, c"hipErrorContextIsDestroyed", c"context is destroyed"),
    (710, c"hipErrorAssert", c"device-side assert triggered"),
    (
        712,
        c"hipErrorHostMemoryAlreadyRegistered",
        c"part or all of the requested memory range is already mapped",
    ),
    (
        713,
        c"hipErrorHostMemoryNotRegistered",
        c"pointer does not correspond to a registered memory region",
    ),
    (719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (801, c"hipErrorNotSupported", c"operation not supported"),
    (900, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing"),
    (
        901,
        c"hipErrorStreamCaptureInvalidated",
        c"operation failed due to a previous error during capture",
    ),
    (903, c"hipErrorStreamCaptureUnmatched", c"the capture was not initiated in this stream"),
];
