//! What one report moves more than another.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem;

use resident_documents::{Document, DocumentSite, Flow, grouped, shown, visible};

use crate::table::sum;

/// A comparison.
pub(crate) struct Diff {
    pub(crate) text: String,
    /// Whether bytes or copies of a direction grew by more than the tolerance.
    pub(crate) is_worse: bool,
}

/// Compares two reports; `tolerance` is in percent.
pub(crate) fn of(before: &Document, after: &Document, tolerance: f64) -> Diff {
    let directions = [
        ("to devices", before.to_device, after.to_device),
        ("to the host", before.to_host, after.to_host),
        ("between devices", before.between_devices, after.between_devices),
    ];
    let messages = [
        ("sent to ranks", before.sent, after.sent),
        ("from ranks", before.received, after.received),
    ];
    let messages = messages.into_iter().filter(|(_, before, after)| before.count + after.count > 0);
    let mut text = String::new();
    let mut is_worse = false;
    for (name, before, after) in directions.into_iter().chain(messages) {
        let over = grows(before.bytes, after.bytes, tolerance)
            || grows(before.count, after.count, tolerance);
        is_worse |= over;
        let mark = if over { "  MORE" } else { "" };
        text += &format!("{name:<16} {before} -> {after}{mark}\n");
    }
    text.extend(changes(before, after).iter().map(Change::text));
    Diff { text, is_worse }
}

/// Whether a number grew by more than so many percent.
fn grows(before: u64, after: u64, tolerance: f64) -> bool {
    after as f64 > before as f64 * (1.0 + tolerance / 100.0)
}

/// What two reports have in common: lines of a program come and go above what stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'d> {
    /// The array's name, of an unnamed one without the line that made it.
    array: &'d str,
    cause: &'d str,
    direction: &'d str,
    file: &'d str,
}

/// The copies of a key at one line, of arrays of one name.
#[derive(Clone, Copy)]
struct Place<'d> {
    /// `None` if the call is not named by a file and a line.
    line: Option<u64>,
    array: &'d str,
    flow: Flow,
}

/// Copies that differ; `None` where one of the reports does not have them.
struct Change<'d> {
    key: Key<'d>,
    before: Option<Place<'d>>,
    after: Option<Place<'d>>,
}

impl Change<'_> {
    fn flows(&self) -> (Flow, Flow) {
        let of = |place: Option<Place<'_>>| place.map(|place| place.flow).unwrap_or_default();
        (of(self.before), of(self.after))
    }

    /// By how many bytes, and by how many copies it grew.
    fn growth(&self) -> (i128, i128) {
        let (before, after) = self.flows();
        let growth = |before: u64, after: u64| i128::from(after) - i128::from(before);
        (growth(before.bytes, after.bytes), growth(before.count, after.count))
    }

    fn text(&self) -> String {
        let Key { cause, direction, file, .. } = self.key;
        let (bytes, copies) = self.growth();
        let Some(place) = self.after.or(self.before) else { return String::new() };
        let copies = match copies {
            0 => String::new(),
            _ => format!(", {} {}", signed(copies), counted(copies, "copy", "copies")),
        };
        let line = place.line.map_or_else(String::new, |line| format!(":{line}"));
        let moved_from = match (self.before.and_then(|before| before.line), self.after) {
            (Some(line), Some(after)) if after.line != Some(line) => {
                format!(" (line {line} before)")
            }
            _ => String::new(),
        };
        format!(
            "  {} {}{copies} {} of \"{}\" for {} at {}{line}{moved_from}\n",
            signed(bytes),
            counted(bytes, "byte", "bytes"),
            visible(direction),
            shown(place.array),
            visible(cause),
            visible(file),
        )
    }
}

/// `+4_000`, `-4_000`, `0`.
fn signed(number: i128) -> String {
    let sign = match number.signum() {
        1 => "+",
        0 => "",
        _ => "-",
    };
    format!("{sign}{}", grouped(u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX)))
}

fn counted<'t>(number: i128, one: &'t str, many: &'t str) -> &'t str {
    if number.abs() == 1 { one } else { many }
}

