//! What was copied, when, why, and which line of the program needed it.
//!
//! Nothing here copies data. To begin with: [read a report](crate::guide::read_a_report).
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
//! # let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/audit/mod.rs"));
//! # let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
//! # let shown: Vec<_> = page.lines().map(|line| words(line.trim_start_matches("//!"))).collect();
//! # let text = report.to_string();
//! # let lines = text.lines().filter(|line| line.ends_with("  ones"));
//! # assert_eq!(lines.inspect(|line| assert!(shown.contains(&words(line)), "{line}")).count(), 2);
//! # Ok::<(), resident::Error>(())
//! ```
//!
//! prints the lines that needed copies, and then totals:
//!
//! ```text
//! bytes  copies  direction  device  cause  array
//! ----------------------------------------------------
//! 4_000       1  to_device  cpu:0   gpu    ones
//!     at src/main.rs:6:11, never there before
//! 4_000       1  to_host    cpu:0   host   ones
//!     at src/main.rs:7:40, stale since src/main.rs:6:11
//! ```
//!
//! # Which tool for which question
//!
//! | question | tool |
//! |---|---|
//! | What did any program copy, without changing it? | the variable `RESIDENT_AUDIT`, below |
//! | What did this piece of work copy, and why? | [`capture`]; other threads count to it by a [`scope`](scope()) |
//! | What do all threads copy meanwhile? | [`capture_all`] |
//! | What could be saved? | [`Report::findings`]; in more detail with [`compare_contents`](compare_contents()) |
//! | What has a program that runs for days done so far? | a [`Ledger`], of the process or of a `tracing` subscriber; [`Ledger::reset`] begins a new one |
//! | Which numbers does my monitoring get, such as Prometheus? | [`counters`](counters()), which always count, and [`Counters::to_prometheus`] |
//! | What filled the memory of a device, or pinned memory? | [`Report::memory`] |
//! | What does a task of an executor copy? | [`Scope::instrument`] |
//! | How much, at any time, of one array or device? | [`SmartArray::traffic`](crate::SmartArray::traffic), [`Device::traffic`](crate::Device::traffic), which always count |
//! | Which arrays live, and where are they valid? | [`inventory`] |
//! | May this work copy so much? | a [`Budget`], as an attribute of tests [`budget`](crate::budget) |
//! | May this code copy at all? | [`deny`](deny()), [`log`](log()), [`allow`](allow()) |
//! | How long do kernels and copies take on a GPU? | [`time_device`](time_device()) |
//! | What went between the processes of a job? | [`Report::sent`], [`Report::received`], `resident-report merge` |
//!
//! # The words of `RESIDENT_AUDIT`
//!
//! With this environment variable any program writes a report when it ends: one or several words
//! with commas between. The report begins with the first copy, message or launch, and a program
//! that has none of them writes none. If a device checks kernels
//! ([`Emulation::sanitize`](crate::Emulation::sanitize)), the summary, the page and the JSON say
//! which it has checked.
//!
//! | word | what it does |
//! |---|---|
//! | `summary` | prints the report to standard error |
//! | `html:PATH` | writes a page for a browser, which loads nothing else |
//! | `json:PATH` | writes a [`Document`], for `resident-report` and programs of your own |
//! | `perfetto:PATH` | writes a trace for Perfetto |
//! | `every:SECONDS` | beside one of these: writes them anew each time so many seconds are over |
//! | `signal:USR1`, `signal:USR2`, `signal:HUP` | beside one of these: writes them anew at this signal, on Unix, once something was copied or launched |
//! | `contents` | beside one of these: compares contents, so that needless writes are found |
//! | `gpu-times` | beside one of these: times every GPU |
//! | `no-arguments` | leaves the program's arguments, which may be secrets, out of all reports of the process |
//!
//! Files are written beside their places and then renamed, so readers never see half of one.
//! [`write_reports`] writes them when the program wants.
//!
//! Case does not matter but in paths, nor do spaces around words and paths. A path has no comma,
//! and two words with one path are refused, since the second report would replace the first.
//!
//! In a path `%r` is the rank of the process in its job (as `resident-mpi`, `mpirun` or Slurm says,
//! else 0), `%h` the name of the host, `%p` the number of the process, and `%%` one `%`.
//!
//! # How a program ends
//!
//! The last report is written when the process ends by a return of `main`, a panic of it, or
//! [`exit`](std::process::exit), on whatever thread. Nothing is written if it ends otherwise: by
//! [`abort`](std::process::abort) or `_exit`, or by a signal that it does not handle, such as
//! SIGTERM or SIGINT (Ctrl-C). Then the reports of `every:SECONDS` and of signals remain as they
//! are. A program that handles SIGTERM ends by `exit`, or calls [`write_reports`] before it does
//! otherwise. A process that another one forks writes nothing, unless it executes a program.
//!
//! # Reports
//!
//! A [`Report`] has totals, the lines that needed copies, and the latest launches, copies, waits
//! and allocations with their times; it says how memory was used ([`Report::memory`]), and names
//! program, arguments, host and process ([`DocumentProcess`]). It is text by its `Display`, and a
//! page ([`Report::write_html`]), JSON ([`Report::to_json`]) or a trace
//! ([`Report::write_perfetto`]) for other programs.
//!
//! A copy is reported under the name of the array whose bytes it moves. The exception is
//! `destination.assign(&source)`, which uses two arrays: copies that first bring the source to a
//! device or to the host are reported under the source's name, and the copy itself, if it goes from
//! one device to another, under the destination's name. A copy within one device is not reported.
//!
//! The crate `resident-mpi` records what it moves between processes, with the cause `mpi`. Such
//! messages have sites and records too, but they are none of the copies
//! between the host and devices: [`Report::sent`] and [`Report::received`] are their totals.
//!
//! # The program `resident-report`
//!
//! It is in the folder `report` of the repository: `cargo build --release -p resident-report`. It
//! reads what `json:PATH` wrote.
//!
//! | command | what it does |
//! |---|---|
//! | `resident-report show a.json` | prints the copies, the totals, and what could be saved; `--by array`, `device` or `stream` |
//! | `resident-report diff a.json b.json` | compares two runs by array, cause and file, so that code may move; exits with 1 if the second moves more than `--tolerance` percent more |
//! | `resident-report html a.json a.html` | makes the page of it |
//! | `resident-report perfetto a.json a.pftrace` | makes the trace of it |
//! | `resident-report merge audit-*.json` | joins the ranks of a job (`json:audit-%r.json`): what went between each two; `--perfetto` writes one trace of all |
//! | `resident-report schema` | prints the JSON schema |
//!
//! The name `-` is standard input. Only traces need the records of a report in memory: `show`,
//! `diff`, `html`, and `merge` without `--perfetto` read reports of any size.
//!
//! # Events of `tracing`
//!
//! | target | level | what | fields |
//! |---|---|---|---|
//! | `resident::transfer` | `DEBUG` | event `transfer`: a copy or message | `direction`, `bytes`, `array`, `device`, `stream`, `cause`, `site`, `stale_since` |
//! | `resident::launch` | `DEBUG` | span `launch`, with the events of its copies in it | `kernel`, `device`, `stream`, `site` |
//! | `resident::wait` | `DEBUG` | span `wait`: this thread waits for work of a stream | `reason`, `device`, `stream`, `site` |
//! | `resident::memory` | `DEBUG` | event `memory`: an array gets memory on a device, or gives it back | `change`, `bytes`, `array`, `device`, `site` |
//! | `resident::implicit` | `WARN` | event `implicit`: a copy that [`log`](log()) asks for | `direction`, `bytes`, `array`, `cause`, `site` |
//! | `resident::printf` | `INFO` | event: a line that CUDA C prints on the embedded device | `kernel` |
//! | `resident::finding` | `ERROR` or `INFO` | event: what [`Emulation::sanitize`](crate::Emulation::sanitize) finds, `ERROR` if it fails the launch | `kernel` |
//!
//! `site` is the `file:line:column` of the call that needed the bytes, and `stale_since` the last
//! call that made any of them stale there, or released them. `stale_since` is missing if the bytes
//! were never valid there, if that call is unknown, or if the copy overwrites the destination
//! ([`Site::never_there`] is true in the first case). For a copy between two devices, `device` is
//! the destination and `source` is the source. The event of a message has the field `peer`, the
//! rank of the other process, and neither `stream` nor `stale_since`; its `direction` is `sent` or
//! `received`. The message, such as `"photo" to_device for launch, 4_000 bytes`, is for people: a
//! long name is shortened in it, and what a terminal would obey is escaped. The fields have names
//! as they are. Numbers are `i64`.
//!
//! A call that waits for a device has the span `wait` as long as it does: `synchronize`, `host()`
//! and others that need contents, events of another kind of device. Its `reason` is that of
//! [`DocumentRecord::Wait`]. So the trace of a request shows how much of its time was waiting. A
//! subscriber that panics in this span unwinds no call; only the panic hook gets the panic.
//!
//! The `change` of an array's device memory is `allocation`, also of memory of others that becomes
//! an array's; `eviction`, at the `site` that needed the room of a full device; or `free`, at a
//! call such as [`release_on`](crate::SmartArray::release_on), or without `site` when the array is
//! dropped. So the bytes of allocations less the others are what arrays have. The event of a drop
//! may be emitted while a panic unwinds: a subscriber that panics in it unwinds nothing.
//!
//! OpenTelemetry has events only within spans: of the copies that no launch needs, it has those
//! that a program makes within a span of its own. It calls an event after its message.
//!
//! Events are emitted by the call that copies or allocates, once nothing is half done: a loan has
//! ended, a launch is queued. So a subscriber that panics unwinds the call, and leaves no work on
//! memory that the caller gets back. While a panic unwinds already, a second one is kept from the
//! program, since it would end the process.
//!
//! Subscribers get what kernels print when the launch is over, so they may compute in
//! parallel, and wait; they get at most 16 MiB of each launch. Without a subscriber that wants the
//! text, it goes to standard output at once.

