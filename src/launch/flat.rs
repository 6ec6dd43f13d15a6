//! Checks flat arguments, which a body gets as slices: each must be contiguous, and all flat
//! arguments of a launch must have the same axis order, since their elements correspond by position
//! in memory.

use smallvec::SmallVec;

use super::arguments::bound::{BoundArgument, BoundArray};
use crate::error::{CalledAt, Error, Result};
use resident_backend::{ParameterLayout, short_type};
use resident_core::Access;
use resident_core::layout::Strided;
use resident_documents::quoted;

/// The axes longer than 1, slowest in memory first, and whether each runs backwards.
type AxisOrder = SmallVec<[(usize, bool); 6]>;

/// A flat argument, and the index of its parameter.
#[derive(Clone, Copy)]
struct FlatArgument<'a> {
    parameter: usize,
    array: &'a BoundArray<'a>,
}

/// Checks all flat arguments of a launch.
#[cold]
pub(super) fn check(
    kernel: &str,
    bound: &[BoundArgument<'_>],
    layouts: fn() -> Box<[ParameterLayout]>,
) -> Result<()> {
    for argument in flat_arguments(bound) {
        let view = &argument.array.view;
        if !view.is_contiguous() {
            let element = layouts()[argument.parameter].element().rust_name;
            return Err(not_contiguous(kernel, argument, element));
        }
        let mut earlier = flat_arguments(&bound[..argument.parameter]);
        if let Some(other) = earlier.find(|other| !correspond(&other.array.view, view)) {
            return Err(mismatch(kernel, other, argument));
        }
    }
    Ok(())
}

fn flat_arguments<'a>(bound: &'a [BoundArgument<'a>]) -> impl Iterator<Item = FlatArgument<'a>> {
    bound.iter().enumerate().filter_map(|(parameter, argument)| match argument {
        BoundArgument::Array(array) if array.is_flat() => Some(FlatArgument { parameter, array }),
        _ => None,
    })
}

/// Whether elements at the same position in memory have corresponding indices.
fn correspond(one: &Strided<'_>, other: &Strided<'_>) -> bool {
    let are_opposed = match (line_direction(one), line_direction(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    !are_opposed && (!has_order(one) || !has_order(other) || same_order(one, other))
}

/// For a view in which only one axis is longer than 1: whether that axis runs backwards.
fn line_direction(view: &Strided<'_>) -> Option<bool> {
    match order(view).as_slice() {
        [(_, is_backwards)] if view.len() > 1 => Some(*is_backwards),
        _ => None,
    }
}

/// Whether a view restricts the axis order of the other flat arguments. Neither a single element
/// nor a single axis that runs forwards does.
fn has_order(view: &Strided<'_>) -> bool {
    let order = order(view);
    view.len() > 1 && (order.len() > 1 || order.iter().any(|(_, is_backwards)| *is_backwards))
}

fn order(view: &Strided<'_>) -> AxisOrder {
    view.axes_by_stride().into_iter().map(|axis| (axis, view.strides[axis] < 0)).collect()
}

/// Whether the two views are both row-major, or both column-major, or have the same order and
/// directions of axes.
fn same_order(one: &Strided<'_>, other: &Strided<'_>) -> bool {
    let (one, other) = (order(one), order(other));
    let forwards = |order: &AxisOrder| order.iter().all(|(_, is_backwards)| !is_backwards);
    let row_major =
        |order: &AxisOrder| forwards(order) && order.is_sorted_by_key(|(axis, _)| *axis);
    let column_major = |order: &AxisOrder| {
        forwards(order) && order.is_sorted_by_key(|(axis, _)| std::cmp::Reverse(*axis))
    };
    one == other
        || (row_major(&one) && row_major(&other))
        || (column_major(&one) && column_major(&other))
}

fn not_contiguous(kernel: &str, argument: FlatArgument<'_>, element: &str) -> Error {
    let FlatArgument { parameter, array } = argument;
    Error::NotContiguous {
        call: CalledAt::UNKNOWN,
        array: array.storage.named(),
        parameter: format!("parameter {parameter} of kernel {}", quoted(kernel)),
        layout: describe_layout(array),
        instead: what_to_pass(array, element),
    }
}

fn what_to_pass(array: &BoundArray<'_>, element: &str) -> String {
    let (intent, other) = match array.access {
        Access::Read if array.home.is_some() => ("In", "a copy without gaps: `to_contiguous`"),
        Access::Read => ("In", "a copy without gaps: `try_clone`"),
        Access::ReadWrite => ("InOut", "a part without gaps"),
        Access::Overwrite => ("Out", "a part without gaps"),
    };
    let dimension = match array.view.shape.len() {
        axes @ 0..=6 => format!("Ix{axes}"),
        _ => String::from("IxDyn"),
    };
    let element = short_type(element);
    format!("make the parameter sized (`{intent}<{element}, {dimension}>`), or pass {other}")
}

fn mismatch(kernel: &str, first: FlatArgument<'_>, second: FlatArgument<'_>) -> Error {
    let describe = |FlatArgument { parameter, array }: FlatArgument<'_>| {
        let (name, layout) = (array.storage.named(), describe_layout(array));
        format!("parameter {parameter} was given {name} with {layout}")
    };
    Error::LayoutMismatch {
        call: CalledAt::UNKNOWN,
        kernel: quoted(kernel),
        first: describe(first),
        second: describe(second),
    }
}

fn describe_layout(array: &BoundArray<'_>) -> String {
    format!("shape {:?} and strides {:?}", array.view.shape, array.view.strides)
}
