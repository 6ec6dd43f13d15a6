//! A CUDA driver without a GPU, for tests. It implements the driver's C functions with the engine
//! of `resident`'s embedded device.
//!
//! Cargo builds the package as two libraries. The shared object is the driver: it exports the `cu*`
//! functions, and its SONAME is that of a CUDA driver. The Rust library is the client, which tests
//! link: [`load`] loads the shared object into the process, so that code that looks for a CUDA
//! driver afterwards finds it. The other functions of the client control the driver.
//!
//! * `functions/`: the `cu*` functions, by chapter of CUDA's manual, over the simulated GPU of the
//!   crate `resident_stand_in_gpu`, whose documentation says how it differs from CUDA
//! * `interface`, `code`: what is CUDA's own: names of calls, limits, and how a thread's current
//!   context is found; names of results
//! * `image`, `ptx`: images of modules
//!
//! It runs what the stand-in for NVRTC compiled, but no other PTX and no machine code: such a
//! kernel is a host function that the test [registers](register) under the name of the entry. It
//! works only on Linux; elsewhere [`load`] returns an error. The other functions panic before it.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod code;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(target_os = "linux")]
mod ptx;

use resident_stand_in_client::Client;
use resident_stand_in_client::library::{Library, beside_tests};
#[cfg(target_os = "linux")]
use resident_stand_in_client::protocol::Control;
use resident_stand_in_client::settings::{Cuda, Settings as SettingsOf};

pub use resident_stand_in_client::protocol::{Access, Length, Parameter};
pub use resident_stand_in_client::{Call, Fault, Launch, View};

/// The settings of the simulated machine.
pub type Settings = SettingsOf<Cuda>;

/// Opens the shared object. It is the same for all settings.
static CLIENT: Client = Client::new("resident_stand_in_control", |_settings| {
    Library::open(&beside_tests("libresident_stand_in.so")?)
});

resident_stand_in_client::client_functions!(CLIENT);

/// `protocol::GetControl`.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_control() -> &'static Control {
    resident_stand_in_gpu::control::table(&interface::Cuda)
}
