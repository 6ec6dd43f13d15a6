//! Queues copies: one driver call for each shape, or one for many lines if the driver supports it.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemorytype};

use super::batch::{self, LineBatch};
use super::shape::{self, Shape};
use crate::backend::cuda::call::{check, check_between, invalid};
use crate::backend::{BackendError, CopyBox};

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CopyEnd {
    /// The start of host memory, and whether it is pinned.
    Host(*mut u8, bool),
    /// A device address, and the context of the memory if it is not the stream's context.
    Device(u64, Option<sys::CUcontext>),
}

/// The stream on which copies are queued, and the largest pitch that the driver calls accept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTarget {
    pub(crate) stream: sys::CUstream,
    pub(crate) context: sys::CUcontext,
    pub(crate) pitch_bytes_max: u64,
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
    target: StreamTarget,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Result<(), BackendError> {
    // SAFETY: the caller's promise is passed on.
    let are_lines_queued = unsafe { queue_lines(target, source, destination, parts) }?;
    let mut outcome = Ok(());
    for part in parts {
        shape::for_each(part, target.pitch_bytes_max, &mut |shape| {
            if outcome.is_ok() && !(are_lines_queued && shape.is_line()) {
                // SAFETY: a shape covers only runs of its part, whose validity the caller
                // guarantees.
                outcome = unsafe { queue_shape(target, source, destination, shape) };
            }
        });
    }
    outcome
}

/// Queues all lines in one call, if there are many and the driver supports such a call. Returns
/// whether it did.
///
/// # Safety
///
/// As [`queue`].
unsafe fn queue_lines(
    target: StreamTarget,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Result<bool, BackendError> {
    let (Some(from), Some(to)) = (target.batch_address(source), target.batch_address(destination))
    else {
        return Ok(false);
    };
    // Only a part with axes can make more than one line.
    let are_few = parts.len() < batch::LINES_MIN && parts.iter().all(|part| part.axes.is_empty());
    if are_few || !batch::is_supported() {
        return Ok(false);
    }
    let mut lines = LineBatch::default();
    for part in parts {
        shape::for_each(part, target.pitch_bytes_max, &mut |shape| {
            if shape.is_line() {
                lines.push(from + shape.source, to + shape.destination, shape.width_bytes);
            }
        });
    }
    if lines.len() < batch::LINES_MIN {
        return Ok(false);
    }
    // SAFETY: lines are runs of the parts, whose validity the caller guarantees.
    unsafe { lines.queue(target.stream) }
}

impl StreamTarget {
    /// The address of an end whose lines may be copied by one call: memory of this context, or
    /// pinned host memory, which the driver accesses in stream order. The driver refuses such a
    /// call on the legacy default stream, which has the handles 0 and 1.
    fn batch_address(&self, end: CopyEnd) -> Option<u64> {
        const LEGACY: usize = 1;
        match end {
            _ if self.stream.addr() <= LEGACY => None,
            CopyEnd::Host(start, is_pinned) => is_pinned.then(|| start.expose_provenance() as u64),
            CopyEnd::Device(address, None) => Some(address),
            CopyEnd::Device(_, Some(_)) => None,
        }
    }
}

/// # Safety
///
/// As [`queue`], for one shape.
unsafe fn queue_shape(
    target: StreamTarget,
    source: CopyEnd,
    destination: CopyEnd,
    shape: Shape,
) -> Result<(), BackendError> {
    let (source, destination) =
        (source.offset(shape.source), destination.offset(shape.destination));
    if shape.is_line() {
        let len = shape.width_bytes as usize;
        // SAFETY: the caller's promise is passed on.
        return unsafe { queue_line(target, source, destination, len) };
    }
    let is_between_devices =
        [source, destination].iter().any(|end| matches!(end, CopyEnd::Device(_, Some(_))));
    let (from, to) = (MemcpyEnd::from(source), MemcpyEnd::from(destination));
    if is_between_devices {
        // SAFETY: as above.
        unsafe { queue_peer_volume(target, from, to, shape) }
    } else if shape.depth == 1 {
        // SAFETY: as above.
        unsafe { queue_plane(target, from, to, shape) }
    } else {
        // SAFETY: as above.
        unsafe { queue_volume(target, from, to, shape) }
    }
}

/// # Safety
///
/// As [`queue`], for `len` bytes from the start of both ends.
unsafe fn queue_line(
    target: StreamTarget,
    source: CopyEnd,
    destination: CopyEnd,
    len: usize,
) -> Result<(), BackendError> {
    let stream = target.stream;
    match (source, destination) {
        (CopyEnd::Host(from, _), CopyEnd::Device(to, _)) => {
            // SAFETY: the bytes lie in the memory of both ends, as the caller promises.
            let outcome = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), len, stream) };
            check(outcome, "cuMemcpyHtoDAsync")
        }
        (CopyEnd::Device(from, _), CopyEnd::Host(to, _)) => {
            // SAFETY: as above.
            let outcome = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, len, stream) };
            check(outcome, "cuMemcpyDtoHAsync")
        }
        (CopyEnd::Device(from, None), CopyEnd::Device(to, None)) => {
            // SAFETY: as above.
            let outcome = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, len, stream) };
            check(outcome, "cuMemcpyDtoDAsync")
        }
        (CopyEnd::Device(from, peer), CopyEnd::Device(to, own)) => {
            let (peer, own) = (peer.unwrap_or(target.context), own.unwrap_or(target.context));
            // SAFETY: as above; the devices retain both contexts.
            let outcome = unsafe { sys::cuMemcpyPeerAsync(to, own, from, peer, len, stream) };
            check_between(outcome, "cuMemcpyPeerAsync")
        }
        (CopyEnd::Host(..), CopyEnd::Host(..)) => {
            Err(invalid("copy", "both ends are on the host".to_owned()))
        }
    }
}

