//! Replays the uses of one array with a change, to find out which of its copies it would save.

use std::collections::BTreeSet;

use super::history::{Copied, copied};
use crate::document::DocumentRecord;

/// A device, or `None` for the host.
type Place<'d> = Option<&'d str>;

/// Something that happened to the array.
enum ReplayStep<'d> {
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

/// What is replayed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    AsRecorded,
    WithChange,
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
    let steps: Result<Vec<ReplayStep<'d>>, Unsure> = steps.filter_map(Result::transpose).collect();
    let Some(steps) = steps.ok().filter(|steps| are_alike(steps)) else { return Vec::new() };
    let made: Vec<Copied<'d>> = steps
        .iter()
        .filter_map(|step| match step {
            ReplayStep::Copied(copy) => Some(*copy),
            ReplayStep::Used(_) => None,
        })
        .collect();
    let faithful = starts(&steps).into_iter().find(|start| {
        let copies = copies(&steps, start, Program::AsRecorded);
        copies.len() == made.len()
            && copies.iter().zip(&made).all(|((_, place), copy)| *place == copy.to())
    });
    let Some(start) = faithful else { return Vec::new() };
    let with = copies(&steps, &start, Program::WithChange);
    let without = copies(&steps, &start, Program::AsRecorded);
    let is_saved = |copy: &(usize, Place<'d>)| !with.contains(copy);
    without.iter().zip(made).filter(|(copy, _)| is_saved(copy)).map(|(_, copy)| copy).collect()
}

/// The step of a record, if it is one; an error is what the model cannot do.
fn step<'d>(
    array: u64,
    record: &'d DocumentRecord,
    is_changed: impl Fn(&DocumentRecord, usize) -> bool,
) -> Result<Option<ReplayStep<'d>>, Unsure> {
    let (step, is_simple) = match record {
        DocumentRecord::Copy { .. } => {
            let Some(copy) = copied(record) else { return Ok(None) };
            let is_simple = matches!(copy.cause, "launch" | "host" | "gpu" | "prefetch")
                && copy.direction != "between_devices";
            (ReplayStep::Copied(copy), is_simple)
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
            (ReplayStep::Used(used), is_simple)
        }
        DocumentRecord::Access(access) => {
            let used = Use {
                place: access.device.as_deref(),
                reads: access.access != "out",
                writes: access.access != "in",
                is_changed: false,
            };
            (ReplayStep::Used(used), !used.writes || access.is_whole)
        }
        DocumentRecord::Eviction(_) => return Err(Unsure),
        _ => return Ok(None),
    };
    if is_simple { Ok(Some(step)) } else { Err(Unsure) }
}

/// Whether all copies are of the same bytes, so of the whole array.
fn are_alike(steps: &[ReplayStep<'_>]) -> bool {
    let mut bytes = steps.iter().filter_map(|step| match step {
        ReplayStep::Copied(copy) => Some(copy.bytes),
        ReplayStep::Used(_) => None,
    });
    bytes.next().is_none_or(|first| bytes.all(|other| other == first))
}

/// Where the array may have been valid at first: where the first step reads it, or everywhere.
fn starts<'d>(steps: &[ReplayStep<'d>]) -> [BTreeSet<Place<'d>>; 2] {
    let first = match steps.first() {
        Some(ReplayStep::Copied(copy)) if copy.direction == "to_host" => Some(Some(copy.device)),
        Some(ReplayStep::Copied(_)) => Some(None),
        Some(ReplayStep::Used(used)) => Some(used.place),
        None => None,
    };
    let all = steps.iter().flat_map(|step| match step {
        ReplayStep::Copied(copy) => [Some(copy.device), None],
        ReplayStep::Used(used) => [used.place, used.place],
    });
    [first.into_iter().collect(), all.collect()]
}

/// The copies that the steps need, by the step that needs them and their destination.
fn copies<'d>(
    steps: &[ReplayStep<'d>],
    start: &BTreeSet<Place<'d>>,
    program: Program,
) -> Vec<(usize, Place<'d>)> {
    let mut valid = start.clone();
    let mut copies = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (place, reads, writes) = match step {
            ReplayStep::Copied(copy) if copy.cause == "prefetch" => (copy.to(), true, false),
            ReplayStep::Copied(_) => continue,
            ReplayStep::Used(used) => {
                let is_spared = program == Program::WithChange && used.is_changed;
                (used.place, used.reads, used.writes && !is_spared)
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
