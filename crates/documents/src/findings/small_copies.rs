//! Many small copies of one array that could be one.

use super::history::{ArrayEvent, Copied, History, total_ns};
use crate::document::Finding;

/// Fewer copies are left alone.
const COUNT_MIN: usize = 32;

/// Larger copies are left alone: the link is busy for longer than the call takes.
const BYTES_MAX: u64 = 4096;

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    history.arrays().flat_map(|events| in_series(&events)).collect()
}

/// Series of copies that one call makes, with no launch between that uses the array, and no other
/// write on a device. What the host does between them, it can do before or after.
fn in_series(events: &[ArrayEvent<'_>]) -> Vec<Finding> {
    let mut series = Vec::<Copied<'_>>::new();
    let mut findings = Vec::new();
    for event in events {
        let next = match event {
            ArrayEvent::Copied(copy) if copy.bytes <= BYTES_MAX => Some(*copy),
            ArrayEvent::Used(used) if !(used.is_launch || used.writes && used.device.is_some()) => {
                continue;
            }
            ArrayEvent::Unknown => continue,
            _ => None,
        };
        let is_same = |last: &Copied<'_>| {
            next.is_some_and(|next| {
                (next.site, next.direction, next.device) == (last.site, last.direction, last.device)
            })
        };
        if !series.last().is_none_or(is_same) {
            findings.extend(finding(&series));
            series.clear();
        }
        series.extend(next);
    }
    findings.extend(finding(&series));
    findings
}

fn finding(series: &[Copied<'_>]) -> Option<Finding> {
    let first = series.first().filter(|_| series.len() >= COUNT_MIN)?;
    let bytes: u64 = series.iter().map(|copy| copy.bytes).sum();
    let longest_ns = series.iter().filter_map(Copied::duration_ns).max().unwrap_or(0);
    let all_ns = total_ns(series.iter().map(Copied::duration_ns));
    Some(Finding {
        kind: "small_copies".to_owned(),
        message: format!(
            "{} copies of \"{}\", {bytes} bytes together, are made one by one",
            series.len(),
            first.name
        ),
        change: match first.direction {
            "to_host" => "Read all of them at once: `host()` of a slice, or of the array.",
            _ => "Bring all of them at once: `prefetch` the array or a slice before.",
        }
        .to_owned(),
        sites: vec![first.site.to_owned()],
        array: Some(first.name.to_owned()),
        count: series.len() as u64 - 1,
        bytes: 0,
        nanoseconds: all_ns.map(|all_ns| all_ns.saturating_sub(longest_ns)),
    })
}