/// # Safety
///
/// As [`queue`].
unsafe fn queue_plane(
    target: StreamTarget,
    from: MemcpyEnd,
    to: MemcpyEnd,
    shape: Shape,
) -> Result<(), BackendError> {
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from.kind,
        srcHost: from.host.cast_const(),
        srcDevice: from.device,
        srcArray: std::ptr::null_mut(),
        srcPitch: shape.source_pitch.line_bytes as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: std::ptr::null_mut(),
        dstPitch: shape.destination_pitch.line_bytes as usize,
        WidthInBytes: shape.width_bytes as usize,
        Height: shape.height as usize,
    };
    // SAFETY: the driver reads the descriptor during the call; the byte ranges lie in the memory of
    // both ends, as the caller promises.
    let outcome = unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, target.stream) };
    check(outcome, "cuMemcpy2DAsync")
}

/// # Safety
///
/// As [`queue`].
unsafe fn queue_volume(
    target: StreamTarget,
    from: MemcpyEnd,
    to: MemcpyEnd,
    shape: Shape,
) -> Result<(), BackendError> {
    let copy = CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: from.host.cast_const(),
        srcDevice: from.device,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: shape.source_pitch.line_bytes as usize,
        srcHeight: shape.source_pitch.plane_lines as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: shape.destination_pitch.line_bytes as usize,
        dstHeight: shape.destination_pitch.plane_lines as usize,
        WidthInBytes: shape.width_bytes as usize,
        Height: shape.height as usize,
        Depth: shape.depth as usize,
    };
    // SAFETY: as in `queue_plane`.
    let outcome = unsafe { sys::cuMemcpy3DAsync_v2(&raw const copy, target.stream) };
    check(outcome, "cuMemcpy3DAsync")
}

/// A plane or volume between two devices.
///
/// # Safety
///
/// As [`queue`].
unsafe fn queue_peer_volume(
    target: StreamTarget,
    from: MemcpyEnd,
    to: MemcpyEnd,
    shape: Shape,
) -> Result<(), BackendError> {
    let copy = CUDA_MEMCPY3D_PEER {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: from.host.cast_const(),
        srcDevice: from.device,
        srcArray: std::ptr::null_mut(),
        srcContext: from.context.unwrap_or(target.context),
        srcPitch: shape.source_pitch.line_bytes as usize,
        srcHeight: shape.source_pitch.plane_lines as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: std::ptr::null_mut(),
        dstContext: to.context.unwrap_or(target.context),
        dstPitch: shape.destination_pitch.line_bytes as usize,
        dstHeight: shape.destination_pitch.plane_lines as usize,
        WidthInBytes: shape.width_bytes as usize,
        Height: shape.height as usize,
        Depth: shape.depth as usize,
    };
    // SAFETY: as in `queue_plane`.
    let outcome = unsafe { sys::cuMemcpy3DPeerAsync(&raw const copy, target.stream) };
    check_between(outcome, "cuMemcpy3DPeerAsync")
}

impl CopyEnd {
    fn offset(self, offset_bytes: u64) -> Self {
        match self {
            Self::Host(start, is_pinned) => {
                Self::Host(start.wrapping_add(offset_bytes as usize), is_pinned)
            }
            Self::Device(start, context) => Self::Device(start + offset_bytes, context),
        }
    }
}

/// One end of a copy, in the form that the driver's descriptors use.
#[derive(Clone, Copy)]
struct MemcpyEnd {
    kind: CUmemorytype,
    host: *mut c_void,
    device: u64,
    context: Option<sys::CUcontext>,
}

impl From<CopyEnd> for MemcpyEnd {
    fn from(end: CopyEnd) -> Self {
        match end {
            CopyEnd::Host(start, _) => Self {
                kind: CUmemorytype::CU_MEMORYTYPE_HOST,
                host: start.cast(),
                device: 0,
                context: None,
            },
            CopyEnd::Device(device, context) => Self {
                kind: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                host: std::ptr::null_mut(),
                device,
                context,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::{null_mut, without_provenance_mut};

    use super::{CopyEnd, StreamTarget};

    /// The driver refuses batches on the legacy default stream by either of its names.
    #[test]
    fn the_legacy_stream_takes_no_batch() {
        let address_on = |handle| {
            let stream = without_provenance_mut(handle);
            let target = StreamTarget { stream, context: null_mut(), pitch_bytes_max: 1 };
            target.batch_address(CopyEnd::Device(64, None))
        };
        assert_eq!([0, 1, 2, 4096].map(address_on), [None, None, Some(64), Some(64)]);
    }
}
