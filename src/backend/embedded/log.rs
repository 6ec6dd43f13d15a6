//! What an emulated device remembers: the calls made to it, and the hazards found in them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hazard::Hazard;
use crate::backend::Position;

/// Calls remembered; beyond that the oldest are forgotten.
const CALLS_MAX: usize = 1 << 18;

/// Hazards remembered; a program with so many has no use for more.
const HAZARDS_MAX: usize = 1 << 10;

/// What was called on an emulated device, and what was unordered.
///
/// A handle, cheap to clone; it outlives its device. The last 262,144 calls and the first 1,024
/// hazards are kept.
///
/// ```
/// use resident::{Device, Emulation};
///
/// let device = Device::emulated(Emulation::new());
/// let log = device.emulation().expect("this device is emulated");
/// device.synchronize()?;
/// assert!(log.calls().is_empty());                 // nothing was queued, so nothing had to be waited for
/// assert!(log.hazards().is_empty());
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EmulationLog(Arc<Log>);

impl EmulationLog {
    /// The handle of `log`.
    pub(super) fn new(log: Arc<Log>) -> Self {
        Self(log)
    }

    /// The calls that reached the device, in order. Their numbers are what
    /// [`Fault::nth`](crate::Fault::nth) counts.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().calls.iter().cloned().collect()
    }

    /// What was found wrong with the order of work, in the order in which it was found: at the call
    /// that completed the hazard. A hazard between two devices is kept by the device of the later
    /// call.
    #[must_use]
    pub fn hazards(&self) -> Vec<Hazard> {
        self.0.lock().hazards.clone()
    }
}

/// The log itself, shared by a device and its handles.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u64,
    calls: VecDeque<Call>,
    /// Work that failed before its call had returned: a worker may be that fast.
    failed_early: Vec<(u32, Position)>,
    hazards: Vec<Hazard>,
}

impl Log {
    /// Enters a call and gives it its number.
    pub(super) fn begin(&self, draft: Draft) -> u64 {
        let mut state = self.lock();
        state.count += 1;
        let Draft { kind, label, len_bytes, stream } = draft;
        let call = Call {
            number: state.count,
            kind,
            label,
            len_bytes,
            stream,
            position: 0,
            outcome: Outcome::Accepted,
        };
        if state.calls.len() == CALLS_MAX {
            state.calls.pop_front();
        }
        state.calls.push_back(call);
        state.count
    }

    /// Enters how a call went: the position that it drew, or that it was refused.
    pub(super) fn settle(&self, number: u64, position: Option<Position>) {
        let state = &mut *self.lock();
        // The newest calls are kept, so this one's place is counted from the end.
        let place = usize::try_from(state.count - number)
            .ok()
            .and_then(|age| state.calls.len().checked_sub(age + 1));
        let Some(call) = place.and_then(|place| state.calls.get_mut(place)) else { return };
        let Some(position) = position else {
            call.outcome = Outcome::Refused;
            return;
        };
        call.position = position.0;
        let early = state
            .failed_early
            .iter()
            .position(|failed| (Some(failed.0), failed.1) == (call.stream, position));
        if let Some(early) = early {
            call.outcome = Outcome::Failed;
            state.failed_early.swap_remove(early);
        }
    }

    /// Enters that queued work failed when it ran.
    pub(super) fn failed(&self, stream: u32, position: Position) {
        let mut state = self.lock();
        let is_it = |call: &&mut Call| call.stream == Some(stream) && call.position == position.0;
        match state.calls.iter_mut().rev().find(is_it) {
            Some(call) => call.outcome = Outcome::Failed,
            None => state.failed_early.push((stream, position)),
        }
    }

    /// Enters hazards.
    pub(super) fn add_hazards(&self, hazards: Vec<Hazard>) {
        let mut state = self.lock();
        let room = HAZARDS_MAX - state.hazards.len();
        state.hazards.extend(hazards.into_iter().take(room));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of a call before it is made.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) kind: CallKind,
    pub(super) label: Arc<str>,
    pub(super) len_bytes: u64,
    pub(super) stream: Option<u32>,
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
    /// Its number on this device, from 1.
    pub number: u64,
    /// What was called.
    pub kind: CallKind,
    /// What it was for, in words; empty where there is nothing to say beyond the kind.
    pub label: Arc<str>,
    /// Bytes taken, moved or filled; for a launch, the bytes that its arguments cover; else 0.
    pub len_bytes: u64,
    /// The stream's number on this device, 0 being the default stream; `None` for calls of the
    /// device.
    pub stream: Option<u32>,
    /// Its place among the work of that stream, from 1; 0 if it queued nothing.
    pub position: u64,
    /// How it went.
    pub outcome: Outcome,
}

/// The calls that are counted: each that can fail and reaches the device. Polls, and waits for what
/// is complete already, do not.
///
/// ```
/// assert_eq!(resident::emulation::CallKind::CopyBetween.to_string(), "copy between devices");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CallKind {
    /// A stream was made. The default stream comes with the device and is not counted.
    NewStream,
    /// Memory was taken.
    Allocate,
    /// Memory was given back, behind the work queued before.
    Free,
    /// A copy from the host was queued.
    Upload,
    /// A copy to the host was queued.
    Download,
    /// A copy inside the device was queued.
    CopyWithin,
    /// A copy from another device was queued.
    CopyBetween,
    /// A fill with a value was queued.
    Fill,
    /// A fill of stale memory with the poison was queued.
    Poison,
    /// A kernel launch was queued.
    Launch,
    /// An event was recorded.
    RecordEvent,
    /// A stream was made to wait for an event.
    WaitEvent,
    /// The host had to wait for a stream or an event.
    Synchronize,
    /// A task asked to be woken.
    Notify,
    /// Memory kept for reuse was given back.
    Trim,
    /// Host memory was opened to the device.
    PinnedRegistration,
}

/// How a call went.
///
/// ```
/// assert_eq!(resident::emulation::Outcome::Refused.to_string(), "refused");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It was done, or queued and has not failed so far.
    Accepted,
    /// It returned an error, and nothing was queued.
    Refused,
    /// It was queued, and its work failed.
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
        f.write_str(match self {
            Self::NewStream => "new stream",
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::CopyWithin => "copy within the device",
            Self::CopyBetween => "copy between devices",
            Self::Fill => "fill",
            Self::Poison => "poison",
            Self::Launch => "launch",
            Self::RecordEvent => "record an event",
            Self::WaitEvent => "wait for an event",
            Self::Synchronize => "synchronize",
            Self::Notify => "notify",
            Self::Trim => "trim",
            Self::PinnedRegistration => "page lock",
        })
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
