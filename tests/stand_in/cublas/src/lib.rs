//! cuBLAS without a GPU, for tests: a few of its C functions, which launch kernels of the [stand-in
//! driver](../resident_stand_in).
//!
//! Like the driver it is built twice at once: as a shared object, which exports the `cublas*`
//! functions under cuBLAS's SONAME, and as a Rust library, which tests link to [`load`] it.
//!
//! What it does: handles with a stream and a pointer mode; `cublasDdot_v2` and `cublasDaxpy_v2`
//! with factor and product on the device, `cublasSgemm_v2` with factors on the host, each one
//! launch on the handle's stream, so that the driver's check of ordering sees it. What else these
//! functions can do they refuse as CUBLAS_STATUS_NOT_SUPPORTED; the library's other functions are
//! not there.
//!
//! | file | what it is |
//! |---|---|
//! | `client` | what tests call |
//! | `functions` | cuBLAS's functions |
//! | `handle` | handles, and launches on their streams |
//! | `kernels` | what is launched: names, parameters, and the host functions that stand for them |

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

/// What kernels are registered with, and what passes there.
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
