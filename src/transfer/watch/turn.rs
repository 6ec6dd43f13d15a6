//! How a state is taken. What a device has is queued in one step, under the array's lock. What is
//! newest on the host is copied before, and copied again if it was written meanwhile.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::host_copy::{HostCopy, Step};
use super::state::Spares;
use crate::audit::Cause;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::{ArrayState, HostBuffer, Storage};
use crate::transfer::access::error::host_full;
use crate::transfer::access::request::{Queued, Regions, Request, ends_of};
use crate::transfer::contents::copy_out::{CallerWaits, CopyOut, DeviceParts, Newest};
use crate::transfer::copy::job::Boxes;
use crate::transfer::copy::job::prepare_downloads;
use crate::transfer::copy::plan::operation_bytes_max;
use resident_backend::call_site::CallSite;
use resident_backend::failure::Inquiry;
use resident_backend::{Bytes, HostMemory, Position};
use resident_core::Access;
use resident_core::coherence::{Content, Location, Region, Source, Undefined};
use resident_core::layout::Selection;
use resident_core::ordering::{Mark, UseEnd};

/// Streams of different devices.
pub(super) type Streams = SmallVec<[Stream; 1]>;

/// A copy of a state.
pub(super) struct InFlight {
    pub(super) change: u64,
    pub(super) buffer: Arc<HostBuffer>,
    /// Empty if the state was made without a copy.
    pub(super) queued: Queued,
    /// Keeps the records of failures of the queued work.
    _failures: Inquiry,
}

impl InFlight {
    /// The last operation on each stream.
    pub(super) fn ends(&self) -> impl Iterator<Item = &(Stream, Position)> {
        self.queued.iter().enumerate().filter_map(|(number, end)| {
            let next = self.queued.get(number + 1);
            next.is_none_or(|(stream, _)| *stream != end.0).then_some(end)
        })
    }

    /// The end of the copies of a device that are not known to be complete; of the last device if
    /// all are.
    pub(super) fn first_pending(&self) -> Option<&(Stream, Position)> {
        let is_pending = |(stream, end): &&(Stream, Position)| stream.raw().completed() < *end;
        self.ends().find(is_pending).or_else(|| self.queued.last())
    }
}

/// Why a thread takes a state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// It changed the array. It does not copy what is newest on the host.
    Change,
    /// It changed the array, and a thread that queried the watch could not take the state.
    AwaitedChange,
    /// It queries the watch.
    Query,
    /// The array is about to lose its memory, so that the state is taken at once, behind others. No
    /// guard exists.
    End,
}

/// A thread's turn to take a state of an array. Two threads never have one at a time.
pub(super) struct Turn<'w> {
    pub(super) occasion: Occasion,
    pub(super) array: &'w Weak<Storage>,
    /// The call that made the watch.
    pub(super) site: CallSite,
    /// How often the array had been changed when the watch began.
    pub(super) before: u64,
    pub(super) spares: &'w Spares,
    /// The change of which the watch had been notified when the turn began.
    pub(super) notified: u64,
    /// The change whose state is taken.
    pub(super) change: u64,
    pub(super) streams: Streams,
    pub(super) memory: Option<Arc<HostBuffer>>,
    pub(super) host_copy: HostCopy,
}

/// The outcome of a turn.
pub(super) enum Taken {
    Copy(InFlight),
    /// Some elements have no contents, so there is no state of this change.
    Nowhere,
    /// A part is newest on the host, and is left to the threads that query the watch.
    OnHost,
    /// An access must end first, which does without a notification.
    BehindAccess,
    /// A guard must drop first, which notifies.
    BehindGuard,
    /// This work must end first, which writes the host's copy.
    BehindWork(Stream, Position),
    /// The array is gone.
    Over,
}

/// What a look at the array under its lock led to.
enum Look {
    /// The copy is queued; what is constant is still to be filled.
    Queued {
        copies: CopyOut,
        memory: Arc<HostBuffer>,
        constants: Vec<(Bytes, Boxes)>,
    },
    /// Streams of these devices, and memory, are to be made without the lock.
    Prepare(Devices),
    /// More of the host's parts is to be copied.
    More,
    Over(Taken),
}

/// The devices that have parts of a state.
type Devices = SmallVec<[Device; 1]>;

