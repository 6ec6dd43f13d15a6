//! The side of the tests: loads the compiler, and asks it.

use std::sync::OnceLock;

use crate::library::Library;

/// The file that cargo builds beside the test.
const FILE: &str = "libresident_stand_in_nvrtc.so";

static COMPILER: OnceLock<Result<Library, String>> = OnceLock::new();

/// Loads the compiler into this process, so that whoever looks for NVRTC afterwards finds it. May be called by each test of a process.
///
/// # Errors
///
/// Says what was looked for and where.
pub fn load() -> Result<(), String> {
    COMPILER.get_or_init(|| Library::open_beside_tests(FILE)).as_ref().map(drop).map_err(Clone::clone)
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

/// What version the compiler says that it has from now on: 13.0 at first. The version of its PTX follows.
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
