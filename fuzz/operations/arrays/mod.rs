//! Programs over the public API, beside a reference that knows values and no places.
//!
//! Devices are seeded, so a program runs the same way each time. Calls of theirs fail where the
//! program says so, at once or when their work runs; what a failure may have taken is tracked per
//! element (`reference`), and every call's outcome is judged by it (`journal`).

mod journal;
mod kernels;
#[path = "../list.rs"]
mod list;
mod machine;
mod pairs;
mod parts;
mod reference;
mod value;
mod whole;

use arbitrary::Arbitrary;

use list::List;
use machine::Machine;
use parts::Part;

/// Operations of one program that are looked at; more only take time.
const OPERATIONS_MAX: usize = 60;

/// What the fuzzer makes.
#[derive(Arbitrary, Debug)]
pub(crate) struct Program {
    seed: u64,
    poison: bool,
    /// Whether elements have three bytes rather than four.
    odd: bool,
    /// Bytes that each device may hold, if there is a limit.
    memory: Option<u16>,
    faults: [Option<Failing>; 3],
    operations: List<Operation>,
}

/// A call that is to fail.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Failing {
    second_device: bool,
    call: u8,
    late: bool,
}

/// One operation. Numbers are taken modulo what there is to choose from, so each is legal always. A
/// lane is one of the streams.
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
}

/// Something done with one part.
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

/// Something done with two parts of one shape.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Transfer {
    Copy { flat: bool },
    CallCopy,
    Assign,
    AssignOn,
}

/// What an array is made from.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Maker {
    shape: u8,
    columns_first: bool,
    value: u8,
    origin: Origin,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Origin {
    /// An array of ndarray's, perhaps with a reversed axis, perhaps with gaps.
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
    /// Runs it; what is wrong panics.
    pub(crate) fn run(&self) {
        if self.odd { self.run_with::<[u8; 3]>() } else { self.run_with::<u32>() }
    }

    fn run_with<T: value::Value>(&self) {
        let mut machine = Machine::<T>::new(self);
        self.operations.0.iter().take(OPERATIONS_MAX).for_each(|operation| machine.take(operation));
        machine.finish();
    }
}
