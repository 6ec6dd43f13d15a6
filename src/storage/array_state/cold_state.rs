//! The parts of an array's state that most arrays never need, allocated at first use.

use std::sync::Arc;

use super::part_table::KnownParts;
use super::stale_log::StaleLog;
use super::value_table::Constants;
use super::whole_copies::ArrayCopies;
use crate::storage::HostBuffer;
use crate::storage::watchers::{WeakArray, WeakWatcher};
use resident_backend::FailureRecord;
use resident_core::coherence::{Location, LocationSet};
use resident_core::layout::Selection;
use resident_core::ordering::Uses;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct ColdState {
    pub(super) constants: Constants,
    pub(super) losses: Losses,
    pub(super) claims: Claims,
    /// The elements that are pinned, of an array with memory by pages (`pages`).
    pub(super) pinned_parts: Vec<Selection>,
    /// The locations where threads allocate memory.
    pub(super) memory_claims: LocationSet,
    pub(super) open_reads: Vec<OpenReads>,
    /// The bytes that coarsening made stale, and that were not copied since.
    pub(super) padding_bytes: u64,
    /// The number of boxes with which a write coarsens the state again.
    pub(super) coarsened_again_at: usize,
    /// Those of them that still exist are told of changes.
    pub(super) watchers: Vec<WeakWatcher>,
    /// The array itself, if it had watchers.
    pub(super) watched: Option<WeakArray>,
    /// How often the array has been changed while it had watchers.
    pub(super) changes: u64,
    /// The writes by the host, of an array that has watchers, that may not be over.
    pub(super) host_writes: Vec<OpenHostWrite>,
    /// How often the host memory of an array that has watchers was about to be written.
    pub(super) host_version: u64,
    /// The uses of the host memory, if it is the host's own and queued work has used it.
    pub(super) host_uses: Option<Box<Uses>>,
    /// The copies that are not counted as copies of the whole array.
    pub(super) copies: Option<Box<ArrayCopies>>,
    /// The parts that launches use again and again.
    pub(super) known_parts: Option<Box<KnownParts>>,
    /// The logs of locations where parts became stale by different calls.
    pub(super) stale_logs: Vec<(Location, StaleLog)>,
    /// The first host memory, if it was read-only and has been replaced.
    pub(super) read_only_host: Option<Arc<HostBuffer>>,
}

impl ColdState {
    /// Whether it has nothing that an array without it would not have.
    pub(super) fn is_unused(&self) -> bool {
        self.constants.is_empty()
            && self.losses.is_empty()
            && self.claims.is_empty()
            && self.pinned_parts.is_empty()
            && self.memory_claims.is_empty()
            && self.open_reads.is_empty()
            && self.padding_bytes == 0
            && self.coarsened_again_at == 0
            && self.watchers.is_empty()
            && self.changes == 0
            && self.host_writes.is_empty()
            && self.host_version == 0
            && self.host_uses.is_none()
            && self.copies.is_none()
            && self.known_parts.is_none()
            && self.stale_logs.is_empty()
            && self.read_only_host.is_none()
    }
}

/// A write by the host that may not be over.
#[derive(Debug)]
pub(super) struct OpenHostWrite {
    pub(super) number: u64,
    pub(super) selection: Selection,
}

/// The failures by which contents were lost. The index is the number in a `LossId`.
pub(super) type Losses = Vec<Arc<FailureRecord>>;

/// The elements that threads are copying, with their destinations.
pub(super) type Claims = Vec<(Location, Selection)>;

/// The guards that read on one stream.
#[derive(Debug)]
pub(super) struct OpenReads {
    /// The stream's number. Not its key: another stream may get the key.
    pub(super) stream: u64,
    pub(super) location: Location,
    pub(super) token: OpenRead,
    /// Whether the stream is published, so that guards without a token may exist.
    pub(super) is_published: bool,
}

/// Held by a read guard while it exists.
pub(crate) type OpenRead = Arc<()>;
