//! Messages between processes, which crates beside the library make and record here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::facts::{BarrierRecord, MessageRecord, thread_name};
use super::log;
use crate::audit::captures::capture;
use crate::audit::events;
use crate::device::Device;
use crate::traffic::{Direction, Flow, FlowCounter};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::timeline;
use resident_backend::unwinding::contain_panic;

/// A message between this process and another one, for [`record_transfer`]: which array's bytes
/// went to or came from which rank, and the line of the program that asked for it.
#[derive(Clone, Copy, Debug)]
#[must_use = "`record_transfer` records it"]
pub struct Transfer<'a> {
    direction: Direction,
    bytes: u64,
    array: &'a str,
    peer: Option<u32>,
    device: Option<&'a Device>,
    waited: Duration,
    site: CallSite,
}

impl<'a> Transfer<'a> {
    /// A message of so many bytes of an array, by its name, to the process with this rank.
    #[track_caller]
    pub fn sent(bytes: u64, array: &'a str, to: u32) -> Self {
        Self::new(Direction::Sent, bytes, array, Some(to), call_site())
    }

    /// A message of so many bytes for an array, by its name, from the process with this rank.
    #[track_caller]
    pub fn received(bytes: u64, array: &'a str, from: u32) -> Self {
        Self::new(Direction::Received, bytes, array, Some(from), call_site())
    }

    /// What this process gave to a collective operation, such as a sum over all processes.
    #[track_caller]
    pub fn sent_to_all(bytes: u64, array: &'a str) -> Self {
        Self::new(Direction::Sent, bytes, array, None, call_site())
    }

    /// What this process got from a collective operation.
    #[track_caller]
    pub fn received_from_all(bytes: u64, array: &'a str) -> Self {
        Self::new(Direction::Received, bytes, array, None, call_site())
    }

    fn new(
        direction: Direction,
        bytes: u64,
        array: &'a str,
        peer: Option<u32>,
        site: CallSite,
    ) -> Self {
        Self { direction, bytes, array, peer, device: None, waited: Duration::ZERO, site }
    }

    /// The message was in the memory of this device, not of the host.
    pub fn on(self, device: &'a Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// How long the calling thread has waited for the message:
    /// [`Report::peer_waits`](crate::audit::Report::peer_waits) is the total.
    pub fn waited(self, time: Duration) -> Self {
        Self { waited: time, ..self }
    }

    /// The call that asked for the message, if it is not the caller of [`sent`](Self::sent) or
    /// [`received`](Self::received).
    pub fn at(self, site: &'static std::panic::Location<'static>) -> Self {
        Self { site, ..self }
    }

    #[cold]
    fn record(self) -> MessageRecord {
        let Self { direction, bytes, peer, site, .. } = self;
        MessageRecord {
            thread: thread_name(),
            array: self.array.into(),
            device: self.device.map_or_else(|| Arc::from("host"), Device::name_shared),
            direction,
            bytes,
            peer,
            site,
            recorded_ns: timeline::now_ns(),
            waited_ns: nanoseconds(self.waited),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Records a message that another crate has sent to another process, or received from one. It is in
/// the reports of captures and ledgers and a `tracing` event, all with the cause
/// [`Cause::Mpi`](crate::audit::Cause::Mpi), and moves nothing itself. Without a listener it costs
/// two loads.
///
/// Call it once the message is under way or has arrived, in functions with `#[track_caller]`, so
/// that the site is a line of the program. Bytes of messages are no copies between the host and
/// devices: [`Traffic`](crate::Traffic) does not count them, and budgets only if they limit
/// [`sent`](crate::audit::Budget::sent) or [`received`](crate::audit::Budget::received).
///
/// ```
/// use resident::audit::{self, Cause, Direction};
/// use resident::internal::{Transfer, record_transfer};
///
/// let ((), report) = audit::capture(|| {
///     record_transfer(Transfer::sent(800, "upper edge", 1));
///     record_transfer(Transfer::received(800, "lower halo", 1));
/// });
/// assert_eq!((report.sent().bytes, report.received().bytes), (800, 800));
/// assert_eq!(report.traffic().moved().bytes, 0);
/// let site = &report.sites()[0];
/// assert_eq!((site.cause, site.direction, site.peer), (Cause::Mpi, Direction::Sent, Some(1)));
/// ```
pub fn record_transfer(transfer: Transfer<'_>) {
    let counter = if transfer.direction == Direction::Sent { &SENT } else { &RECEIVED };
    counter.add(transfer.bytes);
    let (is_captured, is_reported) = (capture::is_active(), events::may_be_enabled());
    if !is_captured && !is_reported {
        return;
    }
    let record = transfer.record();
    if is_captured {
        log::append(|block| block.push_message(&record));
    }
    if is_reported && events::is_enabled() {
        report(&record);
    }
}

static SENT: FlowCounter = FlowCounter::new();
static RECEIVED: FlowCounter = FlowCounter::new();

/// All messages that were recorded: sent and received ones.
pub(in crate::audit) fn totals() -> (Flow, Flow) {
    (SENT.get(), RECEIVED.get())
}

/// Reports to subscribers, as [`report_recorded`](crate::audit::report_recorded) does.
fn report(record: &MessageRecord) {
    if std::thread::panicking() {
        contain_panic(|| events::emit_message(record));
    } else {
        events::emit_message(record);
    }
}

/// How many barriers this process has left.
static BARRIERS: AtomicU64 = AtomicU64::new(0);

/// Records that this process has just left a barrier of all processes of its job, in which it
/// waited for so long. Every process calls it after every such barrier, so that the n-th mark of
/// each is of the same barrier: `resident-report merge` aligns the clocks of the processes by it.
///
/// The times of two processes are then comparable up to the time between their returns from the
/// barrier: microseconds on one host, tens of them between hosts. The clocks of two hosts drift
/// apart by some microseconds a second, so a mark now and then in a long program helps.
///
/// ```
/// use std::time::Instant;
/// use resident::{audit, internal};
///
/// # fn barrier() {}
/// let ((), report) = audit::capture(|| {
///     let entered = Instant::now();
///     barrier();                                          // MPI_Barrier, say
///     internal::mark_barrier(entered.elapsed());
/// });
/// assert!(report.to_json().contains(r#""kind": "barrier""#));
/// ```
#[track_caller]
pub fn mark_barrier(waited: Duration) {
    let number = BARRIERS.fetch_add(1, Ordering::Relaxed);
    if capture::is_active() {
        let (left_ns, waited_ns) = (timeline::now_ns(), nanoseconds(waited));
        let barrier = BarrierRecord { number, left_ns, waited_ns, site: call_site() };
        log::append(|block| block.push_barrier(barrier));
    }
}
