//! AMD's HIP runtime: where it is found, and what it says.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;

use super::library::{FileVariable, Symbols, open, open_first};
use super::status::{self, Status};
use super::{CudaLikeVendor, Driver, Installation};
use resident_backend::{BackendError, DeviceKind, environment};

const VARIABLE: FileVariable = FileVariable {
    name: "RESIDENT_HIP",
    library: "AMD's HIP runtime",
    expected: "the file of `libamdhip64`",
};

/// The oldest runtime whose functions this backend needs.
const VERSION_MIN: c_int = 50_000_000;

const INVALID_DEVICE: Status = 101;

/// The major versions of the runtime that are tried, newest first.
const MAJORS: [u32; 3] = [7, 6, 5];

static VENDOR: CudaLikeVendor = CudaLikeVendor {
    kind: DeviceKind::Hip,
    prefix: "hip",
    name: "HIP",
    compiler_hint: "`RESIDENT_HIPRTC` names the hiprtc that compiles CUDA C",
    version_text,
    status_name,
    advice,
    is_sticky,
    // It keeps the older registration, and one call ends both (ROCm's clr, `ihipHostRegister`).
    refuses_registered_memory: false,
    read_only_registration: None,
    // For boxes it does so with offsets that may lie beyond its staging memory.
    copies_without_peer_access: false,
    // It refuses fills of memory that it did not allocate (ROCm's clr, `ihipMemset`).
    copies_reached_memory: false,
    // ROCm 7.1 refuses some such ranges (rocm-systems, issue 2516).
    sets_access_of_several: false,
    // Portable memory is coarse-grained; memory without a flag is coherent.
    unmapped_flags: 1,
    check_variable: Some("RESIDENT_HIP_CHECK"),
    // `hipEventReleaseToSystem`: other events release to the device alone, and the host may then
    // see old bytes of coarse-grained memory ("hipEventCreateWithFlags" in HIP's manual).
    event_flags: 0x8000_0000,
    // `hipModuleLaunchKernel` refuses more (ROCm's clr, `hip_module.cpp`).
    axis_threads_max: u32::MAX as u64,
    // Its loader reads the image in place.
    keeps_images: true,
    version_min: VERSION_MIN,
    update: "update ROCm",
    // HIP 6 took CUDA's numbers.
    host_memory_type: |version| u64::from(version >= 60_000_000),
};

pub(crate) static INSTALLATION: Installation = Installation { driver, count, beyond };

fn driver() -> Result<&'static Driver, String> {
    static FOUND: OnceLock<Result<Driver, String>> = OnceLock::new();
    FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
}

fn find() -> Result<Driver, String> {
    let named = VARIABLE.file();
    let misnamed = |file: &OsString, fault: &str| VARIABLE.misnamed(file, fault);
    let library = match &named {
        Some(file) => open(file).map_err(|fault| misnamed(file, &fault.to_string()))?,
        None => find_library(&files("amdhip64"))?,
    };
    let symbols = Symbols { library, vendor: &VENDOR };
    // SAFETY: the library has the name of AMD's runtime, or the environment names it as that.
    unsafe { Driver::of(symbols) }.map_err(|reason| match &named {
        Some(file) => misnamed(file, &reason),
        None => format!("AMD's HIP runtime was found, but {reason}"),
    })
}

fn find_library(files: &[String]) -> Result<Library, String> {
    open_first(files).ok_or_else(|| {
        format!(
            "AMD's HIP runtime was not found (looked for {}); install ROCm's package of it \
             (`hip-runtime-amd`, or Debian's `libamdhip64-5`), name its file by `{}`, or use \
             Device::cpu()",
            files.join(", "),
            VARIABLE.name
        )
    })
}

/// The file names of a library of ROCm: without a version, then by major version, newest first.
pub(crate) fn files(name: &str) -> Vec<String> {
    let of_major = |major| {
        if cfg!(windows) {
            format!("{name}_{major}.dll")
        } else {
            format!("{DLL_PREFIX}{name}{DLL_SUFFIX}.{major}")
        }
    };
    let plain = format!("{DLL_PREFIX}{name}{DLL_SUFFIX}");
    std::iter::once(plain).chain(MAJORS.into_iter().map(of_major)).collect()
}

/// The files that the runtime may be: the one that the environment names, else all names.
pub(crate) fn runtime_files() -> Vec<OsString> {
    let usual = || files("amdhip64").into_iter().map(Into::into).collect();
    VARIABLE.file().map_or_else(usual, |file| vec![file])
}

fn count() -> Result<usize, String> {
    match driver()?.count_devices() {
        Ok(0) => Err(no_gpu("hipGetDeviceCount found 0")),
        Ok(count) => Ok(count),
        // Without a device the runtime does not start: HIP 5.2 says so by the second number.
        Err((status::NO_DEVICE | INVALID_DEVICE, name)) => Err(no_gpu(&name)),
        Err((_, reason)) => {
            Err(format!("AMD's HIP runtime was found, but does not start: {reason}"))
        }
    }
}

fn no_gpu(found: &str) -> String {
    format!(
        "AMD's HIP runtime shows no GPU ({found}); look at rocminfo and HIP_VISIBLE_DEVICES, and \
         at the permissions of /dev/kfd and /dev/dri (the groups render and video), or use \
         Device::cpu(){}",
        hidden_by_cudas()
    )
}

