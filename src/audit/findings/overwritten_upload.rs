//! Uploads ahead of use that a kernel overwrites without having read them.

use super::history::{ArrayEvent, Copied, History, add_site, total_ns};
use crate::audit::document::Finding;

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    history.arrays().filter_map(|events| finding(&overwritten(&events))).collect()
}

/// The prefetches to a device whose next use there is a launch of the same thread that writes all
/// of the array and reads none of it. Guards and copies within a device are no records, so a
/// program that reads an array by these alone may have a finding that is none.
fn overwritten<'d>(events: &[ArrayEvent<'d>]) -> Vec<Copied<'d>> {
    let (mut pending, mut overwritten) = (Vec::<Copied<'d>>::new(), Vec::new());
    for event in events {
        match event {
            ArrayEvent::Copied(copy)
                if copy.direction == "to_device" && copy.cause == "prefetch" =>
            {
                pending.push(*copy);
            }
            ArrayEvent::Launched { reads: false, is_whole: true, thread } => {
                overwritten.extend(pending.drain(..).filter(|copy| copy.thread == *thread));
            }
            _ => pending.clear(),
        }
    }
    overwritten
}

fn finding(copies: &[Copied<'_>]) -> Option<Finding> {
    let first = copies.first()?;
    let mut sites = Vec::new();
    copies.iter().for_each(|copy| add_site(&mut sites, copy.site));
    Some(Finding {
        kind: "overwritten_upload".to_owned(),
        message: format!(
            "\"{}\" is copied to {} ahead of use, and a kernel overwrites all of it without \
             reading it",
            first.name, first.device
        ),
        change: "Leave out the prefetch, unless a guard or an `assign` reads it before: an `Out` \
                 argument needs no contents."
            .to_owned(),
        sites,
        array: Some(first.name.to_owned()),
        count: copies.len() as u64,
        bytes: copies.iter().map(|copy| copy.bytes).sum(),
        nanoseconds: total_ns(copies.iter().map(|copy| copy.duration_ns())),
    })
}
