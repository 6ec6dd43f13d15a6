//! `tracing` events, and the span of a launch. Beside this file only `device::wait_span` uses
//! `tracing`.

use std::cell::RefCell;
use std::fmt;

use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Event, Level, Subscriber, event, event_enabled, span};
use tracing_subscriber::layer::{Context, Layer};

use super::captures::ledger::LedgerLayer;
use super::recording::cause::Cause;
use super::recording::facts::{MemoryRecord, MessageRecord, Record, kernel_name};
use crate::device::Stream;
use crate::traffic::{Direction, grouped};
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_backend::unwinding::contain_panic;
use resident_documents::shown;

/// The target of the events of copies.
const TRANSFER: &str = "resident::transfer";

thread_local! {
    /// What the event that this thread emits now is about. It has more than the event's fields.
    static EMITTED: RefCell<Option<Emitted>> = const { RefCell::new(None) };
}

/// What an event of the target [`TRANSFER`] is about.
#[derive(Clone)]
enum Emitted {
    Copy(Record),
    Message(MessageRecord),
}

/// Whether a subscriber may want an event of this level. Compares one number and calls no
/// subscriber, so it may be called with locks held.
#[inline]
pub(super) fn may_be_enabled() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// The span of a launch, for as long as it is queued: the copies that the launch needs are in it.
#[must_use]
pub(crate) struct LaunchSpan {
    /// `Some` until the drop.
    entered: Option<EnteredSpan>,
}

impl LaunchSpan {
    #[cold]
    pub(super) fn enter(title: &str, stream: &Stream, site: CallSite) -> Self {
        sync::assert_none_held();
        let span = span!(
            target: "resident::launch",
            Level::DEBUG,
            "launch",
            kernel = kernel_name(title),
            device = stream.device_ref().name_str(),
            stream = i64::from(stream.number()),
            site = %site
        );
        Self { entered: Some(span.entered()) }
    }
}

/// Subscribers get it as in [`report_recorded`](super::report_recorded).
impl Drop for LaunchSpan {
    fn drop(&mut self) {
        sync::assert_none_held();
        let entered = self.entered.take();
        if std::thread::panicking() {
            contain_panic(|| drop(entered));
        }
    }
}

/// Whether a subscriber wants events of copies.
#[inline]
pub(super) fn is_enabled() -> bool {
    event_enabled!(target: TRANSFER, Level::DEBUG)
}

/// Emits the event of one copy. A subscriber may use arrays, and so emit others meanwhile.
pub(super) fn emit_copy(record: &Record) {
    let _emitting = Emitting::start(Emitted::Copy(record.clone()));
    emit_fields(record);
}

/// Emits the event of one message. Callers hold no lock.
pub(super) fn emit_message(record: &MessageRecord) {
    sync::assert_none_held();
    let _emitting = Emitting::start(Emitted::Message(record.clone()));
    let MessageRecord { direction, bytes, array, device, peer, site, .. } = record;
    let title = Title { array, direction: *direction, cause: Cause::Mpi, bytes: *bytes };
    event!(
        name: "transfer",
        target: TRANSFER,
        Level::DEBUG,
        direction = direction.as_str(),
        bytes = signed(*bytes),
        array = &**array,
        device = &**device,
        peer = peer.map(i64::from),
        cause = Cause::Mpi.as_str(),
        site = %site,
        "{title}"
    );
}

/// Emits the event of what happened to an array's memory on a device, if a subscriber wants it.
/// Callers hold no lock.
pub(super) fn emit_memory(record: &MemoryRecord) {
    let MemoryRecord { notice, bytes, array, device, site } = record;
    let change = notice.as_str();
    event!(
        name: "memory",
        target: "resident::memory",
        Level::DEBUG,
        change,
        bytes = signed(*bytes),
        array = &**array,
        device = &**device,
        site = site.map(tracing::field::display),
        "{change} of \"{}\" on {device}, {} bytes",
        shown(array),
        grouped(*bytes)
    );
}

/// An event that is being emitted. When it drops, also because a subscriber panics, the thread
/// emits the one before again.
struct Emitting {
    outer: Option<Emitted>,
}

