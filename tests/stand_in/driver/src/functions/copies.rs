//! Copies.

use super::driver_functions;
use crate::interface::driver_has;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::copy::{self, End, Extent, Place, Return};
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::machine::settings;
use resident_stand_in_gpu::stream::Stream;

/// One end of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct End2 {
    x_bytes: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch_bytes: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Copy2 {
    source: End2,
    destination: End2,
    width_bytes: usize,
    height: usize,
}

/// One end of `CUDA_MEMCPY3D` and of `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct End3 {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    /// The context in a peer copy, otherwise reserved.
    context: u64,
    pitch_bytes: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy3 {
    source: End3,
    destination: End3,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

/// `CUmemcpyAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Attributes {
    source_access_order: u32,
    source_location: [i32; 2],
    destination_location: [i32; 2],
    flags: u32,
}

driver_functions! {
    cuMemcpyHtoD_v2(destination: u64, source: u64, len_bytes: usize) {
        to_device(destination, source, len_bytes, 0, Return::Done)
    }

    cuMemcpyHtoDAsync_v2(destination: u64, source: u64, len_bytes: usize, stream: Handle) {
        to_device(destination, source, len_bytes, stream, Return::Early)
    }

    cuMemcpyDtoH_v2(destination: u64, source: u64, len_bytes: usize) {
        to_host(destination, source, len_bytes, 0, Return::Done)
    }

    cuMemcpyDtoHAsync_v2(destination: u64, source: u64, len_bytes: usize, stream: Handle) {
        to_host(destination, source, len_bytes, stream, Return::Early)
    }

    cuMemcpyDtoD_v2(destination: u64, source: u64, len_bytes: usize) {
        // CUDA does not wait for a copy within a device.
        within_device(destination, source, len_bytes, 0)
    }

    cuMemcpyDtoDAsync_v2 = within_device(
        destination: u64, source: u64, len_bytes: usize, stream: Handle
    );

    cuMemcpy(destination: u64, source: u64, len_bytes: usize) {
        anywhere(destination, source, len_bytes, 0, Return::Done)
    }

    cuMemcpyAsync(destination: u64, source: u64, len_bytes: usize, stream: Handle) {
        anywhere(destination, source, len_bytes, stream, Return::Early)
    }

    // Supports only stream order, one set of attributes for all copies, and copies between a device
    // and pinned memory or within the device. Stream order is that of pageable memory too, if
    // devices reach it.
    cuMemcpyBatchAsync(
        destinations: In<u64>,
        sources: In<u64>,
        lens_bytes: In<usize>,
        count: usize,
        attributes: In<Attributes>,
        from: In<usize>,
        kinds: usize,
        refused: Out<usize>,
        stream: Handle,
    ) {
        driver_has(12_080)?;
        // Neither name of the NULL stream.
        if stream <= 1
            || count == 0
            || kinds != 1
            || from.get()? != 0
            || attributes.get()?.source_access_order != 1
        {
            return Err(Code::INVALID_VALUE);
        }
        for index in 0..count {
            refused.set_if_wanted(index);
            let (destination, source, len_bytes) =
                (destinations.nth(index)?, sources.nth(index)?, lens_bytes.nth(index)?);
            if len_bytes == 0 {
                return Err(Code::INVALID_VALUE);
            }
            let place = Place::in_stream_order;
            run(|| Ok((place(destination), place(source))), len_bytes, stream, Return::Early)?;
        }
        refused.set_if_wanted(usize::MAX);
        Ok(())
    }

    cuMemcpyPeer(destination: u64, to: Handle, source: u64, from: Handle, len_bytes: usize) {
        peers(destination, to, source, from, len_bytes, 0)
    }

    cuMemcpyPeerAsync = peers(
        destination: u64, to: Handle, source: u64, from: Handle, len_bytes: usize, stream: Handle
    );

    cuMemcpy2D_v2(copy: In<Copy2>) {
        two_dimensions(copy, 0, Return::Done)
    }

    cuMemcpy2DUnaligned_v2(copy: In<Copy2>) {
        two_dimensions(copy, 0, Return::Done)
    }

    cuMemcpy2DAsync_v2(copy: In<Copy2>, stream: Handle) {
        two_dimensions(copy, stream, Return::Early)
    }

    cuMemcpy3D_v2(copy: In<Copy3>) {
        three_dimensions(copy, 0, Return::Done)
    }

    cuMemcpy3DAsync_v2(copy: In<Copy3>, stream: Handle) {
        three_dimensions(copy, stream, Return::Early)
    }

    cuMemcpy3DPeer(copy: In<Copy3>) {
        three_dimensions_of_peers(copy, 0, Return::Done)
    }

    cuMemcpy3DPeerAsync(copy: In<Copy3>, stream: Handle) {
        three_dimensions_of_peers(copy, stream, Return::Early)
    }
}

fn to_device(
    destination: u64,
    source: u64,
    len_bytes: usize,
    stream: Handle,
    until: Return,
) -> Outcome {
    let ends = || Ok((Place::of_device(destination), Place::of_host(source)?));
    run(ends, len_bytes, stream, until)
}

fn to_host(
    destination: u64,
    source: u64,
    len_bytes: usize,
    stream: Handle,
    until: Return,
) -> Outcome {
    let ends = || Ok((Place::of_host(destination)?, Place::of_device(source)));
    run(ends, len_bytes, stream, until)
}

