//! The client, which tests use to load the library.

use std::sync::OnceLock;

use crate::library::Library;

/// The shared object, which cargo builds beside the test.
const FILE: &str = "libresident_stand_in_cublas.so";

/// Loads the library into this process, so that code that looks for cuBLAS afterwards finds it. The
/// stand-in driver must be loaded before the first handle is created. Each test of a process may
/// call this.
///
/// # Errors
///
/// If the library cannot be found, with the paths that were tried.
pub fn load() -> Result<(), String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| Library::open_beside_tests(FILE))
        .as_ref()
        .map(drop)
        .map_err(Clone::clone)
}
