//! How a state is taken: under the array's lock, in one step.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::state::Spares;
use crate::audit::Cause;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::{ArrayState, HostBuffer, Storage};
use crate::transfer::copy_out::{CallerWaits, Copies, CopyOut, DeviceParts, Newest};
use crate::transfer::download::prepare_downloads;
use crate::transfer::error::host_full;
use crate::transfer::plan::operation_bytes_max;
use crate::transfer::request::{Marks, Queued, Regions, Request, collect_conflicts};
use resident_backend::call_site::CallSite;
use resident_backend::failure::Inquiry;
use resident_backend::{Bytes, HostMemory};
use resident_core::Access;
use resident_core::coherence::{Location, Source, Undefined};
use resident_core::layout::Selection;
use resident_core::ordering::{Mark, UseEnd};

/// A copy of a state.
pub(super) struct InFlight {
    pub(super) change: u64,
    pub(super) buffer: Arc<HostBuffer>,
    /// Empty if the state was made without a copy.
    pub(super) queued: Queued,
    /// Keeps the records of failures of the queued work.
    _failures: Inquiry,
}

/// A thread's turn to take a state of an array. Two threads never have one at a time.
pub(super) struct Turn<'w> {
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
    pub(super) stream: Option<Stream>,
    pub(super) memory: Option<Arc<HostBuffer>>,
}

/// The outcome of a turn.
pub(super) enum Taken {
    Copy(InFlight),
    /// The whole array is not on one device, so there is no state of this change.
    Nowhere,
    /// An access must end first, which does without a notification.
    BehindAccess,
    /// A guard must drop first, which notifies.
    BehindGuard,
    /// The array is gone.
    Over,
}

/// What a look at the array under its lock led to.
enum Look {
    /// The copy is queued; what is constant is still to be filled.
    Queued {
        copies: CopyOut,
        memory: Arc<HostBuffer>,
        constants: Vec<(Bytes, Copies)>,
    },
    /// A stream of this device, and memory, are to be made without the lock.
    Prepare(Option<Device>),
    Over(Taken),
}

/// Where a state is.
struct Found {
    /// Elements on a device, if there are any.
    stored: Option<DeviceParts>,
    constants: Vec<(Bytes, Copies)>,
}

impl Turn<'_> {
    /// Takes a state. The caller holds no lock. This calls no user code, so it does not unwind, and
    /// the turn is given back.
    pub(super) fn take(&mut self) -> Result<Taken> {
        let Some(storage) = self.array.upgrade() else { return Ok(Taken::Over) };
        let request = Request::new(&storage, &Selection::Whole, Cause::Watch, "a watch", self.site);
        let failures = Inquiry::begin();
        loop {
            let looked = self.look(&request);
            if !matches!(looked, Ok(Look::Over(_) | Look::Prepare(_))) {
                // Also if the copy failed: a part may be queued, so the memory is not used again.
                self.memory = None;
            }
            match looked? {
                Look::Over(taken) => return Ok(taken),
                Look::Prepare(home) => self.prepare(&storage, home.as_ref())?,
                Look::Queued { copies, memory: buffer, constants } => {
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
        if state.has_pins() || state.is_being_filled() {
            return Ok(Look::Over(Taken::BehindAccess));
        }
        self.change = state.changes() - self.before;
        let Some(Found { stored, constants }) = find(request, &mut state)? else {
            return Ok(Look::Over(Taken::Nowhere));
        };
        let home = stored.as_ref().map(|parts| state.device_copy(parts.location).device.clone());
        if !has_stream_of(&self.stream, home.as_ref()) {
            return Ok(Look::Prepare(home));
        }
        let Some(memory) = self.memory.clone() else { return Ok(Look::Prepare(home)) };
        let mut copies = CopyOut::new(memory.clone(), CallerWaits::AtOnce, "state for a watch of");
        if let (Some(stream), Some(parts)) = (&self.stream, stored) {
            if waits_for_others(&state, stream, parts.location) {
                return Ok(Look::Over(Taken::BehindGuard));
            }
            let parts = parts.split(operation_bytes_max(&*memory, stream.device_ref()));
            copies.queue(request, &mut state, stream, parts)?;
        }
        Ok(Look::Queued { copies, memory, constants })
    }

    /// Makes what the copy needs. The array may change meanwhile.
    fn prepare(&mut self, storage: &Storage, home: Option<&Device>) -> Result<()> {
        if let Some(home) = home
            && !has_stream_of(&self.stream, Some(home))
        {
            self.stream = Some(home.new_stream().map_err(|error| error.at(self.site))?);
        }
        if self.memory.is_none() {
            self.memory = Some(self.new_memory(storage, home)?);
        }
        Ok(())
    }

    /// Memory for a state, page-locked for the device where that is possible.
    fn new_memory(&self, storage: &Storage, home: Option<&Device>) -> Result<Arc<HostBuffer>> {
        let spare = self.spares.lock().pop();
        let memory = match spare {
            Some(memory) => memory,
            None => {
                let new = storage.new_host_memory();
                Arc::new(new.ok_or_else(|| host_full(storage).at(self.site))?)
            }
        };
        if let Some(device) = home {
            let pin = || device.backend().pin_host_memory(memory.base(), memory.len_bytes());
            // Without it copies are staged, which is slower.
            let _pageable = memory.register(device.kind(), pin, || ());
            if !memory.is_pinned_for(device.kind()) {
                prepare_downloads(device, std::iter::once(memory.len_bytes() as u64));
            }
        }
        Ok(memory)
    }
}

/// Whether a copy from the device can run on this stream. Constants need none.
fn has_stream_of(stream: &Option<Stream>, home: Option<&Device>) -> bool {
    home.is_none_or(|home| stream.as_ref().is_some_and(|stream| stream.device_ref() == home))
}

/// Where the newest contents are, if they are all on one device or constants.
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
    let newest = Newest::find(request, state, Location::HOST, |_| false);
    match newest.undefined {
        None => {}
        Some(Undefined::Never) => return Ok(None),
        // The plan names the failure that took them.
        Some(Undefined::Lost(_)) => return request.plan(state, Location::HOST).map(|_| None),
    }
    let (mut stored, mut constants) = (SmallVec::new(), Vec::new());
    for (source, region) in newest.parts {
        let copies = request.same_offsets(&Regions::from_iter([region]));
        match source {
            Source::Constant(value) => {
                constants.push((state.constant_value(value, memory_order, &region), copies));
            }
            Source::Location(Location::HOST) => return Ok(None),
            Source::Location(location) => {
                DeviceParts::add(&mut stored, location, region, copies);
            }
        }
    }
    let is_on_one_device = stored.len() <= 1;
    Ok(is_on_one_device.then(|| Found { stored: stored.pop(), constants }))
}

/// Whether the copy would have to wait for uses for which no stream can wait: a guard is open, with
/// which other code may queue more work, or the use is of another kind of device.
fn waits_for_others(state: &ArrayState, stream: &Stream, location: Location) -> bool {
    let mut writers = Marks::new();
    collect_conflicts(state, location, None, Access::Read, stream, &mut writers);
    let kind = stream.device_ref().kind();
    let is_unordered = |mark: &Mark| {
        let other = state.stream(mark.stream);
        mark.end == UseEnd::OPEN || other.is_some_and(|other| other.device_ref().kind() != kind)
    };
    writers.iter().any(is_unordered)
}
