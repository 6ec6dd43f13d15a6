//! The call log of an emulated device: the calls made to it, and the hazards found in them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::race_check::Hazard;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{ChainCall, FailureKind, Footprint, Memory, Position, Work};
use resident_host_code::{Checked, Finding, Findings};

/// The number of calls that the log keeps. Beyond that it forgets the oldest.
const CALLS_MAX: usize = 1 << 18;

/// The number of hazards that the log keeps. Further hazards are dropped.
const HAZARDS_MAX: usize = 1 << 10;

/// The number of failures that the log keeps until their submission is logged. Those of calls that
/// the log has forgotten stay for ever, and make room here.
const EARLY_FAILURES_MAX: usize = 64;

/// The calls made to an emulated device, and the hazards found in their order.
///
/// This is a handle: it is cheap to clone, and may be used after its device has dropped. The log
/// keeps the last 262,144 calls and the first 1,024 hazards.
///
/// ```
/// use resident::{Device, Emulation};
///
/// let device = Device::emulated(Emulation::new());
/// let log = device.emulation().expect("this device is emulated");
/// device.synchronize()?;
/// assert!(log.calls().is_empty());               // nothing was queued, so nothing was awaited
/// assert!(log.hazards().is_empty());
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EmulationLog(pub(crate) Arc<CallLog>);

impl EmulationLog {
    /// The calls that reached the device, in order. The number of a call here is the number that
    /// [`Fault::nth`](crate::Fault::nth) takes.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().calls.iter().cloned().collect()
    }

    /// As [`calls`](Self::calls), and forgets them: a long run looks at the log part by part, and a
    /// test at what follows its preparations. Numbers are not started again.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// let log = device.emulation().expect("this device is emulated");
    /// let array = SmartArray::<f32, _>::ones(100);
    /// drop(array.gpu_on(&device.stream())?);
    /// assert!(!log.take_calls().is_empty());
    /// drop(array.gpu_on(&device.stream())?);           // nothing moves
    /// assert!(log.take_calls().is_empty());
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn take_calls(&self) -> Vec<Call> {
        let mut state = self.0.lock();
        state.early_failures.clear();
        std::mem::take(&mut state.calls).into()
    }

    /// The hazards, in the order of the calls that completed them. A hazard between two devices is
    /// in the log of the device whose call completed it.
    #[must_use]
    pub fn hazards(&self) -> Vec<Hazard> {
        self.0.lock().hazards.clone()
    }

    /// What the device found in CUDA C bodies, if it checks them: see
    /// [`Emulation::sanitize`](crate::Emulation::sanitize). The first 1,024 are kept. They are
    /// complete once the device has been synchronised.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.0.findings.all()
    }

    /// How much the device has checked: see [`Emulation::sanitize`](crate::Emulation::sanitize).
    /// Complete once the device has been synchronised.
    #[must_use]
    pub fn checked(&self) -> Checked {
        self.0.findings.checked()
    }
}

/// The log, shared by a device and its handles.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    state: BackendLock<CallLogState>,
    pub(crate) findings: Arc<Findings>,
}

#[derive(Debug, Default)]
struct CallLogState {
    count: u64,
    calls: VecDeque<Call>,
    /// Work that failed before its submission was logged. This happens if the worker thread is
    /// faster than the submitting thread.
    early_failures: Vec<(u32, Position)>,
    hazards: Vec<Hazard>,
}

impl CallLog {
    /// An empty log.
    pub(super) fn with_findings(findings: Findings) -> Self {
        Self { findings: Arc::new(findings), ..Self::default() }
    }

    /// Adds a call and returns its number.
    pub(super) fn add_call(&self, draft: CallDraft) -> u64 {
        let mut state = self.lock();
        state.count += 1;
        let CallDraft { kind, label, len_bytes, stream } = draft;
        let (number, outcome) = (state.count, Outcome::Accepted);
        if state.calls.len() == CALLS_MAX {
            state.calls.pop_front();
        }
        let call = Call { number, kind, label, len_bytes, stream, position: 0, outcome };
        state.calls.push_back(call);
        number
    }

    /// Records the outcome of a call: its position, or that it was refused.
    pub(super) fn set_outcome(&self, number: u64, position: Option<Position>) {
        let CallLogState { count, calls, early_failures, .. } = &mut *self.lock();
        // The log keeps the newest calls, so the index counts from the end.
        let index =
            usize::try_from(*count - number).ok().and_then(|age| calls.len().checked_sub(age + 1));
        let Some(call) = index.and_then(|index| calls.get_mut(index)) else { return };
        let Some(position) = position else {
            call.outcome = Outcome::Refused;
            return;
        };
        call.position = position.0;
        let is_it =
            |failed: &(u32, Position)| (Some(failed.0), failed.1) == (call.stream, position);
        if let Some(index) = early_failures.iter().position(is_it) {
            call.outcome = Outcome::Failed;
            early_failures.swap_remove(index);
        }
    }

