//! A chain: launches, copies and fills of one device that a stream runs as one operation.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Position, StreamId, Work};
use crate::call_site::CallSite;

/// One replay of a chain, or several replays of it one after the other. The caller keeps the steps.
#[derive(Debug)]
pub struct ChainCall<'a> {
    /// What a backend keeps between replays of the same steps.
    pub instance: &'a mut ChainInstance,
    /// In the order in which they were recorded. Not empty. Each reads and writes only memory of
    /// the stream's device.
    pub steps: &'a [ChainStep],
    /// Another number than in earlier calls with this instance if the addresses, origins, words or
    /// patterns of the steps are not those of the call before.
    pub version: u64,
    /// How often the steps run. Not zero.
    pub count: u64,
    /// As [`LaunchCall::depends`](crate::LaunchCall::depends), for the first step; the steps'
    /// own lists are empty.
    pub depends: &'a [(StreamId, Position)],
    /// The replay.
    pub site: CallSite,
}

/// A launch, a copy or a fill of a chain, and its place in the order.
#[derive(Clone, Debug)]
pub struct ChainStep {
    /// With the site of its recording. A copy is within the device.
    pub work: Work,
    /// The earlier steps of the same replay, by their indices, that this one must follow because
    /// both access the same bytes and one of them writes. Steps that another step of the list
    /// follows may be left out.
    pub after: SmallVec<[u32; 4]>,
}

/// What a backend keeps for replays of one chain on one device, with arguments of the same shapes:
/// on GPUs a graph that was instantiated. Every replay has the same steps, with the same code,
/// grids, order and parts; only addresses, origins and words differ. Dropped when no replay is to
/// come; queued replays may still run then.
#[derive(Default)]
pub struct ChainInstance {
    /// The chain in messages, as in `chain "two steps"`.
    pub title: Arc<str>,
    pub kept: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for ChainInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainInstance").field("title", &self.title).finish_non_exhaustive()
    }
}
