//! What was copied, when, why, and which line of the program needed it.
//!
//! Totals are counted at all times ([`SmartArray::traffic`](crate::SmartArray::traffic),
//! [`Device::traffic`](crate::Device::traffic)). [`capture`] collects what the calls of one thread
//! copied, with call sites, in a [`Report`]; by a [`scope`] other threads count to it, and
//! [`capture_all`] collects what all threads copied. A [`Budget`] limits how much a piece of work
//! may copy, and [`deny`](deny()) makes copies errors that calls would cause without saying so.
//! A [`Ledger`] reports what a `tracing` subscriber, or the whole process, has done so far.
//! [`inventory`] lists the live arrays. Nothing here copies data.
//!
//! Reports also have the latest launches, copies, waits and allocations with their times. They are
//! text ([`Report`]'s `Display`), JSON ([`Report::to_json`], [`Document`]), a page for a browser
//! ([`Report::write_html`]) or a trace for Perfetto ([`Report::write_perfetto`]), and they say what
//! could be saved ([`Report::findings`]). With the environment variable `RESIDENT_AUDIT` any
//! program writes a report when it ends: `summary` (to standard error), `html:PATH`, `json:PATH`,
//! `perfetto:PATH`, or several of them with commas between. It begins with the first copy or
//! launch, and a program that has neither writes none.
//!
//! Every copy is also a `tracing` event of level `DEBUG`, target `resident::transfer`, with the
//! fields `direction`, `bytes`, `array`, `device`, `stream`, `cause`, `site` (file:line:column of
//! the call that needed the bytes) and `stale_since` (the last call that made any of them stale
//! there, or released them). For a copy between two devices, `device` is the destination and
//! `source` is the source. `stale_since` is missing if the bytes were never valid there, if that
//! call is unknown, or if the copy overwrites the destination ([`Site::never_there`] is true in the
//! first case).
//!
//! A launch is a span of level `DEBUG`, name `launch`, target `resident::launch`, with the fields
//! `kernel`, `device`, `stream` and `site`; the events of the copies that it needs are in it.
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

mod at_exit;
mod budget;
mod capture;
mod cause;
mod deny;
mod document;
mod events;
mod file;
mod findings;
mod html;
mod inventory;
mod json;
mod ledger;
mod perfetto;
mod record;
mod records;
mod report;
mod table;
mod to_document;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::call_site::CallSite;
use crate::device::Stream;
use crate::sync;

pub use crate::storage::{Residency, Validity};
pub use crate::traffic::{Direction, Flow, Traffic};
pub use budget::Budget;
pub use capture::{Scope, capture, capture_all, scope};
pub use cause::Cause;
pub use deny::{Implicit, ImplicitGuard, allow, deny, log};
pub(crate) use deny::{denied_at, may_be_denied};
pub use document::{
    Document, DocumentArgument, DocumentArray, DocumentMemory, DocumentRecord, DocumentSite,
    Finding,
};
pub(crate) use events::LaunchSpan;
pub use inventory::{Entry, inventory};
pub use ledger::{Ledger, LedgerLayer};
pub(crate) use record::{
    ArgumentRecord, CopyRecord, LaunchRecord, MemoryEvent, MemoryRecord, QueueSpan, Staleness,
};
use record::{Event, Record};
pub use records::Waits;
pub use report::{GroupBy, Report, Site};

thread_local! {
    /// What this thread queued or allocated and has not reported yet.
    static UNREPORTED: RefCell<VecDeque<Record>> = const { RefCell::new(VecDeque::new()) };
}

/// Whether a capture or a subscriber may want reports of copies. May be called with locks held.
#[inline]
pub(crate) fn has_listeners() -> bool {
    capture::is_active() || events::may_be_enabled() || deny::logs_any()
}

/// Keeps the record of a copy of this many bytes for [`report_recorded`], if a capture or a
/// subscriber may want it. May be called with locks held.
#[inline]
pub(crate) fn record_copy(bytes: u64, make: impl FnOnce() -> CopyRecord) {
    capture::note_copy(bytes);
    if has_listeners() {
        keep(Record::copy(make()));
    }
}

/// Keeps the record of an allocation or an eviction for [`report_recorded`], if a capture wants it.
/// May be called with locks held.
#[inline]
pub(crate) fn record_memory(make: impl FnOnce() -> MemoryRecord) {
    if capture::is_active() {
        keep(Record::now(Event::Memory(make())));
    }
}

fn keep(record: Record) {
    // Nothing is reported while the thread's thread-locals are being destroyed.
    let _ = UNREPORTED.try_with(|records| records.borrow_mut().push_back(record));
}

/// Reports what was recorded to captures and subscribers. Subscribers run user code, which may use
/// arrays, so callers hold no lock and no claim.
pub(crate) fn report_recorded() {
    let next = || UNREPORTED.try_with(|records| records.borrow_mut().pop_front()).ok().flatten();
    while let Some(record) = next() {
        sync::assert_none_held();
        if !events::may_be_enabled() && !deny::logs_any() {
            capture::add(record);
            continue;
        }
        if capture::is_active() {
            capture::add(record.clone());
        }
        emit(&record);
    }
}

/// Emits the events of a copy that subscribers want.
fn emit(record: &Record) {
    let Event::Copy { copy, .. } = &record.event else { return };
    if events::is_enabled() {
        events::emit_copy(record, copy);
    }
    if deny::is_logged(copy.cause, copy.direction) {
        events::emit_implicit(copy);
    }
}

/// Enters the span of a launch, if a subscriber may want it. Callers hold no lock while the span
/// lives.
#[inline]
pub(crate) fn enter_launch(
    kernel: &Arc<str>,
    stream: &Stream,
    site: CallSite,
) -> Option<LaunchSpan> {
    events::may_be_enabled().then(|| LaunchSpan::enter(kernel, stream, site))
}

/// Whether a capture or a subscriber may want to know of launches: two loads if not.
#[inline]
pub(crate) fn observes_launches() -> bool {
    events::may_be_enabled() || capture::is_active()
}

/// Reports a launch that was queued to captures. Callers hold no lock.
pub(crate) fn report_launch(launch: LaunchRecord) {
    if capture::is_active() {
        report_recorded();
        capture::add(Record::launch(launch));
    }
}

/// This thread's launch is over: later copies are of another one.
pub(crate) fn forget_launch() {
    record::forget_launch();
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
