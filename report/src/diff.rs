//! What one report moves more than another.

use std::collections::BTreeMap;

use resident_documents::{Document, Flow, grouped, visible};

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
        text += &format!("{name:<16} {} -> {}{mark}\n", flow(before), flow(after));
    }
    for line in site_changes(before, after) {
        text += &line;
    }
    Diff { text, is_worse }
}

/// Whether a number grew by more than so many percent.
fn grows(before: u64, after: u64, tolerance: f64) -> bool {
    after as f64 > before as f64 * (1.0 + tolerance / 100.0)
}

fn flow(Flow { count, bytes }: Flow) -> String {
    let copies = if count == 1 { "copy" } else { "copies" };
    format!("{} bytes in {} {copies}", grouped(bytes), grouped(count))
}

/// The copies of an array in a direction at a line of the program, which is named without its
/// column, by the growth of their bytes.
fn site_changes(before: &Document, after: &Document) -> Vec<String> {
    let before = by_line(before);
    let after = by_line(after);
    let mut changes: Vec<(i128, String)> = Vec::new();
    for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
        let of = |flows: &BTreeMap<Key<'_>, Flow>| flows.get(key).copied().unwrap_or_default();
        let old = of(&before);
        let new = of(&after);
        let growth = i128::from(new.bytes) - i128::from(old.bytes);
        if old != new {
            let (line, array, direction) = key;
            let sign = match growth.signum() {
                1 => "+",
                0 => "",
                _ => "-",
            };
            let (array, line) = (visible(array), visible(line));
            let bytes = grouped(u64::try_from(growth.unsigned_abs()).unwrap_or(u64::MAX));
            changes.push((
                growth,
                format!("  {sign}{bytes} bytes {direction} of \"{array}\" at {line}\n"),
            ));
        }
    }
    changes.sort_by_key(|(growth, _)| std::cmp::Reverse(*growth));
    changes.into_iter().map(|(_, line)| line).collect()
}

type Key<'d> = (&'d str, &'d str, &'d str);

fn by_line(document: &Document) -> BTreeMap<Key<'_>, Flow> {
    let mut flows: BTreeMap<Key<'_>, Flow> = BTreeMap::new();
    for site in &document.sites {
        let line = site.site.rsplit_once(':').map_or(&*site.site, |(line, _column)| line);
        let flow = flows.entry((line, &site.array, &site.direction)).or_default();
        flow.count = flow.count.saturating_add(site.count);
        flow.bytes = flow.bytes.saturating_add(site.bytes);
    }
    flows
}
