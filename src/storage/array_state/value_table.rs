//! Values and their numbers.

use hashbrown::HashTable;

use resident_backend::Bytes;

/// Up to this number of values, unused ones are kept.
const CONSTANTS_KEPT: usize = 64;

/// Values and their numbers. Constant 0 consists of zero bytes and is not in the table.
#[derive(Debug)]
pub(super) struct Constants {
    /// The values, each at its number minus one; `None` if no value has the number.
    values: Vec<Option<Bytes>>,
    /// The numbers, by a hash of their values.
    numbers: HashTable<u32>,
    /// Numbers that no value has.
    free: Vec<u32>,
    /// At this number of values, unused ones are dropped.
    sweep_at: usize,
}

impl Default for Constants {
    fn default() -> Self {
        let (values, numbers, free) = (Vec::new(), HashTable::new(), Vec::new());
        Self { values, numbers, free, sweep_at: CONSTANTS_KEPT }
    }
}

impl Constants {
    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The number of a value, which is added if it is new.
    pub(super) fn number(&mut self, value: Bytes) -> u32 {
        let hash_of = hash(&value);
        let is_same = |number: &u32| self.value(*number) == Some(&value);
        if let Some(number) = self.numbers.find(hash_of, is_same) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.values.push(None);
            self.values.len() as u32
        });
        self.values[number as usize - 1] = Some(value);
        let values = &self.values;
        self.numbers.insert_unique(hash_of, number, |number| hash_at(values, *number));
        number
    }

    /// The value with a number.
    pub(super) fn value(&self, number: u32) -> Option<&Bytes> {
        value_at(&self.values, number)
    }

    /// Whether it is time to drop unused values: each time their number has doubled.
    pub(super) fn is_long(&self) -> bool {
        self.numbers.len() >= self.sweep_at
    }

    /// Drops all values whose numbers `visit_used` does not pass to its argument.
    pub(super) fn keep_used(&mut self, visit_used: impl FnOnce(&mut dyn FnMut(u32))) {
        let mut is_used = vec![false; self.values.len()];
        visit_used(&mut |number| {
            let used = (number as usize).checked_sub(1).and_then(|index| is_used.get_mut(index));
            used.into_iter().for_each(|used| *used = true);
        });
        let Self { values, numbers, free, .. } = self;
        numbers.retain(|number| is_used[*number as usize - 1]);
        for (index, used) in is_used.iter().enumerate() {
            if !used && values[index].take().is_some() {
                free.push(index as u32 + 1);
            }
        }
        self.sweep_at = CONSTANTS_KEPT.max(2 * self.numbers.len());
    }
}

fn value_at(values: &[Option<Bytes>], number: u32) -> Option<&Bytes> {
    values.get((number as usize).checked_sub(1)?)?.as_ref()
}

fn hash_at(values: &[Option<Bytes>], number: u32) -> u64 {
    value_at(values, number).map_or(0, |value| hash(value))
}

/// A fast hash: a few multiplications by an odd number with random bits.
fn hash(value: &[u8]) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = value.chunks(8).fold(0_u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash.rotate_left(29) ^ u64::from_le_bytes(word)).wrapping_mul(MIX)
    });
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::Constants;
    use resident_backend::Bytes;

    #[test]
    fn values_keep_their_numbers_and_unused_ones_go() {
        let mut constants = Constants::default();
        let value = |byte: u8| Bytes::from_elem(byte, 4);
        let numbers: Vec<u32> = (1..=100).map(|byte| constants.number(value(byte))).collect();
        assert_eq!(constants.number(value(7)), numbers[6]);
        constants.keep_used(|used: &mut dyn FnMut(u32)| {
            [0, numbers[6], numbers[99]].into_iter().for_each(used);
        });
        assert_eq!(constants.number(value(100)), numbers[99]);
        assert_eq!((constants.numbers.len(), constants.free.len()), (2, 98));
        assert_eq!(constants.value(numbers[0]), None);
        let new = constants.number(value(101));
        assert!(!numbers[6..7].contains(&new) && new != numbers[99]);
        assert_eq!(constants.value(new), Some(&value(101)));
        assert_eq!(constants.value(numbers[6]), Some(&value(7)));
    }
}
