//! Replays while an array says so.

use super::super::arguments::bound::{BoundArgument, BoundArray};
use super::instance::Instance;
use super::replay::Replay;
use crate::error::{CalledAt, Error, Result};
use crate::transfer;
use resident_core::Access;

impl Replay<'_> {
    /// Queues replays, `count` at a time, until the array that the chain names is 0, or there were
    /// `most`. Returns their number.
    pub(super) fn repeat_while(&self, most: u64) -> Result<u64> {
        let Some(condition) = self.core.condition else {
            return Err(self.no_condition("a chain that names none"));
        };
        if self.count == 0 {
            return Err(self.no_condition("a look at it every 0 replays"));
        }
        let mut ran = 0;
        loop {
            let count = self.count.min(most - ran);
            let goes_on = Replay { count, ..*self }.queue_and_look(condition)?;
            ran += count;
            if ran == most || !goes_on {
                return Ok(ran);
            }
        }
    }

    /// Queues replays, and reads the array that says whether there are to be more. Without replays
    /// it checks the arguments.
    fn queue_and_look(&self, condition: usize) -> Result<bool> {
        let mut instance = self.take_instance()?;
        let outcome = self.queue_then_look(&mut instance, condition);
        self.instances.keep(instance);
        outcome
    }

    fn queue_then_look(&self, instance: &mut Instance, condition: usize) -> Result<bool> {
        let is_other = |array: &BoundArray<'_>| array.len != 1;
        if let Some(array) = instance.array(condition, self.bound).filter(is_other) {
            let described = BoundArgument::Array(array).describe();
            return Err(self.no_condition(&described));
        }
        self.queue_if_any(instance)?;
        match instance.array(condition, self.bound) {
            Some(array) if self.count > 0 => self.is_set(&array),
            _ => Ok(false),
        }
    }

    /// Whether the only element of an array is not 0.
    fn is_set(&self, array: &BoundArray<'_>) -> Result<bool> {
        let (stored, title) = (array.stored(), &self.core.title);
        let (mut value, offset) = ([0; 4], array.view.offset);
        if !transfer::read_newest(array.storage, offset, &mut value, self.site) {
            let selection = stored.selection();
            let request = stored.request(&selection, Access::Read, title, self.site);
            let read = transfer::read_element(&request)?;
            let read = read.as_deref().and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            value = read.unwrap_or_default();
        }
        Ok(u32::from_ne_bytes(value) != 0)
    }

    #[cold]
    fn no_condition(&self, seen: &str) -> Error {
        Error::Shape {
            call: CalledAt::from(self.site),
            operation: format!("repeat_while_on of {}", self.core.title),
            expected: String::from(
                "an array of one element, named by `repeat_while` of the recorder",
            ),
            seen: String::from(seen),
            instead: "name the array when the chain is recorded, or use `repeat_on`".into(),
        }
    }
}
