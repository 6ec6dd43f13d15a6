//! Conversion of the driver's result codes to the crate's errors. This module does not ask the
//! driver for error texts, because the driver itself may be missing.

use cudarc::driver::sys::CUresult;
use cudarc::driver::{DriverError, sys};

use crate::backend::{BackendError, BackendErrorKind};

/// Converts the result of a driver call. The error names the call. For a failed allocation use the
/// error that also contains the number of bytes.
pub(super) fn check(result: CUresult, call: &'static str) -> Result<(), BackendError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        failed => Err(refusal(failed, call)),
    }
}

/// As [`check`], for a call that uses two contexts. The driver may report the death of either
/// context, so the error is not attributed to the stream's own context; the next call on that
/// context detects its death.
pub(super) fn check_between(result: CUresult, call: &'static str) -> Result<(), BackendError> {
    check(result, call).map_err(|refusal| BackendError {
        kind: BackendErrorKind::Driver { code: result as i64 },
        ..refusal
    })
}

/// As [`check`], for cudarc's wrappers.
pub(super) fn checked<T>(
    result: Result<T, DriverError>,
    call: &'static str,
) -> Result<T, BackendError> {
    result.map_err(|DriverError(failed)| refusal(failed, call))
}

/// The error of a call that failed.
#[cold]
pub(super) fn refusal(failed: CUresult, call: &'static str) -> BackendError {
    let kind = if is_sticky(failed) {
        BackendErrorKind::DeviceLost
    } else {
        BackendErrorKind::Driver { code: failed as i64 }
    };
    BackendError { kind, call, detail: describe(failed) }
}

/// The error for arguments that the library must not pass to the driver.
#[cold]
pub(super) fn invalid(call: &'static str, detail: String) -> BackendError {
    BackendError {
        kind: BackendErrorKind::Driver { code: CUresult::CUDA_ERROR_INVALID_VALUE as i64 },
        call,
        detail,
    }
}

/// Whether every later call in the context fails too. The driver's documentation says of these
/// errors that the process must be restarted. They are given as numbers, because older bindings
/// lack some of the names.
fn is_sticky(failed: CUresult) -> bool {
    const ECC_UNCORRECTABLE: i64 = 214;
    const NVLINK_UNCORRECTABLE: i64 = 220;
    const CONTAINED: i64 = 226;
    const ILLEGAL_ADDRESS: i64 = 700;
    const LAUNCH_TIMEOUT: i64 = 702;
    const CONTEXT_IS_DESTROYED: i64 = 709;
    const ASSERT: i64 = 710;
    const HARDWARE_STACK_ERROR: i64 = 714;
    const LAUNCH_FAILED: i64 = 719;
    const TENSOR_MEMORY_LEAK: i64 = 721;
    const MPS_CLIENT_TERMINATED: i64 = 810;
    const EXTERNAL_DEVICE: i64 = 911;
    matches!(
        failed as i64,
        ECC_UNCORRECTABLE
            | NVLINK_UNCORRECTABLE
            | CONTAINED
            | ILLEGAL_ADDRESS
            | LAUNCH_TIMEOUT
            | CONTEXT_IS_DESTROYED
            | ASSERT
            | HARDWARE_STACK_ERROR
            ..=LAUNCH_FAILED | TENSOR_MEMORY_LEAK | MPS_CLIENT_TERMINATED | EXTERNAL_DEVICE
    )
}

/// The driver's name for a result code, and advice for common codes.
pub(super) fn describe(failed: CUresult) -> String {
    match advice(failed as i64) {
        Some(advice) => format!("{failed:?}: {advice}"),
        None => format!("{failed:?}"),
    }
}

fn advice(code: i64) -> Option<&'static str> {
    Some(match code {
        3 => {
            "the driver was not initialised in this process; after a fork CUDA cannot be used in \
             the child: start a new process instead"
        }
        4 => "the process is ending and the driver is shut down already",
        34 => {
            "the library found is a stub for linking, not a driver: install an NVIDIA driver, or \
             take the stub's folder out of the search path"
        }
        46 => "another process uses the GPU exclusively (its compute mode), see nvidia-smi",
        209 => "the code was compiled for another architecture than this GPU's",
        222 => "the PTX is newer than the driver: update the driver, or compile to a cubin",
        700 => "a kernel read or wrote memory that is not its own; run it under compute-sanitizer",
        802 => {
            "the machine's GPUs are not ready: on machines with NVSwitch the service \
             nvidia-fabricmanager has to run"
        }
        803 => {
            "kernel module and user library of the driver differ: reboot, or reinstall the driver"
        }
        804 => {
            "the driver's compatibility package does not support this GPU: install a full driver"
        }
        999 => {
            "the driver does not say why; where nothing works, see whether the kernel module \
             nvidia-uvm is loaded (nvidia-modprobe -u), and dmesg"
        }
        _ => return None,
    })
}

/// A driver version in its usual form: 12.4 for 12040.
pub(super) fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The CUDA version of the driver, as 12040 for 12.4.
pub(super) fn driver_version() -> Result<i32, BackendError> {
    let mut version = 0;
    // SAFETY: `cuda::count` found the driver library before any other call; the driver writes one
    // `int`.
    check(unsafe { sys::cuDriverGetVersion(&raw mut version) }, "cuDriverGetVersion")?;
    Ok(version)
}