/// HIP takes NVIDIA's variable where AMD's is not set, so that one that was meant for NVIDIA GPUs
/// hides AMD's.
fn hidden_by_cudas() -> String {
    let numbers = environment::of_system("CUDA_VISIBLE_DEVICES");
    let numbers = numbers.and_then(|numbers| numbers.into_string().ok());
    let is_alone = environment::of_system("HIP_VISIBLE_DEVICES").is_none();
    numbers.filter(|_| is_alone).map_or_else(String::new, |numbers| {
        format!(
            "; CUDA_VISIBLE_DEVICES={numbers} counts for HIP too while HIP_VISIBLE_DEVICES is not \
             set: set both"
        )
    })
}

fn beyond(count: usize) -> String {
    format!(
        "AMD's HIP runtime shows {count} GPU(s), numbered from 0; look at HIP_VISIBLE_DEVICES and \
         ROCR_VISIBLE_DEVICES{}",
        hidden_by_cudas()
    )
}

/// A version in its usual form: 5.2 for 50221153.
fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 10_000_000, version / 100_000 % 100)
}

/// Whether every later call fails too, by HIP's texts for its result codes.
fn is_sticky(failed: Status) -> bool {
    const ECC_NOT_CORRECTABLE: Status = 214;
    const ILLEGAL_ADDRESS: Status = 700;
    const LAUNCH_TIMEOUT: Status = 702;
    const CONTEXT_IS_DESTROYED: Status = 709;
    const ASSERT: Status = 710;
    const LAUNCH_FAILURE: Status = 719;
    [
        ECC_NOT_CORRECTABLE,
        ILLEGAL_ADDRESS,
        LAUNCH_TIMEOUT,
        CONTEXT_IS_DESTROYED,
        ASSERT,
        LAUNCH_FAILURE,
    ]
    .contains(&failed)
}

fn status_name(failed: Status) -> String {
    name_of(failed).unwrap_or_else(|| format!("result code {failed}"))
}

fn name_of(failed: Status) -> Option<String> {
    type ErrorName = unsafe extern "C" fn(Status) -> *const c_char;
    let driver = driver().ok()?;
    // SAFETY: the type is that of the runtime's function.
    let function = unsafe { driver.symbols.optional::<ErrorName>("", "hipGetErrorName") }?;
    // SAFETY: the function takes any number.
    let name = unsafe { (function.function)(failed) };
    if name.is_null() {
        return None;
    }
    // SAFETY: the pointer leads to a static text of the runtime, which ends with a zero.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

fn advice(code: Status) -> Option<&'static str> {
    Some(match code {
        status::NOT_INITIALIZED => {
            "the runtime was not initialised in this process; after a fork HIP cannot be used in \
             the child: start a new process instead"
        }
        209 => "the code was compiled for another architecture than this GPU's",
        700 => {
            "a kernel read or wrote memory that is not its own; run it on Device::cpu() with \
                RESIDENT_SANITIZE=1"
        }
        _ => return None,
    })
}

/// The name of a device's architecture with its features, as in `gfx90a:sramecc+:xnack-`.
pub(crate) fn architecture(driver: &Driver, device: c_int) -> Result<String, BackendError> {
    /// More than the struct has in any version: 792 bytes in HIP 5.2, 1,472 in 6.3.
    const PROPERTIES_BYTES: usize = 8192;
    /// `hipDeviceProp_t::gcnArchName`, 256 bytes, in the layouts before and since HIP 6.
    const NAME_BEFORE_6: usize = 396;
    const NAME_SINCE_6: usize = 1160;
    const NAME_BYTES: usize = 256;
    type Properties = unsafe extern "C" fn(*mut c_void, c_int) -> Status;
    let find = |name| {
        // SAFETY: the type is that of the runtime's functions with these names.
        unsafe { driver.symbols.optional::<Properties>("", name) }
    };
    let since_6 = find("hipGetDevicePropertiesR0600").map(|ask| (ask, NAME_SINCE_6));
    let before_6 = || find("hipGetDeviceProperties").map(|ask| (ask, NAME_BEFORE_6));
    let Some((ask, start)) = since_6.or_else(before_6) else {
        return Err(driver.lacks(["", "hipGetDeviceProperties"]));
    };
    let mut properties = [0_u64; PROPERTIES_BYTES / 8];
    // SAFETY: the driver writes one struct, for which there is room.
    let outcome = unsafe { (ask.function)(properties.as_mut_ptr().cast::<c_void>(), device) };
    ask.check(outcome)?;
    let name = &bytemuck::cast_slice::<u64, u8>(&properties)[start..start + NAME_BYTES];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{files, find_library, version_text};

    #[test]
    fn without_a_library_the_error_says_what_was_looked_for_and_what_to_do() {
        let text = find_library(&files("no-such-runtime")).expect_err("there is none");
        for words in
            ["not found", "no-such-runtime", "libamdhip64-5", "RESIDENT_HIP", "Device::cpu"]
        {
            assert!(text.contains(words), "\"{words}\" is not in: {text}");
        }
        assert_eq!(text.matches("no-such-runtime").count(), 4, "{text}");
    }

    #[test]
    fn versions_have_two_numbers() {
        assert_eq!([50_221_153, 60_342_131, 70_000_000].map(version_text), ["5.2", "6.3", "7.0"]);
    }
}
