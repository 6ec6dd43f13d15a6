//! AMD GPUs on the stand-in for HIP: errors, code, and machines with two vendors' GPUs; and AMD's
//! own runtime, where it is installed, without a GPU. The conformance suite, the model and the
//! sweeps run on the stand-in too.
//!
//! Each test has a process of its own, since a process has one runtime.

#![cfg(all(target_os = "linux", feature = "hip"))]

mod bad_input;
mod calls;
#[path = "../cuda/chains/mod.rs"]
mod chains;
mod check;
mod code;
mod graphs;
mod host_memory;
#[cfg(feature = "cuda")]
mod mixed;
#[path = "../cuda/pages.rs"]
mod pages;
#[path = "../cuda/parts.rs"]
mod parts;
mod peers;
mod real_runtime;

use resident::{Device, Error};
use resident_backend::DeviceKind;
use resident_stand_in_hip::Settings;
use support::hip::{driver as matrices, face};

/// What the tests of pages and parts, which run on both stand-ins, know of this one.
const KIND: DeviceKind = DeviceKind::Hip;
/// How the names of its calls begin.
const PREFIX: &str = "hip";

/// The message of a device that cannot be opened.
#[track_caller]
fn refused(outcome: resident::Result<Device>) -> String {
    match outcome {
        Err(error @ Error::NoDevice { .. }) => error.to_string(),
        other => panic!("{other:?} is not NoDevice"),
    }
}

/// Loads the stand-in, and opens its first device.
fn open(settings: Settings) -> Device {
    resident_stand_in_hip::load(settings).expect("the stand-in for HIP loads");
    resident_stand_in_hiprtc::load().expect("the stand-in for hiprtc loads");
    Device::hip(0).unwrap_or_else(|error| panic!("{error}"))
}
