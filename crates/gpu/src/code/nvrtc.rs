//! Finds NVRTC. cudarc looks for it by names that depend on the machine that built the program, so
//! only this file opens it.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::sync::OnceLock;

use super::compiler_library::{CompilerLibrary, Product};
use super::nvrtc_options;
use crate::driver::library::FileVariable;

impl Product {
    pub(super) const NVRTC: Self = Self {
        name: "NVRTC",
        prefix: "nvrtc",
        variable: FileVariable {
            name: "RESIDENT_NVRTC",
            library: "NVRTC, which compiles CUDA C",
            expected: "the file of NVRTC 11.2 or later",
        },
        missing,
        oldest: "11.2",
        is_for_one_thread: false,
        headers: &[],
        architecture_option: "--gpu-architecture=",
        translated: <[String]>::to_vec,
        refused: |_| None,
        architecture: nvrtc_options::architecture,
        without_code: nvrtc_options::without_code,
    };
}

/// The oldest major version of NVRTC that is tried.
const NVRTC_OLDEST: i32 = 11;

/// How many major versions newer than the driver's are tried.
const NVRTC_AHEAD: i32 = 3;

/// The NVRTC of this process. The first call looks for an NVRTC whose code a driver of this version
/// accepts.
pub(super) fn find(driver_version: i32) -> Result<&'static CompilerLibrary, String> {
    static FOUND: OnceLock<Result<CompilerLibrary, String>> = OnceLock::new();
    let find_now = || Product::NVRTC.find(&nvrtc_files(driver_version / 1000));
    FOUND.get_or_init(find_now).as_ref().map_err(Clone::clone)
}

/// File names by major version, in the order in which they are tried: first the driver's own
/// version; then older versions, newest first, because the driver accepts their code; then newer
/// versions, oldest first, because the driver may refuse their code. The name without a version,
/// which the toolkit installs, is last.
fn nvrtc_files(driver_major: i32) -> Vec<OsString> {
    let own = driver_major.max(NVRTC_OLDEST);
    let majors =
        [own].into_iter().chain((NVRTC_OLDEST..own).rev()).chain(own + 1..=own + NVRTC_AHEAD);
    let files = majors.map(nvrtc_file).chain([format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}")]);
    files.map(OsString::from).collect()
}

/// NVIDIA's file name for a major version. Since 11.2 all minor versions share it; 11.0 and 11.1
/// lack functions that this backend needs.
fn nvrtc_file(major: i32) -> String {
    let minor = if major == 11 { 2 } else { 0 };
    match (cfg!(windows), minor) {
        (true, _) => format!("nvrtc64_{major}{minor}_0.dll"),
        (false, 0) => format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}.{major}"),
        (false, _) => format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}.{major}.{minor}"),
    }
}

fn missing(files: &str) -> String {
    format!(
        "CUDA C is compiled by NVRTC, which was not found (looked for {files}); install the \
         CUDA toolkit or the package `nvidia-cuda-nvrtc` of the Python package index, and name its \
         file by `RESIDENT_NVRTC` or put its folder where libraries are looked for \
         (`LD_LIBRARY_PATH`); or give the kernel `GpuSource::ptx` or `GpuSource::cubin`, which \
         need no compiler"
    )
}

#[cfg(test)]
mod tests {
    use super::{missing, nvrtc_files};

    #[test]
    fn the_error_for_a_missing_compiler_says_what_to_do() {
        let text = missing("libnvrtc.so.13");
        for words in [
            "nvrtc",
            "`nvidia-cuda-nvrtc`",
            "`RESIDENT_NVRTC`",
            "CUDA toolkit",
            "`GpuSource::ptx`",
            "`GpuSource::cubin`",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_drivers_own_version_comes_first_and_the_one_without_last() {
        let names = |major| {
            nvrtc_files(major)
                .iter()
                .map(|file| file.to_string_lossy().replace("libnvrtc.so", ""))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names(13), ".13 .12 .11.2 .14 .15 .16 ");
        assert_eq!(names(12), ".12 .11.2 .13 .14 .15 ");
        assert_eq!(names(11), ".11.2 .12 .13 .14 ");
    }

    #[cfg(windows)]
    #[test]
    fn the_names_are_those_of_the_toolkits() {
        assert_eq!(
            nvrtc_files(12)[..3],
            ["nvrtc64_120_0.dll", "nvrtc64_112_0.dll", "nvrtc64_130_0.dll"]
        );
    }
}
