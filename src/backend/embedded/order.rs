//! Vector clocks: how far into each other queue a point of one queue is known to come after.

#![forbid(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use super::progress::Progress;
use crate::backend::{Position, QueueId};

/// A set of positions, one for each queue, that come before something. What has completed need not
/// be in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Order(SmallVec<[(Arc<Progress>, Position); 4]>);

impl Order {
    /// Whether `position` of `queue` is in it.
    pub(super) fn includes(&self, queue: QueueId, position: Position) -> bool {
        self.0.iter().any(|(progress, upto)| progress.id() == queue && *upto >= position)
    }

    /// Takes in everything up to `position`.
    pub(super) fn add(&mut self, queue: &Arc<Progress>, position: Position) {
        match self.0.iter_mut().find(|(progress, _)| progress.id() == queue.id()) {
            Some((_, upto)) => *upto = position.max(*upto),
            None => self.0.push((Arc::clone(queue), position)),
        }
    }

    /// Takes in all of another order, and forgets what has completed since.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.retain(|(progress, upto)| !progress.has_run(*upto));
        for (queue, position) in other.0.iter().filter(|(progress, upto)| !progress.has_run(*upto))
        {
            self.add(queue, *position);
        }
    }
}
