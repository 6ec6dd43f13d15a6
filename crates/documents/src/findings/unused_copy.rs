//! Copies ahead of use that nothing used: prefetches whose destination is overwritten or made stale
//! before anything there reads it, and snapshots that are dropped before anybody takes them.

use std::collections::BTreeMap;

use super::history::{ArrayEvent, Copied, History, Text, Used, about, each_once, total_ns};
use crate::document::{DocumentMemory, Finding};

/// Which finding a copy belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key<'d> {
    array: &'d str,
    /// Where it goes: a device, or `None` for the host.
    place: Option<&'d str>,
    site: &'d str,
    way: Way,
}

/// How a copy is wasted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    Superseded,
    Discarded,
}

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    let mut unused: BTreeMap<Key<'_>, Vec<Copied<'_>>> = BTreeMap::new();
    for events in history.arrays() {
        for (way, copy) in unused_of(&events) {
            let key = Key { array: copy.name, place: copy.to(), site: copy.site, way };
            unused.entry(key).or_default().push(copy);
        }
    }
    unused.iter().map(|(key, copies)| finding(*key, copies)).collect()
}

/// The copies of one array that nothing used.
fn unused_of<'d>(events: &[ArrayEvent<'d>]) -> Vec<(Way, Copied<'d>)> {
    let mut pending = Vec::new();
    let mut snapshots = Vec::new();
    let mut unused = Vec::new();
    for event in events {
        match event {
            ArrayEvent::Copied(copy) => {
                // What it reads is of use.
                pending.retain(|known: &Copied<'d>| known.to() != copy.from());
                match copy.cause {
                    "prefetch" => pending.push(*copy),
                    "explicit" if copy.direction == "to_host" => snapshots.push(*copy),
                    _ => {}
                }
            }
            ArrayEvent::Used(used) => {
                let superseded = superseded(&mut pending, used);
                unused.extend(superseded.into_iter().map(|copy| (Way::Superseded, copy)));
            }
            ArrayEvent::Discarded(memory) => {
                let discarded = discarded(&mut snapshots, memory);
                unused.extend(discarded.map(|copy| (Way::Discarded, copy)));
            }
            ArrayEvent::Unknown => pending.clear(),
            ArrayEvent::Evicted(_) => {}
        }
    }
    unused
}

/// Takes the copies that a use makes stale, if nothing has read them. After a write of a part it is
/// not known which of them something may still read.
fn superseded<'d>(pending: &mut Vec<Copied<'d>>, used: &Used<'d>) -> Vec<Copied<'d>> {
    if used.reads {
        pending.retain(|copy| copy.to() != used.device);
    }
    if !used.writes {
        return Vec::new();
    }
    let stale = std::mem::take(pending);
    if used.writes_all { stale } else { Vec::new() }
}

/// Takes the oldest snapshot of those that may be this one.
fn discarded<'d>(snapshots: &mut Vec<Copied<'d>>, memory: &DocumentMemory) -> Option<Copied<'d>> {
    let is_this = |copy: &Copied<'_>| {
        (copy.site, copy.bytes, copy.device) == (&*memory.site, memory.bytes, &*memory.device)
    };
    snapshots.iter().position(is_this).map(|index| snapshots.remove(index))
}

fn finding(key: Key<'_>, copies: &[Copied<'_>]) -> Finding {
    let Key { array: name, place, way, .. } = key;
    let kind = if place.is_some() { "overwritten_upload" } else { "unread_download" };
    let (message, change) = match way {
        Way::Superseded => (
            format!(
                "\"{name}\" is copied to {} ahead of use, and changes before anything reads it \
                 there",
                place.unwrap_or("the host")
            ),
            match place {
                Some(_) => "Leave out the prefetch: what is written as a whole needs no contents.",
                None => "Leave out the `prefetch_host`, or read the array before it changes.",
            },
        ),
        Way::Discarded => (
            format!("a snapshot of \"{name}\" is dropped before anybody takes it"),
            "Leave out the snapshot, or take it by `wait` or `await`.",
        ),
    };
    Finding {
        count: copies.len() as u64,
        bytes: copies.iter().map(|copy| copy.bytes).sum(),
        nanoseconds: total_ns(copies.iter().map(|copy| copy.duration_ns())),
        ..about(
            name,
            Text { kind, message, change },
            each_once(copies.iter().map(|copy| copy.site)),
        )
    }
}
