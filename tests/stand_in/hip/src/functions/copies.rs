//! Copies. Each also checks what HIP checks: that the box lies within its allocation.

use super::hip_functions;
use crate::code::{INVALID_DIRECTION, INVALID_PITCH};
use resident_stand_in_gpu::arguments::In;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::copy::{self, End, Extent, Place, Return};
use resident_stand_in_gpu::functions::memory::room;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::machine::{self, settings};

/// `hipPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Pitched {
    address: u64,
    pitch_bytes: usize,
    width_bytes: usize,
    height: usize,
}

/// `hipPos`, and `hipExtent`: bytes, rows, slices.
type Three = [usize; 3];

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Copy3 {
    source_array: u64,
    source_position: Three,
    source: Pitched,
    destination_array: u64,
    destination_position: Three,
    destination: Pitched,
    extent: Three,
    kind: u32,
}

/// `hipMemcpyKind`: which ends are on a device.
#[derive(Clone, Copy, Debug)]
struct Kind {
    source: Side,
    destination: Side,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Host,
    Device,
    /// As the address tells.
    Any,
}

hip_functions! {
    hipMemcpyHtoDAsync(destination: u64, source: u64, len_bytes: usize, stream: Handle) {
        run(destination, source, len_bytes, 1, stream)
    }

    hipMemcpyDtoHAsync(destination: u64, source: u64, len_bytes: usize, stream: Handle) {
        run(destination, source, len_bytes, 2, stream)
    }

    hipMemcpyHtoD(destination: u64, source: u64, len_bytes: usize) {
        run(destination, source, len_bytes, 1, 0)?;
        let (context, stream) = Context::current_and_stream(0)?;
        stream.synchronize(&context)
    }

    hipMemcpyDtoH(destination: u64, source: u64, len_bytes: usize) {
        run(destination, source, len_bytes, 2, 0)?;
        let (context, stream) = Context::current_and_stream(0)?;
        stream.synchronize(&context)
    }

    hipMemcpyDtoDAsync(destination: u64, source: u64, len_bytes: usize, stream: Handle) {
        run(destination, source, len_bytes, 3, stream)
    }

    hipMemcpyAsync(destination: u64, source: u64, len_bytes: usize, kind: u32, stream: Handle) {
        run(destination, source, len_bytes, kind, stream)
    }

    hipMemcpyPeerAsync(
        destination: u64,
        to: i32,
        source: u64,
        from: i32,
        len_bytes: usize,
        stream: Handle,
    ) {
        for (address, device) in [(destination, to), (source, from)] {
            let ordinal = machine::ordinal(device)?;
            let known = machine::device_of_address(address);
            if known.is_none_or(|known| known.ordinal != ordinal) {
                return Err(Code::INVALID_VALUE);
            }
        }
        run(destination, source, len_bytes, 3, stream)
    }

    hipMemcpy2DAsync(
        destination: u64,
        destination_pitch_bytes: usize,
        source: u64,
        source_pitch_bytes: usize,
        width_bytes: usize,
        height: usize,
        kind: u32,
        stream: Handle,
    ) {
        let kind = Kind::of(kind)?;
        if destination_pitch_bytes < width_bytes || source_pitch_bytes < width_bytes {
            return Err(INVALID_PITCH);
        }
        let pitches = [destination_pitch_bytes, source_pitch_bytes];
        if pitches.iter().any(|bytes| *bytes as u64 > settings().max_pitch_bytes) {
            return Err(Code::INVALID_VALUE);
        }
        let extent = Extent { width_bytes: width_bytes as u64, height: height as u64, depth: 1 };
        let end = |place: Place, pitch_bytes: usize| {
            End::pitched(place, pitch_bytes as u64, height as u64, [0; 3])
        };
        submit(kind, (destination, source), extent, stream, |destination, source| {
            (end(destination, destination_pitch_bytes), end(source, source_pitch_bytes))
        })
    }

    hipMemcpy3DAsync(copy: In<Copy3>, stream: Handle) {
        let copy = copy.get()?;
        let [width_bytes, height, depth] = copy.extent;
        if copy.source_array != 0 || copy.destination_array != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        for (position, end) in
            [(copy.source_position, copy.source), (copy.destination_position, copy.destination)]
        {
            check_pitched(position, end, copy.extent)?;
        }
        let kind = Kind::of(copy.kind)?;
        let extent = Extent {
            width_bytes: width_bytes as u64,
            height: height as u64,
            depth: depth as u64,
        };
        let end = |place: Place, end: Pitched, position: Three| {
            let position = position.map(|number| number as u64);
            End::pitched(place, end.pitch_bytes as u64, end.height as u64, position)
        };
        let addresses = (copy.destination.address, copy.source.address);
        submit(kind, addresses, extent, stream, |destination, source| {
            let destination = end(destination, copy.destination, copy.destination_position);
            (destination, end(source, copy.source, copy.source_position))
        })
    }
}

