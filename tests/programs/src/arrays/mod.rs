//! Programs over the public API, beside a reference.
//!
//! `reference` stores each element's value, and whether a failure may have lost it; `journal`
//! checks the result of every call against that record. The devices' calls fail where the program
//! says so, at once or when their work runs. If none can fail, `ledger` also stores where each
//! element is valid and the traffic that the accesses must have caused, and `counts` compares both
//! after each operation.

mod counts;
mod explicit;
mod journal;
pub mod kernels;
pub mod lab;
mod ledger;
mod machine;
mod pairs;
mod parts;
mod reference;
mod replays;
mod smart;
mod value;
mod whole;

use crate::List;
use arbitrary::{Arbitrary, Unstructured};

use lab::Lab;
use machine::Machine;
use parts::{Part, Surplus};
use value::Large;

/// The number of operations of one program that run; more would only take time.
const OPERATIONS_MAX: usize = 100;

/// A program: the fuzzer makes it of bytes, and so do tests.
#[derive(Arbitrary, Debug)]
pub struct Program {
    world: World,
    operations: List<Operation>,
}

/// The machine of a program, apart from its operations.
#[derive(Arbitrary, Clone, Debug)]
pub struct World {
    seed: u64,
    /// Whether stale copies are filled with poison bytes. These fills are additional work, which
    /// changes the order of other work.
    poison: bool,
    /// Whether elements have three bytes instead of four.
    odd: bool,
    /// Whether elements have 4 KiB, so that parts of arrays are pages.
    #[arbitrary(default)]
    large: bool,
    /// Whether there is a third device.
    third: bool,
    pieces: u8,
    /// Whether one of the first arrays has records, and another the order of columns.
    varied: bool,
    /// Whether residency and traffic are checked, if no call can fail. Then arrays stay coherent:
    /// they become no device arrays.
    counted: bool,
    /// The memory limit of each device, if there is one: see [`World::limit`].
    memory: Option<u16>,
    faults: [Option<Failing>; 3],
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
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Operation {
    One { array: u8, part: Part, lane: u8, value: u8, action: Action },
    Pair { arrays: [u8; 2], parts: [Part; 2], surplus: Surplus, lane: u8, transfer: Transfer },
    Combine { arrays: [u8; 3], parts: [Part; 3], surplus: Surplus, lane: u8 },
    Halves(Halves),
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
    Replay(Replay),
}

/// An operation between the two sides of a split.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Halves {
    array: u8,
    axis: u8,
    at: u8,
    parts: [Part; 2],
    surplus: Surplus,
    lane: u8,
    transfer: Transfer,
}

/// A replay of a chain over two parts.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Replay {
    arrays: [u8; 2],
    parts: [Part; 2],
    surplus: Surplus,
    lane: u8,
    value: u8,
    steps: Steps,
    /// How often, and how long `While` goes on.
    repeats: u8,
}

/// What a chain does with a part that it reads and one that it writes.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Steps {
    /// Copies it, by way of a temporary.
    Carry,
    /// Mixes the second, in a temporary.
    Change,
    /// Combines both, and a temporary.
    Combine,
    /// Copies every second index of the first axis, and mixes the others.
    Combs,
    /// As `Combs`, but the kernel breaks.
    Break,
    /// Mixes the second while a temporary says so.
    While,
}

/// An operation on one part of a device array.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Visit {
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

/// An operation on one part. A `PrefetchHost` that is not `named` lets the library choose the
/// stream; a `Snapshot` that is `kept` is waited for later, when the array may have other contents.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Action {
    Mix { flat: bool },
    Host,
    HostMut,
    HostOverwrite,
    HostChanged,
    Gpu,
    GpuMut { forgotten: bool },
    GpuOverwrite { kept: bool },
    GpuChanged,
    Stamp { flat: bool },
    Break,
    CallStamp,
    CallMix,
    Prefetch,
    PrefetchHost { named: bool },
    Snapshot { kept: bool },
    Fill,
    FillOn,
    Get(u8),
    Set(u8),
}

/// An operation on two parts of one shape.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Transfer {
    Copy { flat: bool },
    CallCopy,
    Assign,
    AssignOn,
}