/// Where a state is.
struct Found {
    /// Elements on devices.
    stored: SmallVec<[DeviceParts; 1]>,
    /// Elements that no device has, or only one that a guard may still write.
    on_host: Regions,
    constants: Vec<(Bytes, Boxes)>,
}

impl Turn<'_> {
    /// Takes a state. The caller holds no lock. This calls no user code, so it does not unwind, and
    /// the turn is given back.
    pub(super) fn take(&mut self) -> Result<Taken> {
        let Some(storage) = self.array.upgrade() else { return Ok(Taken::Over) };
        let request = Request::new(
            &storage,
            &Selection::Whole,
            Access::Read,
            Cause::Watch,
            "a watch",
            self.site,
        );
        let failures = Inquiry::begin();
        loop {
            let looked = self.look(&request);
            if !matches!(looked, Ok(Look::Over(_) | Look::Prepare(_) | Look::More)) {
                // Also if the copy failed: a part may be queued, so the memory is not used again.
                self.memory = None;
            }
            match looked? {
                Look::Over(taken) => return Ok(taken),
                Look::Prepare(homes) => self.prepare(&storage, &homes)?,
                // A thread that waits for the lock gets it.
                Look::More => std::thread::yield_now(),
                Look::Queued { mut copies, memory: buffer, constants } => {
                    for (constant, parts) in &constants {
                        copies.fill(constant, parts);
                    }
                    let (change, queued) = (self.change, copies.into_queued());
                    return Ok(Taken::Copy(InFlight {
                        change,
                        buffer,
                        queued,
                        _failures: failures,
                    }));
                }
            }
        }
    }

    /// Queues the copy, if all that it needs is there.
    fn look(&mut self, request: &Request<'_>) -> Result<Look> {
        let mut state = request.storage.lock();
        if !state.is_watched() {
            return Ok(Look::Over(Taken::Over));
        }
        if state.has_pins() || state.has_claims() {
            return Ok(Look::Over(Taken::BehindAccess));
        }
        self.change = state.changes() - self.before;
        let Some(Found { stored, on_host, constants }) = find(request, &mut state)? else {
            return Ok(Look::Over(Taken::Nowhere));
        };
        if let Some(taken) = self.obstacle(request, &state, &stored, &on_host) {
            return Ok(Look::Over(taken));
        }
        let home = |parts: &DeviceParts| state.device_copy(parts.location).device.clone();
        let homes: Devices = stored.iter().map(home).collect();
        let Some(memory) = self.memory.clone() else { return Ok(Look::Prepare(homes)) };
        if homes.iter().any(|home| self.stream_of(home).is_none()) {
            return Ok(Look::Prepare(homes));
        }
        if !on_host.is_empty() {
            match self.host_copy.step(request, &state, &on_host, &*memory) {
                Step::Complete => {}
                Step::More => return Ok(Look::More),
                Step::Overtaken => return Ok(Look::Over(Taken::BehindAccess)),
            }
        }
        let mut copies = CopyOut::new(memory.clone(), CallerWaits::AtOnce, "state for a watch of");
        for (parts, home) in stored.into_iter().zip(&homes) {
            let Some(stream) = self.stream_of(home) else { continue };
            let parts = parts.split(operation_bytes_max(&*memory, home));
            copies.queue(request, &mut state, stream, parts)?;
        }
        Ok(Look::Queued { copies, memory, constants })
    }

    /// Why the state cannot be taken now.
    fn obstacle(
        &self,
        request: &Request<'_>,
        state: &ArrayState,
        stored: &[DeviceParts],
        on_host: &Regions,
    ) -> Option<Taken> {
        // No guard exists at the end, but forgotten ones left their marks.
        let may_have_guards = self.occasion != Occasion::End;
        let is_written = |parts: &DeviceParts| {
            let mut regions = parts.regions.iter();
            regions.any(|region| has_open_writer(state, parts.location, Some(region)))
        };
        let host = state.host_location();
        let is_open = |region: &Region| has_open_writer(state, host, Some(region));
        let is_host_written = || {
            state.is_host_writing(on_host) || state.is_host_mapped() && on_host.iter().any(is_open)
        };
        if may_have_guards && (stored.iter().any(is_written) || is_host_written()) {
            return Some(Taken::BehindGuard);
        }
        if on_host.is_empty() {
            return None;
        }
        if state.host.is_none() {
            return Some(Taken::Over);
        }
        let selection = Selection::Boxes(on_host.clone());
        let mut writers = request.of(&selection).conflicts(state, host, Access::Read);
        writers.retain(|mark| mark.end != UseEnd::OPEN);
        if let Some((stream, position)) = ends_of(state, &writers).pop() {
            return Some(Taken::BehindWork(stream, position));
        }
        (self.occasion == Occasion::Change).then_some(Taken::OnHost)
    }

    fn stream_of(&self, home: &Device) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.device_ref() == home)
    }

    /// Makes what the copies need. The array may change meanwhile.
    fn prepare(&mut self, storage: &Storage, homes: &[Device]) -> Result<()> {
        self.streams.retain(|stream| homes.contains(stream.device_ref()));
        for home in homes {
            if self.stream_of(home).is_none() {
                self.streams.push(home.new_stream().map_err(|error| error.at(self.site))?);
            }
        }
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => self.new_memory(storage)?,
        };
        for home in homes {
            let (start, len_bytes) = (memory.base(), memory.len_bytes());
            let pin = || home.backend().pin_host_memory(start, len_bytes, Access::ReadWrite);
            // Without it copies are staged, which is slower.
            let _pageable = memory.register(home.kind(), pin, || (), || storage.owner(self.site));
            if !memory.is_pinned_for(home.kind()) {
                prepare_downloads(home, std::iter::once(memory.len_bytes() as u64));
            }
        }
        self.memory = Some(memory);
        Ok(())
    }

    /// Memory for a state.
    fn new_memory(&self, storage: &Storage) -> Result<Arc<HostBuffer>> {
        let spare = self.spares.lock().pop();
        match spare {
            Some(memory) => Ok(memory),
            None => {
                let new = storage.new_host_memory();
                Ok(Arc::new(new.ok_or_else(|| host_full(storage).at(self.site))?))
            }
        }
    }
}

