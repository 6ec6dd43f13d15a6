//! What most tests of arrays name: arrays, devices, kernels, and the helpers of all suites.

pub use resident::Validity::{Absent, Partial, Stale, Valid};
pub use resident::emulation::CallKind;
pub use resident::ndarray::{
    Array, Array1, Array2, ArrayD, Axis, Dimension, Ix1, Ix2, IxDyn, Order, ShapeBuilder, array, s,
};
pub use resident::{
    Device, DeviceArray, DeviceView, DeviceViewMut, Emulation, Error, Fault, Grid, In, InOut,
    Kernel, ManagedArray, MappedArray, Out, Pending, PinnedArray, Result, SmartArray, SmartView,
    SmartViewMut, Stream, Traffic, Validity, audit, with_mapped, with_pinned,
};

pub use crate::block_on::block_on;
pub use crate::bodies::{assert_ordered, assert_ordered_under};
pub use crate::cases::{run_cases, sampled};
pub use crate::eventually::eventually;
pub use crate::flags::without_deadlock;
pub use crate::lab::lab;
pub use crate::moves::{NOTHING, moves, validity};
pub use crate::own_process::assert_success;
pub use crate::random::Random;
pub use crate::watched::count_of;
pub use crate::{own_process, test_name};
