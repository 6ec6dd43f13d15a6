//! The side of the tests: loads the compiler, and asks it.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::library::Library;

/// The file that cargo builds beside the test.
const FILE: &str = "libresident_stand_in_nvrtc.so";

static COMPILER: OnceLock<Result<Library, String>> = OnceLock::new();

/// Names the file of NVRTC to whoever asks the environment first, as `resident` does.
const VARIABLE: &str = "RESIDENT_NVRTC";

/// Loads the compiler into this process, so that whoever looks for NVRTC afterwards finds it: by
/// its SONAME, as cudarc does, or by `RESIDENT_NVRTC`, which is set to its file whatever it was.
/// May be called by each test of a process.
///
/// # Errors
///
/// Says what was looked for and where.
pub fn load() -> Result<(), String> {
    COMPILER.get_or_init(load_and_name).as_ref().map(drop).map_err(Clone::clone)
}

fn load_and_name() -> Result<Library, String> {
    let library = Library::open_beside_tests(FILE)?;
    // SAFETY: this process is a test's, whose threads use the environment through Rust's standard
    // library alone, which has a lock for it.
    unsafe { std::env::set_var(VARIABLE, file()?) };
    Ok(library)
}

/// The compiler's file: in the folder of this program, or in the one where cargo puts libraries.
///
/// # Errors
///
/// Says what was looked for.
pub fn file() -> Result<PathBuf, String> {
    let program = std::env::current_exe()
        .map_err(|fault| format!("the path of this program is not known: {fault}"))?;
    let mut folders =
        program.ancestors().skip(1).take(2).flat_map(|folder| [folder.into(), folder.join("deps")]);
    folders.find_map(|folder: PathBuf| Some(folder.join(FILE)).filter(|file| file.is_file())).ok_or_else(|| {
        format!("{FILE} lies neither beside {} nor where cargo puts libraries; cargo builds it with the tests", program.display())
    })
}

/// How many programs were compiled so far, well or not.
///
/// # Panics
///
/// If the compiler is not loaded.
#[must_use]
pub fn compilations() -> u64 {
    let count: extern "C" fn() -> u64 = function_of("resident_stand_in_nvrtc_compilations");
    count()
}

/// What version the compiler says that it has from now on: 13.0 at first. The version of its PTX
/// follows.
///
/// # Panics
///
/// If the compiler is not loaded.
pub fn set_version(major: i32, minor: i32) {
    let set: extern "C" fn(i32, i32) = function_of("resident_stand_in_nvrtc_set_version");
    set(major, minor);
}

fn function_of<F: Copy>(name: &str) -> F {
    let compiler = COMPILER.get().and_then(|compiler| compiler.as_ref().ok());
    let compiler = compiler.expect("the stand-in compiler is not loaded: call `load` first");
    compiler.function(name).unwrap_or_else(|fault| panic!("{fault}"))
}
