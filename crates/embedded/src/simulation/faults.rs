//! Injected faults: which calls of an emulated device fail.

use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use super::call_log::CallKind;

/// An injected failure of one call of an emulated device.
///
/// Each device counts its calls from 1, in the order in which they are made. [`CallKind`] lists the
/// calls that count. A fault makes its call fail at once, with nothing queued. With a
/// [`late`](Fault::late) fault the call succeeds, and its work fails when it runs. Only copies,
/// fills and launches can fail late: a late fault has no effect on another kind of call.
///
/// A device that fills stale copies with [poison bytes](crate::Emulation::poison) makes additional
/// calls for these fills. By default, emulated devices do so in builds with debug assertions. To
/// make a program fail at the same place in every build, count calls of one kind, by
/// [`of`](Fault::of).
///
/// ```
/// use resident::emulation::CallKind;
/// use resident::{Device, Emulation, Fault, Grid, InOut, Kernel, SmartArray};
///
/// let device = Device::emulated(Emulation::new().fail(Fault::nth(2).of(CallKind::Launch)));
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let mut array = SmartArray::from(vec![1.0_f32; 8]);
/// double.launch_on(&device.stream(), Grid::cover(8), (&mut array,))?;
/// assert!(double.launch_on(&device.stream(), Grid::cover(8), (&mut array,)).is_err());
/// assert_eq!(array.host()?.sum(), 16.0);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Fault {
    call: u64,
    is_late: bool,
    kind: Option<CallKind>,
}

impl Fault {
    /// Refuses the `call`-th call, counted from 1. Call 0 does not exist.
    pub fn nth(call: u64) -> Self {
        Self { call, is_late: false, kind: None }
    }

    /// Counts only calls of this kind: with `nth(3)` and launches, the third launch fails.
    pub fn of(self, kind: CallKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Makes the call succeed and its work fail when it runs.
    pub fn late(self) -> Self {
        Self { is_late: true, ..self }
    }

    pub(super) fn is_late(self) -> bool {
        self.is_late
    }
}

/// The faults of one device, each with the number of calls of its kind made so far.
#[derive(Debug)]
pub(super) struct Faults(Vec<(Fault, AtomicU64)>);

impl Faults {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        Self(faults.into_iter().map(|fault| (fault, AtomicU64::new(0))).collect())
    }

    /// Counts this call, and returns the faults that apply to it.
    pub(super) fn due(&self, kind: CallKind, number: u64) -> SmallVec<[Fault; 1]> {
        let is_due = |(fault, counted): &&(Fault, AtomicU64)| match fault.kind {
            None => fault.call == number,
            Some(other) => {
                other == kind && counted.fetch_add(1, Ordering::Relaxed) + 1 == fault.call
            }
        };
        self.0.iter().filter(is_due).map(|(fault, _)| *fault).collect()
    }
}
