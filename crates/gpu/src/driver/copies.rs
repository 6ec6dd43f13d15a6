//! Copies of planes and volumes, and between devices: where CUDA's driver takes descriptors, HIP
//! takes arguments, or a descriptor of its runtime, whose layout is the same in all its versions.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use super::descriptors::{
    CopyDescriptor2d, CopyDescriptor3d, PitchedPointer, PlaneEnd, VolumeEnd, VolumeOfHip,
};
use super::{Driver, Place, StreamHandle, status};
use resident_backend::BackendError;

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CopyEnd {
    /// The start of host memory, and whether it is pinned.
    Host(*mut u8, bool),
    /// A device address, and the place of the memory if it is not the stream's.
    Device(u64, Option<Place>),
}

/// Both ends of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyEnds {
    pub source: CopyEnd,
    pub destination: CopyEnd,
}

/// The distances between lines, and between planes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pitch {
    pub line_bytes: u64,
    /// The distance between planes, in lines.
    pub plane_lines: u64,
}

/// The extents of a copy: `depth` planes of `height` lines of `width_bytes` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extents {
    pub width_bytes: u64,
    pub height: u64,
    pub depth: u64,
    pub source_pitch: Pitch,
    pub destination_pitch: Pitch,
}

impl CopyEnds {
    /// `hipMemcpyKind`. The default kind, by which the runtime finds the ends' memory by their
    /// addresses, would make ordinary memory that a device uses memory of the host.
    fn kind_of_hip(self) -> c_int {
        match (self.source, self.destination) {
            (CopyEnd::Host(..), CopyEnd::Host(..)) => 0,
            (CopyEnd::Host(..), CopyEnd::Device(..)) => 1,
            (CopyEnd::Device(..), CopyEnd::Host(..)) => 2,
            (CopyEnd::Device(..), CopyEnd::Device(..)) => 3,
        }
    }
}

impl CopyEnd {
    /// The address in one address space, which all memory of both drivers has.
    fn address(self) -> u64 {
        match self {
            Self::Host(start, _) => start.expose_provenance() as u64,
            Self::Device(address, _) => address,
        }
    }

    /// `CUmemorytype`, the host pointer, the device address.
    fn parts(self) -> (c_uint, *mut c_void, u64) {
        const HOST: c_uint = 1;
        const DEVICE: c_uint = 2;
        match self {
            Self::Host(start, _) => (HOST, start.cast(), 0),
            Self::Device(address, _) => (DEVICE, null_mut(), address),
        }
    }

    fn plane(self, pitch: Pitch) -> PlaneEnd {
        let (kind, host, device) = self.parts();
        let line_bytes = pitch.line_bytes as usize;
        PlaneEnd { x_bytes: 0, y: 0, kind, host, device, array: null_mut(), line_bytes }
    }

    fn volume(self, pitch: Pitch, context: *mut c_void) -> VolumeEnd {
        let (kind, host, device) = self.parts();
        VolumeEnd {
            x_bytes: 0,
            y: 0,
            z: 0,
            level_of_detail: 0,
            kind,
            host,
            device,
            array: null_mut(),
            context,
            line_bytes: pitch.line_bytes as usize,
            plane_lines: pitch.plane_lines as usize,
        }
    }

    fn pitched(self, pitch: Pitch) -> PitchedPointer {
        let line_bytes = pitch.line_bytes as usize;
        PitchedPointer {
            start: self.address(),
            line_bytes,
            width_bytes: line_bytes,
            plane_lines: pitch.plane_lines as usize,
        }
    }

    /// The place of device memory: `own` if it is the stream's.
    fn place(self, own: Place) -> Place {
        match self {
            Self::Device(_, Some(place)) => place,
            _ => own,
        }
    }
}

impl Extents {
    pub(super) fn between(self, ends: CopyEnds, contexts: [*mut c_void; 2]) -> CopyDescriptor3d {
        CopyDescriptor3d {
            source: ends.source.volume(self.source_pitch, contexts[0]),
            destination: ends.destination.volume(self.destination_pitch, contexts[1]),
            width_bytes: self.width_bytes as usize,
            height: self.height as usize,
            depth: self.depth as usize,
        }
    }

    fn of_hip(self, ends: CopyEnds) -> VolumeOfHip {
        VolumeOfHip {
            source_array: null_mut(),
            source_position: [0; 3],
            source: ends.source.pitched(self.source_pitch),
            destination_array: null_mut(),
            destination_position: [0; 3],
            destination: ends.destination.pitched(self.destination_pitch),
            extents: [self.width_bytes, self.height, self.depth].map(|extent| extent as usize),
            kind: ends.kind_of_hip(),
        }
    }
}

