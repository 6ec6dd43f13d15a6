//! Acquire: makes the elements of a request available on a device, and makes a stream wait for the
//! uses that must be complete before the access.

use super::readiness::Readiness;
use super::request::Request;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, CopyPlace, Storage};
use crate::transfer::copy::missing::{Destination, Missing};
use resident_backend::{Address, Dependencies};
use resident_core::coherence::Location;

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
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    if request.is_empty() {
        return Ok(Acquired::EMPTY);
    }
    let mut state = request.storage.lock();
    match request.readiness(&mut state, stream, depends) {
        Readiness::Ready(copy) => Ok(Acquired::pin(request.storage, &mut state, copy)),
        Readiness::Wait(copy) if copy.location != state.host_location() => {
            wait_for_uses(request, &mut state, stream, copy, depends)
        }
        Readiness::Wait(_) | Readiness::Copy => {
            drop(state);
            copy_to_device(request, stream, depends)
        }
    }
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
    let acquired = Acquired::pin(request.storage, state, copy);
    Ok(Acquired { follows_other, ..acquired })
}

/// [`acquire_on`], if copies, waits or memory are needed.
pub(super) fn copy_to_device<'a>(
    request: &Request<'a>,
    stream: &Stream,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let mut missing = Missing::of(request, Destination::Device(stream));
    let outcome = missing.copy().and_then(|(mut state, location)| {
        let address = state.device_copy(location).address().unwrap_or(Address(0));
        let copy = CopyPlace { location, address };
        wait_for_uses(request, &mut state, stream, copy, depends)
    });
    missing.close();
    outcome
}
