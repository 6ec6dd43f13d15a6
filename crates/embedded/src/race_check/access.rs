//! The bytes that an operation accesses, and how.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::hazard::Touch;
use resident_backend::{
    Address, CopyBox, CopyWork, FailureKind, FillWork, Footprint, LaunchWork, Memory, PackedArray,
    PageRange, Work,
};
use resident_core::Access;

/// How an operation accesses bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessKind {
    /// Reads contents.
    Read,
    /// Writes contents.
    Write,
    /// Reads contents, then writes.
    ReadWrite,
    /// Writes poison bytes, or takes the memory away, which do not count as contents: a later read
    /// is an error.
    Poison,
    /// Frees the memory.
    Free,
}

impl AccessKind {
    /// Whether the access reads contents.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// The access's name in a hazard.
    pub(super) fn touch(self) -> Touch {
        match self {
            Self::Read => Touch::Reads,
            Self::Write | Self::ReadWrite | Self::Poison => Touch::Writes,
            Self::Free => Touch::Frees,
        }
    }
}

/// The memory of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AccessedMemory {
    /// Host memory, by its address, which is only compared and never dereferenced.
    Host { base: u64, len_bytes: u64 },
    /// Memory of the device with this number.
    Device { device: usize, address: Address },
}

/// One access of an operation.
#[derive(Clone, Debug)]
pub(crate) struct MemoryAccess {
    pub memory: AccessedMemory,
    pub footprint: Footprint,
    pub kind: AccessKind,
}

impl MemoryAccess {
    /// Whether the access uses memory of this device.
    pub(crate) fn is_on_device(&self, ordinal: usize) -> bool {
        matches!(self.memory, AccessedMemory::Device { device, .. } if device == ordinal)
    }

    /// The access of a free: all of an allocation.
    pub(crate) fn of_free(device: usize, address: Address, len_bytes: u64) -> Self {
        let footprint = Footprint::run(0, len_bytes);
        let memory = AccessedMemory::Device { device, address };
        Self { memory, footprint, kind: AccessKind::Free }
    }

    /// The access of a decommit: the pages have no contents afterwards.
    pub(crate) fn of_decommit(device: usize, pages: &PageRange) -> Self {
        let footprint = Footprint::run(pages.bytes.start, pages.len_bytes());
        let memory = AccessedMemory::Device { device, address: pages.reservation };
        Self { memory, footprint, kind: AccessKind::Poison }
    }

    /// The accesses of work within a device and with the host.
    pub(crate) fn of_work(device: usize, work: &Work) -> Vec<Self> {
        match work {
            Work::Copy(copy) => Self::of_copy(device, device, copy),
            Work::Fill(fill) => Self::of_fill(device, fill),
            Work::Launch(launch) => Self::of_launch(device, launch),
        }
    }

    /// The accesses of a copy. `source_device` and `device` are the devices of its source and
    /// destination, as far as these are device memory.
    pub(crate) fn of_copy(source_device: usize, device: usize, copy: &CopyWork) -> Vec<Self> {
        let source = AccessedMemory::of(source_device, &copy.source);
        let destination = AccessedMemory::of(device, &copy.destination);
        let read_and_write = |part: &CopyBox| {
            [
                Self { memory: source, footprint: part.source(), kind: AccessKind::Read },
                Self {
                    memory: destination,
                    footprint: part.destination(),
                    kind: AccessKind::Write,
                },
            ]
        };
        copy.parts.iter().flat_map(read_and_write).collect()
    }

    /// The accesses of a fill.
    fn of_fill(device: usize, fill: &FillWork) -> Vec<Self> {
        let is_poison = fill.loss == FailureKind::Poison;
        let kind = if is_poison { AccessKind::Poison } else { AccessKind::Write };
        let memory = AccessedMemory::Device { device, address: fill.address };
        fill.parts.iter().map(|part| Self { memory, footprint: part.clone(), kind }).collect()
    }

    /// The accesses of a launch, without arrays of 0 bytes, which may have no memory.
    fn of_launch(device: usize, launch: &LaunchWork) -> Vec<Self> {
        let access = |array: &PackedArray| Self {
            memory: AccessedMemory::Device { device, address: array.address },
            footprint: launch.arguments.footprint(array),
            kind: match array.access {
                Access::Read => AccessKind::Read,
                Access::ReadWrite => AccessKind::ReadWrite,
                Access::Overwrite => AccessKind::Write,
            },
        };
        let is_empty = |access: &Self| access.footprint.end_bytes() == Some(0);
        let accesses = launch.arguments.arrays.iter().map(access);
        accesses.filter(|access| !is_empty(access)).collect()
    }
}

impl AccessedMemory {
    /// The memory's name in a hazard. Device memory is named by its label, unless its block is
    /// unknown.
    pub(super) fn name(self, label: Option<&str>) -> String {
        match (self, label) {
            (Self::Host { len_bytes, .. }, _) => format!("host memory of {len_bytes} bytes"),
            (Self::Device { device, .. }, Some(label)) => format!("{label} on cpu:{device}"),
            (Self::Device { device, address }, None) => {
                format!("unknown memory at {:#x} of cpu:{device}", address.0)
            }
        }
    }

    /// The bytes relative to the start of their block.
    pub(super) fn relative(self, bytes: Range<u64>) -> Range<u64> {
        match self {
            Self::Host { base, .. } => bytes.start - base..bytes.end - base,
            Self::Device { .. } => bytes,
        }
    }

    fn of(device: usize, memory: &Memory) -> Self {
        match memory {
            Memory::Host(host) => {
                Self::Host { base: host.base().addr() as u64, len_bytes: host.len_bytes() as u64 }
            }
            Memory::Device(address) => Self::Device { device, address: *address },
        }
    }
}