/// The copies that differ, by the growth of their bytes.
fn changes<'d>(before: &'d Document, after: &'d Document) -> Vec<Change<'d>> {
    let mut olds = places(before);
    let mut changes = Vec::new();
    for (key, new) in places(after) {
        changes.extend(paired(key, olds.remove(&key).unwrap_or_default(), new));
    }
    changes.extend(olds.into_iter().flat_map(|(key, old)| paired(key, old, Vec::new())));
    changes.sort_by_key(|change| Reverse(change.growth()));
    changes
}

/// The copies by key; those of a key in the order of their lines.
fn places(document: &Document) -> BTreeMap<Key<'_>, Vec<Place<'_>>> {
    let mut flows: BTreeMap<(Key<'_>, Option<u64>, &str), Flow> = BTreeMap::new();
    for site in &document.sites {
        let (key, line) = key(site);
        let flow = flows.entry((key, line, &site.array)).or_default();
        *flow = sum(*flow, Flow { count: site.count, bytes: site.bytes });
    }
    let mut places: BTreeMap<Key<'_>, Vec<Place<'_>>> = BTreeMap::new();
    for ((key, line, array), flow) in flows {
        places.entry(key).or_default().push(Place { line, array, flow });
    }
    places
}

/// The key of a site, and its line.
fn key(site: &DocumentSite) -> (Key<'_>, Option<u64>) {
    let split = split_site(&site.site);
    let (file, line) = split.map_or((&*site.site, None), |(file, line)| (file, Some(line)));
    let array = split_site(&site.array).map_or(&*site.array, |(without_line, _)| without_line);
    (Key { array, cause: &site.cause, direction: &site.direction, file }, line)
}

/// What is before the line and the column at the end of a text, and the line.
fn split_site(text: &str) -> Option<(&str, u64)> {
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    column.parse::<u64>().ok()?;
    Some((file, line.parse().ok()?))
}

/// Pairs the copies of one key, and returns the pairs that differ. Those of the same line with the
/// same figures are one, then those with the same figures. Of what is left, those of one order are
/// pairs if they are as many; else those of one line.
fn paired<'d>(key: Key<'d>, mut old: Vec<Place<'d>>, mut new: Vec<Place<'d>>) -> Vec<Change<'d>> {
    let figures = |place: &Place<'_>| (place.flow.count, place.flow.bytes);
    take_pairs(&mut old, &mut new, |place| (place.line, figures(place)));
    take_pairs(&mut old, &mut new, figures);
    let mut pairs = Vec::new();
    if old.len() != new.len() {
        pairs = take_pairs(&mut old, &mut new, |place| place.line);
    }
    let many = old.len().max(new.len());
    let (mut old, mut new) = (old.into_iter(), new.into_iter());
    let rest = (0..many).map(|_| (old.next(), new.next()));
    let pairs = pairs.into_iter().map(|(old, new)| (Some(old), Some(new))).chain(rest);
    pairs.map(|(before, after)| Change { key, before, after }).collect()
}

/// Takes out pairs that agree in something, the first with the first.
fn take_pairs<'d, K: Ord>(
    old: &mut Vec<Place<'d>>,
    new: &mut Vec<Place<'d>>,
    common: impl Fn(&Place<'_>) -> K,
) -> Vec<(Place<'d>, Place<'d>)> {
    let mut waiting: BTreeMap<K, Vec<(usize, Place<'d>)>> = BTreeMap::new();
    for (index, place) in mem::take(old).into_iter().enumerate().rev() {
        waiting.entry(common(&place)).or_default().push((index, place));
    }
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    for place in mem::take(new) {
        match waiting.get_mut(&common(&place)).and_then(Vec::pop) {
            Some((_, known)) => pairs.push((known, place)),
            None => left.push(place),
        }
    }
    let mut rest: Vec<(usize, Place<'d>)> = waiting.into_values().flatten().collect();
    rest.sort_by_key(|(index, _)| *index);
    *old = rest.into_iter().map(|(_, place)| place).collect();
    *new = left;
    pairs
}