/// Where the newest contents are: on a device, if one has them; else on the host. `None` if some
/// elements have none.
///
/// # Errors
///
/// `Lost` if a failure took some of them.
fn find(request: &Request<'_>, state: &mut ArrayState) -> Result<Option<Found>> {
    let memory_order = request.storage.memory_order();
    if memory_order.is_empty() {
        return Ok(None);
    }
    state.reconcile(memory_order);
    let now: &ArrayState = state;
    let reads_host = |content| is_behind_guard_on_device(now, content);
    let host = now.host_location();
    let newest = Newest::find(request, now, host, reads_host);
    match newest.undefined {
        None => {}
        Some(Undefined::Never) => return Ok(None),
        // The plan names the failure that took them.
        Some(Undefined::Lost(_)) => return request.plan(state, host).map(|_| None),
    }
    let mut found = Found { stored: SmallVec::new(), on_host: Regions::new(), constants: vec![] };
    for (source, region) in newest.parts {
        let copies = |region: Region| request.same_offsets(&Regions::from_iter([region]));
        match source {
            Source::Constant(value) => {
                let value = state.constant_value(value, memory_order, &region);
                found.constants.push((value, copies(region)));
            }
            Source::Location(Location::HOST) => found.on_host.push(region),
            Source::Location(location) => {
                DeviceParts::add(&mut found.stored, location, region, copies(region));
            }
        }
    }
    Ok(Some(found))
}

/// Whether the host has contents too that a device has, where a guard is open or was forgotten.
fn is_behind_guard_on_device(state: &ArrayState, content: Content) -> bool {
    let Content::Stored(holders) = content else { return false };
    let device = holders.locations().iter().find(|location| *location != Location::HOST);
    holders.contains(Location::HOST)
        && device.is_some_and(|location| has_open_writer(state, location, None))
}

/// Whether a guard may write `region` (`None` for the whole array) on the device at `location`.
fn has_open_writer(state: &ArrayState, location: Location, region: Option<&Region>) -> bool {
    let mut has_open = false;
    let visit = |mark: Mark| has_open |= mark.end == UseEnd::OPEN && !state.is_retired(mark);
    state.uses(location).visit_writers(region, visit);
    has_open
}
