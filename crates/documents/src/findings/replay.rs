//! Replays the uses of one array with a change, to find out which of its copies it would save.

use std::collections::BTreeSet;

use super::history::{Copied, copied};
use crate::document::DocumentRecord;

/// A device, or `None` for the host.
type Place<'d> = Option<&'d str>;

/// Something that happened to the array.
enum Step<'d> {
    Copied(Copied<'d>),
    Used(Use<'d>),
}

/// A use by a call.
#[derive(Clone, Copy)]
struct Use<'d> {
    place: Place<'d>,
    reads: bool,
    writes: bool,
    /// Whether it would not write with the change.
    is_changed: bool,
}

/// The model of this file is too simple for what happened.
struct Unsure;

/// The copies that a change would save. Empty if it is not sure: if parts of the array were written
/// or copied by themselves, if a use is not known, or if the model does not make the copies that
/// were made.
///
/// `records` are those of one array, and `is_changed` says which arguments would only be read.
pub(super) fn saved<'d>(
    array: u64,
    records: &[&'d DocumentRecord],
    is_changed: impl Fn(&DocumentRecord, usize) -> bool,
) -> Vec<Copied<'d>> {
    let steps = records.iter().map(|record| step(array, record, &is_changed));
    let steps: Result<Vec<Step<'d>>, Unsure> = steps.filter_map(Result::transpose).collect();
    let Some(steps) = steps.ok().filter(|steps| are_alike(steps)) else { return Vec::new() };
    let made: Vec<Copied<'d>> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Copied(copy) => Some(*copy),
            Step::Used(_) => None,
        })
        .collect();
    let faithful = starts(&steps).into_iter().find(|start| {
        let copies = copies(&steps, start, false);
        copies.len() == made.len()
            && copies.iter().zip(&made).all(|((_, place), copy)| *place == place_of(copy))
    });
    let Some(start) = faithful else { return Vec::new() };
    let (with, without) = (copies(&steps, &start, true), copies(&steps, &start, false));
    let is_saved = |copy: &(usize, Place<'d>)| !with.contains(copy);
    without.iter().zip(made).filter(|(copy, _)| is_saved(copy)).map(|(_, copy)| copy).collect()
}

/// The step of a record, if it is one; an error is what the model cannot do.
fn step<'d>(
    array: u64,
    record: &'d DocumentRecord,
    is_changed: impl Fn(&DocumentRecord, usize) -> bool,
) -> Result<Option<Step<'d>>, Unsure> {
    let (step, is_simple) = match record {
        DocumentRecord::Copy { .. } => {
            let Some(copy) = copied(record) else { return Ok(None) };
            let is_simple = matches!(copy.cause, "launch" | "host" | "gpu" | "prefetch")
                && copy.direction != "between_devices";
            (Step::Copied(copy), is_simple)
        }
        DocumentRecord::Launch { arguments, device, .. } => {
            let mut own = arguments.iter().enumerate().filter(|(_, it)| it.array == array);
            let Some((index, argument)) = own.next() else { return Ok(None) };
            let used = Use {
                place: Some(device),
                reads: argument.access != "out",
                writes: argument.access != "in",
                is_changed: is_changed(record, index),
            };
            let is_simple = own.next().is_none() && (!used.writes || argument.is_whole);
            (Step::Used(used), is_simple)
        }
        DocumentRecord::Access(access) => {
            let used = Use {
                place: access.device.as_deref(),
                reads: access.access != "out",
                writes: access.access != "in",
                is_changed: false,
            };
            (Step::Used(used), !used.writes || access.is_whole)
        }
        DocumentRecord::Eviction(_) => return Err(Unsure),
        _ => return Ok(None),
    };
    if is_simple { Ok(Some(step)) } else { Err(Unsure) }
}

/// Whether all copies are of the same bytes, so of the whole array.
fn are_alike(steps: &[Step<'_>]) -> bool {
    let mut bytes = steps.iter().filter_map(|step| match step {
        Step::Copied(copy) => Some(copy.bytes),
        Step::Used(_) => None,
    });
    bytes.next().is_none_or(|first| bytes.all(|other| other == first))
}

fn place_of<'d>(copy: &Copied<'d>) -> Place<'d> {
    (copy.direction != "to_host").then_some(copy.device)
}

/// Where the array may have been valid at first: where the first step reads it, or everywhere.
fn starts<'d>(steps: &[Step<'d>]) -> [BTreeSet<Place<'d>>; 2] {
    let first = match steps.first() {
        Some(Step::Copied(copy)) if copy.direction == "to_host" => Some(Some(copy.device)),
        Some(Step::Copied(_)) => Some(None),
        Some(Step::Used(used)) => Some(used.place),
        None => None,
    };
    let all = steps.iter().flat_map(|step| match step {
        Step::Copied(copy) => [Some(copy.device), None],
        Step::Used(used) => [used.place, used.place],
    });
    [first.into_iter().collect(), all.collect()]
}

/// The copies that the steps need, by the step that needs them and their destination.
fn copies<'d>(
    steps: &[Step<'d>],
    start: &BTreeSet<Place<'d>>,
    with_change: bool,
) -> Vec<(usize, Place<'d>)> {
    let (mut valid, mut copies) = (start.clone(), Vec::new());
    for (index, step) in steps.iter().enumerate() {
        let (place, reads, writes) = match step {
            Step::Copied(copy) if copy.cause == "prefetch" => (place_of(copy), true, false),
            Step::Copied(_) => continue,
            Step::Used(used) => {
                (used.place, used.reads, used.writes && !(with_change && used.is_changed))
            }
        };
        if reads && !valid.contains(&place) {
            // Devices exchange contents through the host.
            if place.is_some() && valid.insert(None) {
                copies.push((index, None));
            }
            copies.push((index, place));
            valid.insert(place);
        }
        if writes {
            valid = BTreeSet::from([place]);
        }
    }
    copies
}
