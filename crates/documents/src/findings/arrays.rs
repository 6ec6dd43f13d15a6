//! What findings know of each array.

use std::collections::BTreeMap;

use super::replay::Replay;
use super::step::Accessed;
use super::step::{Copied, Launched, Memory};
use super::symbols::Symbols;
use super::tally::Groups;
use super::unchanged_argument::Parameters;
use super::used::{Used, arguments_of};
use super::{
    bounce, evicted, idle_host_memory, repeated_upload, small_copies, tiny_arguments,
    unread_write_back, unused_copy,
};

/// So many arrays are looked at at the same time. Those that were used the longest ago are taken to
/// have ended when there are more.
const ARRAYS_MAX: usize = 1 << 13;

/// What happened to one array so far.
#[derive(Clone, Debug, Default)]
struct ArrayState {
    /// The number that its next use has, if the records know of all.
    next_use: Option<u16>,
    has_uses: bool,
    touched: u64,
    bounces: bounce::Bounces,
    evictions: evicted::Evictions,
    series: small_copies::Series,
    pending: unused_copy::Pending,
    write_backs: unread_write_back::WriteBacks,
    host_memory: idle_host_memory::HostMemory,
    tiny: tiny_arguments::TinyUpload,
    replay: Replay,
}

/// The findings that are about single arrays, of all arrays, and the texts that they name.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) symbols: Symbols,
    pub(super) bounces: Groups<bounce::Key>,
    pub(super) evicted: Groups<evicted::Key>,
    pub(super) small_copies: Groups<small_copies::Key>,
    pub(super) unused: Groups<unused_copy::Key>,
    pub(super) unread_write_backs: Groups<unread_write_back::Key>,
    pub(super) idle_host_memory: Groups<idle_host_memory::Key>,
    pub(super) tiny_arguments: Groups<tiny_arguments::Key>,
    pub(super) uploads: repeated_upload::Uploads,
    pub(super) parameters: Parameters,
}

/// All arrays.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrays {
    states: BTreeMap<u64, Box<ArrayState>>,
    /// How often an array was used.
    clock: u64,
}

impl Arrays {
    pub(super) fn add_copy(&mut self, copy: &Copied<'_>, found: &mut Found) {
        let state = self.state(copy.array, found);
        state.note_uses(&[copy.use_number], found);
        state.series.add(copy, &mut found.symbols, &mut found.small_copies);
        state.bounces.add(copy, &mut found.symbols);
        let is_evicted = state.evictions.add_copy(copy, &mut found.symbols);
        if !is_evicted {
            found.uploads.add(copy, &mut found.symbols);
        }
        state.pending.add(copy, &mut found.symbols);
        state.write_backs.add_copy(copy, &mut found.symbols);
        state.host_memory.add_copy(copy, &mut found.symbols);
        state.tiny.add(copy, &mut found.symbols);
        state.replay.add_copy(copy, &mut found.symbols);
        if copy.use_number.is_none() {
            state.become_unknown(found);
        }
    }

    pub(super) fn add_launch(&mut self, launch: &Launched<'_>, found: &mut Found) {
        for (index, argument) in launch.arguments.iter().enumerate() {
            let array = argument.array;
            let earlier = &launch.arguments[..index];
            if earlier.iter().any(|earlier| earlier.array == array) {
                continue;
            }
            let state = self.state(array, found);
            for argument in arguments_of(launch, array) {
                state.note_uses(&[argument.use_number], found);
            }
            let used = Used::of_launch(launch, array, &mut found.symbols);
            state.add_use(&used, found);
            state.replay.add_launch(launch, array, &mut found.symbols);
        }
    }

    pub(super) fn add_access(&mut self, access: &Accessed<'_>, found: &mut Found) {
        let state = self.state(access.array, found);
        state.note_uses(&[Some(access.use_number)], found);
        let used = Used::of_access(access, &mut found.symbols);
        state.add_use(&used, found);
        state.replay.add_access(access, &mut found.symbols);
    }

    pub(super) fn add_eviction(&mut self, memory: &Memory<'_>, found: &mut Found) {
        let state = self.state(memory.array, found);
        state.series.end(&mut found.small_copies);
        state.evictions.add(memory, &mut found.symbols);
        state.replay.become_unsure();
    }

    pub(super) fn add_discard(&mut self, memory: &Memory<'_>, found: &mut Found) {
        let state = self.state(memory.array, found);
        state.pending.add_discard(memory, &mut found.symbols, &mut found.unused);
    }

    /// The array is dropped.
    pub(super) fn end(&mut self, array: u64, use_number: Option<u16>, found: &mut Found) {
        if let Some(mut state) = self.states.remove(&array) {
            state.note_uses(&[use_number], found);
            state.pending.end(&mut found.unused);
            state.write_backs.end(&mut found.unread_write_backs);
            state.host_memory.end(&mut found.idle_host_memory);
            state.close(found);
        }
    }

    /// Adds what is known of all arrays to the findings.
    pub(super) fn close(self, found: &mut Found) {
        self.states.into_values().for_each(|state| state.close(found));
    }

    fn state(&mut self, array: u64, found: &mut Found) -> &mut ArrayState {
        if self.states.len() >= ARRAYS_MAX && !self.states.contains_key(&array) {
            self.close_oldest(found);
        }
        self.clock += 1;
        let state = self.states.entry(array).or_default();
        state.touched = self.clock;
        state
    }

    /// Closes the half of the arrays that were used the longest ago.
    fn close_oldest(&mut self, found: &mut Found) {
        let mut times: Vec<u64> = self.states.values().map(|state| state.touched).collect();
        let middle = times.len() / 2;
        let (_, middle, _) = times.select_nth_unstable(middle);
        let middle = *middle;
        let (kept, old): (BTreeMap<_, _>, _) = std::mem::take(&mut self.states)
            .into_iter()
            .partition(|(_, state)| state.touched >= middle);
        self.states = kept;
        old.into_values().for_each(|state| state.close(found));
    }
}

impl ArrayState {
    /// Compares the numbers of uses with those that come next if the records know of all.
    fn note_uses(&mut self, numbers: &[Option<u16>], found: &mut Found) {
        for number in numbers {
            if self.has_uses && (number.is_none() || self.next_use != *number) {
                self.become_unknown(found);
            }
            self.has_uses = true;
            self.next_use = number.map(|number| number.wrapping_add(1));
        }
    }

    /// Something has used the array of which the records do not know.
    fn become_unknown(&mut self, found: &mut Found) {
        self.series.end(&mut found.small_copies);
        self.pending.forget();
        self.write_backs.forget();
        self.host_memory.forget();
        self.replay.become_unsure();
    }

    fn add_use(&mut self, used: &Used, found: &mut Found) {
        if used.is_launch || used.writes && used.place.is_some() {
            self.series.end(&mut found.small_copies);
        }
        self.pending.add_use(used, &mut found.unused);
        self.write_backs.add_use(used, &mut found.unread_write_backs);
        self.host_memory.add_use(used);
        self.tiny.add_use(used, &mut found.tiny_arguments);
    }

    fn close(mut self, found: &mut Found) {
        self.series.end(&mut found.small_copies);
        self.bounces.close(&mut found.bounces);
        self.evictions.close(&mut found.evicted);
        found.parameters.close(self.replay);
    }
}