fn within_device(destination: u64, source: u64, len_bytes: usize, stream: Handle) -> Outcome {
    let ends = || Ok((Place::of_device(destination), Place::of_device(source)));
    run(ends, len_bytes, stream, Return::Early)
}

/// The addresses tell where the memory is.
fn anywhere(
    destination: u64,
    source: u64,
    len_bytes: usize,
    stream: Handle,
    until: Return,
) -> Outcome {
    run(|| Ok((Place::of(destination), Place::of(source))), len_bytes, stream, until)
}

/// Queues a copy of contiguous bytes between ends that are looked at only if there are bytes.
fn run(
    ends: impl FnOnce() -> Outcome<(Place, Place)>,
    len_bytes: usize,
    stream: Handle,
    until: Return,
) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    if len_bytes == 0 {
        return Ok(());
    }
    let (destination, source) = ends()?;
    let extent = Extent::run(len_bytes as u64);
    copy::submit(&context, &stream, End::run(destination), End::run(source), extent, until)
}

/// The location of the memory follows from the addresses, and not from the contexts, which only
/// have to exist.
fn peers(
    destination: u64,
    to: Handle,
    source: u64,
    from: Handle,
    len_bytes: usize,
    stream: Handle,
) -> Outcome {
    Context::current()?;
    check_contexts([to, from])?;
    within_device(destination, source, len_bytes, stream)
}

fn check_contexts(contexts: [Handle; 2]) -> Outcome {
    contexts.into_iter().try_for_each(|context| {
        handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?.check()
    })
}

fn two_dimensions(copy: In<Copy2>, stream: Handle, until: Return) -> Outcome {
    let copy = copy.get()?;
    let (context, stream) = Context::current_and_stream(stream)?;
    let extent =
        Extent { width_bytes: copy.width_bytes as u64, height: copy.height as u64, depth: 1 };
    let end = |end: End2| End3 {
        x_bytes: end.x_bytes,
        y: end.y,
        z: 0,
        level: 0,
        kind: end.kind,
        host: end.host,
        device: end.device,
        array: end.array,
        context: 0,
        pitch_bytes: end.pitch_bytes,
        height: end.y + copy.height,
    };
    submit(&context, &stream, end(copy.destination), end(copy.source), extent, until)
}

/// The ends of a copy that is not empty, the destination first, and its extent.
pub(super) fn ends_of_volume(copy: Copy3) -> Outcome<(End, End, Extent)> {
    let extent = extent_of_volume(&copy);
    if extent.len_bytes() == 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok((resolve(copy.destination, extent)?, resolve(copy.source, extent)?, extent))
}

fn extent_of_volume(copy: &Copy3) -> Extent {
    Extent {
        width_bytes: copy.width_bytes as u64,
        height: copy.height as u64,
        depth: copy.depth as u64,
    }
}

fn three_dimensions(copy: In<Copy3>, stream: Handle, until: Return) -> Outcome {
    let copy = copy.get()?;
    let (context, stream) = Context::current_and_stream(stream)?;
    let extent = extent_of_volume(&copy);
    submit(&context, &stream, copy.destination, copy.source, extent, until)
}

fn three_dimensions_of_peers(copy: In<Copy3>, stream: Handle, until: Return) -> Outcome {
    let ends = copy.get()?;
    check_contexts([ends.source.context, ends.destination.context])?;
    three_dimensions(copy, stream, until)
}

fn submit(
    context: &Context,
    stream: &Stream,
    destination: End3,
    source: End3,
    extent: Extent,
    until: Return,
) -> Outcome {
    if extent.len_bytes() == 0 {
        return Ok(());
    }
    copy::submit(
        context,
        stream,
        resolve(destination, extent)?,
        resolve(source, extent)?,
        extent,
        until,
    )
}

/// Checks an end's pitch and height, and converts it into memory with strides.
fn resolve(end: End3, extent: Extent) -> Outcome<End> {
    let place = match end.kind {
        1 => Place::of_host(end.host)?,
        2 => Place::of_device(end.device),
        3 => return Err(Code::NOT_SUPPORTED),
        4 => Place::of(end.device),
        _ => return Err(Code::INVALID_VALUE),
    };
    let (x_bytes, y, z) = (end.x_bytes as u64, end.y as u64, end.z as u64);
    // A single row needs no pitch, and a single slice needs no height.
    let is_flat = extent.height == 1 && extent.depth == 1;
    let pitch_bytes = if end.pitch_bytes == 0 {
        x_bytes.saturating_add(extent.width_bytes)
    } else {
        end.pitch_bytes as u64
    };
    let is_narrow = pitch_bytes < x_bytes.saturating_add(extent.width_bytes)
        || !is_flat && end.pitch_bytes == 0 && y > 0;
    let rows = if end.height == 0 { y.saturating_add(extent.height) } else { end.height as u64 };
    let is_low = extent.depth > 1 && rows < y.saturating_add(extent.height);
    if end.level != 0 || is_narrow || is_low || pitch_bytes > settings().max_pitch_bytes {
        return Err(Code::INVALID_VALUE);
    }
    Ok(End::pitched(place, pitch_bytes, rows, [x_bytes, y, z]))
}
