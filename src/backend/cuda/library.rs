//! Which of NVIDIA's libraries are there, and under which names. cudarc panics where the driver's
//! is missing, so that everything looks here first; and it takes NVRTC by names that the machine
//! decides on which a program was built, so that NVRTC is looked for and opened here alone.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use libloading::Library;

/// Names the file of NVRTC. Then no other is looked for.
const NVRTC_VARIABLE: &str = "RESIDENT_NVRTC";

/// The first major version of NVRTC that is looked for.
const NVRTC_OLDEST: i32 = 11;

/// So many major versions beyond the driver's are looked for.
const NVRTC_AHEAD: i32 = 3;

/// A library that is looked for when a program runs.
#[derive(Debug)]
pub(super) struct Candidates {
    /// Without prefix and suffix, as the platforms call it.
    names: &'static [&'static str],
    found: OnceLock<Option<Library>>,
}

/// The driver's.
pub(super) static DRIVER: Candidates =
    Candidates { names: &["cuda", "nvcuda"], found: OnceLock::new() };

impl Candidates {
    /// The library, opened once and kept open.
    pub(super) fn library(&self) -> Option<&Library> {
        self.found
            .get_or_init(|| self.files().iter().find_map(|file| open(file.as_ref()).ok()))
            .as_ref()
    }

    pub(super) fn is_present(&self) -> bool {
        self.library().is_some()
    }

    /// The names under which it is looked for: those that cudarc tries, in its order.
    pub(super) fn files(&self) -> Vec<String> {
        self.names.iter().flat_map(|name| cudarc::get_lib_name_candidates(name)).collect()
    }

    /// A function that older versions of the library lack.
    ///
    /// # Safety
    ///
    /// `F` is the type of the function of that name.
    pub(super) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller vouches for the type; the library stays open for the life of the
        // process, so the pointer does not dangle.
        unsafe { self.library()?.get::<F>(name.as_bytes()) }.ok().map(|function| *function)
    }
}

/// NVRTC that can be used, which `usable` makes of a library or says what it lacks: the one that
/// the environment names, else the first of `nvrtc_files`. Where there is none, what was looked for
/// and why it was not taken.
pub(super) fn find_nvrtc<T>(
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

/// By major versions, best first: the driver's own. Then older ones, whose code every later driver
/// takes, the newest first. Then newer ones, whose code it may refuse, the nearest first. Last the
/// name without a version, which is the one that the machine's compiler has.
fn nvrtc_files(driver_major: i32) -> Vec<String> {
    let own = driver_major.max(NVRTC_OLDEST);
    let majors =
        [own].into_iter().chain((NVRTC_OLDEST..own).rev()).chain(own + 1..=own + NVRTC_AHEAD);
    majors.map(nvrtc_file).chain([format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}")]).collect()
}

/// The name that NVIDIA gave it. From 11.2 on all of a major version have one; those of 11 before
/// that lack functions that are needed here.
fn nvrtc_file(major: i32) -> String {
    let minor = if major == 11 { 2 } else { 0 };
    match (cfg!(windows), minor) {
        (true, _) => format!("nvrtc64_{major}{minor}_0.dll"),
        (false, 0) => format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}.{major}"),
        (false, _) => format!("{DLL_PREFIX}nvrtc{DLL_SUFFIX}.{major}.{minor}"),
    }
}

fn open(file: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: opening runs the library's initialisers; these are NVIDIA's driver and compiler,
    // which any CUDA program opens in this way, or what whoever started the program named as the
    // compiler.
    unsafe { Library::new(file) }
}

fn misnamed(file: &OsString, fault: &str) -> String {
    format!(
        "{NVRTC_VARIABLE} names {} as NVRTC, which compiles CUDA C, and that cannot be used: {fault}; let it name the file of NVRTC 11.2 or later, or \
         unset it",
        file.display()
    )
}

fn missing(files: &[String], unusable: &str) -> String {
    format!(
        "CUDA C is compiled by NVRTC, which was not found (looked for {}{unusable}); install the CUDA toolkit or the package `nvidia-cuda-nvrtc` of the \
         Python package index, and name its file by `{NVRTC_VARIABLE}` or put its folder where libraries are looked for (`LD_LIBRARY_PATH`); or give the \
         kernel `CudaSource::ptx` or `CudaSource::cubin`, which need no compiler",
        files.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::{missing, nvrtc_files};

    #[test]
    fn a_missing_compiler_is_told_with_what_to_do() {
        let text = missing(&nvrtc_files(13), "");
        for words in [
            "nvrtc",
            "`nvidia-cuda-nvrtc`",
            "`RESIDENT_NVRTC`",
            "CUDA toolkit",
            "`CudaSource::ptx`",
            "`CudaSource::cubin`",
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
