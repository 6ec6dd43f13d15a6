//! NVIDIA's driver: where it is found, and what it says. cudarc panics without the driver's
//! library, so the backend looks for it here first.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use cudarc::driver::sys::CUdevice_attribute as AttributeOfCuda;

use super::library::{Symbols, open_first};
use super::status::{self, Status};
use super::{CudaLikeVendor, Driver, Installation};
use resident_backend::{BackendError, DeviceKind};

/// The oldest driver whose functions this backend needs: CUDA 11.4, the oldest that cudarc knows.
const VERSION_MIN: c_int = 11_040;

const DEINITIALIZED: Status = 4;
const STUB_LIBRARY: Status = 34;

pub(crate) static VENDOR: CudaLikeVendor = CudaLikeVendor {
    kind: DeviceKind::Cuda,
    prefix: "cuda",
    name: "CUDA",
    compiler_hint: "`RESIDENT_NVRTC` names the NVRTC that compiles CUDA C",
    version_text,
    status_name,
    advice,
    is_sticky,
    refuses_registered_memory: true,
    // `CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED`
    read_only_registration: Some(113),
    copies_without_peer_access: true,
    // "Unified Memory" in the CUDA Programming Guide.
    copies_reached_memory: true,
    sets_access_of_several: true,
    unmapped_flags: 0,
    check_variable: None,
    event_flags: 0,
    axis_threads_max: u64::MAX,
    keeps_images: false,
    version_min: VERSION_MIN,
    update: "update the NVIDIA driver",
    host_memory_type: |_| 1,
};

pub(crate) static INSTALLATION: Installation = Installation { driver, count, beyond };

fn driver() -> Result<&'static Driver, String> {
    static FOUND: OnceLock<Result<Driver, String>> = OnceLock::new();
    FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
}

fn find() -> Result<Driver, String> {
    let files = files();
    let Some(library) = open_first(&files) else {
        return Err(format!(
            "no NVIDIA driver library was found (looked for {} in the system's library folders and \
             LD_LIBRARY_PATH); install an NVIDIA driver, or use Device::cpu()",
            files.join(" and ")
        ));
    };
    let symbols = Symbols { library, vendor: &VENDOR };
    // SAFETY: the library has the name of CUDA's driver.
    unsafe { Driver::of(symbols) }
        .map_err(|reason| format!("the NVIDIA driver was found, but {reason}"))
}

/// The file names of NVIDIA's driver. cudarc's function for them is not there in a program in which
/// another crate, such as candle, chose cudarc's `dynamic-linking`.
fn files() -> Vec<String> {
    if cfg!(windows) {
        return vec!["nvcuda.dll".to_owned()];
    }
    let plain = format!("{DLL_PREFIX}cuda{DLL_SUFFIX}");
    vec![plain.clone(), format!("{plain}.1")]
}

fn count() -> Result<usize, String> {
    match driver()?.count_devices() {
        Ok(0) => Err(no_gpu("cuDeviceGetCount found 0")),
        Ok(count) => Ok(count),
        Err((status::NO_DEVICE, _)) => Err(no_gpu("CUDA_ERROR_NO_DEVICE")),
        Err((_, reason)) => {
            Err(format!("the NVIDIA driver was found, but does not start: {reason}"))
        }
    }
}

fn no_gpu(found: &str) -> String {
    format!(
        "the NVIDIA driver shows no GPU ({found}); look at nvidia-smi and CUDA_VISIBLE_DEVICES, \
         and at the permissions of /dev/nvidia* in a container, or use Device::cpu()"
    )
}

fn beyond(count: usize) -> String {
    format!("the driver shows {count} GPU(s), numbered from 0; look at CUDA_VISIBLE_DEVICES")
}

/// A driver version in its usual form: 12.4 for 12040.
fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The driver's documentation says of these errors that the process must be restarted.
fn is_sticky(failed: Status) -> bool {
    const ECC_UNCORRECTABLE: Status = 214;
    const NVLINK_UNCORRECTABLE: Status = 220;
    const CONTAINED: Status = 226;
    const ILLEGAL_ADDRESS: Status = 700;
    const LAUNCH_TIMEOUT: Status = 702;
    const CONTEXT_IS_DESTROYED: Status = 709;
    const ASSERT: Status = 710;
    const HARDWARE_STACK_ERROR: Status = 714;
    const LAUNCH_FAILED: Status = 719;
    const TENSOR_MEMORY_LEAK: Status = 721;
    const MPS_CLIENT_TERMINATED: Status = 810;
    const EXTERNAL_DEVICE: Status = 911;
    matches!(
        failed,
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

fn status_name(failed: Status) -> String {
    // The library for linking has all functions, and refuses each, this one too.
    name_of(failed).unwrap_or_else(|| match failed {
        STUB_LIBRARY => "CUDA_ERROR_STUB_LIBRARY".to_owned(),
        DEINITIALIZED => "CUDA_ERROR_DEINITIALIZED".to_owned(),
        other => format!("result code {other}"),
    })
}

fn name_of(failed: Status) -> Option<String> {
    type ErrorName = unsafe extern "C" fn(Status, *mut *const c_char) -> Status;
    let driver = driver().ok()?;
    // SAFETY: the type is that of the driver function.
    let function = unsafe { driver.symbols.optional::<ErrorName>("cuGetErrorName", "") }?;
    let mut name = std::ptr::null();
    // SAFETY: the driver writes one pointer.
    let outcome = unsafe { (function.function)(failed, &raw mut name) };
    if outcome != status::SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: the pointer leads to a static text of the driver, which ends with a zero.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

fn advice(code: Status) -> Option<&'static str> {
    Some(match code {
        status::NOT_INITIALIZED => {
            "the driver was not initialised in this process; after a fork CUDA cannot be used in \
             the child: start a new process instead"
        }
        DEINITIALIZED => "the process is ending and the driver is shut down already",
        STUB_LIBRARY => {
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

/// The compute capability of a device: 90 for sm_90.
pub(crate) fn capability(driver: &Driver, device: c_int) -> Result<u32, BackendError> {
    let ask = |attribute: AttributeOfCuda| {
        driver.numbered_attribute(device, attribute as c_int).map(c_int::unsigned_abs)
    };
    let major = ask(AttributeOfCuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = ask(AttributeOfCuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(10 * major + minor)
}
