//! A CUDA driver without a GPU, for tests. It implements the driver's C functions with the engine
//! of `resident`'s embedded device.
//!
//! Cargo builds the package as two libraries. The shared object is the driver: it exports the `cu*`
//! functions, and its SONAME is that of a CUDA driver. The Rust library is the client, which tests
//! link: [`load`] loads the shared object into the process, so that code that looks for a CUDA
//! driver afterwards finds it. The other functions of the client control the driver.
//!
//! * `client`, `launch`: the functions that tests call; the arguments of a host function that
//!   replaces a kernel
//! * `code_library`: the kernels that the stand-in for NVRTC compiled
//! * `settings`, `protocol`: the types that client and driver share
//! * `driver/`: the driver; see its `mod.rs`
//!
//! It runs what the stand-in for NVRTC compiled, but no other PTX and no machine code: such a
//! kernel is a host function that the test [registers](register) under the name of the entry. It
//! works only on Linux; elsewhere [`load`] returns an error.

mod client;
#[cfg(target_os = "linux")]
mod code_library;
mod launch;
mod library;
mod protocol;
mod settings;

#[cfg(target_os = "linux")]
mod driver;

/// The shared object, which cargo builds beside the test.
const FILE: &str = "libresident_stand_in.so";
/// The function by which the client gets the driver's table.
const CONTROL: &str = "resident_stand_in_control";

/// `protocol::GetControl`.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_control() -> &'static protocol::Control {
    &driver::control::TABLE
}

/// Opens the shared object. It is the same for all settings.
fn open(_settings: Settings) -> Result<library::Library, String> {
    library::Library::open_beside_tests(FILE)
}

pub use client::{
    Call, calls, change, declare, fail_any, fail_late, fail_nth, forget_faults, hazards, load,
    memory_in_use, notes, register, take_calls, take_hazards, take_notes,
};
pub use launch::{Fault, Launch, View};
pub use protocol::{Access, Length, Parameter};
pub use settings::Settings;
