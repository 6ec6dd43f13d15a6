//! Queues copies: one driver call for each shape, or one for many lines if the driver supports it.

use std::cell::Cell;

use super::batch::{self, LineBatch};
use super::shape::{self, Shape};
use crate::driver::{CopyEnd, CopyEnds, Driver, Place, StreamHandle, invalid};
use resident_backend::{BackendError, CopyBox};

/// The stream on which copies are queued, its driver and its place, and the largest pitch that the
/// driver calls accept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTarget<'o> {
    pub driver: &'static Driver,
    pub stream: StreamHandle,
    pub place: Place,
    pub pitch_bytes_max: u64,
    /// The bytes that the calls queued so far for one operation write. If a later call is refused,
    /// the error says how many they are.
    pub queued_bytes: &'o Cell<u64>,
}

impl StreamTarget<'_> {
    /// Counts the bytes of a call that the driver has accepted.
    pub(super) fn count(
        &self,
        len_bytes: u64,
        outcome: Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        outcome.inspect(|()| self.queued_bytes.set(self.queued_bytes.get() + len_bytes))
    }
}

/// Queues the copy of all parts. The first call that the driver refuses ends it; the calls before
/// it stay queued.
///
/// # Safety
///
/// * The target's context is current, and the stream belongs to it.
/// * Every byte range (run) of the parts lies in the memory of both ends, which lives until the
///   copies complete.
/// * Until then no other code writes the source's runs or accesses the destination's.
pub(crate) unsafe fn queue(
    target: StreamTarget<'_>,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Result<(), BackendError> {
    // SAFETY: the caller's promise is passed on.
    let are_lines_queued = unsafe { queue_lines(target, source, destination, parts) }?;
    let mut outcome = Ok(());
    for part in parts {
        shape::for_each(part, target.pitch_bytes_max, &mut |shape| {
            if outcome.is_ok() && !(are_lines_queued && is_batched(&shape, parts)) {
                // SAFETY: a shape covers only runs of its part, whose validity the caller
                // guarantees.
                let queued = unsafe { queue_shape(target, source, destination, shape) };
                outcome = target.count(shape.len_bytes(), queued);
            }
        });
    }
    outcome
}

/// Whether a batch copies this shape of the parts line by line. Of many parts, those of a few lines
/// are copied so too: scattered elements become boxes of two elements, and a call for each costs
/// more than a line.
fn is_batched(shape: &Shape, parts: &[CopyBox]) -> bool {
    let lines_max = if parts.len() < batch::LINES_MIN { 1 } else { batch::LINES_MIN as u64 };
    shape.line_count() <= lines_max
}

/// Queues all lines in one call, if there are many and the driver supports such a call. Returns
/// whether it did.
///
/// # Safety
///
/// As [`queue`].
unsafe fn queue_lines(
    target: StreamTarget<'_>,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Result<bool, BackendError> {
    let address = |end| batch_address(target.stream, end);
    let (Some(from), Some(to)) = (address(source), address(destination)) else {
        return Ok(false);
    };
    // Only a part with axes can make more than one line.
    let are_few = parts.len() < batch::LINES_MIN && parts.iter().all(|part| part.axes.is_empty());
    if are_few || target.driver.copy_batch.is_none() {
        return Ok(false);
    }
    let mut lines = LineBatch::default();
    for part in parts {
        shape::for_each(part, target.pitch_bytes_max, &mut |shape| {
            if is_batched(&shape, parts) {
                shape.for_each_line(&mut |source, destination| {
                    lines.push(from + source, to + destination, shape.extents.width_bytes);
                });
            }
        });
    }
    if lines.len() < batch::LINES_MIN {
        return Ok(false);
    }
    let len_bytes = lines.len_bytes();
    // SAFETY: lines are runs of the parts, whose validity the caller guarantees.
    let are_queued = unsafe { lines.queue(target.driver, target.stream) }?;
    target.count(if are_queued { len_bytes } else { 0 }, Ok(()))?;
    Ok(are_queued)
}

