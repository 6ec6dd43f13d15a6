//! cuBLAS without a GPU, for tests. It implements a few C functions, which launch kernels on the
//! [stand-in driver](../resident_stand_in).
//!
//! Like the driver it is built as two libraries: a shared object, which exports the `cublas*`
//! functions under cuBLAS's SONAME, and a Rust library, which tests link to [`load`] it.
//!
//! It supports handles with a stream and a pointer mode; `cublasDdot_v2` and `cublasDaxpy_v2` with
//! factor and product on the device; `cublasSgemm_v2` and `cublasDgemm_v2` with factors on the
//! host. Each of these
//! calls is one launch on the handle's stream, so the stand-in driver checks its order. Other uses
//! of these functions return CUBLAS_STATUS_NOT_SUPPORTED. The library has no other functions.
//!
//! * `functions`: cuBLAS's functions
//! * `handle`: handles, and launches on their streams
//! * `kernels`: the kernels: names, parameters and host functions

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod handle;
#[cfg(target_os = "linux")]
mod kernels;

use resident_stand_in_client::library::LibraryBesideTests;

/// Loads the library into this process, so that code that looks for cuBLAS afterwards finds it. The
/// stand-in driver must be loaded before the first handle is created. Each test of a process may
/// call this.
///
/// # Errors
///
/// If the library cannot be found, with the paths that were tried.
pub fn load() -> Result<(), String> {
    static LIBRARY: LibraryBesideTests = LibraryBesideTests::new("libresident_stand_in_cublas.so");
    LIBRARY.load()
}
