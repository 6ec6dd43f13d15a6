//! Copies between two arrays, or between two parts of one.

use std::sync::Arc;

use super::changed_bytes::before_queued_write;
use super::job::{Boxes, queue};
use super::report::{Moved, count};
use crate::audit::Direction;
use crate::device::{Device, Stream};
use crate::error::{Error, Result};
use crate::storage::{ArrayState, StaleOrigin, StateGuard, UseKind};
use crate::transfer::access::acquired::Acquired;
use crate::transfer::access::mark::mark;
use crate::transfer::access::request::Request;
use resident_backend::{
    Address, BackendError, CopyWork, Dependencies, FailureKind, Memory, Position,
};
use resident_core::coherence::Location;
use resident_core::ordering::UseEnd;

/// A copy between two arrays. One is acquired on the stream's device. The lock of the other is held
/// until the copy is queued, so that meanwhile its copy is neither invalidated by a failure nor
/// freed. If that copy is on a device, calls report the uses of both arrays; else they report one
/// copy between host and device.
pub(in crate::transfer) struct ArrayCopy<'c> {
    pub(in crate::transfer) stream: &'c Stream,
    /// What the copy is called in messages: `copy to`.
    pub(in crate::transfer) operation: &'static str,
    pub(in crate::transfer) boxes: Boxes,
    /// The work that wrote the elements to read, and that may still fail.
    pub(in crate::transfer) depends: Dependencies,
    /// Dropped before `acquired`, whose drop locks its array.
    pub(in crate::transfer) locked: (&'c Request<'c>, StateGuard<'c>, Location),
    pub(in crate::transfer) acquired: (&'c Request<'c>, Acquired<'c>),
}

impl ArrayCopy<'_> {
    /// Whether the array whose lock is held is overwritten, and not read.
    fn writes_locked(&self) -> bool {
        self.locked.0.access.writes()
    }

    /// Queues the copy and records it as a use of both arrays. Returns `false` if the array whose
    /// lock is held has no memory on the host.
    pub(in crate::transfer) fn run(mut self) -> Result<bool> {
        let (_, state, location) = &self.locked;
        let is_on_device = *location != Location::HOST;
        let device = is_on_device.then(|| state.device_copy(*location).device.clone());
        let peer = device.as_ref().filter(|device| *device != self.stream.device_ref());
        let Some(work) = self.work(peer) else { return Ok(false) };
        let position = match queue(self.stream, work) {
            Ok(position) => position,
            Err(error) => return Err(self.refused(&error)),
        };
        if let Some(peer) = peer {
            peer.record_remote_use(self.stream.core(), position);
        }
        self.record(device.as_ref(), position);
        Ok(true)
    }

    fn work(&mut self, peer: Option<&Device>) -> Option<Box<CopyWork>> {
        let ((own, acquired), (other, state, location)) = (&self.acquired, &self.locked);
        let (here, there) = (Memory::Device(acquired.address), memory_at(state, *location)?);
        let (to, source, destination) =
            if self.writes_locked() { (*other, here, there) } else { (*own, there, here) };
        let boxes = std::mem::take(&mut self.boxes);
        Some(Box::new(CopyWork {
            loss: FailureKind::Contents,
            source_device: peer.map(|peer| Arc::clone(peer.backend()) as _),
            depends: std::mem::take(&mut self.depends),
            ..to.copy_work(self.operation, source, destination, boxes)
        }))
    }

    fn refused(self, error: &BackendError) -> Error {
        let writes_locked = self.writes_locked();
        let ((own, acquired), (other, state, location)) = (self.acquired, self.locked);
        drop(state);
        let (to, location) =
            if writes_locked { (other, location) } else { (own, acquired.location) };
        to.write_error(self.stream, location, "copying to", error)
    }

    /// Records the copy. `device` has the copy of the array whose lock is held, unless the host has
    /// it.
    fn record(self, device: Option<&Device>, position: Position) {
        let (stream, writes_locked) = (self.stream, self.writes_locked());
        let ((own, acquired), (other, mut state, location)) = (self.acquired, self.locked);
        if writes_locked {
            record_host_write(other, &mut state, stream, position);
        } else {
            other.record_use(&mut state, location, stream, UseEnd::at(position));
            other.storage.publish(&state);
        }
        if device.is_some() {
            other.record_access(device);
        }
        drop(state);
        let copied = match device {
            Some(peer) if peer != stream.device_ref() => Some((Direction::BetweenDevices, peer)),
            Some(_) => None,
            None if writes_locked => Some((Direction::ToHost, stream.device_ref())),
            None => Some((Direction::ToDevice, stream.device_ref())),
        };
        if let Some((direction, device)) = copied {
            // Counted for the array of the stream's device. The copy overwrites its destination, so
            // no call is reported as the one that made the elements stale.
            let bytes = own.selection.len_bytes(own.storage.memory_order());
            let (moved, since) = (Moved::at(position, direction, bytes), StaleOrigin::Unreported);
            count(own, &mut own.storage.lock(), moved, device, stream, since);
        }
        mark(own, stream, acquired, UseEnd::at(position));
        if device.is_some() {
            own.record_access(Some(stream.device_ref()));
        }
    }
}

/// The memory of an array's copy. `None` if the host has none.
fn memory_at(state: &ArrayState, location: Location) -> Option<Memory> {
    if location == Location::HOST {
        return state.host.clone().map(|host| Memory::Host(host));
    }
    Some(Memory::Device(state.device_copy(location).base().unwrap_or(Address(0))))
}

/// Records that queued work overwrites elements in the host's memory.
fn record_host_write(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    position: Position,
) {
    // The host waits for the copy, not for later work of the stream.
    stream.ensure_event_at_tail();
    let host = state.host_location();
    request.record_use(state, host, stream, UseEnd::at(position));
    request.record_write(state, host);
    state.note_host_memory_write();
    state.note_use(UseKind::Write, request.selection);
    before_queued_write(request.storage);
}
