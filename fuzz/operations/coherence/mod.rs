//! Programs over the coherence core, beside models that know only cells and bytes.

#[path = "../list.rs"]
mod list;
mod memory;
mod sets;
mod space;
mod spans;

use arbitrary::Arbitrary;

use crate::access::Access;
use crate::coherence::{ConstantId, Location, LossId};
use list::List;
use memory::{Memory, Start};
use sets::{Change, Combination, Sets, Table};
use space::{Box, Space};
use spans::WideSpan;

/// Operations of one program that are looked at; more only take time.
const OPERATIONS_MAX: usize = 80;

/// What the fuzzer makes.
#[derive(Arbitrary, Debug)]
pub(crate) struct Program {
    axes: u8,
    extents: [u8; 3],
    locations: u8,
    start: Start,
    /// What a copy from each location costs.
    costs: [u8; memory::PLACES_MAX],
    /// Gaps up to this number of elements are bridged.
    bridged_max: u8,
    operations: List<Operation>,
}

/// One operation. Numbers are taken modulo what there is to choose from, so each is legal always.
#[derive(Arbitrary, Debug)]
enum Operation {
    Access { location: u8, part: Box, kind: Kind },
    Constant { part: Box, id: u8 },
    Withdraw { location: u8, part: Box, id: u8 },
    Insert { second: bool, part: Box },
    Remove { second: bool, part: Box },
    Combine { how: Combination, part: Box },
    Change { part: Box, change: Change },
    Spans { one: WideSpan, other: WideSpan },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    Read,
    ReadWrite,
    Overwrite,
}

impl From<Kind> for Access {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::Read,
            Kind::ReadWrite => Self::ReadWrite,
            Kind::Overwrite => Self::Overwrite,
        }
    }
}

/// The core's states and their models.
struct Run {
    locations: usize,
    space: Space,
    memory: Memory,
    sets: Sets,
    table: Table,
}

impl Program {
    /// Runs it; what is wrong panics.
    pub(crate) fn run(&self) {
        let space = Space::new(self.axes, self.extents);
        let locations = 1 + usize::from(self.locations) % memory::PLACES_MAX;
        let memory = Memory::new(&space, self.start, self.costs, self.bridged_max);
        let table = Table::new(&space);
        let mut run = Run { locations, space, memory, sets: Sets::default(), table };
        self.operations.0.iter().take(OPERATIONS_MAX).for_each(|operation| run.take(operation));
    }
}

impl Run {
    fn take(&mut self, operation: &Operation) {
        let location = |number: u8| {
            Location::slot(usize::from(number) % self.locations).expect("a slot below 64")
        };
        let space = &self.space;
        match operation {
            Operation::Access { location: number, part, kind } => {
                self.memory.access(space, location(*number), part, (*kind).into())
            }
            Operation::Constant { part, id } => {
                self.memory.write_constant(space, part, ConstantId(u32::from(id % 3)))
            }
            Operation::Withdraw { location: number, part, id } => {
                self.memory.withdraw(space, location(*number), part, LossId(u32::from(*id)))
            }
            Operation::Insert { second, part } => self.sets.insert(space, *second, part),
            Operation::Remove { second, part } => self.sets.remove(space, *second, part),
            Operation::Combine { how, part } => self.sets.combine(space, *how, part),
            Operation::Change { part, change } => self.table.change(space, part, *change),
            Operation::Spans { one, other } => spans::check(*one, *other),
        }
    }
}
