//! Copies: from boxes of bytes to the driver's calls.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemorytype};

use super::batch::{self, Lines};
use super::call::{check, check_between};
use super::shape::{self, Shape};
use crate::backend::{BackendError, CopyBox};

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The start of host memory, and whether its pages are locked.
    Host(*mut u8, bool),
    /// A device address, and its context where that is another than the stream's.
    Device(u64, Option<sys::CUcontext>),
}

/// What the driver is to do with a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) stream: sys::CUstream,
    pub(super) context: sys::CUcontext,
    pub(super) pitch_max: u64,
}

impl Target {
    /// An end as one address, if lines from or to it may go in one call: memory of this context, or
    /// page-locked memory of the host, which the driver reads and writes in the stream's order. It
    /// has no batches on the NULL stream.
    fn start_for_batch(&self, end: End) -> Option<u64> {
        match end {
            _ if self.stream.is_null() => None,
            End::Host(start, is_pinned_for) => {
                is_pinned_for.then(|| start.expose_provenance() as u64)
            }
            End::Device(address, None) => Some(address),
            End::Device(_, Some(_)) => None,
        }
    }
}

/// Queues the copy of all parts. The first call that is refused ends it: what was queued before
/// stays queued.
///
/// # Safety
///
/// * The target's context is current and the stream is of it.
/// * Both ends hold every run of the parts, and stay so until the copies are over.
/// * Until then nobody writes the source's runs, and nobody else touches the destination's.
pub(super) unsafe fn queue(
    target: Target,
    source: End,
    destination: End,
    parts: &[CopyBox],
) -> Result<(), BackendError> {
    // SAFETY: the caller's promise is handed on.
    let lines_are_queued = unsafe { queue_lines(target, source, destination, parts) }?;
    let mut outcome = Ok(());
    for part in parts {
        shape::each(part, target.pitch_max, &mut |shape| {
            if outcome.is_ok() && !(lines_are_queued && shape.is_line()) {
                // SAFETY: a shape covers runs of its part alone (`shape`), for which the caller
                // vouches.
                outcome = unsafe { queue_shape(target, source, destination, shape) };
            }
        });
    }
    outcome
}

/// Queues all lines in one call, if they are many and the driver does that: whether it did.
///
/// # Safety
///
/// As [`queue`].
unsafe fn queue_lines(
    target: Target,
    source: End,
    destination: End,
    parts: &[CopyBox],
) -> Result<bool, BackendError> {
    let (Some(from), Some(to)) =
        (target.start_for_batch(source), target.start_for_batch(destination))
    else {
        return Ok(false);
    };
    // A part of many rows that do not fit a plane makes many lines; what fits makes one shape.
    let are_few = parts.len() < batch::LINES_MIN && parts.iter().all(|part| part.axes.is_empty());
    if are_few || !batch::is_there() {
        return Ok(false);
    }
    let mut lines = Lines::default();
    let mut count = 0;
    for part in parts {
        shape::each(part, target.pitch_max, &mut |shape| {
            if shape.is_line() {
                count += 1;
                lines.push(from + shape.source, to + shape.destination, shape.width_bytes);
            }
        });
    }
    // SAFETY: lines are runs of the parts, for which the caller vouches.
    if count < batch::LINES_MIN { Ok(false) } else { unsafe { lines.queue(target.stream) } }
}

/// # Safety
///
/// As [`queue`], for one shape.
unsafe fn queue_shape(
    target: Target,
    source: End,
    destination: End,
    shape: Shape,
) -> Result<(), BackendError> {
    let is_between =
        matches!(source, End::Device(_, Some(_))) || matches!(destination, End::Device(_, Some(_)));
    match shape {
        // SAFETY: the caller's promise is handed on.
        _ if shape.is_line() => unsafe { line(target, source, destination, shape) },
        // SAFETY: as above.
        _ if is_between => unsafe { between(target, source, destination, shape) },
        // SAFETY: as above.
        Shape { depth: 1, .. } => unsafe { plane(target, source, destination, shape) },
        // SAFETY: as above.
        _ => unsafe { volume(target, source, destination, shape) },
    }
}

