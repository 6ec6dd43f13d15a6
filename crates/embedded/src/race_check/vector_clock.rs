//! Vector clocks: each stream's last position that happens before an operation or event.
//!
//! Every stream has one, also on devices without a race check: what waits for such a stream comes
//! after all that the stream itself waited for. Only checked operations are looked up, so only
//! positions of emulated devices are ever added, and without such devices all clocks are empty.

#![forbid(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::StreamProgress;
use resident_backend::{Position, StreamId};

/// For each stream, the last position that happens before a given operation or event. Positions
/// whose work has run may be left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct VectorClock(SmallVec<[(Arc<StreamProgress>, Position); 4]>);

impl VectorClock {
    /// Whether `position` of `stream` happens before the clock's operation or event.
    pub(super) fn includes(&self, stream: StreamId, position: Position) -> bool {
        self.0.iter().any(|(progress, upto)| progress.id() == stream && *upto >= position)
    }

    /// Adds all positions of `stream` up to `position`.
    pub(crate) fn add(&mut self, stream: &Arc<StreamProgress>, position: Position) {
        match self.0.iter_mut().find(|(progress, _)| progress.id() == stream.id()) {
            Some((_, upto)) => *upto = position.max(*upto),
            None => self.0.push((Arc::clone(stream), position)),
        }
    }

    /// The clock without positions whose work has run.
    pub(crate) fn pending(&self) -> Self {
        let mut clock = Self::default();
        clock.join(self);
        clock
    }

    /// Adds all positions of another clock, and removes positions whose work has run.
    pub(crate) fn join(&mut self, other: &Self) {
        self.0.retain(|(progress, upto)| !progress.has_run(*upto));
        for (progress, upto) in other.0.iter().filter(|(progress, upto)| !progress.has_run(*upto)) {
            self.add(progress, *upto);
        }
    }
}