/// The address of an end whose lines may be copied by one call: memory of this context, or pinned
/// host memory, which the driver accesses in stream order. The driver refuses such a call on the
/// legacy default stream, which has the handles 0 and 1.
fn batch_address(stream: StreamHandle, end: CopyEnd) -> Option<u64> {
    const LEGACY: usize = 1;
    match end {
        _ if stream.addr() <= LEGACY => None,
        CopyEnd::Host(start, is_pinned) => is_pinned.then(|| start.expose_provenance() as u64),
        CopyEnd::Device(address, None) => Some(address),
        CopyEnd::Device(_, Some(_)) => None,
    }
}

/// # Safety
///
/// As [`queue`], for one shape.
unsafe fn queue_shape(
    target: StreamTarget<'_>,
    source: CopyEnd,
    destination: CopyEnd,
    shape: Shape,
) -> Result<(), BackendError> {
    let source = offset(source, shape.source);
    let destination = offset(destination, shape.destination);
    if shape.is_line() {
        let len = shape.extents.width_bytes as usize;
        // SAFETY: the caller's promise is passed on.
        return unsafe { queue_line(target, source, destination, len) };
    }
    let ends = CopyEnds { source, destination };
    let is_between_devices =
        [source, destination].iter().any(|end| matches!(end, CopyEnd::Device(_, Some(_))));
    let extents = shape.extents;
    let stream = target.stream;
    if is_between_devices {
        // SAFETY: as above.
        unsafe { target.driver.queue_peer_volume(ends, extents, target.place, stream) }
    } else if extents.depth == 1 {
        // SAFETY: as above.
        unsafe { target.driver.queue_plane(ends, extents, stream) }
    } else {
        // SAFETY: as above.
        unsafe { target.driver.queue_volume(ends, extents, stream) }
    }
}

/// # Safety
///
/// As [`queue`], for `len` bytes from the start of both ends.
unsafe fn queue_line(
    target: StreamTarget<'_>,
    source: CopyEnd,
    destination: CopyEnd,
    len: usize,
) -> Result<(), BackendError> {
    let driver = target.driver;
    let stream = target.stream;
    match (source, destination) {
        (CopyEnd::Host(from, _), CopyEnd::Device(to, _)) => {
            let copy = &driver.copy_to_device;
            // SAFETY: the bytes lie in the memory of both ends, as the caller promises.
            copy.check(unsafe { (copy.function)(to, from.cast(), len, stream) })
        }
        (CopyEnd::Device(from, _), CopyEnd::Host(to, _)) => {
            let copy = &driver.copy_to_host;
            // SAFETY: as above.
            copy.check(unsafe { (copy.function)(to.cast(), from, len, stream) })
        }
        (CopyEnd::Device(from, None), CopyEnd::Device(to, None)) => {
            let copy = &driver.copy_on_device;
            // SAFETY: as above.
            copy.check(unsafe { (copy.function)(to, from, len, stream) })
        }
        (CopyEnd::Device(..), CopyEnd::Device(..)) => {
            let ends = CopyEnds { source, destination };
            // SAFETY: as above; the devices retain both contexts.
            unsafe { driver.queue_peer_line(ends, len, target.place, stream) }
        }
        (CopyEnd::Host(..), CopyEnd::Host(..)) => {
            Err(invalid("copy", "both ends are on the host".to_owned()))
        }
    }
}

/// The same end, `offset_bytes` further on.
fn offset(end: CopyEnd, offset_bytes: u64) -> CopyEnd {
    match end {
        CopyEnd::Host(start, is_pinned) => {
            CopyEnd::Host(start.wrapping_add(offset_bytes as usize), is_pinned)
        }
        CopyEnd::Device(start, place) => CopyEnd::Device(start + offset_bytes, place),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::without_provenance_mut;

    use super::{CopyEnd, batch_address};

    /// The driver refuses batches on the legacy default stream by either of its names.
    #[test]
    fn the_legacy_stream_takes_no_batch() {
        let address_on =
            |handle| batch_address(without_provenance_mut(handle), CopyEnd::Device(64, None));
        assert_eq!([0, 1, 2, 4096].map(address_on), [None, None, Some(64), Some(64)]);
    }
}
