//! What was copied of the arrays of launches, beside what a launcher would have copied.

use rustc_hash::FxHashMap;

use super::block::RecordBlock;
use crate::traffic::Flow;

/// So many arrays have entries. Beyond them all copies count as copies of arrays of launches, so
/// that a report never says that launches saved more than they did.
const ARRAYS_MAX: usize = 1 << 16;

/// The copies of the arrays that launches of a capture use. Of explicit arrays no launcher copies
/// anything, and their copies do not count.
#[derive(Clone, Debug, Default)]
pub(in crate::audit) struct LaunchedArrays {
    /// The copies of a launcher that copies each array argument in and out.
    launcher: Flow,
    /// The copies of arrays of launches, whatever call made them.
    moved: Flow,
    arrays: FxHashMap<u64, ArrayUse>,
    /// Whether there were more arrays than have entries.
    is_full: bool,
}

/// How the capture has used an array so far.
#[derive(Clone, Copy, Debug)]
enum ArrayUse {
    Launched,
    /// No launch has used it; so much of it was copied.
    Copied(Flow),
}

impl LaunchedArrays {
    pub(in crate::audit) fn launcher(&self) -> Flow {
        self.launcher
    }

    /// What launches saved: nothing if as much was copied as a launcher would have.
    pub(in crate::audit) fn avoided(&self) -> Flow {
        self.launcher - self.moved
    }

    pub(in crate::audit) fn add(&mut self, block: &RecordBlock) {
        self.launcher += block.launcher;
        let mut last = 0;
        let arguments = block.launches().iter().flat_map(|launch| block.arguments(launch));
        for argument in arguments.filter(|argument| !argument.is_explicit()) {
            if std::mem::replace(&mut last, argument.array_id()) != argument.array_id() {
                self.add_launched(argument.array_id());
            }
        }
        for copy in block.copies() {
            if !copy.details.is_explicit {
                self.add_copied(block.array(copy.key.array).id, Flow::of(copy.bytes));
            }
        }
    }

    fn add_launched(&mut self, array: u64) {
        if self.is_full {
            return;
        }
        if let Some(ArrayUse::Copied(flow)) = self.arrays.insert(array, ArrayUse::Launched) {
            self.moved += flow;
        }
        self.close_if_full();
    }

    fn add_copied(&mut self, array: u64, flow: Flow) {
        if self.is_full {
            self.moved += flow;
            return;
        }
        match self.arrays.entry(array).or_insert(ArrayUse::Copied(Flow::default())) {
            ArrayUse::Launched => self.moved += flow,
            ArrayUse::Copied(copied) => *copied += flow,
        }
        self.close_if_full();
    }

    fn close_if_full(&mut self) {
        if self.arrays.len() <= ARRAYS_MAX {
            return;
        }
        self.is_full = true;
        for of_array in std::mem::take(&mut self.arrays).into_values() {
            if let ArrayUse::Copied(flow) = of_array {
                self.moved += flow;
            }
        }
    }
}
