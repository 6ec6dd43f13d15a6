//! What the steps of a chain do with its parameters, taken together.

use smallvec::SmallVec;

use super::step::Use;
use resident_core::Access;

/// What a replay does with an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ArrayUse {
    pub(super) parameter: usize,
    pub(super) access: Access,
    /// The last step that writes it; if none does, the last that reads it.
    pub(super) last: usize,
}

/// What all steps do with each parameter that they use, by number.
pub(super) fn array_uses<'a>(steps: impl Iterator<Item = &'a [Use]>) -> Vec<ArrayUse> {
    let mut uses: Vec<ArrayUse> = Vec::new();
    for (index, step) in steps.enumerate() {
        for Use { parameter, access } in step {
            match uses.iter_mut().find(|known| known.parameter == *parameter) {
                Some(known) => known.add(*access, index),
                None => uses.push(ArrayUse { parameter: *parameter, access: *access, last: index }),
            }
        }
    }
    uses.sort_by_key(|known| known.parameter);
    uses
}

impl ArrayUse {
    fn add(&mut self, access: Access, step: usize) {
        if access.writes() || !self.access.writes() {
            self.last = step;
        }
        // What is overwritten first needs no contents.
        if access.writes() && self.access == Access::Read {
            self.access = Access::ReadWrite;
        }
    }
}

/// For each step, the earlier ones that it must follow: the last that wrote an array that it uses,
/// and those that have read an array since that it writes. Different parameters have no bytes in
/// common of which one writes some, since borrows exclude that.
pub(super) fn order<'a>(steps: impl Iterator<Item = &'a [Use]>) -> Vec<SmallVec<[u32; 4]>> {
    let mut pending: Vec<(usize, Pending)> = Vec::new();
    let follow = |(index, step): (usize, &'a [Use])| {
        let mut after = SmallVec::<[u32; 4]>::new();
        for Use { parameter, access } in step {
            let position = pending.iter().position(|(known, _)| known == parameter);
            let position = position.unwrap_or_else(|| {
                pending.push((*parameter, Pending::default()));
                pending.len() - 1
            });
            pending[position].1.follow(*access, index as u32, &mut after);
        }
        after.sort_unstable();
        after.dedup();
        after
    };
    steps.enumerate().map(follow).collect()
}

/// The steps so far that a step which writes an array must follow.
#[derive(Default)]
struct Pending {
    writer: Option<u32>,
    readers: SmallVec<[u32; 4]>,
}

impl Pending {
    fn follow(&mut self, access: Access, step: u32, after: &mut SmallVec<[u32; 4]>) {
        if !access.writes() {
            after.extend(self.writer);
            self.readers.push(step);
            return;
        }
        if self.readers.is_empty() {
            after.extend(self.writer);
        }
        after.extend(self.readers.drain(..));
        self.writer = Some(step);
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrayUse, Use, array_uses, order};
    use resident_core::Access::{self, Overwrite, Read, ReadWrite};

    fn steps(steps: &[&[(usize, Access)]]) -> Vec<Vec<Use>> {
        let used =
            |(parameter, access): &(usize, Access)| Use { parameter: *parameter, access: *access };
        steps.iter().map(|step| step.iter().map(used).collect()).collect()
    }

    #[test]
    fn uses_of_all_steps() {
        let steps = steps(&[
            &[(0, Read), (2, Overwrite)],
            &[(2, Read), (1, ReadWrite)],
            &[(1, Read), (0, Read)],
            &[(3, Read)],
            &[(3, Overwrite)],
            &[(3, Read)],
        ]);
        let uses = array_uses(steps.iter().map(Vec::as_slice));
        let found = |parameter, access, last| ArrayUse { parameter, access, last };
        let expected = [
            found(0, Read, 2),
            found(1, ReadWrite, 1),
            found(2, Overwrite, 0),
            found(3, ReadWrite, 4),
        ];
        assert_eq!(uses, expected);
    }

    #[test]
    fn steps_follow_those_with_which_they_conflict() {
        let steps = steps(&[
            &[(0, Overwrite)],
            &[(0, Read), (1, Overwrite)],
            &[(0, Read), (2, Overwrite)],
            &[(0, ReadWrite)],
            &[(0, Overwrite), (1, Read)],
            &[(3, Read)],
        ]);
        let order = order(steps.iter().map(Vec::as_slice));
        let expected: [&[u32]; 6] = [&[], &[0], &[0], &[1, 2], &[1, 3], &[]];
        assert!(order.iter().map(|after| after.as_slice()).eq(expected), "{order:?}");
    }
}
