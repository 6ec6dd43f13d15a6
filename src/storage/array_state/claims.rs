//! Claims. While a thread copies elements to a location, it *claims* them there: other threads that
//! need the same elements at that location wait, instead of copying them again.

use super::ArrayState;
use resident_core::coherence::Location;
use resident_core::layout::Selection;

impl ArrayState {
    fn claims(&self) -> impl Iterator<Item = &(Location, Selection)> {
        self.cold.iter().flat_map(|cold| &cold.claims)
    }

    pub(super) fn has_claims(&self) -> bool {
        self.claims().next().is_some()
    }

    /// Whether a thread is copying elements to some location.
    pub(crate) fn is_being_filled(&self) -> bool {
        self.has_claims()
    }

    pub(crate) fn has_claim_at(&self, location: Location) -> bool {
        self.claims().any(|(claimed, _)| *claimed == location)
    }

    /// Whether a thread is copying any of these elements to that location.
    pub(crate) fn is_claimed(&self, location: Location, selection: &Selection) -> bool {
        self.claims().any(|(claimed, other)| *claimed == location && other.overlaps(selection))
    }

    pub(crate) fn claim(&mut self, location: Location, selection: &Selection) {
        self.note_use_begun();
        self.cold().claims.push((location, selection.clone()));
    }

    /// Whether a thread allocates memory at that location.
    pub(crate) fn is_memory_claimed(&self, location: Location) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.memory_claims.contains(location))
    }

    /// Until [`unclaim_memory`](Self::unclaim_memory), only the caller allocates memory there.
    pub(crate) fn claim_memory(&mut self, location: Location) {
        let claims = &mut self.cold().memory_claims;
        *claims = claims.with(location);
    }

    pub(crate) fn unclaim_memory(&mut self, location: Location) {
        let Some(cold) = &mut self.cold else { return };
        cold.memory_claims = cold.memory_claims.without(location);
        if cold.is_unused() {
            self.cold = None;
        }
    }

    pub(crate) fn unclaim(&mut self, location: Location, selection: &Selection) {
        let Some(cold) = &mut self.cold else { return };
        let is_this =
            |(claimed, other): &(Location, Selection)| *claimed == location && other == selection;
        if let Some(index) = cold.claims.iter().position(is_this) {
            cold.claims.swap_remove(index);
        }
        // No memory is kept for the next claim: copies are rare, and slow compared to an
        // allocation.
        if cold.claims.is_empty() {
            cold.claims = Vec::new();
            if cold.is_unused() {
                self.cold = None;
            }
        }
    }
}
