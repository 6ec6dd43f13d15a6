//! Acquire: makes the elements of a request available on a device, and makes a stream wait for the
//! uses that must be complete before the access.
//!
//! Whether an access may go on, or what it has to wait for, is its *readiness*. The answer for
//! whole arrays is also kept where the usual call finds it first: for the host in
//! `storage/published.rs`, which takes no lock, and for launches of one stream in
//! `storage/sole_use.rs`. What is copied if elements are missing, `copy/missing.rs` decides.

use super::acquired::Acquired;
use super::request::{CopyPlace, Request};
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, StateGuard, add_own_writer};
use crate::transfer::copy::missing::{Destination, Missing};
use resident_backend::{Address, Dependencies, Position};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::Selection;
use resident_core::ordering::{StreamKey, UseEnd};

/// Acquires the elements on `stream`'s device. Adds to `depends` the work that wrote the elements
/// to read and may still fail.
pub(crate) fn acquire_on<'a>(
    request: &Request<'a>,
    stream: &Stream,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    if request.is_empty() {
        return Ok(Acquired::EMPTY);
    }
    acquire_locked(request, stream, depends).map(|(acquired, _)| acquired)
}

/// As [`acquire_on`], for a request that is not empty. Returns with the lock held.
#[inline]
pub(super) fn acquire_locked<'a>(
    request: &Request<'a>,
    stream: &Stream,
    depends: &mut Dependencies,
) -> Result<(Acquired<'a>, StateGuard<'a>)> {
    let mut state = request.storage.lock();
    let acquired = match request.readiness(&mut state, stream, depends) {
        Readiness::Ready(copy) => Acquired::pin(request, &mut state, copy),
        Readiness::Wait(copy) if copy.location != state.host_location() => {
            wait_for_uses(request, &mut state, stream, copy, depends)?
        }
        Readiness::Wait(_) | Readiness::Copy => {
            drop(state);
            let acquired = copy_to_device(request, stream, depends)?;
            state = request.storage.lock();
            acquired
        }
    };
    Ok((acquired, state))
}

/// Acquires a copy that needs no other copies: makes the stream wait for other uses of it.
fn wait_for_uses<'a>(
    request: &Request<'a>,
    state: &mut ArrayState,
    stream: &Stream,
    copy: CopyPlace,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let location = copy.location;
    let (marks, follows_other) =
        request.conflicts_and_dependencies(state, location, stream, depends);
    request.make_wait(state, stream, &marks)?;
    if follows_other {
        state.retire_device_uses(location);
    }
    let mut acquired = Acquired::pin(request, state, copy);
    acquired.follows_other = follows_other;
    Ok(acquired)
}

/// As [`acquire_on`], if copies, waits or memory are needed.
fn copy_to_device<'a>(
    request: &Request<'a>,
    stream: &Stream,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    request.expect_written_elsewhere(stream.device_ref())?;
    let mut missing = Missing::of(request, Destination::Device(stream));
    let outcome = missing.copy().and_then(|(mut state, location)| {
        let address = state.device_copy(location).base().unwrap_or(Address(0));
        let copy = CopyPlace { location, address };
        wait_for_uses(request, &mut state, stream, copy, depends)
    });
    missing.close();
    outcome
}

/// What an access of a device's copy needs.
enum Readiness {
    /// Nothing.
    Ready(CopyPlace),
    /// The elements are there, but the stream has to wait for uses on other streams.
    Wait(CopyPlace),
    /// Copies or memory, or it is not known.
    Copy,
}