/// The checks of `hipMemcpy3D`; and that slices do not overlap, which HIP leaves to the caller.
fn check_pitched(position: Three, end: Pitched, extent: Three) -> Outcome {
    let [x_bytes, y, _] = position;
    if end.address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if end.pitch_bytes < end.width_bytes {
        return Err(INVALID_PITCH);
    }
    let is_low = extent[2] > 1 && end.height < y.saturating_add(extent[1]);
    let is_narrow = end.pitch_bytes < x_bytes.saturating_add(extent[0]);
    if is_low || is_narrow || end.pitch_bytes as u64 > settings().max_pitch_bytes {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

impl Kind {
    fn of(number: u32) -> Outcome<Self> {
        use Side::{Any, Device, Host};
        let (source, destination) = match number {
            0 => (Host, Host),
            1 => (Host, Device),
            2 => (Device, Host),
            3 => (Device, Device),
            4 => (Any, Any),
            _ => return Err(INVALID_DIRECTION),
        };
        Ok(Self { source, destination })
    }
}

impl Side {
    /// The memory at an address that is declared to be on this side.
    fn place(self, address: u64) -> Outcome<Place> {
        match self {
            Self::Host => Place::of_host(address),
            // Memory of the host is memory of the device only if it is mapped or reached.
            Self::Device if machine::device_of_address(address).is_none() => {
                match Place::of_device(address) {
                    Place::Device(_) => Err(Code::INVALID_VALUE),
                    known => Ok(known),
                }
            }
            Self::Device => Ok(Place::of_device(address)),
            Self::Any => Ok(Place::of(address)),
        }
    }
}

fn run(destination: u64, source: u64, len_bytes: usize, kind: u32, stream: Handle) -> Outcome {
    let extent = Extent::run(len_bytes as u64);
    submit(Kind::of(kind)?, (destination, source), extent, stream, |destination, source| {
        (End::run(destination), End::run(source))
    })
}

fn submit(
    kind: Kind,
    (destination, source): (u64, u64),
    extent: Extent,
    stream: Handle,
    ends: impl FnOnce(Place, Place) -> (End, End),
) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    if extent.len_bytes() == 0 {
        return Ok(());
    }
    if destination == 0 || source == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (destination, source) =
        ends(kind.destination.place(destination)?, kind.source.place(source)?);
    for end in [destination, source] {
        check_within(end.place, end.span_bytes(extent).ok_or(Code::INVALID_VALUE)?)?;
    }
    copy::submit(&context, &stream, destination, source, extent, Return::Early)
}

/// Rejects a range that leaves its allocation, or its reservation. Whether there is memory at all
/// shows when the work runs.
pub(super) fn check_within(place: Place, span_bytes: u64) -> Outcome {
    let Place::Device(address) = place else { return Ok(()) };
    let Some(room) = room(address) else { return Ok(()) };
    if span_bytes > room { Err(Code::INVALID_VALUE) } else { Ok(()) }
}