/// # Safety
///
/// As [`queue`].
unsafe fn line(
    target: Target,
    source: End,
    destination: End,
    shape: Shape,
) -> Result<(), BackendError> {
    let (len, stream) = (shape.width_bytes as usize, target.stream);
    match (source, destination) {
        (End::Host(from, _), End::Device(to, _)) => {
            let from = host(from, shape.source).cast_const();
            // SAFETY: the ends hold the runs, as the caller promises.
            check(
                unsafe { sys::cuMemcpyHtoDAsync_v2(to + shape.destination, from, len, stream) },
                "cuMemcpyHtoDAsync",
            )
        }
        (End::Device(from, _), End::Host(to, _)) => {
            let to = host(to, shape.destination);
            // SAFETY: as above.
            check(
                unsafe { sys::cuMemcpyDtoHAsync_v2(to, from + shape.source, len, stream) },
                "cuMemcpyDtoHAsync",
            )
        }
        (End::Device(from, None), End::Device(to, None)) => {
            // SAFETY: as above.
            check(
                unsafe {
                    sys::cuMemcpyDtoDAsync_v2(
                        to + shape.destination,
                        from + shape.source,
                        len,
                        stream,
                    )
                },
                "cuMemcpyDtoDAsync",
            )
        }
        (End::Device(from, peer), End::Device(to, own)) => {
            let (peer, own) = (peer.unwrap_or(target.context), own.unwrap_or(target.context));
            // SAFETY: as above; both contexts are retained by their devices.
            let result = unsafe {
                sys::cuMemcpyPeerAsync(
                    to + shape.destination,
                    own,
                    from + shape.source,
                    peer,
                    len,
                    stream,
                )
            };
            check_between(result, "cuMemcpyPeerAsync")
        }
        (End::Host(..), End::Host(..)) => {
            Err(super::call::invalid("copy", "both ends are on the host".to_owned()))
        }
    }
}

/// # Safety
///
/// As [`queue`].
unsafe fn plane(
    target: Target,
    source: End,
    destination: End,
    shape: Shape,
) -> Result<(), BackendError> {
    let (from, to) = (Memory::at(source, shape.source), Memory::at(destination, shape.destination));
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
    // SAFETY: the description is read during the call; the ends hold the runs, as the caller
    // promises.
    check(unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, target.stream) }, "cuMemcpy2DAsync")
}

/// # Safety
///
/// As [`queue`].
unsafe fn volume(
    target: Target,
    source: End,
    destination: End,
    shape: Shape,
) -> Result<(), BackendError> {
    let (from, to) = (Memory::at(source, shape.source), Memory::at(destination, shape.destination));
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
    // SAFETY: as in `plane`.
    check(unsafe { sys::cuMemcpy3DAsync_v2(&raw const copy, target.stream) }, "cuMemcpy3DAsync")
}

/// Planes and volumes between two devices.
///
/// # Safety
///
/// As [`queue`].
unsafe fn between(
    target: Target,
    source: End,
    destination: End,
    shape: Shape,
) -> Result<(), BackendError> {
    let (from, to) = (Memory::at(source, shape.source), Memory::at(destination, shape.destination));
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
    // SAFETY: as in `plane`.
    check_between(
        unsafe { sys::cuMemcpy3DPeerAsync(&raw const copy, target.stream) },
        "cuMemcpy3DPeerAsync",
    )
}

/// An end as the driver's descriptions name it.
struct Memory {
    kind: CUmemorytype,
    host: *mut c_void,
    device: u64,
    context: Option<sys::CUcontext>,
}

impl Memory {
    fn at(end: End, offset: u64) -> Self {
        match end {
            End::Host(start, _) => Self {
                kind: CUmemorytype::CU_MEMORYTYPE_HOST,
                host: host(start, offset),
                device: 0,
                context: None,
            },
            End::Device(start, context) => Self {
                kind: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                host: std::ptr::null_mut(),
                device: start + offset,
                context,
            },
        }
    }
}

fn host(start: *mut u8, offset: u64) -> *mut c_void {
    start.wrapping_add(offset as usize).cast()
}
