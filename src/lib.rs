//! Arrays that stay where they are used.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
pub mod audit;
mod backend;
#[allow(dead_code)]
mod coherence;
mod device;
mod element;
mod error;
mod grid;
mod launch;
mod order;
mod storage;
mod sync;
mod transfer;

pub use array::{
    AnyView, AnyViewMut, AsView, AsViewMut, DeviceMut, DeviceRef, HostMut, HostRef, MultiSlice, Pending, SmartArray, SmartView,
    SmartViewMut,
};
pub use audit::{Flow, Residency, Traffic, Validity};
pub use backend::embedded::{Emulation, Fault, Link};
/// What an emulated device remembers: the calls that were made, and hazards, work that touched the same bytes unordered.
pub mod emulation {
    pub use crate::backend::embedded::{Call, CallKind, EmulationLog, Hazard, HazardKind, HazardOperation, Outcome, Touch};
}
pub use backend::{Capacity, DeviceKind, MemoryUsage as Memory};
pub use bytemuck;
pub use device::{AutoSynchronize, Device, Entered, Event, Stream};
pub use element::Element;
pub use error::{Error, Result, Shortage, Text};
pub use grid::{Extent3, Grid};
pub use launch::{Argument, Arguments, Described, Flat, In, InOut, Kernel, Out, Parameter, Signature};
pub use ndarray;

/// What most programs name: `use resident::prelude::*;`.
pub mod prelude {
    pub use crate::{Device, Element, Event, Grid, In, InOut, Kernel, Out, Pending, SmartArray, SmartView, SmartViewMut, Stream, audit};
}
