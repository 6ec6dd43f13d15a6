//! Arrays that a full device gave up, and that were copied to it again.

use super::history::{ArrayEvent, Copied, History, each_once, total_ns};
use crate::document::{DocumentMemory, Finding};

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    history.arrays().filter_map(|events| finding(&copied_again(&events))).collect()
}

/// The first upload after each eviction, if nothing but the eviction made it necessary.
fn copied_again<'d>(events: &[ArrayEvent<'d>]) -> Vec<Copied<'d>> {
    let mut evicted = Vec::new();
    let mut again = Vec::new();
    for event in events {
        match event {
            ArrayEvent::Evicted(memory) => evicted.push(*memory),
            ArrayEvent::Copied(copy) if copy.direction == "to_device" => {
                let is_there = |memory: &&DocumentMemory| memory.device == copy.device;
                let own = evicted.iter().position(is_there).map(|index| evicted.remove(index));
                let is_due_to = |memory: &DocumentMemory| copy.stale_since == Some(&*memory.site);
                again.extend(own.filter(|memory| is_due_to(memory)).map(|_| *copy));
            }
            _ => {}
        }
    }
    again
}

fn finding(copies: &[Copied<'_>]) -> Option<Finding> {
    let first = copies.first()?;
    let sites = each_once(copies.iter().map(|copy| copy.site));
    Some(Finding {
        kind: "evicted".to_owned(),
        message: format!(
            "\"{}\" was evicted from {}, whose memory was full, and copied there again, {} times",
            first.name,
            first.device,
            copies.len()
        ),
        change: "Drop or release arrays that are not needed there any more, or work on parts that \
                 fit together."
            .to_owned(),
        sites,
        array: Some(first.name.to_owned()),
        count: copies.len() as u64,
        bytes: copies.iter().map(|copy| copy.bytes).sum(),
        nanoseconds: total_ns(copies.iter().map(|copy| copy.duration_ns())),
    })
}
