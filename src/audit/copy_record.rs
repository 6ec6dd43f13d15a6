//! The record of one copy, from which captures and `tracing` events are made.

use std::sync::Arc;

use super::cause::Cause;
use crate::call_site::CallSite;
use crate::traffic::Direction;

/// One copy that was queued.
#[derive(Clone, Debug)]
pub(crate) struct CopyRecord {
    pub(crate) direction: Direction,
    pub(crate) bytes: u64,
    /// How many of the bytes were up to date at the destination.
    pub(crate) padding: u64,
    pub(crate) array: Arc<str>,
    /// The device whose stream runs the copy; for a copy between two devices, the destination.
    pub(crate) device: Arc<str>,
    /// The source device of a copy between two devices.
    pub(crate) source: Option<Arc<str>>,
    pub(crate) stream: u32,
    pub(crate) cause: Cause,
    /// The call that needed the bytes.
    pub(crate) site: CallSite,
    pub(crate) staleness: Staleness,
}

/// Why the bytes of a copy were not valid at its destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Staleness {
    /// The bytes were never valid there.
    NeverThere,
    /// Unknown, or irrelevant because the copy overwrites its destination.
    Unreported,
    /// The last call that made any of the bytes stale at the destination.
    Since(CallSite),
}

impl Staleness {
    pub(super) fn since(self) -> Option<CallSite> {
        match self {
            Self::Since(site) => Some(site),
            Self::NeverThere | Self::Unreported => None,
        }
    }
}
