//! A CUDA driver without a GPU, for tests: the driver's C functions over the engine of `resident`'s
//! embedded device.
//!
//! The package is built twice at once. As a shared object it is the driver: it exports the `cu*`
//! functions, and its SONAME is that of a CUDA driver. As a Rust library, which tests link, it is
//! the client: [`load`] loads the shared object into the process, so that whoever looks for a CUDA
//! driver afterwards finds it, and the other functions steer it.
//!
//! | file | what it is |
//! |---|---|
//! | `client`, `launch` | what tests call; what a host function that stands for a kernel gets |
//! | `settings`, `protocol` | what both sides share |
//! | `driver/` | the driver: see there |
//!
//! It knows no PTX: a kernel is a host function that the test [registers](register) under the
//! entry's name. Only Linux has it; elsewhere [`load`] says so.

mod client;
mod launch;
mod library;
mod protocol;
mod settings;

#[cfg(target_os = "linux")]
mod driver;

#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../../src/access.rs"]
mod access;
/// The engine: the embedded device, as the library has it.
#[cfg(target_os = "linux")]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    rustdoc::broken_intra_doc_links,
    reason = "the library uses more of it, and exports some"
)]
#[path = "../../../../src/backend/mod.rs"]
mod backend;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../../src/call_site.rs"]
mod call_site;
#[cfg(target_os = "linux")]
#[allow(dead_code, unused_imports, reason = "the layout uses its regions")]
#[path = "../../../../src/coherence/mod.rs"]
mod coherence;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub, reason = "the library uses more of it, and exports some")]
#[path = "../../../../src/grid.rs"]
mod grid;
#[cfg(target_os = "linux")]
#[allow(dead_code, unused_imports, reason = "the library uses more of it")]
#[path = "../../../../src/layout/mod.rs"]
mod layout;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub, reason = "the library uses more of it")]
#[path = "../../../../src/sync.rs"]
mod sync;

pub use client::{
    Call, calls, change, fail_any, fail_late, fail_nth, forget_faults, hazards, load,
    memory_in_use, notes, register, take_calls, take_hazards, take_notes,
};
pub use launch::{Fault, Launch, View};
pub use protocol::{Access, Length, Parameter};
pub use settings::Settings;
