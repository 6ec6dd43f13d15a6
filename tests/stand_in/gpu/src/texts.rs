//! Names and descriptions of results, which CUDA and HIP number alike.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// The name of a code and its description.
#[derive(Clone, Copy, Debug)]
pub struct Texts {
    pub name: &'static CStr,
    pub description: &'static CStr,
}

/// Whose names are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Names {
    Cuda,
    Hip,
}

/// The number; the name in CUDA behind `CUDA_ERROR_`, and in HIP behind `hipError`, or `-` where
/// there is none; the description, which may go on in the next line.
const TABLE: &str = "
    1 INVALID_VALUE InvalidValue invalid argument
    2 OUT_OF_MEMORY OutOfMemory out of memory
    3 NOT_INITIALIZED NotInitialized initialization error
    4 DEINITIALIZED Deinitialized driver shutting down
    9 - InvalidConfiguration invalid configuration argument
    12 - InvalidPitchValue invalid pitch argument
    17 - InvalidDevicePointer invalid device pointer
    21 - InvalidMemcpyDirection invalid copy direction for memcpy
    34 STUB_LIBRARY - CUDA driver is a stub library
    35 - InsufficientDriver driver version is insufficient for runtime version
    46 DEVICE_UNAVAILABLE - CUDA-capable device(s) is/are busy or unavailable
    98 - InvalidDeviceFunction invalid device function
    100 NO_DEVICE - no CUDA-capable device is detected
    100 - NoDevice no ROCm-capable device is detected
    101 INVALID_DEVICE InvalidDevice invalid device ordinal
    200 INVALID_IMAGE InvalidImage device kernel image is invalid
    201 INVALID_CONTEXT InvalidContext invalid device context
    209 NO_BINARY_FOR_GPU NoBinaryForGpu no kernel image is available for execution on the device
    214 ECC_UNCORRECTABLE ECCNotCorrectable uncorrectable ECC error encountered
    217 PEER_ACCESS_UNSUPPORTED PeerAccessUnsupported peer access is not supported between these
        two devices
    218 INVALID_PTX - a PTX JIT compilation failed
    218 - InvalidKernelFile invalid kernel file
    222 UNSUPPORTED_PTX_VERSION - the provided PTX was compiled with an unsupported toolchain.
    226 CONTAINED - Invalid access of peer GPU memory over nvlink or a hardware error
    300 INVALID_SOURCE - device kernel image is invalid
    302 SHARED_OBJECT_SYMBOL_NOT_FOUND - shared object symbol not found
    304 OPERATING_SYSTEM OperatingSystem OS call failed or operation not supported on this OS
    400 INVALID_HANDLE InvalidHandle invalid resource handle
    500 NOT_FOUND NotFound named symbol not found
    600 NOT_READY NotReady device not ready
    700 ILLEGAL_ADDRESS IllegalAddress an illegal memory access was encountered
    701 LAUNCH_OUT_OF_RESOURCES LaunchOutOfResources too many resources requested for launch
    702 LAUNCH_TIMEOUT LaunchTimeOut the launch timed out and was terminated
    704 PEER_ACCESS_ALREADY_ENABLED PeerAccessAlreadyEnabled peer access is already enabled
    705 PEER_ACCESS_NOT_ENABLED PeerAccessNotEnabled peer access has not been enabled
    708 PRIMARY_CONTEXT_ACTIVE SetOnActiveProcess cannot set while device is active in this process
    709 CONTEXT_IS_DESTROYED ContextIsDestroyed context is destroyed
    710 ASSERT Assert device-side assert triggered
    712 HOST_MEMORY_ALREADY_REGISTERED HostMemoryAlreadyRegistered part or all of the requested
        memory range is already mapped
    713 HOST_MEMORY_NOT_REGISTERED HostMemoryNotRegistered pointer does not correspond to a
        registered memory region
    714 HARDWARE_STACK_ERROR - hardware stack error
    715 ILLEGAL_INSTRUCTION - an illegal instruction was encountered
    716 MISALIGNED_ADDRESS - misaligned address
    719 LAUNCH_FAILED LaunchFailure unspecified launch failure
    800 NOT_PERMITTED - operation not permitted
    801 NOT_SUPPORTED NotSupported operation not supported
    802 SYSTEM_NOT_READY - system not yet initialized
    803 SYSTEM_DRIVER_MISMATCH - system has unsupported display driver / cuda driver combination
    900 STREAM_CAPTURE_UNSUPPORTED StreamCaptureUnsupported operation not permitted when stream is
        capturing
    901 STREAM_CAPTURE_INVALIDATED StreamCaptureInvalidated operation failed due to a previous
        error during capture
    903 STREAM_CAPTURE_UNMATCHED StreamCaptureUnmatched the capture was not initiated in this
        stream
    999 UNKNOWN - unknown error
";

/// The texts of a code, if there are such.
pub fn texts(names: Names, code: u32) -> Option<Texts> {
    static KNOWN: OnceLock<BTreeMap<u32, Texts>> = OnceLock::new();
    KNOWN.get_or_init(|| read(names)).get(&code).copied()
}

/// The texts with these names. A shared object has those of one vendor.
fn read(names: Names) -> BTreeMap<u32, Texts> {
    let (success, prefix) = match names {
        Names::Cuda => ("CUDA_SUCCESS", "CUDA_ERROR_"),
        Names::Hip => ("hipSuccess", "hipError"),
    };
    let table = TABLE.replace("\n        ", " ");
    let row = |line: &str| {
        let words: Vec<&str> = line.trim().splitn(4, ' ').collect();
        let [number, cuda, hip, description] = words[..] else { return None };
        let name = if names == Names::Cuda { cuda } else { hip };
        let texts = Texts { name: leaked(&[prefix, name])?, description: leaked(&[description])? };
        (name != "-").then_some((number.parse().ok()?, texts))
    };
    let zero = leaked(&[success]).map(|name| (0, Texts { name, description: c"no error" }));
    table.lines().filter_map(row).chain(zero).collect()
}

fn leaked(parts: &[&str]) -> Option<&'static CStr> {
    let text = CString::new(parts.concat()).ok()?;
    Some(Box::leak(text.into_boxed_c_str()))
}
