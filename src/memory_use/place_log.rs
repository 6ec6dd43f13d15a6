//! What happened at one place.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::place::Place;
use resident_backend::call_site::CallSite;
use resident_backend::timeline;
use resident_documents::{
    DocumentMemoryHolder, DocumentMemoryMoment, DocumentMemoryPoint, DocumentMemoryUse,
};

/// So many names and calls are distinguished.
const HOLDERS_MAX: usize = 1 << 12;

/// So many of them are named in a report.
const HOLDERS_NAMED: usize = 64;

/// The first holder is of memory that was in use before, the second of what comes beyond
/// [`HOLDERS_MAX`].
const BEFORE: u32 = 0;
const OTHERS: u32 = 1;

/// The series has at most so many points.
const POINTS_MAX: usize = 1 << 10;

/// Whose memory was allocated, and by which call.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) array: Arc<str>,
    pub(crate) site: CallSite,
}

/// What happened at a place since one moment.
#[derive(Debug)]
pub(super) struct PlaceLog {
    number: u64,
    name: Arc<str>,
    started_ns: u64,
    before: u64,
    in_use: u64,
    /// The live allocations that the log knows: the holder and the bytes, by the key.
    live: FxHashMap<u64, (u32, u64)>,
    numbers: FxHashMap<(Arc<str>, usize), u32>,
    holders: Vec<Holder>,
    peak_ns: u64,
    peak: u64,
    /// Rises with each peak.
    peak_number: u64,
    refusal: Option<DocumentMemoryMoment>,
    series: Series,
}

/// Allocations of one name by one call.
#[derive(Debug)]
struct Holder {
    array: Arc<str>,
    site: Option<CallSite>,
    now: Held,
    /// What it was at the peak with this number. If that is not the last one, the holder has not
    /// changed since.
    at_peak: (u64, Held),
}

#[derive(Clone, Copy, Default, Debug)]
struct Held {
    count: u64,
    bytes: u64,
}

impl Holder {
    fn new(array: &Arc<str>, site: Option<CallSite>) -> Self {
        let (now, at_peak) = (Held::default(), (0, Held::default()));
        Self { array: Arc::clone(array), site, now, at_peak }
    }
}

