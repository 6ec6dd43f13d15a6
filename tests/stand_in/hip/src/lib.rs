//! HIP without a GPU, for tests: HIP's C functions, implemented with the engine of `resident`'s
//! embedded device.
//!
//! Like the [stand-in for CUDA's driver](../resident_stand_in) it is built as two libraries: a
//! shared object, which exports the `hip*` functions under the SONAME `libamdhip64.so`, and a Rust
//! library, the client, which tests link to [`load`] and control it. Both stand-ins may be loaded
//! into one process. Each has its own devices, record and faults.
//!
//! * `functions/`: the `hip*` functions, by chapter of HIP's manual, over the simulated GPU of the
//!   crate `resident_stand_in_gpu`
//! * `interface`, `code`: what is HIP's own: the current device and the last error of each thread,
//!   names of calls, limits; names of results
//! * `image`: code objects. `versions`: which functions a version of HIP has
//!
//! It runs what the stand-in for hiprtc compiled, and no machine code: another kernel is a host
//! function that the test [registers](register) under the kernel's name. It works only on Linux;
//! elsewhere [`load`] returns an error. The other functions panic before it.
//!
//! HIP has no contexts to speak of. The primary context of a device begins with the first call that
//! needs it, and ends when the settings change: then no stream and no memory of it may be left.
//!
//! Where HIP's documentation leaves the behaviour open, the stand-in is strict, or as CUDA:
//!
//! * Work is rejected (INVALID_HANDLE) on a stream whose device is not current, or with a function
//!   of a module that was loaded for another device. Queries, waits, and the destruction of streams
//!   and events work on any current device, and a stream may wait for events of other devices.
//! * Copies and fills that leave their allocation are rejected at once (INVALID_VALUE), as HIP
//!   does; other addresses of devices make the work fail when it runs.
//! * The kind of a copy must be true of its addresses.
//! * If work fails, all later calls that need the device return its error. A real HIP ends the
//!   process at an access to memory that is not mapped.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod code;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod interface;
mod versions;

use resident_stand_in_client::Client;
#[cfg(target_os = "linux")]
use resident_stand_in_client::protocol::Control;
use resident_stand_in_client::settings::{Hip, Settings as SettingsOf};

pub use resident_stand_in_client::protocol::{Access, Length, Parameter};
pub use resident_stand_in_client::{Call, Fault, Launch, View};
#[cfg(target_os = "linux")]
pub use resident_stand_in_code::object::{Described, Kind, write as code_object};
pub use versions::file_without;

/// The settings of the simulated machine.
pub type Settings = SettingsOf<Hip>;

/// Opens the shared object with the functions that the version of HIP has.
static CLIENT: Client = Client::new("resident_stand_in_hip_control", versions::open);

resident_stand_in_client::client_functions!(CLIENT);

/// `protocol::GetControl`.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_hip_control() -> &'static Control {
    resident_stand_in_gpu::control::table(&interface::Hip)
}
