//! Finds NVRTC. cudarc looks for it by names that depend on the machine that built the program, so
//! only this file opens it.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::sync::OnceLock;

use libloading::Library;

use super::compiler_library::{CompilerLibrary, Product};
use crate::driver::library::open;

/// The environment variable that names the file of NVRTC. If it is set, no other file is tried.
const NVRTC_VARIABLE: &str = "RESIDENT_NVRTC";

/// The oldest major version of NVRTC that is tried.
const NVRTC_OLDEST: i32 = 11;

/// How many major versions newer than the driver's are tried.
const NVRTC_AHEAD: i32 = 3;

/// The NVRTC of this process. The first call looks for an NVRTC whose code a driver of this version
/// accepts.
pub(super) fn find(driver_version: i32) -> Result<&'static CompilerLibrary, String> {
    static FOUND: OnceLock<Result<CompilerLibrary, String>> = OnceLock::new();
    let usable = |library| CompilerLibrary::of(library, Product::NVRTC);
    FOUND.get_or_init(|| find_nvrtc(driver_version, usable)).as_ref().map_err(Clone::clone)
}

/// Finds NVRTC: the file that the environment names, else the first of `nvrtc_files` that `usable`
/// accepts. The error says which files were tried and why each was rejected.
fn find_nvrtc<T>(
    driver_version: i32,
    usable: impl Fn(Library) -> Result<T, String>,
) -> Result<T, String> {
    let named = std::env::var_os(NVRTC_VARIABLE).filter(|file| !file.is_empty());
    if let Some(file) = named {
        return open(&file)
            .map_err(|fault| fault.to_string())
            .and_then(usable)
            .map_err(|fault| misnamed(&file, &fault));
    }
    let files = nvrtc_files(driver_version / 1000);
    let mut unusable = Vec::new();
    for file in &files {
        match open(file.as_ref()).ok().map(&usable) {
            Some(Ok(found)) => return Ok(found),
            Some(Err(fault)) => unusable.push(format!("; {file} is there, but {fault}")),
            None => {}
        }
    }
    Err(missing(&files, &unusable.concat()))
}

/// File names by major version, in the order in which they are tried: first the driver's own
/// version; then older versions, newest first, because the driver accepts their code; then newer
/// versions, oldest first, because the driver may refuse their code. The name without a version,
/// which the toolkit installs, is last.
fn nvrtc_files(driver_major: i32) -> Vec<String> {
    let own = driver_major.max(NVRTC_OLDEST);
    let majors =
        [own].into_iter().chain((NVRTC_OLDEST..own).rev()).chain(own + 1..=own + NVRTC_AHEAD);
    majors.map(nvrtc_file).chain([format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}")]).collect()
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

fn misnamed(file: &OsString, fault: &str) -> String {
    format!(
        "{NVRTC_VARIABLE} names {} as NVRTC, which compiles CUDA C, and that cannot be used: \
         {fault}; let it name the file of NVRTC 11.2 or later, or unset it",
        file.display()
    )
}

fn missing(files: &[String], unusable: &str) -> String {
    format!(
        "CUDA C is compiled by NVRTC, which was not found (looked for {}{unusable}); install the \
         CUDA toolkit or the package `nvidia-cuda-nvrtc` of the Python package index, and name its \
         file by `{NVRTC_VARIABLE}` or put its folder where libraries are looked for \
         (`LD_LIBRARY_PATH`); or give the kernel `GpuSource::ptx` or `GpuSource::cubin`, which \
         need no compiler",
        files.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::{missing, nvrtc_files};

    #[test]
    fn the_error_for_a_missing_compiler_says_what_to_do() {
        let text = missing(&nvrtc_files(13), "");
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
                .map(|file| file.replace("libnvrtc.so", ""))
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
