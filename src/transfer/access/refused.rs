//! What a refused write leaves of the elements that it was to overwrite. A backend may make several
//! driver calls for one piece of work, and refuse it after some of them.

use super::request::{Regions, Request};
use crate::device::Stream;
use crate::error::Error;
use crate::storage::{ArrayState, UseKind, notify_watchers};
use resident_backend::{BackendError, BackendErrorKind};
use resident_core::coherence::Location;
use resident_core::layout::Selection;

impl Request<'_> {
    /// The error of a refused write of the elements at `location`. The caller holds no lock.
    ///
    /// If the work was refused after some of its driver calls, the elements there are a mixture of
    /// old and new ones. Where they were valid, `location` becomes their only holder, since no
    /// other copy has the mixture; the error counts the bytes. Elsewhere contents are as they were.
    pub(in crate::transfer) fn write_error(
        &self,
        stream: &Stream,
        location: Location,
        doing: &str,
        error: &BackendError,
    ) -> Error {
        let refused = self.call_error(stream.device_ref(), doing, error);
        if !matches!(error.kind, BackendErrorKind::Partial { .. }) {
            return refused;
        }
        let mut state = self.storage.lock();
        let mixed = self.valid_regions(&state, location);
        if mixed.is_empty() {
            return refused.with_contents_unchanged();
        }
        let mixed = Selection::Boxes(mixed);
        let request = self.of(&mixed);
        request.record_write(&mut state, location);
        state.note_use(UseKind::Write, &mixed);
        drop(state);
        notify_watchers();
        refused
    }

    fn valid_regions(&self, state: &ArrayState, location: Location) -> Regions {
        let mut valid = Regions::new();
        self.selection.for_each_region(self.storage.memory_order(), |region| {
            state.coherence.visit_contents(region, |part, content| {
                if content.is_valid(location) {
                    valid.push(*part);
                }
            });
        });
        valid
    }
}
