//! Values and their numbers.

use std::collections::{BTreeSet, HashMap};

use crate::backend::Bytes;

/// Up to this number of values, unused ones are kept.
const CONSTANTS_KEPT: usize = 64;

/// Values and their numbers. Constant 0 consists of zero bytes and is not in the table.
#[derive(Debug)]
pub(super) struct Constants {
    values: HashMap<u32, Bytes>,
    numbers: HashMap<Bytes, u32>,
    next: u32,
    /// At this number of values, unused ones are dropped.
    sweep_at: usize,
}

impl Default for Constants {
    fn default() -> Self {
        let (values, numbers) = (HashMap::new(), HashMap::new());
        Self { values, numbers, next: 1, sweep_at: CONSTANTS_KEPT }
    }
}

impl Constants {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of a value, which is added if it is new.
    pub(super) fn number(&mut self, value: Bytes) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.free_number();
        self.values.insert(number, value.clone());
        self.numbers.insert(value, number);
        number
    }

    /// A number that no value has. Numbers are counted up, and start again after 2^32 fills.
    fn free_number(&mut self) -> u32 {
        while self.next == 0 || self.values.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }

    /// The value with a number.
    pub(super) fn value(&self, number: u32) -> Option<&Bytes> {
        self.values.get(&number)
    }

    /// Whether it is time to drop unused values: each time their number has doubled.
    pub(super) fn is_long(&self) -> bool {
        self.values.len() >= self.sweep_at
    }

    /// Drops all values but these.
    pub(super) fn keep(&mut self, used: &BTreeSet<u32>) {
        self.values.retain(|number, _| used.contains(number));
        self.numbers.retain(|_, number| used.contains(number));
        self.sweep_at = CONSTANTS_KEPT.max(2 * self.values.len());
    }
}

#[cfg(test)]
mod tests {
    use super::Constants;
    use crate::backend::Bytes;

    #[test]
    fn values_keep_their_numbers_and_unused_ones_go() {
        let mut constants = Constants::default();
        let value = |byte: u8| Bytes::from_elem(byte, 4);
        let numbers: Vec<u32> = (1..=100).map(|byte| constants.number(value(byte))).collect();
        assert_eq!(constants.number(value(7)), numbers[6]);
        constants.keep(&[numbers[6], numbers[99]].into_iter().collect());
        assert_eq!(constants.number(value(100)), numbers[99]);
        assert_eq!(constants.values.len(), 2);
        let new = constants.number(value(101));
        assert!(!numbers[6..7].contains(&new) && new != numbers[99]);
    }
}