mod captures;
mod events;
mod limits;
pub(crate) mod recording;
pub(crate) mod reports;
mod totals;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::device::{Device, Stream};
use crate::storage::Storage;
use captures::capture;
use limits::deny;
use recording::{contents, facts, log};
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_backend::timeline;
use resident_backend::unwinding::contain_panic;
use totals::counters;

pub use crate::storage::{Residency, Validity};
pub use crate::traffic::{Direction, Flow, Traffic};
pub use captures::capture::{Scope, capture, capture_all, scope, write_reports};
pub use captures::device_times::{DeviceTimes, time_device};
pub use captures::instrumented::Instrumented;
pub use captures::ledger::{Ledger, LedgerLayer};
pub(crate) use events::{LaunchSpan, report_finding, report_printed, wants_printed};
pub use limits::budget::Budget;
pub use limits::deny::{Implicit, ImplicitGuard, allow, deny, deny_all, log};
pub(crate) use limits::deny::{denied_at, may_be_denied};
pub use recording::cause::Cause;
pub(crate) use recording::contents::{
    Comparison, comparison, keep_contents, may_compare_contents, take_contents,
};
pub use recording::contents::{ContentsGuard, compare_contents};
pub(crate) use recording::facts::{
    Accessed, ArgumentRecord, Copied, Discarded, Launched, MemoryChange, MemoryNotice, MemoryUse,
    Staleness,
};
use recording::facts::{ArrayEntry, MemoryRecord, Record};
pub use reports::report::{GroupBy, Report, Site};
pub use resident_documents::{
    Document, DocumentAccess, DocumentArgument, DocumentArray, DocumentBarrier, DocumentChecked,
    DocumentFinding, DocumentMemory, DocumentMemoryHolder, DocumentMemoryMoment,
    DocumentMemoryPoint, DocumentMemoryUse, DocumentMessage, DocumentProcess, DocumentRecord,
    DocumentSite, DocumentStream, Waits,
};
pub use totals::counters::{Counters, MemoryCounter, counters};
pub use totals::inventory::{Entry, inventory};

