//! A CUDA driver that does nothing, successfully, for measurements of what the callers of a driver
//! cost.
//!
//! Like the stand-in driver it is built as two libraries: a shared object, which exports the `cu*`
//! functions under a driver's SONAME, and a Rust library, which benchmarks link to [`load`] it.
//!
//! There is one device. Every call returns at once: kernels do not run, copies move nothing, and
//! all work is complete when it is asked about. Only pinned host memory exists; device addresses
//! are numbers that nothing reads. So results of programs are meaningless here.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod functions;

use resident_stand_in_client::library::LibraryBesideTests;

/// Loads the driver into this process, so that code that looks for a CUDA driver afterwards finds
/// it. May be called again.
///
/// # Errors
///
/// If the shared object cannot be found, with the paths that were tried.
pub fn load() -> Result<(), String> {
    static LIBRARY: LibraryBesideTests = LibraryBesideTests::new("libresident_free_driver.so");
    LIBRARY.load()
}