impl Request<'_> {
    /// Whether an access on `stream` may go on. Adds to `depends` the work on the stream itself
    /// that wrote the elements to read and may still fail.
    #[inline]
    fn readiness(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> Readiness {
        if matches!(self.selection, Selection::Whole) {
            let ready = whole_on_device(state, stream, self.access, depends);
            return ready.map_or(Readiness::Copy, Readiness::Ready);
        }
        self.part_on_device(state, stream, depends).unwrap_or(Readiness::Copy)
    }

    /// Whether only `stream` has conflicting uses of the elements on its device. `None` if they are
    /// not there.
    fn part_on_device(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> Option<Readiness> {
        if state.has_new_failures() {
            return None;
        }
        let location = state.find_location(stream.device_ref())?;
        let address = self.address_at(state, location)?;
        if self.is_missing(state, location) {
            return None;
        }
        let (key, access) = (state.find_key(stream).unwrap_or(StreamKey::NONE), self.access);
        let mut is_ready = true;
        let mut uses = std::mem::take(&mut state.device_copy_mut(location).uses);
        self.selection.visit_boxes_or_whole(|region| {
            is_ready &= uses.conflicts_only_with(region, access, key, |writer| {
                if access != Access::Overwrite && writer.stream == key {
                    add_own_writer(depends, stream, writer, |writer| state.is_retired(writer));
                }
            });
        });
        state.device_copy_mut(location).uses = uses;
        let copy = CopyPlace { location, address };
        Some(if is_ready { Readiness::Ready(copy) } else { Readiness::Wait(copy) })
    }

    /// The address of the copy at `location`, if all elements of the request have memory there, or
    /// if the access is none without elements that are valid there, which then have memory.
    #[inline]
    pub(in crate::transfer) fn address_at(
        &self,
        state: &ArrayState,
        location: Location,
    ) -> Option<Address> {
        let copy = state.device_copy(location);
        match self.access {
            Access::Overwrite => copy.address_of(self.storage.memory_order(), self.selection),
            _ => copy.base(),
        }
    }

    /// Whether an access of the host may go on.
    #[inline]
    pub(super) fn is_ready_on_host(&self, state: &ArrayState) -> bool {
        let has_memory = match self.access {
            Access::Read => state.host.is_some(),
            _ => state.has_writable_host(),
        };
        has_memory
            && state.is_host_idle()
            && !state.has_new_failures()
            && !self.is_missing(state, state.host_location())
    }

    /// Whether the access needs elements that are not valid at `location`.
    #[inline]
    pub(in crate::transfer) fn is_missing(&self, state: &ArrayState, location: Location) -> bool {
        self.access != Access::Overwrite && !self.is_valid(state, location)
    }
}

/// The copy of the whole array on the stream's device, if the access needs no copy there and only
/// that stream has conflicting uses.
#[inline(always)]
pub(super) fn whole_on_device(
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<CopyPlace> {
    if state.has_new_failures() {
        return None;
    }
    let location = state.find_location(stream.device_ref())?;
    let copy = state.device_copy(location);
    let (address, uses) = (copy.address()?, copy.uses.uniform()?);
    if !uses.conflicts_only_with(access, state.find_key(stream)?) {
        return None;
    }
    if access != Access::Overwrite {
        let writer = uses.writer();
        if !state.coherence.uniform()?.is_valid(location) {
            return None;
        }
        if let Some(work) = writer.and_then(|writer| writer.written_by()) {
            depend_on(state, depends, stream, location, work);
        }
    }
    Some(CopyPlace { location, address })
}

/// Adds work on `stream` itself that wrote the whole array, unless it is complete: then forgets it,
/// so that it is not looked at again. For the first entry this is not checked, because that reads
/// memory which the executing thread writes.
fn depend_on(
    state: &mut ArrayState,
    depends: &mut Dependencies,
    stream: &Stream,
    location: Location,
    work: Position,
) {
    let dependency = (stream.id(), work);
    if depends.contains(&dependency) {
        return;
    }
    if !depends.is_empty() && stream.core().is_done(UseEnd::at(work)) {
        state.retire_device_uses(location);
        if state.uses(location).uniform().is_some_and(|uses| uses.writer().is_none()) {
            return;
        }
    }
    depends.push(dependency);
}

#[cfg(test)]
mod tests {
    use super::{Access, Address, ArrayState, Dependencies, Position, UseEnd};
    use crate::device::Device;
    use crate::storage::{HostBuffer, Origin, Storage, undisturbed};
    use resident_backend::call_site::call_site;
    use resident_core::layout::MemoryOrder;
    use resident_core::ordering::{Mark, Uses};

    /// A use that another stream has completed keeps no later access from the fast path.
    #[test]
    fn completed_uses_of_another_stream_are_forgotten() {
        let device = Device::cpu();
        let (memory_order, _) = MemoryOrder::of(&[4], &[1], 4).expect("an order");
        let origin = Origin::Host(HostBuffer::zeroed::<u32>(4).expect("memory"));
        let storage = Storage::new::<u32>(memory_order, &[4], origin, call_site());
        let state: &mut ArrayState = &mut storage.lock();
        let location = state.assign_location(&device).expect("a location");
        state.coherence.apply_to_all(location, Access::Read);
        state.device_copy_mut(location).set_address(Some(Address(64)));
        let [one, other] = [(); 2].map(|()| device.new_stream().expect("a stream"));
        let [key, _] = [&one, &other].map(|stream| state.assign_key(stream));
        let open = Mark::foreign(key, UseEnd::OPEN, Position::START);
        let complete = Mark::lossless(key, UseEnd::at(Position::START));
        for (mark, is_forgotten) in [(open, false), (complete, true)] {
            let uses = state.uses_mut(location);
            *uses = Uses::default();
            uses.record(&[4], None, Access::Overwrite, mark);
            let is_ready = |state: &mut ArrayState| {
                undisturbed(|| {
                    state.reconcile(storage.memory_order());
                    let depends = &mut Dependencies::new();
                    super::whole_on_device(state, &other, Access::Read, depends).is_some()
                })
            };
            assert!(!is_ready(state), "{mark:?}");
            state.retire_device_uses(location);
            assert_eq!(is_ready(state), is_forgotten, "{mark:?}");
        }
    }
}
