//! The side of the tests.

use std::sync::OnceLock;

use crate::library::Library;

/// The file that cargo builds beside the test.
const FILE: &str = "libresident_stand_in_cublas.so";

/// Loads the library into this process, so that whoever looks for cuBLAS afterwards finds it. The
/// stand-in driver is to be loaded before the first handle is made. May be called by each test of a
/// process.
///
/// # Errors
///
/// Says what was looked for and where.
pub fn load() -> Result<(), String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| Library::open_beside_tests(FILE))
        .as_ref()
        .map(drop)
        .map_err(Clone::clone)
}
