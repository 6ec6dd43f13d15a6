//! What findings of one cause have in common, and their figures together.

use std::collections::BTreeMap;

use super::symbols::{Symbol, Symbols};
use crate::document::DocumentFinding;
use crate::text::shown;
use crate::totals::grouped;

/// So many findings of a kind are distinguished. Later ones are dropped.
const GROUPS_MAX: usize = 1 << 14;

/// So many call sites of a finding are named.
const SITES_MAX: usize = 8;

/// Figures that add up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// How many arrays, or series of copies of one array, it is about.
    pub(super) arrays: u64,
    /// How often it happened.
    pub(super) times: u64,
    /// How many copies the change would save, and how many bytes.
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// A number of bytes that the message has.
    pub(super) all_bytes: u64,
    /// The time that the change would save.
    pub(super) time: Time,
}

/// A sum of times, if all are known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time {
    known_ns: u64,
    is_unknown: bool,
}

impl Time {
    pub(super) fn of(nanoseconds: Option<u64>) -> Self {
        Self { known_ns: nanoseconds.unwrap_or(0), is_unknown: nanoseconds.is_none() }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.known_ns = self.known_ns.saturating_add(other.known_ns);
        self.is_unknown |= other.is_unknown;
    }

    pub(super) fn get(self) -> Option<u64> {
        (!self.is_unknown).then_some(self.known_ns)
    }
}

impl Tally {
    /// One copy that would be saved.
    pub(super) fn copy(bytes: u64, nanoseconds: Option<u64>) -> Self {
        let time = Time::of(nanoseconds);
        Self { arrays: 0, times: 1, count: 1, bytes, all_bytes: bytes, time }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.arrays += other.arrays;
        self.times += other.times;
        self.count += other.count;
        self.bytes += other.bytes;
        self.all_bytes += other.all_bytes;
        self.time.add(other.time);
    }
}

/// Call sites, each once, in the order in which they came.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Sites(Vec<Symbol>);

impl Sites {
    pub(super) fn of(sites: &[Symbol]) -> Self {
        let mut all = Self::default();
        sites.iter().for_each(|site| all.add(*site));
        all
    }

    pub(super) fn add(&mut self, site: Symbol) {
        if self.0.len() < SITES_MAX && !self.0.contains(&site) {
            self.0.push(site);
        }
    }

    pub(super) fn add_all(&mut self, others: &Self) {
        others.0.iter().for_each(|site| self.add(*site));
    }

    pub(super) fn texts(&self, symbols: &Symbols) -> Vec<String> {
        self.0.iter().map(|site| symbols.text(*site).to_owned()).collect()
    }
}

/// The figures of each finding of a kind, by what distinguishes them.
#[derive(Clone, Debug)]
pub(super) struct Groups<K>(BTreeMap<K, Tally>);

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Groups<K> {
    pub(super) fn add(&mut self, key: K, tally: &Tally) {
        if self.0.len() < GROUPS_MAX || self.0.contains_key(&key) {
            self.0.entry(key).or_default().add(tally);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &Tally)> {
        self.0.iter()
    }
}

/// What a finding says.
pub(super) struct Text<'t> {
    pub(super) kind: &'t str,
    pub(super) message: String,
    pub(super) change: &'t str,
}

/// A finding about an array.
pub(super) fn finding(
    name: &str,
    text: Text<'_>,
    sites: Vec<String>,
    tally: &Tally,
) -> DocumentFinding {
    DocumentFinding {
        kind: text.kind.to_owned(),
        message: text.message,
        change: text.change.to_owned(),
        sites,
        array: Some(name.to_owned()),
        count: tally.count,
        bytes: tally.bytes,
        nanoseconds: tally.time.get(),
        host_memory_bytes: 0,
    }
}

/// The name as it is in messages.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", shown(name))
}

/// The arrays of this name: what messages begin with.
pub(super) fn subject(name: &str, arrays: u64) -> String {
    match arrays {
        0 | 1 => quoted(name),
        _ => format!("{} arrays {}", grouped(arrays), quoted(name)),
    }
}

/// `once`, `1_000 times`.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{} times", grouped(count)),
    }
}

/// Nothing for once, else `, 1_000 times`.
pub(super) fn repeated(count: u64) -> String {
    if count == 1 { String::new() } else { format!(", {}", times(count)) }
}

/// `1 copy`, `1_000 copies`.
pub(super) fn copies(count: u64) -> String {
    match count {
        1 => "1 copy".to_owned(),
        _ => format!("{} copies", grouped(count)),
    }
}
