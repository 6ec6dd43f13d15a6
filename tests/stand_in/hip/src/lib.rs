//! HIP without a GPU, for tests: HIP's C functions, implemented with the engine of `resident`'s
//! embedded device.
//!
//! Like the [stand-in for CUDA's driver](../resident_stand_in), of whose files it is made, it is
//! built as two libraries: a shared object, which exports the `hip*` functions under the SONAME
//! `libamdhip64.so`, and a Rust library, the client, which tests link to [`load`] and control it.
//! Both stand-ins may be loaded into one process. Each has its own devices, record and faults.
//!
//! * `client`, `launch`, `protocol`, `code_library`, and most of `driver`: files of the other
//!   stand-in
//! * `settings`: the machine. `versions`: which functions a version of HIP has
//! * `code_object`: images of modules, as AMD's compiler writes them
//! * `driver/`: HIP's functions; see the comment of the module
//!
//! It runs what the stand-in for hiprtc compiled, and no machine code: another kernel is a host
//! function that the test [registers](register) under the kernel's name. It works only on Linux;
//! elsewhere [`load`] returns an error.

#[path = "../../driver/src/client.rs"]
mod client;
#[cfg(target_os = "linux")]
#[path = "../../driver/src/code_library.rs"]
mod code_library;
#[cfg(target_os = "linux")]
mod code_object;
#[path = "../../driver/src/launch.rs"]
mod launch;
#[allow(dead_code, reason = "the other stand-ins use more of it")]
#[path = "../../driver/src/library.rs"]
mod library;
#[path = "../../driver/src/protocol.rs"]
mod protocol;
mod settings;
#[cfg(target_os = "linux")]
mod versions;

/// HIP's functions over the machine of the stand-in for CUDA's driver.
///
/// What is HIP's own: `functions/`; `code`, the errors; `image`, code objects; `interface`, which
/// has the current device of each thread, the names of calls and the limits. All else are the
/// files of the other stand-in, whose comments speak of CUDA.
///
/// HIP has no contexts to speak of. The primary context of a device begins with the first call that
/// needs it, and ends when the settings change: then no stream and no memory of it may be left.
///
/// Where HIP's documentation leaves the behaviour open, the stand-in is strict, or as CUDA:
///
/// * Work is rejected (INVALID_HANDLE) on a stream whose device is not current, or with a function
///   of a module that was loaded for another device. Queries, waits, and the destruction of streams
///   and events work on any current device, and a stream may wait for events of other devices.
/// * Copies and fills that leave their allocation are rejected at once (INVALID_VALUE), as HIP
///   does; other addresses of devices make the work fail when it runs.
/// * The kind of a copy must be true of its addresses.
/// * If work fails, all later calls that need the device return its error. A real HIP ends the
///   process at an access to memory that is not mapped.
#[cfg(target_os = "linux")]
#[allow(
    dead_code,
    unused_imports,
    rustdoc::private_intra_doc_links,
    reason = "the stand-in for CUDA's driver uses more of it"
)]
mod driver {
    #[path = "../../../driver/src/driver/allocate.rs"]
    mod allocate;
    #[path = "../../../driver/src/driver/arguments.rs"]
    mod arguments;
    #[path = "../../../driver/src/driver/call.rs"]
    mod call;
    #[path = "../../../driver/src/driver/capture.rs"]
    mod capture;
    mod code;
    #[path = "../../../driver/src/driver/code_launch.rs"]
    mod code_launch;
    #[path = "../../../driver/src/driver/context.rs"]
    mod context;
    #[path = "../../../driver/src/driver/control.rs"]
    pub(crate) mod control;
    #[path = "../../../driver/src/driver/copy.rs"]
    mod copy;
    #[path = "../../../driver/src/driver/entry.rs"]
    mod entry;
    #[path = "../../../driver/src/driver/event.rs"]
    mod event;
    #[path = "../../../driver/src/driver/fill.rs"]
    mod fill;
    mod functions;
    #[path = "../../../driver/src/driver/handle.rs"]
    mod handle;
    #[path = "../../../driver/src/driver/host.rs"]
    mod host;
    mod image;
    mod interface;
    #[path = "../../../driver/src/driver/kernel.rs"]
    mod kernel;
    #[path = "../../../driver/src/driver/ledger.rs"]
    mod ledger;
    #[path = "../../../driver/src/driver/machine.rs"]
    mod machine;
    #[path = "../../../driver/src/driver/module.rs"]
    mod module;
    #[path = "../../../driver/src/driver/stream.rs"]
    mod stream;
    #[path = "../../../driver/src/driver/work.rs"]
    mod work;
}

/// The function by which the client gets the table of the stand-in.
const CONTROL: &str = "resident_stand_in_hip_control";

/// `protocol::GetControl`.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_hip_control() -> &'static protocol::Control {
    &driver::control::TABLE
}

/// Opens the shared object with the functions that the version of HIP has.
#[cfg(target_os = "linux")]
fn open(settings: Settings) -> Result<library::Library, String> {
    versions::open(settings.version)
}

#[cfg(not(target_os = "linux"))]
fn open(_settings: Settings) -> Result<library::Library, String> {
    library::Library::open_beside_tests("the stand-in for HIP")
}

pub use client::{
    Call, calls, change, declare, fail_any, fail_late, fail_nth, forget_faults, hazards, load,
    memory_in_use, notes, register, take_calls, take_hazards, take_notes,
};
#[cfg(target_os = "linux")]
pub use code_object::{Described, Kind, write as code_object};
pub use launch::{Fault, Launch, View};
pub use protocol::{Access, Length, Parameter};
pub use settings::Settings;
#[cfg(target_os = "linux")]
pub use versions::file_without;