    /// Records that queued work failed when it ran.
    pub(crate) fn record_failure(&self, stream: u32, position: Position) {
        let mut state = self.lock();
        let is_it = |call: &&mut Call| call.stream == Some(stream) && call.position == position.0;
        if let Some(call) = state.calls.iter_mut().rev().find(is_it) {
            call.outcome = Outcome::Failed;
            return;
        }
        if state.early_failures.len() == EARLY_FAILURES_MAX {
            state.early_failures.remove(0);
        }
        state.early_failures.push((stream, position));
    }

    /// Adds hazards.
    pub(super) fn add_hazards(&self, hazards: Vec<Hazard>) {
        let mut state = self.lock();
        let room = HAZARDS_MAX - state.hazards.len();
        state.hazards.extend(hazards.into_iter().take(room));
    }

    fn lock(&self) -> BackendGuard<'_, CallLogState> {
        self.state.lock()
    }
}

/// What is logged of a call that is about to be made.
#[derive(Debug)]
pub(crate) struct CallDraft {
    pub kind: CallKind,
    pub label: Arc<str>,
    pub len_bytes: u64,
    pub stream: Option<u32>,
}

impl CallDraft {
    /// A call that has no label and no length.
    pub(crate) fn unlabelled(kind: CallKind, stream: Option<u32>) -> Self {
        Self { kind, label: Arc::from(""), len_bytes: 0, stream }
    }

    /// A call about this many bytes of memory.
    pub(crate) fn of_memory(
        kind: CallKind,
        label: &Arc<str>,
        len_bytes: u64,
        stream: Option<u32>,
    ) -> Self {
        Self { kind, label: Arc::clone(label), len_bytes, stream }
    }

    /// The call that submits `work` to a stream.
    pub(crate) fn submission(work: &Work, stream: u32) -> Self {
        let (kind, label, len_bytes) = match work {
            Work::Copy(copy) => {
                let kind = match (&copy.source, &copy.destination) {
                    (Memory::Host(_), Memory::Device(_)) => CallKind::Upload,
                    (Memory::Device(_), Memory::Host(_)) => CallKind::Download,
                    _ if copy.source_device.is_some() => CallKind::CopyBetween,
                    _ => CallKind::CopyWithin,
                };
                (kind, copy.label.text.to_text(), copy.len_bytes())
            }
            Work::Fill(fill) => {
                let is_poison = fill.loss == FailureKind::Poison;
                let kind = if is_poison { CallKind::Poison } else { CallKind::Fill };
                let lens_bytes = fill.parts.iter().map(Footprint::len_bytes);
                (kind, fill.label.text.to_text(), saturating_sum(lens_bytes))
            }
            Work::Launch(launch) => {
                let footprint = |array| launch.arguments.footprint(array);
                let arrays = launch.arguments.arrays.iter().map(footprint);
                let lens_bytes = arrays.map(|footprint| footprint.len_bytes());
                (CallKind::Launch, Arc::clone(launch.code.name()), saturating_sum(lens_bytes))
            }
        };
        Self { kind, label, len_bytes, stream: Some(stream) }
    }

    /// The queueing of a chain.
    pub(crate) fn of_chain(call: &ChainCall<'_>, stream: u32) -> Self {
        let lens_bytes =
            call.steps.iter().map(|step| Self::submission(&step.work, stream).len_bytes);
        Self {
            kind: CallKind::Chain,
            label: Arc::clone(&call.instance.title),
            len_bytes: saturating_sum(lens_bytes),
            stream: Some(stream),
        }
    }
}

fn saturating_sum(lens_bytes: impl Iterator<Item = u64>) -> u64 {
    lens_bytes.fold(0, u64::saturating_add)
}

/// One call of an emulated device.
///
/// Its `Display` is one line, such as `#12 upload: upload of "photo", 1024 bytes, stream 0, work
/// 3`.
///
/// ```
/// use resident::{Device, Emulation};
///
/// let device = Device::emulated(Emulation::new());
/// let stream = device.new_stream()?;
/// let calls = device.emulation().expect("this device is emulated").calls();
/// assert_eq!(calls[0].to_string(), "#1 new stream");
/// # let _ = stream;
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The call's number on this device, from 1.
    pub number: u64,
    /// The kind of call.
    pub kind: CallKind,
    /// The purpose of the call: `upload of "photo"`. Empty if the kind of call describes it fully.
    pub label: Arc<str>,
    /// Bytes allocated, reserved, committed, decommitted, copied or filled; for a launch, the bytes
    /// that its arguments cover; for a chain, those of one replay; else 0.
    pub len_bytes: u64,
    /// The stream's number on this device, 0 for the default stream. `None` for calls that belong
    /// to no stream.
    pub stream: Option<u32>,
    /// The position in that stream, from 1; 0 if the call queued nothing.
    pub position: u64,
    /// The call's outcome.
    pub outcome: Outcome,
}

