//! The copy of a box of bytes between two allocations.

use smallvec::SmallVec;

use super::footprint::{Footprint, end_bytes};
use super::strided::packed_strides;

/// A copy of runs (ranges of bytes) of one length, repeated along axes. Source and destination have
/// the same counts and run length, but may have different strides and offsets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyBox {
    pub run_bytes: u64,
    pub source_offset_bytes: u64,
    pub destination_offset_bytes: u64,
    /// (count, source stride, destination stride) in bytes, slowest first.
    pub axes: SmallVec<[(u64, u64, u64); 3]>,
}

impl CopyBox {
    /// The bytes that this copy reads.
    pub fn source(&self) -> Footprint {
        Footprint {
            offset_bytes: self.source_offset_bytes,
            run_bytes: self.run_bytes,
            axes: self.axes.iter().map(|(count, source, _)| (*count, *source)).collect(),
        }
    }

    /// The bytes that this copy writes.
    pub fn destination(&self) -> Footprint {
        Footprint {
            offset_bytes: self.destination_offset_bytes,
            run_bytes: self.run_bytes,
            axes: self.axes.iter().map(|(count, _, target)| (*count, *target)).collect(),
        }
    }

    /// One past the last byte that this copy reads, as [`Footprint::end_bytes`].
    pub fn source_end_bytes(&self) -> Option<u64> {
        let axes = self.axes.iter().map(|(count, source, _)| (*count, *source));
        end_bytes(self.source_offset_bytes, self.run_bytes, axes)
    }

    /// One past the last byte that this copy writes, as [`Footprint::end_bytes`].
    pub fn destination_end_bytes(&self) -> Option<u64> {
        let axes = self.axes.iter().map(|(count, _, target)| (*count, *target));
        end_bytes(self.destination_offset_bytes, self.run_bytes, axes)
    }

    /// The number of bytes that this copy writes, saturating.
    pub fn len_bytes(&self) -> u64 {
        self.axes.iter().fold(self.run_bytes, |bytes, (count, ..)| bytes.saturating_mul(*count))
    }

    /// The same copy in the other direction.
    pub fn reversed(self) -> Self {
        Self {
            run_bytes: self.run_bytes,
            source_offset_bytes: self.destination_offset_bytes,
            destination_offset_bytes: self.source_offset_bytes,
            axes: self
                .axes
                .iter()
                .map(|(count, source, target)| (*count, *target, *source))
                .collect(),
        }
    }
}

impl Footprint {
    /// The copy of these bytes to the same offsets in another allocation.
    pub fn copy_to_same_offsets(&self) -> CopyBox {
        CopyBox {
            run_bytes: self.run_bytes,
            source_offset_bytes: self.offset_bytes,
            destination_offset_bytes: self.offset_bytes,
            axes: self.axes.iter().map(|(count, stride)| (*count, *stride, *stride)).collect(),
        }
    }

    /// The copy to these bytes from packed memory that starts at `packed_offset_bytes`.
    pub fn copy_from_packed(&self, packed_offset_bytes: u64) -> CopyBox {
        let packed = packed_strides(self.axes.iter().map(|(count, _)| *count), self.run_bytes);
        let axes = self.axes.iter().zip(packed);
        CopyBox {
            run_bytes: self.run_bytes,
            source_offset_bytes: packed_offset_bytes,
            destination_offset_bytes: self.offset_bytes,
            axes: axes.map(|((count, stride), packed)| (*count, packed, *stride)).collect(),
        }
    }
}
