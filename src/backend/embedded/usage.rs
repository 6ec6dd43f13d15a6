//! Which bytes an operation touches, and how: what the tracker looks at.

#![forbid(unsafe_code)]

use smallvec::SmallVec;

use super::hazard::Touch;
use super::operation::Operation;
use crate::access::Access;
use crate::backend::{
    Address, ArrayArgument, CopyBox, CopyWork, FailureKind, Footprint, Memory, Work,
};

/// What an operation does to bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Reads contents.
    Read,
    /// Writes contents.
    Write,
    /// Reads, then writes.
    ReadWrite,
    /// Writes what is no contents: reading it is an error.
    Poison,
    /// Gives the memory back.
    Free,
}

impl Effect {
    /// Whether contents are read.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// How a hazard tells it.
    pub(super) fn touch(self) -> Touch {
        match self {
            Self::Read => Touch::Reads,
            Self::Write | Self::ReadWrite | Self::Poison => Touch::Writes,
            Self::Free => Touch::Frees,
        }
    }
}

/// Whose bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Memory of the host, by its address there, which is compared and nothing else.
    Host { base: u64, len_bytes: u64 },
    /// Memory of a device.
    Device { device: usize, address: Address },
}

/// One use.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    pub(super) place: Place,
    pub(super) footprint: Footprint,
    pub(super) effect: Effect,
}

/// The use of a free: all of a block.
pub(super) fn of_free(device: usize, address: Address, len_bytes: u64) -> Usage {
    let footprint = Footprint { offset_bytes: 0, run_bytes: len_bytes, axes: SmallVec::new() };
    Usage { place: Place::Device { device, address }, footprint, effect: Effect::Free }
}

/// All uses of work queued on `device`. Upkeep has none, but for frees: see [`of_free`].
pub(super) fn of_operation(device: usize, operation: &Operation) -> Vec<Usage> {
    match operation {
        Operation::Upkeep(_) => Vec::new(),
        Operation::Between { copy, source } => copy_usages(source.ordinal, device, copy),
        Operation::Work(Work::Copy(copy)) => copy_usages(device, device, copy),
        Operation::Work(Work::Fill(fill)) => {
            let effect =
                if fill.loss == FailureKind::Poison { Effect::Poison } else { Effect::Write };
            let place = Place::Device { device, address: fill.address };
            fill.parts.iter().map(|part| Usage { place, footprint: part.clone(), effect }).collect()
        }
        Operation::Work(Work::Launch(launch)) => {
            let usage = |array: &ArrayArgument| Usage {
                place: Place::Device { device, address: array.address },
                footprint: launch.arguments.footprint(array),
                effect: effect_of(array.access),
            };
            // An array without a byte may have no memory.
            launch
                .arguments
                .arrays
                .iter()
                .map(usage)
                .filter(|usage| usage.footprint.end_bytes() != Some(0))
                .collect()
        }
    }
}

fn copy_usages(source_device: usize, device: usize, copy: &CopyWork) -> Vec<Usage> {
    let source = place_of(source_device, &copy.source);
    let destination = place_of(device, &copy.destination);
    let both = |part: &CopyBox| {
        let read = Usage { place: source, footprint: part.source(), effect: Effect::Read };
        let write =
            Usage { place: destination, footprint: part.destination(), effect: Effect::Write };
        [read, write]
    };
    copy.parts.iter().flat_map(both).collect()
}

fn place_of(device: usize, memory: &Memory) -> Place {
    match memory {
        Memory::Host(host) => {
            Place::Host { base: host.base().addr() as u64, len_bytes: host.len_bytes() as u64 }
        }
        Memory::Device(address) => Place::Device { device, address: *address },
    }
}

fn effect_of(access: Access) -> Effect {
    match access {
        Access::Read => Effect::Read,
        Access::ReadWrite => Effect::ReadWrite,
        Access::Overwrite => Effect::Write,
    }
}
