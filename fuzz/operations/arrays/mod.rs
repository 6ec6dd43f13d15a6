//! Programs over the public API, beside a reference that models values, but not validity.
//!
//! Devices are seeded, so a program runs the same way each time. The devices' calls fail where the
//! program says so, at once or when their work runs. `reference` tracks for each element whether a
//! failure may have lost it, and `journal` checks the result of every call against that record.

mod explicit;
mod journal;
mod kernels;
mod machine;
mod pairs;
mod parts;
mod reference;
mod value;
mod whole;

use arbitrary::Arbitrary;

use machine::Machine;
use parts::Part;
use resident_core::programs::List;

/// The number of operations of one program that run; more would only take time.
const OPERATIONS_MAX: usize = 60;

/// A program, as the fuzzer makes it.
#[derive(Arbitrary, Debug)]
pub(crate) struct Program {
    seed: u64,
    poison: bool,
    /// Whether elements have three bytes instead of four.
    odd: bool,
    /// The memory limit of each device in bytes, if there is one.
    memory: Option<u16>,
    faults: [Option<Failing>; 3],
    operations: List<Operation>,
}

/// A call that fails.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Failing {
    second_device: bool,
    call: u8,
    late: bool,
}

/// One operation. Each index is taken modulo the number of choices, so every operation is legal. A
/// lane is the index of a stream.
#[derive(Arbitrary, Debug)]
enum Operation {
    One { array: u8, part: Part, lane: u8, value: u8, action: Action },
    Pair { arrays: [u8; 2], parts: [Part; 2], lane: u8, transfer: Transfer },
    Combine { arrays: [u8; 3], parts: [Part; 3], lane: u8 },
    Halves { array: u8, axis: u8, at: u8, parts: [Part; 2], lane: u8, transfer: Transfer },
    Combs { array: u8, axis: u8, lanes: [u8; 2], value: u8 },
    Clone { array: u8, part: Part, into: u8 },
    Renew { array: u8, maker: Maker },
    Return { array: u8 },
    Look { array: u8, part: Part },
    Record { lane: u8 },
    WaitEvent { lane: u8, event: u8 },
    WaitPending { pending: u8 },
    Synchronize { what: Waiting },
    Explicit { array: u8, part: Part, lane: u8, value: u8, visits: [Visit; 4] },
}

/// An operation on one part of a device array.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Visit {
    Read,
    Promise,
    Write,
    Fill,
    /// Copies the part to itself, one index further along its first axis.
    Shift,
    Mix,
    Get(u8),
    /// Launches on the other device, which is refused.
    Elsewhere,
}

/// An operation on one part.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Action {
    Host,
    HostMut,
    HostOverwrite,
    HostChanged,
    Gpu,
    GpuMut { forgotten: bool },
    GpuOverwrite { kept: bool },
    GpuChanged,
    Stamp { flat: bool },
    Mix { flat: bool },
    Break,
    CallStamp,
    CallMix,
    Prefetch,
    PrefetchHost,
    Snapshot,
    Fill,
    FillOn,
    Get(u8),
    Set(u8),
}

/// An operation on two parts of one shape.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Transfer {
    Copy { flat: bool },
    CallCopy,
    Assign,
    AssignOn,
}

/// The properties of a new array.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Maker {
    shape: u8,
    columns_first: bool,
    value: u8,
    origin: Origin,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Origin {
    /// An array adopted from ndarray, possibly with a reversed axis or with gaps.
    Adopted {
        reversed: bool,
        gaps: bool,
    },
    Zeros,
    Full,
    Uninit,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Waiting {
    Device(bool),
    Stream(u8),
    Event(u8),
    Everything,
}

impl Program {
    /// Runs the program; panics if a check fails.
    pub(crate) fn run(&self) {
        if self.odd { self.run_with::<[u8; 3]>() } else { self.run_with::<u32>() }
    }

    fn run_with<T: value::Value>(&self) {
        let mut machine = Machine::<T>::new(self);
        self.operations.0.iter().take(OPERATIONS_MAX).for_each(|operation| machine.take(operation));
        machine.finish();
    }
}