impl Emitting {
    fn start(emitted: Emitted) -> Self {
        let outer = EMITTED.try_with(|known| known.replace(Some(emitted)));
        Self { outer: outer.ok().flatten() }
    }
}

impl Drop for Emitting {
    fn drop(&mut self) {
        let outer = self.outer.take();
        let _ = EMITTED.try_with(|emitted| *emitted.borrow_mut() = outer);
    }
}

/// Takes the copies and messages to the ledger. Foreign events of the same target have no record.
impl<S: Subscriber> Layer<S> for LedgerLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == TRANSFER {
            let emitted = EMITTED.try_with(|emitted| emitted.borrow().clone());
            match emitted.ok().flatten() {
                Some(Emitted::Copy(record)) => self.add(&record),
                Some(Emitted::Message(record)) => self.add_message(&record),
                None => {}
            }
        }
    }
}

fn emit_fields(record: &Record) {
    let Record { direction, bytes, array, stream, source, cause, site, staleness, .. } = record;
    let title = Title::of(record);
    event!(
        name: "transfer",
        target: TRANSFER,
        Level::DEBUG,
        direction = direction.as_str(),
        bytes = signed(*bytes),
        array = &*array.name,
        device = &*stream.device,
        source = source.as_deref(),
        stream = i64::from(stream.number),
        cause = cause.as_str(),
        site = %site,
        stale_since = staleness.since().map(tracing::field::display),
        "{title}"
    );
}

/// The message of a copy's event.
struct Title<'a> {
    array: &'a str,
    direction: Direction,
    cause: Cause,
    bytes: u64,
}

impl<'a> Title<'a> {
    fn of(record: &'a Record) -> Self {
        let Record { direction, bytes, array, cause, .. } = record;
        Self { array: &array.name, direction: *direction, cause: *cause, bytes: *bytes }
    }
}

/// `"photo" to_device for launch, 4_000 bytes`. Fields have names as they are; in a message a long
/// one is shortened, and what a terminal would obey is escaped.
impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { array, direction, cause, bytes } = self;
        let (array, bytes) = (shown(array), grouped(*bytes));
        write!(f, "\"{array}\" {direction} for {cause}, {bytes} bytes")
    }
}

/// OpenTelemetry has no unsigned numbers: its layer makes text of them.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Emits the event of a copy that the thread logs.
pub(super) fn emit_implicit(copy: &Record) {
    let title = Title::of(copy);
    event!(
        name: "implicit",
        target: "resident::implicit",
        Level::WARN,
        direction = copy.direction.as_str(),
        bytes = signed(copy.bytes),
        array = &*copy.array.name,
        cause = copy.cause.as_str(),
        site = %copy.site,
        "an implicit copy: {title}"
    );
}

/// Whether a subscriber wants what kernels print. Callers hold no lock.
pub(crate) fn wants_printed() -> bool {
    sync::assert_none_held();
    event_enabled!(target: "resident::printf", Level::INFO)
}

/// Emits the event of what a kernel printed. Callers hold no lock.
pub(crate) fn report_printed(kernel: &str, text: &str) {
    sync::assert_none_held();
    let text = text.strip_suffix('\n').unwrap_or(text);
    event!(name: "printf", target: "resident::printf", Level::INFO, kernel, "{text}");
}

/// Emits the event of what the checker found in a kernel. Callers hold no lock.
pub(crate) fn report_finding(kernel: &str, is_error: bool, text: &str) -> bool {
    sync::assert_none_held();
    if is_error {
        event!(name: "finding", target: "resident::finding", Level::ERROR, kernel, "{text}");
        event_enabled!(target: "resident::finding", Level::ERROR)
    } else {
        event!(name: "finding", target: "resident::finding", Level::INFO, kernel, "{text}");
        event_enabled!(target: "resident::finding", Level::INFO)
    }
}

/// Emits the event of one use of an array through its guard on a stream other than the guard's own.
#[cfg(feature = "cuda")]
pub(super) fn emit_foreign_use(array: &str, device: &str, stream: u32) {
    event!(
        name: "foreign_use",
        target: "resident::interop",
        Level::DEBUG,
        array,
        device,
        stream = i64::from(stream),
        "a foreign stream is waited for"
    );
}