/// The properties of a new array.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Maker {
    shape: u8,
    columns_first: bool,
    /// Whether its elements are records, whose fields are a last axis of the reference.
    fields: bool,
    value: u8,
    origin: Origin,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Origin {
    Adopted(Adopted),
    Zeros,
    Full,
    Uninit,
}

/// An array adopted from ndarray.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Adopted {
    /// Whether the last axis is reversed.
    reversed: bool,
    /// Whether every second index of the first axis was left out.
    gaps: bool,
    /// Whether the devices access its host memory directly.
    pinned: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Waiting {
    Device(u8),
    Stream(u8),
    Event(u8),
    Everything,
}

impl World {
    /// The number of devices.
    pub fn devices(&self) -> usize {
        2 + usize::from(self.third)
    }

    fn faults(&self) -> impl Iterator<Item = &Failing> {
        self.faults.iter().flatten()
    }

    /// The memory of each device in bytes, if it is limited: room for a part of what an operation
    /// uses, or for a few arrays, which have up to 192 bytes.
    pub fn limit(&self) -> Option<u64> {
        let element = if self.large { size_of::<Large>() / size_of::<u32>() } else { 1 };
        self.memory.map(|memory| u64::from(memory % 512) * element as u64)
    }

    fn is_counted(&self) -> bool {
        self.counted && self.memory.is_none() && self.faults().next().is_none()
    }
}

impl Failing {
    fn device(self) -> usize {
        usize::from(self.second_device)
    }
}

impl Operation {
    /// The most bytes of which an operation is made, and a few.
    pub const BYTES_MAX: usize = 44;
}

fn made<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> T {
    T::arbitrary(&mut Unstructured::new(bytes)).expect("missing bytes are zeros")
}

impl Program {
    /// A program in which no call fails, made of bytes: residency and traffic are checked too.
    pub fn counted(world: &[u8], operations: &[[u8; Operation::BYTES_MAX]]) -> Self {
        let program = Self::without_faults(world, operations);
        Self { world: World { counted: true, ..program.world }, ..program }
    }

    /// A program in which no call fails, made of bytes: only contents and races are checked.
    pub fn without_faults(world: &[u8], operations: &[[u8; Operation::BYTES_MAX]]) -> Self {
        let program = Self::with_faults(world, operations);
        let world = World { memory: None, faults: [None; 3], ..program.world };
        Self { world, ..program }
    }

    /// A program made of bytes, in which calls may fail: only contents and races are checked.
    pub fn with_faults(world: &[u8], operations: &[[u8; Operation::BYTES_MAX]]) -> Self {
        Self::made_of(World { counted: false, ..made(world) }, operations)
    }

    /// A program on devices with room for a few of its arrays, with elements of a few bytes or of
    /// 4 KiB. If `is_faulty`, calls may fail; else those that fit must not.
    pub fn full(
        world: &[u8],
        operations: &[[u8; Operation::BYTES_MAX]],
        large: bool,
        is_faulty: bool,
    ) -> Self {
        let made: World = made(world);
        // From one array of the usual shapes to four.
        let memory = Some(80 + (made.seed % 240) as u16);
        let faults = if is_faulty { made.faults } else { [None; 3] };
        Self::made_of(World { large, memory, faults, ..made }, operations)
    }

    fn made_of(world: World, operations: &[[u8; Operation::BYTES_MAX]]) -> Self {
        Self { world, operations: List(operations.iter().map(|bytes| made(bytes)).collect()) }
    }

    /// Runs the program; panics if a check fails.
    pub fn run(&self, lab: &Lab) {
        // There is device code for numbers of four bytes.
        if self.world.large && lab.code.is_none() {
            self.run_with::<Large>(lab);
        } else if self.world.odd && lab.code.is_none() {
            self.run_with::<[u8; 3]>(lab);
        } else {
            self.run_with::<u32>(lab);
        }
    }

    fn run_with<T: value::Value>(&self, lab: &Lab) {
        let mut machine = Machine::<T>::new(&self.world, lab);
        self.operations.0.iter().take(OPERATIONS_MAX).for_each(|operation| machine.take(operation));
        machine.finish();
    }
}
