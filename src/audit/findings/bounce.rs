//! Arrays that go up and down again and again: a loop in which the host changes what a device
//! computes with.

use super::history::{ArrayEvent, Copied, History, add_site, total_ns};
use crate::audit::document::Finding;

/// So many times down and up again are a loop.
const ROUNDS_MIN: usize = 3;

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    history.arrays().filter_map(|events| finding(&alternating(&events))).collect()
}

/// The copies between the host and devices, without those in the direction of the copy before.
fn alternating<'d>(events: &[ArrayEvent<'d>]) -> Vec<Copied<'d>> {
    let mut copies: Vec<Copied<'d>> = Vec::new();
    for event in events {
        let ArrayEvent::Copied(copy) = event else { continue };
        let is_turn = copies.last().is_none_or(|last| last.direction != copy.direction);
        if copy.direction != "between_devices" && is_turn {
            copies.push(*copy);
        }
    }
    copies
}

/// If the work of the host were done on the device, the first upload and the last download would
/// remain.
fn finding(copies: &[Copied<'_>]) -> Option<Finding> {
    let first_up = copies.iter().position(|copy| copy.direction == "to_device")?;
    let last_down = copies.iter().rposition(|copy| copy.direction == "to_host")?;
    let spared: Vec<&Copied<'_>> = copies
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != first_up && *index != last_down)
        .map(|(_, copy)| copy)
        .collect();
    if spared.len() < 2 * ROUNDS_MIN {
        return None;
    }
    let name = spared[0].name;
    let mut sites = Vec::new();
    spared.iter().for_each(|copy| add_site(&mut sites, copy.site));
    Some(Finding {
        kind: "bounce".to_owned(),
        message: format!(
            "\"{name}\" goes between the host and {} {} times, in both directions in turn",
            spared[0].device,
            copies.len()
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