thread_local! {
    /// What this thread has not reported to subscribers yet.
    static UNREPORTED: RefCell<VecDeque<Unreported>> = const { RefCell::new(VecDeque::new()) };
    /// How many [`HeldReports`] this thread has.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// What is reported to subscribers, with no lock held.
enum Unreported {
    Copy(Record),
    Memory(MemoryRecord),
}

/// While this lives, this thread reports no copies and memory, so that no subscriber can panic. Its
/// drop reports none either: the caller does, by [`report_recorded`], once a panic leaves nothing
/// undone.
#[must_use = "subscribers get the copies once this drops"]
pub(crate) struct HeldReports;

/// Keeps the reports of this thread until the value drops.
pub(crate) fn hold_reports() -> HeldReports {
    let _ = HELD.try_with(|held| held.set(held.get() + 1));
    HeldReports
}

impl Drop for HeldReports {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| held.set(held.get() - 1));
    }
}

/// Whether a capture or a subscriber may want to know of copies. May be called with locks held.
#[inline]
pub(crate) fn has_listeners() -> bool {
    capture::is_active() || has_subscribers()
}

/// The time, if a capture or a subscriber may want to know of copies; else 0.
pub(crate) fn listened_ns() -> u64 {
    if has_listeners() { timeline::now_ns() } else { 0 }
}

