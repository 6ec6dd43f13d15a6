//! Which bytes of a block may still be those of an array that was freed: the pool hands out blocks
//! as they were left. Safe code must not see these bytes, so they are cleared before a launch whose
//! body may leave them as they are.

use std::sync::atomic::{AtomicBool, Ordering};

use resident_backend::Footprint;
use resident_backend::sync::BackendLock;

/// Parts beyond these are cleared again at each such launch. A program that launches on more parts
/// has small ones, whose clearing takes less than the launch.
const PARTS_MAX: usize = 32;

/// What one block has of an array before.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    may_exist: AtomicBool,
    /// Parts that hold nothing of an array before any more.
    overwritten: BackendLock<Vec<Footprint>>,
}

impl Leftovers {
    /// Another array gets the block, with the bytes that it has. No work uses it.
    pub(super) fn begin(&self) {
        self.overwritten.lock().clear();
        self.may_exist.store(true, Ordering::Relaxed);
    }

    /// Whether there may be any. Work that uses the same bytes is ordered, so no other order is
    /// needed here.
    #[inline]
    pub(super) fn may_exist(&self) -> bool {
        self.may_exist.load(Ordering::Relaxed)
    }

    /// Whether there may be some in these bytes of the block.
    pub(super) fn may_be_in(&self, footprint: &Footprint) -> bool {
        self.may_exist() && !self.overwritten.lock().contains(footprint)
    }

    /// These bytes of a block of `len_bytes` were all overwritten.
    pub(super) fn overwritten(&self, footprint: &Footprint, len_bytes: u64) {
        if !self.may_exist() {
            return;
        }
        let mut overwritten = self.overwritten.lock();
        if footprint.len_bytes() == len_bytes {
            self.may_exist.store(false, Ordering::Relaxed);
            *overwritten = Vec::new();
        } else if overwritten.len() < PARTS_MAX && !overwritten.contains(footprint) {
            overwritten.push(footprint.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Leftovers, PARTS_MAX};
    use resident_backend::Footprint;

    #[test]
    fn each_part_is_cleared_once_and_the_whole_ends_it() {
        let (leftovers, half) = (Leftovers::default(), Footprint::run(0, 50));
        assert!(!leftovers.may_be_in(&half), "the system's memory is zeros");
        leftovers.begin();
        assert!(leftovers.may_be_in(&half));
        leftovers.overwritten(&half, 100);
        assert!(!leftovers.may_be_in(&half));
        assert!(leftovers.may_be_in(&Footprint::run(0, 100)), "the other half has some");
        leftovers.overwritten(&Footprint::run(0, 100), 100);
        assert!(!leftovers.may_exist());
        leftovers.begin();
        assert!(leftovers.may_be_in(&half), "of the array before");
    }

    #[test]
    fn a_bounded_number_of_parts_is_remembered() {
        let leftovers = Leftovers::default();
        leftovers.begin();
        let part = |index: usize| Footprint::run(index as u64, 1);
        (0..2 * PARTS_MAX).for_each(|index| leftovers.overwritten(&part(index), 100));
        assert!(!leftovers.may_be_in(&part(PARTS_MAX - 1)));
        assert!(leftovers.may_be_in(&part(PARTS_MAX)), "it is cleared again");
    }
}
