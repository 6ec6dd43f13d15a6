//! Programs over the coherence core, compared with models that contain only cells and bytes.

mod map;
mod memory;
mod space;
mod spans;

use arbitrary::Arbitrary;

use map::{Change, Table};
use memory::{Memory, Start};
use resident_core::Access;
use resident_core::coherence::{ConstantId, Location, LossId};
use space::{Box, Space};
use spans::WideSpan;

use crate::List;

/// The number of operations of one program that run.
const OPERATIONS_MAX: usize = 80;

/// A program, as the fuzzer makes it.
#[derive(Arbitrary, Debug)]
pub struct Program {
    axes: u8,
    extents: [u8; 3],
    locations: u8,
    start: Start,
    /// The cost of a copy from each location.
    costs: [u8; memory::LOCATIONS_MAX],
    operations: List<CoreOperation>,
}

/// One operation. Each index is taken modulo the number of choices, so every operation is legal.
#[derive(Arbitrary, Debug)]
enum CoreOperation {
    Access { location: u8, part: Box, kind: Kind },
    Constant { part: Box, id: u8 },
    Invalidate { location: u8, part: Box, id: u8 },
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
    table: Table,
}

impl Program {
    /// Runs the program; panics if a check fails.
    pub fn run(&self) {
        let space = Space::new(self.axes, self.extents);
        let locations = 1 + usize::from(self.locations) % memory::LOCATIONS_MAX;
        let memory = Memory::new(&space, self.start, self.costs);
        let table = Table::new(&space);
        let mut run = Run { locations, space, memory, table };
        self.operations.0.iter().take(OPERATIONS_MAX).for_each(|operation| run.take(operation));
    }
}

impl Run {
    fn take(&mut self, operation: &CoreOperation) {
        let location = |number: u8| {
            Location::slot(usize::from(number) % self.locations).expect("a slot below 64")
        };
        let space = &self.space;
        match operation {
            CoreOperation::Access { location: number, part, kind } => {
                self.memory.access(space, location(*number), part, (*kind).into());
            }
            CoreOperation::Constant { part, id } => {
                self.memory.write_constant(space, part, ConstantId(u32::from(id % 3)));
            }
            CoreOperation::Invalidate { location: number, part, id } => {
                self.memory.invalidate(space, location(*number), part, LossId(u32::from(*id)));
            }
            CoreOperation::Change { part, change } => self.table.change(space, part, *change),
            CoreOperation::Spans { one, other } => spans::check(*one, *other),
        }
    }
}