impl PlaceLog {
    /// `started_ns` may be earlier than now: nothing has happened since.
    pub(super) fn new(place: &Place, started_ns: u64) -> Self {
        let before = place.gauge.in_use();
        let mut holders =
            ["(before the report)", "(others)"].map(|name| Holder::new(&name.into(), None));
        holders[BEFORE as usize].now.bytes = before;
        Self {
            number: place.number,
            name: Arc::clone(&place.name),
            started_ns,
            before,
            in_use: before,
            live: FxHashMap::default(),
            numbers: FxHashMap::default(),
            holders: holders.into(),
            peak_ns: 0,
            peak: before,
            peak_number: 1,
            refusal: None,
            series: Series::new(before),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Begins again with what is in use.
    pub(super) fn restart(&mut self, started_ns: u64) {
        self.started_ns = started_ns;
        (self.before, self.peak, self.peak_ns) = (self.in_use, self.in_use, 0);
        self.peak_number += 1;
        self.refusal = None;
        self.series = Series::new(self.in_use);
    }

    pub(super) fn add(&mut self, key: u64, bytes: u64, owner: &Owner) {
        // Memory that grows stays that of the call that allocated first.
        let known = self.live.get(&key).copied();
        let (holder, before) = known.unwrap_or_else(|| (self.holder(owner), 0));
        self.change(holder, |held| {
            held.count += u64::from(before == 0);
            held.bytes += bytes;
        });
        self.live.insert(key, (holder, before + bytes));
        self.in_use += bytes;
        let at_ns = self.note();
        if self.in_use > self.peak {
            (self.peak, self.peak_ns) = (self.in_use, at_ns);
            self.peak_number += 1;
        }
    }

    pub(super) fn remove(&mut self, key: u64, bytes: u64) {
        let (holder, known) = self.live.remove(&key).unwrap_or((BEFORE, bytes));
        let left = known.saturating_sub(bytes);
        if left > 0 {
            self.live.insert(key, (holder, left));
        }
        self.change(holder, |held| {
            held.count = held.count.saturating_sub(u64::from(left == 0));
            held.bytes = held.bytes.saturating_sub(bytes.min(known));
        });
        // Some of it may have been there before the log began.
        self.change(BEFORE, |held| {
            held.bytes = held.bytes.saturating_sub(bytes.saturating_sub(known));
        });
        self.in_use = self.in_use.saturating_sub(bytes);
        self.note();
    }

    pub(super) fn note_refused(&mut self, bytes: u64) {
        let holders = self.holders.iter().map(|holder| (holder, holder.now));
        self.refusal = Some(DocumentMemoryMoment {
            at_ns: self.now_ns(),
            bytes: self.in_use,
            refused: Some(bytes),
            holders: named(holders.collect()),
        });
    }

    fn now_ns(&self) -> u64 {
        timeline::now_ns().saturating_sub(self.started_ns)
    }

    /// Adds a point to the series, and returns its time.
    fn note(&mut self) -> u64 {
        let at_ns = self.now_ns();
        self.series.add(DocumentMemoryPoint { at_ns, bytes: self.in_use });
        at_ns
    }

    fn holder(&mut self, owner: &Owner) -> u32 {
        let Owner { array, site } = owner;
        let key = (Arc::clone(array), std::ptr::from_ref(*site).addr());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.holders.len() >= HOLDERS_MAX {
            return OTHERS;
        }
        let number = self.holders.len() as u32;
        self.holders.push(Holder::new(array, Some(site)));
        self.numbers.insert(key, number);
        number
    }

    fn change(&mut self, holder: u32, change: impl FnOnce(&mut Held)) {
        let holder = &mut self.holders[holder as usize];
        if holder.at_peak.0 != self.peak_number {
            holder.at_peak = (self.peak_number, holder.now);
        }
        change(&mut holder.now);
    }

    pub(super) fn to_document(&self) -> DocumentMemoryUse {
        let at_peak = |holder: &Holder| match holder.at_peak {
            (number, held) if number == self.peak_number => held,
            _ => holder.now,
        };
        let holders = self.holders.iter().map(|holder| (holder, at_peak(holder)));
        DocumentMemoryUse {
            device: self.name.to_string(),
            before: self.before,
            in_use: self.in_use,
            peak: DocumentMemoryMoment {
                at_ns: self.peak_ns,
                bytes: self.peak,
                refused: None,
                holders: named(holders.collect()),
            },
            out_of_memory: self.refusal.clone(),
            series: self.series.points.clone(),
        }
    }
}

/// The largest holders, and what is left together.
fn named(mut all: Vec<(&Holder, Held)>) -> Vec<DocumentMemoryHolder> {
    all.retain(|(_, held)| held.bytes > 0);
    all.sort_by_key(|(holder, held)| (std::cmp::Reverse(held.bytes), &holder.array, holder.site));
    let mut others = Held::default();
    let mut holders = Vec::new();
    for (holder, held) in all {
        if holders.len() < HOLDERS_NAMED {
            holders.push(DocumentMemoryHolder {
                array: holder.array.to_string(),
                site: holder.site.map(|site| site.to_string()),
                count: held.count,
                bytes: held.bytes,
            });
        } else {
            others.count += held.count;
            others.bytes += held.bytes;
        }
    }
    if others.bytes > 0 {
        let Held { count, bytes } = others;
        let array = "(others)".to_owned();
        holders.push(DocumentMemoryHolder { array, site: None, count, bytes });
    }
    holders
}

/// The bytes in use over time. Once there are many points, each is the most of a part of the time.
#[derive(Debug)]
struct Series {
    points: Vec<DocumentMemoryPoint>,
    /// The length of a part of the time.
    part_ns: u64,
}

impl Series {
    fn new(bytes: u64) -> Self {
        Self { points: vec![DocumentMemoryPoint { at_ns: 0, bytes }], part_ns: 1 }
    }

    fn add(&mut self, point: DocumentMemoryPoint) {
        if !self.joined(point) {
            self.points.push(point);
        }
        while self.points.len() > POINTS_MAX {
            self.part_ns *= 2;
            for point in std::mem::take(&mut self.points) {
                if !self.joined(point) {
                    self.points.push(point);
                }
            }
        }
    }

    /// Joins a point to the last one, if both are in the same part of the time.
    fn joined(&mut self, point: DocumentMemoryPoint) -> bool {
        let part = |point: &DocumentMemoryPoint| point.at_ns / self.part_ns;
        let Some(last) = self.points.last_mut().filter(|last| part(last) == part(&point)) else {
            return false;
        };
        if point.bytes > last.bytes {
            *last = point;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{POINTS_MAX, Series};
    use resident_documents::DocumentMemoryPoint;

    #[test]
    fn a_long_series_keeps_its_highest_points_and_its_order() {
        let mut series = Series::new(5);
        for at_ns in 1..=100_000 {
            let bytes = if at_ns == 77_777 { 1_000 } else { at_ns % 10 };
            series.add(DocumentMemoryPoint { at_ns, bytes });
        }
        let points = &series.points;
        assert!((POINTS_MAX / 4..=POINTS_MAX).contains(&points.len()), "{}", points.len());
        assert!(points.is_sorted_by_key(|point| point.at_ns));
        assert!(points.contains(&DocumentMemoryPoint { at_ns: 77_777, bytes: 1_000 }));
        assert!(points.last().is_some_and(|last| last.at_ns > 99_000));
    }
}
