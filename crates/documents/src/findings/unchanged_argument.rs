//! Arguments that kernels declare as `InOut` and never change.

use std::collections::BTreeMap;

use super::history::{Copied, History, each_once, total_ns};
use super::replay;
use crate::document::{DocumentArgument, DocumentRecord, Finding};

/// A kernel that was launched fewer times is left alone: it may change the argument another time.
const LAUNCHES_MIN: usize = 3;

/// One of the array arguments of a kernel, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Parameter<'d> {
    kernel: &'d str,
    index: usize,
}

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    let unchanged = parameters(history).into_iter().filter(|(_, changes)| {
        changes.len() >= LAUNCHES_MIN && changes.iter().all(|changed| *changed == Some(0))
    });
    unchanged
        .filter_map(|(parameter, changes)| finding(history, parameter, changes.len()))
        .collect()
}

/// For each `InOut` parameter how many bytes each launch has changed.
fn parameters<'d>(history: &History<'d>) -> BTreeMap<Parameter<'d>, Vec<Option<u64>>> {
    let mut parameters: BTreeMap<Parameter<'d>, Vec<Option<u64>>> = BTreeMap::new();
    for record in history.records() {
        let DocumentRecord::Launch { name, arguments, .. } = record else { continue };
        for (index, argument) in arguments.iter().enumerate() {
            if argument.access == "in_out" {
                let parameter = Parameter { kernel: name, index };
                parameters.entry(parameter).or_default().push(argument.changed_bytes);
            }
        }
    }
    parameters
}

fn finding(history: &History<'_>, parameter: Parameter<'_>, launches: usize) -> Option<Finding> {
    let Parameter { kernel, index } = parameter;
    let is_this = |record: &DocumentRecord, place: usize| {
        matches!(record, DocumentRecord::Launch { name, .. } if name == kernel) && place == index
    };
    let mut saved: Vec<Copied<'_>> = Vec::new();
    for (array, records) in history.records_by_array() {
        let is_argument = |record: &&DocumentRecord| argument(record, kernel, index) == Some(array);
        if records.iter().any(is_argument) {
            saved.extend(replay::saved(array, &records, is_this));
        }
    }
    let first = saved.first()?;
    let launched = history.records().filter_map(|record| match record {
        DocumentRecord::Launch { name, site, .. } if name == kernel => Some(&**site),
        _ => None,
    });
    let sites = each_once(launched.chain(saved.iter().map(|copy| copy.site)));
    Some(Finding {
        kind: "unchanged_argument".to_owned(),
        message: format!(
            "array argument {index} of kernel \"{kernel}\" is `InOut`, and {launches} launches \
             have changed none of its elements"
        ),
        change: "Declare it as `In`, if the kernel never changes it: then its other copies stay \
                 valid."
            .to_owned(),
        sites,
        array: Some(first.name.to_owned()),
        count: saved.len() as u64,
        bytes: saved.iter().map(|copy| copy.bytes).sum(),
        nanoseconds: total_ns(saved.iter().map(|copy| copy.duration_ns())),
    })
}

/// The array that a launch of the kernel gets as this argument.
fn argument(record: &DocumentRecord, kernel: &str, index: usize) -> Option<u64> {
    match record {
        DocumentRecord::Launch { name, arguments, .. } if name == kernel => {
            arguments.get(index).map(|DocumentArgument { array, .. }| *array)
        }
        _ => None,
    }
}
