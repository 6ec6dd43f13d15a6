//! Flat arguments: unbroken memory, and one axis order for all of a launch, since their elements
//! correspond by position.

use smallvec::SmallVec;

use super::arguments::bound::{BoundArgument, BoundArray};
use crate::error::{Error, Result, Text};
use crate::layout::Strided;

/// The axes longer than 1 as they lie in memory, slowest first, and whether each runs backwards.
type AxisOrder = SmallVec<[(usize, bool); 6]>;

/// Checks all flat arguments of a launch.
pub(super) fn check(kernel: &str, bound: &[BoundArgument<'_>]) -> Result<()> {
    if bound.iter().all(is_sized_or_rows_first) {
        return Ok(());
    }
    let mut first: Option<(usize, &BoundArray<'_>)> = None;
    let mut first_line: Option<(usize, &BoundArray<'_>)> = None;
    for (number, argument) in bound.iter().enumerate() {
        let BoundArgument::Array(array) = argument else { continue };
        if !array.is_flat {
            continue;
        }
        if !array.view.is_contiguous() {
            return Err(not_contiguous(kernel, number, array));
        }
        if let Some(backwards) = line(&array.view) {
            let (other_number, other) = *first_line.get_or_insert((number, array));
            if line(&other.view) != Some(backwards) {
                return Err(mismatch(kernel, (other_number, other), (number, array)));
            }
        }
        match first {
            None if has_order(&array.view) => first = Some((number, array)),
            Some((other_number, other))
                if has_order(&array.view) && !same_order(&other.view, &array.view) =>
            {
                return Err(mismatch(kernel, (other_number, other), (number, array)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sized, a scalar, or unbroken with rows first: a launch with such arguments alone needs no closer
/// look.
fn is_sized_or_rows_first(bound: &BoundArgument<'_>) -> bool {
    let BoundArgument::Array(BoundArray { view, is_flat: true, .. }) = bound else { return true };
    view.is_c_contiguous()
}

fn order(view: &Strided<'_>) -> AxisOrder {
    view.axes_by_stride().into_iter().map(|axis| (axis, view.strides[axis] < 0)).collect()
}

/// Whether a view with one axis longer than 1 runs backwards. Two lines that run against each other
/// correspond by index, not by position. Without an element there is nothing to correspond.
fn line(view: &Strided<'_>) -> Option<bool> {
    if view.len() <= 1 {
        return None;
    }
    let mut long = (0..view.shape.len()).filter(|axis| view.shape[*axis] > 1);
    let axis = long.next()?;
    (long.next().is_none()).then(|| view.strides[axis] < 0)
}

/// A line that runs upwards goes with any order of more axes; so does a single element.
fn has_order(view: &Strided<'_>) -> bool {
    let order = order(view);
    view.len() > 1 && (order.len() > 1 || order.iter().any(|(_, backwards)| *backwards))
}

/// Rows first, or columns first, or the very same axes in the same directions.
fn same_order(one: &Strided<'_>, other: &Strided<'_>) -> bool {
    let (one, other) = (order(one), order(other));
    let upwards = |order: &AxisOrder| order.iter().all(|(_, backwards)| !backwards);
    let rows_first =
        |order: &AxisOrder| upwards(order) && order.is_sorted_by_key(|(axis, _)| *axis);
    let columns_first = |order: &AxisOrder| {
        upwards(order) && order.is_sorted_by_key(|(axis, _)| std::cmp::Reverse(*axis))
    };
    one == other
        || (rows_first(&one) && rows_first(&other))
        || (columns_first(&one) && columns_first(&other))
}

fn not_contiguous(kernel: &str, number: usize, array: &BoundArray<'_>) -> Error {
    Error::NotContiguous {
        array: Text::new(array.storage.named()),
        parameter: Text::new(format!("parameter {number} of kernel \"{kernel}\"")),
        layout: Text::new(format!(
            "shape {:?} and strides {:?}",
            array.view.shape, array.view.strides
        )),
    }
}

fn mismatch(
    kernel: &str,
    first: (usize, &BoundArray<'_>),
    second: (usize, &BoundArray<'_>),
) -> Error {
    let words = |(number, array): (usize, &BoundArray<'_>)| {
        let (shape, strides) = (array.view.shape, array.view.strides);
        format!(
            "parameter {number} was given {} with shape {shape:?} and strides {strides:?}",
            array.storage.named()
        )
    };
    Error::LayoutMismatch {
        kernel: Text::new(format!("\"{kernel}\"")),
        first: Text::new(words(first)),
        second: Text::new(words(second)),
    }
}
