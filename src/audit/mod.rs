//! What was copied, when, why, and which line of the program needed it.
//!
//! Totals are counted at all times ([`SmartArray::traffic`](crate::SmartArray::traffic),
//! [`Device::traffic`](crate::Device::traffic)). [`capture`] collects what the calls of one thread
//! copied, with call sites, in a [`Report`]; by a [`scope`] other threads count to it, and
//! [`capture_all`] collects what all threads copied. A [`Budget`] limits how much a piece of work
//! may copy, and [`deny`](deny()) makes copies errors that calls would cause without saying so.
//! A [`Ledger`] reports what a `tracing` subscriber has seen. [`inventory`] lists the live arrays.
//! Nothing here copies data.
//!
//! Every copy is also a `tracing` event of level `DEBUG`, target `resident::transfer`, with the
//! fields `direction`, `bytes`, `array`, `device`, `stream`, `cause`, `site` (file:line:column of
//! the call that needed the bytes) and `stale_since` (the last call that made any of them stale
//! there, or released them). For a copy between two devices, `device` is the destination and
//! `source` is the source. `stale_since` is missing if the bytes were never valid there, if that
//! call is unknown, or if the copy overwrites the destination ([`Site::never_there`] is true in the
//! first case).
//!
//! A copy is reported under the name of the array whose bytes it moves. The exception is
//! `destination.assign(&source)`, which uses two arrays: copies that first bring the source to a
//! device or to the host are reported under the source's name, and the copy itself, if it goes from
//! one device to another, under the destination's name. A copy within one device is not reported.
//!
//! What a kernel in CUDA C prints on the embedded device is an event of level `INFO`, target
//! `resident::printf`: the text is the message, without the end of its line, and the field `kernel`
//! is the name of the function. Without a subscriber that wants it, it goes to standard output.
//!
//! ```
//! use resident::{Device, SmartArray, audit};
//!
//! let _here = Device::cpu().enter();
//! let (sum, report) = audit::capture(|| {
//!     let mut array = SmartArray::from(vec![1.0_f32; 1000]).named("ones");
//!     array.gpu_mut()?;                                // uploads 4000 bytes
//!     Ok::<f32, resident::Error>(array.host()?.sum())  // downloads them again
//! });
//! assert_eq!(sum?, 1000.0);
//! let traffic = report.traffic();
//! assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (4000, 4000));
//! println!("{report}");
//! # Ok::<(), resident::Error>(())
//! ```

mod budget;
mod capture;
mod cause;
mod copy_record;
mod deny;
mod events;
mod inventory;
mod json;
mod ledger;
mod report;

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::sync;

pub use crate::storage::{Residency, Validity};
pub use crate::traffic::{Direction, Flow, Traffic};
pub use budget::Budget;
pub use capture::{Scope, capture, capture_all, scope};
pub use cause::Cause;
pub(crate) use copy_record::{CopyRecord, Staleness};
pub use deny::{Implicit, ImplicitGuard, allow, deny};
pub(crate) use deny::{denied_at, may_be_denied};
pub use inventory::{Entry, inventory};
pub use ledger::{Ledger, LedgerLayer};
pub use report::{Report, Site};

thread_local! {
    /// Copies that this thread queued and has not reported yet.
    static UNREPORTED: RefCell<VecDeque<CopyRecord>> = const { RefCell::new(VecDeque::new()) };
}

/// Whether a capture or a subscriber may want reports of copies. May be called with locks held.
#[inline]
pub(crate) fn has_listeners() -> bool {
    capture::is_active() || events::may_be_enabled()
}

/// Keeps the record of a copy of this many bytes for [`report_copies`], if a capture or a
/// subscriber may want it. May be called with locks held.
#[inline]
pub(crate) fn record_copy(bytes: u64, make: impl FnOnce() -> CopyRecord) {
    capture::note_copy(bytes);
    if has_listeners() {
        // Nothing is reported while the thread's thread-locals are being destroyed.
        let _ = UNREPORTED.try_with(|records| records.borrow_mut().push_back(make()));
    }
}

/// Reports the recorded copies to captures and subscribers. Subscribers run user code, which may
/// use arrays, so callers hold no lock and no claim.
pub(crate) fn report_copies() {
    let next = || UNREPORTED.try_with(|records| records.borrow_mut().pop_front()).ok().flatten();
    while let Some(record) = next() {
        sync::assert_none_held();
        if capture::is_active() {
            capture::add_copy(&record);
        }
        if events::is_enabled() {
            events::emit_copy(&record);
        }
    }
}

/// Reports one use of an array, through its guard, on a stream that is not the guard's own. The
/// library waited for that stream before and after the use. Callers hold no lock.
#[cfg(feature = "cuda")]
pub(crate) fn report_foreign_use(array: &str, device: &str, stream: u32) {
    if capture::is_active() {
        capture::add_foreign_use(array);
    }
    events::emit_foreign_use(array, device, stream);
}

/// Reports what a kernel printed to a subscriber; `false` if none wants it. Callers hold no lock.
pub(crate) fn report_printed(kernel: &str, text: &str) -> bool {
    events::emit_printed(kernel, text)
}

/// Reports to captures the copies that a launch did not have to make.
pub(crate) fn report_avoided(flow: Flow) {
    if capture::is_active() {
        capture::add_avoided(flow);
    }
}
