//! Failures. A call returns its failure; a failure of queued work is recorded under the position of
//! the work.
//!
//! `table` holds the failures of queued work on all devices. [`epoch`] rises with each failure. A
//! caller that has found no failure can store the epoch, and need not search again until the epoch
//! changes. Records are removed when no one can ask for them any more: see [`Inquiry`] and
//! `storage::forget_failures`.

mod inquiry;
mod no_time;
mod table;

use std::fmt;
use std::sync::Arc;

use crate::Address;
use crate::call_site::CallSite;
pub use inquiry::{InquiriesBefore, Inquiry};
pub use no_time::NoTime;
pub use table::kept;
pub use table::record_stream_death;
pub use table::{
    at, count, epoch, first_between, forget, is_forgetting_due, postpone_forgetting, record,
};

/// Why a backend refused a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BackendErrorKind {
    /// Not enough memory. All numbers are in bytes; `draining` are those that queued work frees.
    OutOfMemory { requested: u64, free: u64, draining: u64 },
    /// Not enough memory of the host: to pin, or to stage a copy in. How much is left is unknown.
    OutOfHostMemory { requested: u64 },
    /// The call would have to wait, but the calling thread runs a kernel body, which must not wait.
    InsideKernel,
    /// A fault that the emulation injected.
    Injected,
    /// The device is lost.
    DeviceLost,
    /// This process is a forked child of the one that opened the device: see `fork`.
    Forked,
    /// There is no time between two events: see [`NoTime`], or their clocks differ.
    NoTiming,
    /// The driver refused a later one of several calls for one operation. The earlier ones have
    /// ended, and have written this number of bytes of the operation's destination.
    Partial { written_bytes: u64 },
    /// Any other error of the driver, with its code.
    Driver { code: i64 },
}

/// A refused backend call: it has queued nothing, unless its kind is `Partial`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackendError {
    pub kind: BackendErrorKind,
    /// The backend's name for the call (`allocate`, `cuMemcpyHtoDAsync`).
    pub call: &'static str,
    /// Details from the backend: values seen, limits. May be empty.
    pub detail: String,
}

impl BackendError {
    /// The error of an operation of which earlier driver calls have written this number of bytes. A
    /// lost device stays one.
    #[must_use]
    pub fn after_writing(self, written_bytes: u64) -> Self {
        if written_bytes == 0 || self.kind == BackendErrorKind::DeviceLost {
            return self;
        }
        let text = self.to_string();
        let reason = text.split_once(": ").map_or("", |(_call, reason)| reason);
        let kind = BackendErrorKind::Partial { written_bytes };
        Self { kind, call: self.call, detail: String::from(reason) }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.call)?;
        match &self.kind {
            BackendErrorKind::OutOfMemory { requested, free, .. } => {
                write!(f, "{requested} bytes requested, {free} free")?;
            }
            BackendErrorKind::OutOfHostMemory { requested } => {
                write!(f, "{requested} bytes of the host requested")?;
            }
            BackendErrorKind::InsideKernel => write!(f, "would wait inside a kernel body")?,
            BackendErrorKind::Injected => write!(f, "a fault injected by the emulation")?,
            BackendErrorKind::DeviceLost => write!(f, "the device is lost")?,
            BackendErrorKind::Forked => write!(f, "refused")?,
            BackendErrorKind::NoTiming => write!(f, "there is no time between the events")?,
            BackendErrorKind::Partial { .. } => return f.write_str(&self.detail),
            BackendErrorKind::Driver { code } => write!(f, "driver error {code}")?,
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// The effect of a failure on the bytes that the operation should have written, from the least
/// severe to the most severe. If an operation fails because another one failed, the more severe of
/// the two effects applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FailureKind {
    /// A fill of a stale copy with poison bytes: nothing is lost and nothing is reported.
    Poison,
    /// A copy: its destination is invalid, its source is unchanged.
    Copy,
    /// A fill with a constant that the library still knows: its destination is invalid.
    Constant,
    /// A kernel or an assignment: the contents that it should have written are lost.
    Contents,
    /// The device is lost, with everything that was queued on it.
    Device,
}

/// One failure of queued work.
#[derive(Clone, Debug)]
pub struct FailureRecord {
    pub kind: FailureKind,
    /// The operation that failed first, such as `kernel "blur"` or `copy of "photo" to cpu:0`.
    pub operation: String,
    /// The call that queued this operation.
    pub site: Option<CallSite>,
    /// The panic's message, or the driver's text.
    pub cause: String,
    /// Whether the operation did not run because an operation that it depends on failed. The other
    /// fields then describe the operation that failed first.
    pub inherited: bool,
    /// The element without contents that the operation was to read, if that is the cause.
    pub left_out: Option<Arc<LeftOut>>,
}

/// An element of an output that a launch did not write, and that nothing has written since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Where it is on the device that has it.
    pub address: Address,
    /// Its index among those that the launch was to write.
    pub index: String,
    /// The array's name at the launch; empty if it is unknown.
    pub array: String,
    pub launch: LeftOutBy,
}

/// The launch that did not write an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOutBy {
    pub kernel: Arc<str>,
    pub site: Option<CallSite>,
}

/// `kernel "blur" at src/main.rs:7:17`.
impl fmt::Display for LeftOutBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel \"{}\"", self.kernel)?;
        self.site.map_or(Ok(()), |site| write!(f, " at {site}"))
    }
}

/// Why the operation failed that was to read the element.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = if self.array.is_empty() { "an array" } else { &self.array };
        write!(f, "it reads {} of {array}, which {} left out of its `Out`", self.index, self.launch)
    }
}
