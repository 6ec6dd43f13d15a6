//! Acquire: makes the elements of a request available on a device, and makes a stream wait for the
//! uses that must be complete before the access.

use super::request::Request;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, ReadyCopy, Storage};
use crate::transfer::copy::missing::{Destination, Missing};
use resident_backend::{Address, Dependencies};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::Selection;
use resident_core::ordering::{Mark, StreamKey};

/// An array's copy on a device, acquired for a use that is not marked yet.
#[derive(Debug)]
#[must_use = "the copy stays where it is while this lives"]
pub(crate) struct Acquired<'a> {
    pub(crate) location: Location,
    /// The address of the whole array's copy. 0 if the array has no bytes.
    pub(crate) address: Address,
    /// Whether the access comes after a use on another stream.
    pub(crate) follows_other: bool,
    /// The pin, which is kept until the use is marked. An array without bytes needs none.
    pin: Option<Pin<'a>>,
}

/// Prevents eviction of an array's device copies while it lives.
#[derive(Debug)]
struct Pin<'a>(&'a Storage);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.lock().unpin();
    }
}

impl<'a> Acquired<'a> {
    const EMPTY: Self =
        Self { location: Location::HOST, address: Address(0), follows_other: false, pin: None };

    /// Pins the copy. The caller holds the array's lock.
    #[inline]
    pub(in crate::transfer) fn pin(
        storage: &'a Storage,
        state: &mut ArrayState,
        CopyPlace { location, address }: CopyPlace,
    ) -> Self {
        state.pin();
        Self { location, address, follows_other: false, pin: Some(Pin(storage)) }
    }

    pub(in crate::transfer) fn place(&self) -> CopyPlace {
        CopyPlace { location: self.location, address: self.address }
    }

    /// Passes the pin to the caller, who must unpin the copy. Returns whether there is a pin.
    #[inline]
    pub(super) fn into_pin(mut self) -> bool {
        self.pin.take().map(std::mem::forget).is_some()
    }

    /// Unpins the copy, because its use is marked. The caller holds the array's lock.
    #[inline]
    pub(super) fn unpin(&mut self, state: &mut ArrayState) {
        if let Some(pin) = self.pin.take() {
            state.unpin();
            std::mem::forget(pin);
        }
    }
}

/// Acquires the elements on `stream`'s device. Adds to `depends` the work that wrote the elements
/// to read and may still fail.
pub(crate) fn acquire_on<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    if request.is_empty() {
        return Ok(Acquired::EMPTY);
    }
    let mut state = request.storage.lock();
    match readiness(request, &mut state, stream, access, depends) {
        Readiness::Ready(copy) => Ok(Acquired::pin(request.storage, &mut state, copy)),
        Readiness::Used(copy) if copy.location != state.host_location() => {
            wait_for_uses(request, &mut state, stream, access, copy, depends)
        }
        Readiness::Used(_) | Readiness::Missing => {
            drop(state);
            copy_to_device(request, stream, access, depends)
        }
    }
}

/// Where an array's copy on a device is.
#[derive(Clone, Copy, Debug)]
pub(in crate::transfer) struct CopyPlace {
    pub(in crate::transfer) location: Location,
    pub(in crate::transfer) address: Address,
}

/// What an access of a device's copy needs.
pub(super) enum Readiness {
    /// Nothing.
    Ready(CopyPlace),
    /// The elements are there, but the stream has to wait for uses on other streams.
    Used(CopyPlace),
    /// Copies or memory, or it is not known.
    Missing,
}

/// Acquires a copy that needs no other copies: makes the stream wait for other uses of it.
fn wait_for_uses<'a>(
    request: &Request<'a>,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    copy: CopyPlace,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let location = copy.location;
    let (marks, follows_other) =
        request.conflicts_and_dependencies(state, location, access, stream, depends);
    request.make_wait(state, stream, &marks)?;
    if follows_other {
        state.retire_device_uses(location);
    }
    let acquired = Acquired::pin(request.storage, state, copy);
    Ok(Acquired { follows_other, ..acquired })
}

/// Whether the copy on `stream`'s device needs no copy, no wait and no memory: the usual case.
#[inline]
pub(super) fn readiness(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Readiness {
    if matches!(request.selection, Selection::Whole) {
        let ready = whole_ready_on(state, stream, access, depends);
        return ready.map_or(Readiness::Missing, Readiness::Ready);
    }
    part_ready_on(request, state, stream, access, depends).unwrap_or(Readiness::Missing)
}

/// Whether only `stream` has conflicting uses of the elements on its device. `None` if they are not
/// there.
fn part_ready_on(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<Readiness> {
    if state.has_new_failures() {
        return None;
    }
    let location = state.find_location(stream.device_ref())?;
    let address = state.device_copy(location).address()?;
    if access != Access::Overwrite && !request.is_valid(state, location) {
        return None;
    }
    let key = state.find_key(stream).unwrap_or(StreamKey::NONE);
    let mut is_ready = true;
    let mut uses = std::mem::take(&mut state.device_copy_mut(location).uses);
    request.selection.visit_boxes_or_whole(|region| {
        is_ready &= uses.conflicts_only_with(region, access, key, |writer| {
            if access != Access::Overwrite && writer.stream == key {
                add_own_writer(state, depends, stream, writer);
            }
        });
    });
    state.device_copy_mut(location).uses = uses;
    let copy = CopyPlace { location, address };
    Some(if is_ready { Readiness::Ready(copy) } else { Readiness::Used(copy) })
}

#[inline(always)]
fn whole_ready_on(
    state: &ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<CopyPlace> {
    let ReadyCopy { location, address, writer, .. } = state.ready_whole(stream, access)?;
    writer.into_iter().for_each(|writer| add_own_writer(state, depends, stream, writer));
    Some(CopyPlace { location, address })
}

/// Adds a writer on `stream` itself. A writer of several boxes is visited several times in a row.
/// Others that are added twice do no harm while there is room. It checks whether the writer has
/// completed only if the list would otherwise need the heap: the check reads memory that the
/// executing thread writes, and so costs more than an unnecessary entry.
#[inline]
fn add_own_writer(state: &ArrayState, depends: &mut Dependencies, stream: &Stream, writer: Mark) {
    let Some(work) = writer.written_by() else { return };
    let dependency = (stream.id(), work);
    if depends.last() == Some(&dependency) {
        return;
    }
    let has_room = depends.len() < depends.inline_size();
    if has_room || !depends.contains(&dependency) && !state.is_retired(writer) {
        depends.push(dependency);
    }
}

/// [`acquire_on`], if copies, waits or memory are needed.
pub(super) fn copy_to_device<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let mut missing = Missing::of(request, access, Destination::Device(stream));
    let outcome = missing.copy().and_then(|(mut state, location)| {
        let address = state.device_copy(location).address().unwrap_or(Address(0));
        let copy = CopyPlace { location, address };
        wait_for_uses(request, &mut state, stream, access, copy, depends)
    });
    missing.close();
    outcome
}