/// Whether a subscriber may want to know of copies: then [`report_recorded`] is due after one.
#[inline]
pub(crate) fn has_subscribers() -> bool {
    events::may_be_enabled() || deny::logs_any()
}

/// Records a copy of this many bytes, if a capture or a subscriber may want it. May be called with
/// locks held: [`report_recorded`] calls subscribers.
#[inline]
pub(crate) fn record_copy<'a>(bytes: u64, make: impl FnOnce() -> Copied<'a>) {
    capture::note_copy(bytes);
    if capture::is_any_running() || has_subscribers() {
        record_copied(&make());
    }
}

#[cold]
fn record_copied(copied: &Copied<'_>) {
    let is_for_launch = copied.cause == Cause::Launch;
    let launch = if is_for_launch { facts::launch_of_thread() } else { 0 };
    if capture::is_active() {
        log::append(|block| block.push_copy(copied, launch));
    } else {
        copied.storage.next_use();
    }
    if has_subscribers() {
        report_later(Unreported::Copy(Record::of(copied, launch)));
    }
}

/// Nothing is reported while the thread's thread-locals are being destroyed.
fn report_later(record: Unreported) {
    let _ = UNREPORTED.try_with(|records| records.borrow_mut().push_back(record));
}

/// Records an access that is no launch, if a capture wants it. May be called with locks held.
#[inline]
pub(crate) fn record_access<'a>(make: impl FnOnce() -> Accessed<'a>) {
    if capture::is_any_running() {
        record_accessed(&make());
    }
}

#[cold]
fn record_accessed(accessed: &Accessed<'_>) {
    if capture::is_active() {
        log::append(|block| block.push_access(accessed));
    } else {
        // The captures of other threads see that they do not know of it.
        accessed.storage.next_use();
    }
}

/// Has captures see that there is a use of the array of which they do not know.
pub(crate) fn skip_use(storage: &Storage) {
    if capture::is_any_running() {
        storage.next_use();
    }
}

/// Records the end of an array of which something was copied, if a capture wants it.
#[inline]
pub(crate) fn record_end(storage: &Storage) {
    if capture::is_any_running() {
        record_ended(storage);
    }
}

#[cold]
fn record_ended(storage: &Storage) {
    if capture::is_active() && storage.lock().traffic(storage.memory_order()).moved().count > 0 {
        log::append(|block| block.push_end(storage));
    }
}

/// What [`record_discard`] needs of a copy to memory outside its array, if a capture wants it.
pub(crate) fn discardable(
    storage: &Storage,
    device: &Device,
    bytes: u64,
    site: CallSite,
) -> Option<Box<Discarded>> {
    let make = || {
        let array = ArrayEntry::of(storage);
        let device = device.name_shared();
        Box::new(Discarded { array, device, bytes, site })
    };
    capture::is_active().then(make)
}

/// Records that a copy was dropped before anybody took it, if a capture wants it.
pub(crate) fn record_discard(discarded: &Discarded) {
    if capture::is_active() {
        log::append(|block| block.push_discard(discarded));
    }
}

/// Whether contents are compared for captures of this thread. May be called with locks held.
#[inline]
pub(crate) fn compares_contents() -> bool {
    // The second reads `RESIDENT_AUDIT`, which the third asks for.
    may_compare_contents() && capture::is_active() && contents::is_asked_for()
}