/// The kinds of calls that an emulated device counts: every call that can fail and reaches the
/// device. Polls are not counted, nor are waits for work that has completed.
///
/// ```
/// assert_eq!(resident::emulation::CallKind::CopyBetween.to_string(), "copy between devices");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CallKind {
    /// A stream was made. The default stream is created with the device and is not counted.
    NewStream,
    /// Memory was allocated.
    Allocate,
    /// Memory was freed, after the work queued before.
    Free,
    /// Addresses were reserved, without memory.
    Reserve,
    /// Memory was committed to pages of reserved addresses.
    Commit,
    /// Pages of reserved addresses lost their memory, after the work queued before.
    Decommit,
    /// A copy from the host was queued.
    Upload,
    /// A copy to the host was queued.
    Download,
    /// A copy inside the device was queued.
    CopyWithin,
    /// A copy from another device was queued.
    CopyBetween,
    /// A fill with a constant was queued.
    Fill,
    /// A fill of stale memory with poison bytes was queued.
    Poison,
    /// A kernel launch was queued.
    Launch,
    /// Replays of a chain were queued.
    Chain,
    /// An event was recorded.
    RecordEvent,
    /// A stream was made to wait for an event.
    WaitEvent,
    /// The host waited for a stream or an event.
    Synchronize,
    /// A task registered a waker.
    Notify,
    /// Pooled memory was returned to the system.
    Trim,
    /// Host memory was pinned for the device.
    PageLock,
    /// Pinned host memory was allocated.
    AllocatePinned,
    /// Managed memory was allocated.
    AllocateManaged,
    /// Managed memory was prefetched.
    Prefetch,
    /// Advice was given on managed memory, or withdrawn.
    Advise,
}

/// The outcome of a call.
///
/// ```
/// assert_eq!(resident::emulation::Outcome::Refused.to_string(), "refused");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The call succeeded; if it queued work, that work has not failed so far.
    Accepted,
    /// The call returned an error, and nothing was queued.
    Refused,
    /// The call queued work that failed later.
    Failed,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.number, self.kind)?;
        if !self.label.is_empty() {
            write!(f, ": {}", self.label)?;
        }
        if self.len_bytes > 0 {
            write!(f, ", {} bytes", self.len_bytes)?;
        }
        if let Some(stream) = self.stream {
            write!(f, ", stream {stream}")?;
        }
        if self.position > 0 {
            write!(f, ", work {}", self.position)?;
        }
        if self.outcome == Outcome::Accepted { Ok(()) } else { write!(f, ", {}", self.outcome) }
    }
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CallKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NewStream => "new stream",
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Reserve => "reserve",
            Self::Commit => "commit",
            Self::Decommit => "decommit",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::CopyWithin => "copy within the device",
            Self::CopyBetween => "copy between devices",
            Self::Fill => "fill",
            Self::Poison => "poison",
            Self::Launch => "launch",
            Self::Chain => "chain",
            Self::RecordEvent => "record an event",
            Self::WaitEvent => "wait for an event",
            Self::Synchronize => "synchronize",
            Self::Notify => "notify",
            Self::Trim => "trim",
            Self::PageLock => "page lock",
            Self::AllocatePinned => "allocate pinned memory",
            Self::AllocateManaged => "allocate managed memory",
            Self::Prefetch => "prefetch managed memory",
            Self::Advise => "advise on managed memory",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Failed => "failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_forgotten_calls_do_not_pile_up() {
        let log = EmulationLog(Arc::default());
        for position in 1..1_000 {
            let draft = CallDraft::unlabelled(CallKind::Launch, Some(1));
            let number = log.0.add_call(draft);
            log.0.set_outcome(number, Some(Position(position)));
            assert_eq!(log.take_calls()[0].number, position);
            log.0.record_failure(1, Position(position));
        }
        assert!(log.0.lock().early_failures.len() <= EARLY_FAILURES_MAX);
        let number = log.0.add_call(CallDraft::unlabelled(CallKind::Launch, Some(1)));
        log.0.record_failure(1, Position(1_000));
        log.0.set_outcome(number, Some(Position(1_000)));
        assert_eq!(log.take_calls()[0].outcome, Outcome::Failed);
    }
}