impl Driver {
    /// Queues the copy of a plane.
    ///
    /// # Safety
    ///
    /// The stream's context is current. The lines lie in the memory of both ends, which lives until
    /// the copy completes; until then no other code writes the source's lines or accesses the
    /// destination's.
    pub(crate) unsafe fn queue_plane(
        &self,
        ends: CopyEnds,
        extents: Extents,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        let width_bytes = extents.width_bytes as usize;
        let height = extents.height as usize;
        if let Some(copy) = &self.copy_plane {
            let source = ends.source.plane(extents.source_pitch);
            let destination = ends.destination.plane(extents.destination_pitch);
            let plane = CopyDescriptor2d { source, destination, width_bytes, height };
            // SAFETY: the driver reads the descriptor during the call; the caller promises the
            // rest.
            return copy.check(unsafe { (copy.function)(&raw const plane, stream) });
        }
        let Some(copy) = &self.copy_plane_of_hip else {
            return Err(self.lacks(["cuMemcpy2DAsync", "hipMemcpy2DAsync"]));
        };
        let from = ends.source.address();
        let to = ends.destination.address();
        let from_bytes = extents.source_pitch.line_bytes as usize;
        let to_bytes = extents.destination_pitch.line_bytes as usize;
        // SAFETY: as above.
        let outcome = unsafe {
            let copy = copy.function;
            copy(to, to_bytes, from, from_bytes, width_bytes, height, ends.kind_of_hip(), stream)
        };
        copy.check(outcome)
    }

    /// Queues the copy of a volume.
    ///
    /// # Safety
    ///
    /// As [`queue_plane`](Self::queue_plane).
    pub(crate) unsafe fn queue_volume(
        &self,
        ends: CopyEnds,
        extents: Extents,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        if let Some(copy) = &self.copy_volume {
            let volume = extents.between(ends, [null_mut(); 2]);
            // SAFETY: the driver reads the descriptor during the call; the caller promises the
            // rest.
            return copy.check(unsafe { (copy.function)(&raw const volume, stream) });
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { self.queue_volume_of_hip(ends, extents, stream) }.map_or_else(
            || Err(self.lacks(["cuMemcpy3DAsync", "hipMemcpy3DAsync"])),
            |(copy, outcome)| copy.check(outcome),
        )
    }

    /// As [`queue_volume`](Self::queue_volume), with HIP's descriptor; `None` if the driver has no
    /// such function.
    ///
    /// # Safety
    ///
    /// As [`queue_plane`](Self::queue_plane).
    unsafe fn queue_volume_of_hip(
        &self,
        ends: CopyEnds,
        extents: Extents,
        stream: StreamHandle,
    ) -> Option<(&CopyOfVolume, status::Status)> {
        let copy = self.copy_volume_of_hip.as_ref()?;
        let volume = extents.of_hip(ends);
        // SAFETY: the driver reads the descriptor during the call; the caller promises the rest.
        Some((copy, unsafe { (copy.function)(&raw const volume, stream) }))
    }

    /// Queues the copy of a plane or volume between two devices; `own` is the stream's place.
    ///
    /// # Safety
    ///
    /// As [`queue_plane`](Self::queue_plane); the contexts of both places are retained.
    pub(crate) unsafe fn queue_peer_volume(
        &self,
        ends: CopyEnds,
        extents: Extents,
        own: Place,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        if let Some(copy) = &self.copy_peer_volume {
            let contexts = [ends.source, ends.destination].map(|end| end.place(own).context());
            let volume = extents.between(ends, contexts);
            // SAFETY: the driver reads the descriptor during the call; the caller promises the
            // rest.
            return copy.check_between(unsafe { (copy.function)(&raw const volume, stream) });
        }
        // The runtime finds both devices by the addresses.
        // SAFETY: the caller's promise is passed on.
        unsafe { self.queue_volume_of_hip(ends, extents, stream) }.map_or_else(
            || Err(self.lacks(["cuMemcpy3DPeerAsync", "hipMemcpy3DAsync"])),
            |(copy, outcome)| copy.check_between(outcome),
        )
    }

    /// Queues the copy of `len` bytes between two devices; `own` is the stream's place.
    ///
    /// # Safety
    ///
    /// As [`queue_peer_volume`](Self::queue_peer_volume).
    pub(crate) unsafe fn queue_peer_line(
        &self,
        ends: CopyEnds,
        len: usize,
        own: Place,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        let from = ends.source.address();
        let source = ends.source.place(own);
        let to = ends.destination.address();
        let destination = ends.destination.place(own);
        if let Some(copy) = &self.copy_peer {
            let source = source.context();
            let destination = destination.context();
            // SAFETY: the caller's promise is passed on.
            let outcome = unsafe { (copy.function)(to, destination, from, source, len, stream) };
            return copy.check_between(outcome);
        }
        let Some(copy) = &self.copy_peer_of_hip else {
            return Err(self.lacks(["cuMemcpyPeerAsync", "hipMemcpyPeerAsync"]));
        };
        let source = source.device;
        let destination = destination.device;
        // SAFETY: as above.
        let outcome = unsafe { (copy.function)(to, destination, from, source, len, stream) };
        copy.check_between(outcome)
    }
}

type CopyOfVolume =
    super::DriverFunction<unsafe extern "C" fn(*const VolumeOfHip, StreamHandle) -> status::Status>;
