//! cuBLAS without a GPU, for tests. It implements a few C functions, which launch kernels on the
//! [stand-in driver](../resident_stand_in).
//!
//! Like the driver it is built as two libraries: a shared object, which exports the `cublas*`
//! functions under cuBLAS's SONAME, and a Rust library, which tests link to [`load`] it.
//!
//! It supports handles with a stream and a pointer mode; `cublasDdot_v2` and `cublasDaxpy_v2` with
//! factor and product on the device; and `cublasSgemm_v2` with factors on the host. Each of these
//! calls is one launch on the handle's stream, so the stand-in driver checks its order. Other uses
//! of these functions return CUBLAS_STATUS_NOT_SUPPORTED. The library has no other functions.
//!
//! * `client`: the function that tests call
//! * `functions`: cuBLAS's functions
//! * `handle`: handles, and launches on their streams
//! * `kernels`: the kernels: names, parameters and host functions

#![deny(missing_docs)]

mod client;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod handle;
#[cfg(target_os = "linux")]
mod kernels;
#[path = "../../driver/src/library.rs"]
mod library;

/// The driver's types for registered kernels.
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub, reason = "the driver's tests use more of it")]
#[path = "../../driver/src/launch.rs"]
mod launch;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub, reason = "the driver uses more of it")]
#[path = "../../driver/src/protocol.rs"]
mod protocol;
#[cfg(target_os = "linux")]
#[allow(
    dead_code,
    unreachable_pub,
    rustdoc::broken_intra_doc_links,
    reason = "the driver is set by it"
)]
#[path = "../../driver/src/settings.rs"]
mod settings;
#[cfg(target_os = "linux")]
use settings::Settings;

pub use client::load;
