//! A copy between acquire and mark, which is pinned meanwhile: no full device evicts it.

use super::request::{CopyPlace, Request};
use crate::storage::{ArrayState, Storage};
use resident_backend::Address;
use resident_core::coherence::Location;
use resident_core::layout::Selection;

/// An array's copy on a device, acquired for a use that is not marked yet.
#[derive(Debug)]
#[must_use = "the copy stays where it is while this lives"]
pub(crate) struct Acquired<'a> {
    pub(crate) location: Location,
    /// The address of the whole array's copy, of which elements outside the request may have no
    /// memory. 0 if the array has no bytes.
    pub(crate) address: Address,
    /// Whether the access comes after a use on another stream.
    pub(crate) follows_other: bool,
    /// The pin, which is kept until the use is marked. An array without bytes needs none.
    pin: Option<Pin<'a>>,
}

/// Prevents eviction of elements on devices while it lives.
#[derive(Debug)]
struct Pin<'a> {
    storage: &'a Storage,
    selection: &'a Selection,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.storage.lock().unpin_elements(self.selection);
    }
}

impl<'a> Acquired<'a> {
    pub(in crate::transfer) const EMPTY: Self =
        Self { location: Location::HOST, address: Address(0), follows_other: false, pin: None };

    /// Pins the elements of the request. The caller holds the array's lock.
    #[inline]
    pub(in crate::transfer) fn pin(
        &Request { storage, selection, .. }: &Request<'a>,
        state: &mut ArrayState,
        CopyPlace { location, address }: CopyPlace,
    ) -> Self {
        state.pin_elements(selection);
        let pin = Some(Pin { storage, selection });
        Self { location, address, follows_other: false, pin }
    }

    /// Passes the pin to the caller, who must unpin the elements. Returns whether there is a pin.
    #[inline]
    pub(super) fn into_pin(mut self) -> bool {
        self.pin.take().map(std::mem::forget).is_some()
    }

    /// Unpins the copy, because its use is marked. The caller holds the array's lock.
    #[inline]
    pub(super) fn unpin(&mut self, state: &mut ArrayState) {
        if let Some(pin) = self.pin.take() {
            state.unpin_elements(pin.selection);
            std::mem::forget(pin);
        }
    }
}
