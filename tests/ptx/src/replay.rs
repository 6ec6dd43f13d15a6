//! Runs a recorded launch as PTX.

use crate::Outcome;
use crate::compare::{Difference, differences};
use crate::machine::{Launch, Order, run};
use crate::module::{Module, VARIABLES_START};
use crate::recorded::{Argument, Array, Recorded};

/// What bytes between elements hold. A kernel must not change them.
const BETWEEN: u8 = 0xa5;

/// Where the arrays start, far behind the variables of the module.
const ARRAYS_START: u64 = VARIABLES_START << 8;

/// Addresses are moved by multiples of this, so that they stay aligned as they were.
const ALIGNMENT: u64 = 4096;

/// The most instructions of a launch.
const INSTRUCTIONS_MAX: u64 = 100_000_000;

/// Memory that several arrays may share.
struct Part {
    /// In the process that was recorded.
    start: u64,
    end: u64,
    /// As the replay has it.
    moved_to: u64,
}

/// Runs a launch, and lists the elements that differ from those of the host.
pub fn replay(
    module: &Module,
    entry: &str,
    recorded: &Recorded,
    order: Order,
) -> Outcome<Vec<Difference>> {
    let parts = parts(recorded);
    let launch = Launch {
        grid: recorded.grid,
        block: recorded.block,
        shared_bytes: recorded.shared_bytes,
        parameters: recorded.arguments.iter().map(|argument| passed(argument, &parts)).collect(),
        memory: memory(recorded, &parts),
        order,
        instructions_max: INSTRUCTIONS_MAX,
    };
    let after = run(module, entry, launch)?;
    check_between(recorded, &parts, &after)?;
    let found = arrays(recorded).map(|(index, array)| (index, elements(array, &parts, &after)));
    Ok(found
        .flat_map(|(index, found)| differences(index, &recorded.arguments[index], &found))
        .collect())
}

fn arrays(recorded: &Recorded) -> impl Iterator<Item = (usize, &Array)> {
    let arguments = recorded.arguments.iter().enumerate();
    arguments.filter_map(|(index, argument)| Some((index, argument.array.as_ref()?)))
}

/// The memory of all arrays, where those that overlap are one part.
fn parts(recorded: &Recorded) -> Vec<Part> {
    let mut ranges: Vec<(u64, u64)> =
        arrays(recorded).filter_map(|(_, array)| array.range()).collect();
    ranges.sort_unstable();
    let mut parts: Vec<Part> = Vec::new();
    let mut next = ARRAYS_START;
    for (start, end) in ranges {
        match parts.last_mut() {
            Some(last) if start < last.end => last.end = last.end.max(end),
            _ => parts.push(Part { start, end, moved_to: 0 }),
        }
    }
    for part in &mut parts {
        part.moved_to = next + part.start % ALIGNMENT;
        next = (part.moved_to + (part.end - part.start)).next_multiple_of(ALIGNMENT) + ALIGNMENT;
    }
    parts
}

/// The part that has an address, and where it is there.
fn find(parts: &[Part], address: u64) -> Option<(usize, usize)> {
    let index = parts.iter().position(|part| (part.start..part.end).contains(&address))?;
    Some((index, (address - parts[index].start) as usize))
}

/// A parameter with its address moved.
fn passed(argument: &Argument, parts: &[Part]) -> Vec<u8> {
    let mut passed = argument.passed.clone();
    if let Some(array) = &argument.array
        && let Some((part, offset)) = find(parts, array.address)
        && array.range().is_some()
    {
        let address = parts[part].moved_to + offset as u64;
        passed[..8].copy_from_slice(&address.to_le_bytes());
    }
    passed
}

fn memory(recorded: &Recorded, parts: &[Part]) -> Vec<(u64, Vec<u8>)> {
    let len = |part: &Part| (part.end - part.start) as usize;
    let mut memory: Vec<(u64, Vec<u8>)> =
        parts.iter().map(|part| (part.moved_to, vec![BETWEEN; len(part)])).collect();
    for (_, array) in arrays(recorded) {
        let len = array.element_bytes as usize;
        let mut elements = array.before.chunks_exact(len);
        array.for_each_address(|address| {
            if let (Some((part, at)), Some(element)) = (find(parts, address), elements.next()) {
                memory[part].1[at..at + len].copy_from_slice(element);
            }
        });
    }
    memory
}

fn elements(array: &Array, parts: &[Part], memory: &[Vec<u8>]) -> Vec<u8> {
    let mut elements = Vec::with_capacity(array.before.len());
    let len = array.element_bytes as usize;
    array.for_each_address(|address| {
        if let Some((part, at)) = find(parts, address) {
            elements.extend_from_slice(&memory[part][at..at + len]);
        }
    });
    elements
}

/// No byte that is none of an element may change.
fn check_between(recorded: &Recorded, parts: &[Part], after: &[Vec<u8>]) -> Outcome {
    let mut is_element: Vec<Vec<bool>> =
        after.iter().map(|bytes| vec![false; bytes.len()]).collect();
    for (_, array) in arrays(recorded) {
        array.for_each_address(|address| {
            if let Some((part, at)) = find(parts, address) {
                is_element[part][at..at + array.element_bytes as usize].fill(true);
            }
        });
    }
    let changed = |(bytes, elements): (&Vec<u8>, &Vec<bool>)| {
        bytes.iter().zip(elements).filter(|(byte, is)| !**is && **byte != BETWEEN).count()
    };
    match after.iter().zip(&is_element).map(changed).sum::<usize>() {
        0 => Ok(()),
        count => Err(format!("{count} bytes between elements were written")),
    }
}
