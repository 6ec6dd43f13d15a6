//! Arrays that go up and down again and again: a loop in which the host changes what a device
//! computes with.

use super::history::{ArrayEvent, Copied, History, each_once, total_ns};
use crate::document::Finding;

/// So many times down and up again are a loop.
const ROUNDS_MIN: usize = 3;

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    history.arrays().filter_map(|events| finding(&rounds(&events))).collect()
}

/// Downloads that one call needed which also made the device's copy stale, each with the upload
/// behind it. What the program copies by itself, or in parts, may be needed.
fn rounds<'d>(events: &[ArrayEvent<'d>]) -> Vec<[Copied<'d>; 2]> {
    let mut down = None::<Copied<'d>>;
    let mut rounds = Vec::new();
    for event in events {
        let ArrayEvent::Copied(copy) = event else { continue };
        let is_implicit = matches!(copy.cause, "launch" | "host" | "gpu");
        match (copy.direction, down.take()) {
            ("to_host", _) if is_implicit => down = Some(*copy),
            ("to_device", Some(down))
                if is_implicit
                    && copy.stale_since == Some(down.site)
                    && copy.bytes == down.bytes =>
            {
                rounds.push([down, *copy]);
            }
            _ => {}
        }
    }
    rounds
}

/// If the work of the host were done on the device, the first upload and the last download would
/// remain.
fn finding(rounds: &[[Copied<'_>; 2]]) -> Option<Finding> {
    if rounds.len() < ROUNDS_MIN {
        return None;
    }
    let spared = rounds.as_flattened();
    let name = spared[0].name;
    let sites = each_once(spared.iter().map(|copy| copy.site));
    Some(Finding {
        kind: "bounce".to_owned(),
        message: format!(
            "\"{name}\" goes down from {} and, changed by the host, up again, {} times",
            spared[0].device,
            rounds.len()
        ),
        change: "Let a kernel do on the device what the host does to the array between the \
                 launches, or keep what the host changes in an array of its own."
            .to_owned(),
        sites,
        array: Some(name.to_owned()),
        count: spared.len() as u64,
        bytes: spared.iter().map(|copy| copy.bytes).sum(),
        nanoseconds: total_ns(spared.iter().map(|copy| copy.duration_ns())),
    })
}