/// Counts an allocation or an eviction, and records it if a capture or a subscriber wants it. May
/// be called with locks held, as [`record_copy`].
#[inline]
pub(crate) fn record_memory(used: &MemoryUse<'_>) {
    counters::count_memory(used);
    if capture::is_active() {
        log::append(|block| block.push_memory(used));
    }
    let notice = match used.kind {
        MemoryChange::Allocation => MemoryNotice::Allocation,
        MemoryChange::Eviction => MemoryNotice::Eviction,
        MemoryChange::Discard => return,
    };
    note_memory(notice, used.storage, used.device, used.bytes, used.site);
}

/// Records a change of memory for subscribers only. May be called with locks held, as
/// [`record_copy`].
#[inline]
pub(crate) fn note_memory(
    notice: MemoryNotice,
    storage: &Storage,
    device: &Device,
    bytes: u64,
    site: CallSite,
) {
    if has_subscribers() {
        report_later(Unreported::Memory(MemoryRecord::of(notice, storage, device, bytes, site)));
    }
}

/// Reports that an array was dropped which had memory. Arrays drop anywhere, also in an
/// unwind, and what else drops there must not be left: so a subscriber that panics unwinds nothing,
/// and only the panic hook gets the panic. The caller holds no lock.
#[cold]
pub(crate) fn report_dropped(array: &Arc<str>, bytes: u64, device: &Device) {
    let (notice, array, device) = (MemoryNotice::Free, Arc::clone(array), device.name_shared());
    let record = MemoryRecord { notice, bytes, array, device, site: None };
    match HELD.try_with(Cell::get) {
        Ok(0) => {
            sync::assert_none_held();
            contain_panic(|| events::emit_memory(&record));
        }
        Ok(_) => report_later(Unreported::Memory(record)),
        Err(_) => {}
    }
}

/// Reports the copies and memory that were recorded, unless the thread holds its reports.
/// Subscribers run user code, which may use arrays, so callers hold no lock and no claim. One that
/// panics unwinds the call; while a panic unwinds already, a second one would end the process, so
/// only the panic hook gets it.
pub(crate) fn report_recorded() {
    if HELD.try_with(Cell::get).is_ok_and(|held| held > 0) {
        return;
    }
    let next = || UNREPORTED.try_with(|records| records.borrow_mut().pop_front()).ok().flatten();
    while let Some(record) = next() {
        sync::assert_none_held();
        if std::thread::panicking() {
            contain_panic(|| report(&record));
        } else {
            report(&record);
        }
    }
}

fn report(record: &Unreported) {
    let record = match record {
        Unreported::Copy(record) => record,
        Unreported::Memory(record) => return events::emit_memory(record),
    };
    if events::is_enabled() {
        events::emit_copy(record);
    }
    if deny::is_logged(record.cause, record.direction) {
        events::emit_implicit(record);
    }
}

/// Enters the span of a launch, if a subscriber may want it. Callers hold no lock while the span
/// lives.
#[inline]
pub(crate) fn enter_launch(
    title: &Arc<str>,
    stream: &Stream,
    site: CallSite,
) -> Option<LaunchSpan> {
    facts::note_call();
    events::may_be_enabled().then(|| LaunchSpan::enter(title, stream, site))
}

/// Whether a capture or a subscriber may want to know of launches: two loads if not.
#[inline]
pub(crate) fn observes_launches() -> bool {
    events::may_be_enabled() || capture::is_any_running()
}

/// Records a launch that was queued, if a capture wants it. Each argument counts as a use of its
/// array when the iterator makes it.
pub(crate) fn record_launch<'a>(
    launched: &Launched<'a>,
    arguments: impl Iterator<Item = ArgumentRecord> + 'a,
) {
    if capture::is_active() {
        let id = facts::launch_of_thread();
        log::append(|block| block.push_launch(launched, arguments, id));
    } else {
        arguments.for_each(drop);
    }
}

/// Ends the launch that this thread prepared, whether it was queued or refused: its copies are
/// reported, and later ones are of another launch. Callers hold no lock.
pub(crate) fn end_launch() {
    facts::forget_launch();
    report_recorded();
}

/// Reports one use of an array, through its guard, on a stream that is not the guard's own. The
/// library waited for that stream before and after the use. Callers hold no lock.
#[cfg(feature = "cuda")]
pub(crate) fn report_foreign_use(array: &str, device: &str, stream: u32) {
    sync::assert_none_held();
    if capture::is_active() {
        capture::add_foreign_use(array);
    }
    events::emit_foreign_use(array, device, stream);
}
