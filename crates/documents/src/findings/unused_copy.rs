//! Copies ahead of use that nothing used: prefetches whose destination is overwritten or made stale
//! before anything there reads it, and snapshots that are dropped before anybody takes them.

use std::collections::BTreeMap;

use super::history::{ArrayEvent, Copied, History, Used, about, each_once, total_ns};
use crate::document::{DocumentMemory, Finding};

/// Which finding a copy belongs to: the array's name, the place where it goes, and the call.
type Key<'d> = (&'d str, Option<&'d str>, &'d str, Way);

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
            let place = (copy.direction != "to_host").then_some(copy.device);
            unused.entry((copy.name, place, copy.site, way)).or_default().push(copy);
        }
    }
    unused.iter().map(|(key, copies)| finding(*key, copies)).collect()
}

/// The copies of one array that nothing used.
fn unused_of<'d>(events: &[ArrayEvent<'d>]) -> Vec<(Way, Copied<'d>)> {
    let (mut pending, mut snapshots, mut unused) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            ArrayEvent::Copied(copy) => {
                // What it reads is of use.
                pending.retain(|known: &Copied<'d>| place_of(known) != copy.from());
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

/// Where a copy goes: a device, or `None` for the host.
fn place_of<'d>(copy: &Copied<'d>) -> Option<&'d str> {
    (copy.direction != "to_host").then_some(copy.device)
}

/// Takes the copies that a use makes stale, if nothing has read them. After a write of a part it is
/// not known which of them something may still read.
fn superseded<'d>(pending: &mut Vec<Copied<'d>>, used: &Used<'d>) -> Vec<Copied<'d>> {
    if used.reads {
        pending.retain(|copy| place_of(copy) != used.device);
    }
    match (used.writes, used.writes_all) {
        (false, _) => Vec::new(),
        (true, true) => std::mem::take(pending),
        (true, false) => {
            pending.clear();
            Vec::new()
        }
    }
}

/// Takes the oldest snapshot of those that may be this one.
fn discarded<'d>(snapshots: &mut Vec<Copied<'d>>, memory: &DocumentMemory) -> Option<Copied<'d>> {
    let is_this = |copy: &Copied<'_>| {
        (copy.site, copy.bytes, copy.device) == (&*memory.site, memory.bytes, &*memory.device)
    };
    snapshots.iter().position(is_this).map(|index| snapshots.remove(index))
}

fn finding((name, place, _, way): Key<'_>, copies: &[Copied<'_>]) -> Finding {
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
        ..about(name, (kind, message, change), each_once(copies.iter().map(|copy| copy.site)))
    }
}
