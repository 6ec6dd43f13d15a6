//! Runs a grid: its blocks one after the other.

mod access;
mod atomic;
mod block;
mod call;
mod execute;
mod thread;
mod warp;

use crate::Outcome;
use crate::memory::{Memory, Range};
use crate::module::Module;

use self::block::Block;

/// In which order blocks run, and the threads of a block between their barriers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Ascending,
    Descending,
}

/// One launch of a kernel.
#[derive(Debug)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    /// Each parameter as it is passed.
    pub parameters: Vec<Vec<u8>>,
    /// Memory that pointers among the parameters refer to: where it starts, and its bytes.
    pub memory: Vec<(u64, Vec<u8>)>,
    pub order: Order,
    /// After how many instructions the launch fails.
    pub instructions_max: u64,
}

/// Runs a launch. Returns the memory that it was given, as it is afterwards.
pub fn run(module: &Module, entry: &str, launch: Launch) -> Outcome<Vec<Vec<u8>>> {
    let entry = module.entry(entry)?;
    let parameters = parameters(module, entry, &launch.parameters)?;
    let count = launch.memory.len();
    let ranges = launch.memory.iter().map(|(start, bytes)| Range {
        start: *start,
        bytes: bytes.clone(),
        is_constant: false,
    });
    let memory = Memory::new(module, parameters, ranges.collect(), launch.shared_bytes)?;
    let [x, y, z] = launch.grid.map(u64::from);
    let mut block = Block::new(module, &launch, memory);
    for index in 0..x * y * z {
        let index = match launch.order {
            Order::Ascending => index,
            Order::Descending => x * y * z - 1 - index,
        };
        let place = [index % x, index / x % y, index / x / y];
        block.run(entry, place.map(|place| place as u32))?;
    }
    Ok(block.memory.ranges()[..count].iter().map(|range| range.bytes.clone()).collect())
}

/// The parameters as they lie in memory.
fn parameters(module: &Module, entry: usize, given: &[Vec<u8>]) -> Outcome<Vec<u8>> {
    let slots = &module.functions[entry].parameters;
    if slots.len() != given.len() {
        return Err(format!("the kernel has {} parameters, not {}", slots.len(), given.len()));
    }
    let mut bytes = Vec::new();
    for (index, (slot, given)) in slots.iter().zip(given).enumerate() {
        if slot.len_bytes != given.len() as u64 {
            let found = given.len();
            return Err(format!("parameter {index} has {} bytes, not {found}", slot.len_bytes));
        }
        bytes.resize(slot.offset as usize, 0);
        bytes.extend_from_slice(given);
    }
    Ok(bytes)
}
