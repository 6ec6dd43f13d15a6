//! Simplifies the axes of operands that are walked together, so that few kernels serve all layouts:
//! most operands become one axis without gaps.

use crate::array::Axes;

/// Axes of one shape in any order: they are sorted as they lie in the first operand, turned so that
/// it ascends, and merged. At least one axis stays.
pub(super) fn in_any_order<const K: usize>(mut all: [&mut Axes; K]) {
    all_in_any_order(&mut all);
}

/// As [`in_any_order`], for any number of operands, of which there is one at least.
pub(super) fn all_in_any_order(all: &mut [&mut Axes]) {
    remove_units(all);
    for axis in 0..all[0].shape().len() {
        if all[0].strides()[axis] < 0 {
            all.iter_mut().for_each(|axes| axes.flip(axis));
        }
    }
    sort(all);
    merge(all, 0);
    pad(all);
}

/// Axes of one shape whose elements are numbered row by row.
pub(super) fn in_row_order<const K: usize>(mut all: [&mut Axes; K]) {
    remove_units(&mut all);
    merge(&mut all, 0);
    pad(&mut all);
}

/// As [`in_any_order`] for all axes but the last, which stays as it is.
pub(super) fn rows<const K: usize>(mut all: [&mut Axes; K]) {
    all_rows(&mut all);
}

/// As [`rows`], for any number of operands, of which there is one at least.
pub(super) fn all_rows(all: &mut [&mut Axes]) {
    let mut axis = 0;
    while axis + 1 < all[0].shape().len() {
        if all[0].shape()[axis] == 1 && all.iter().all(|axes| axes.shape()[axis] == 1) {
            all.iter_mut().for_each(|axes| axes.remove(axis));
        } else {
            axis += 1;
        }
    }
    let count = all[0].shape().len() - 1;
    for axis in 1..count {
        let is_slower = |axis: usize, all: &[&mut Axes]| stride(all[0], axis);
        let mut at = axis;
        while at > 0 && is_slower(at - 1, all) < is_slower(at, all) {
            all.iter_mut().for_each(|axes| axes.swap(at - 1, at));
            at -= 1;
        }
    }
    merge(all, 1);
}

fn remove_units(all: &mut [&mut Axes]) {
    let mut axis = 0;
    while axis < all[0].shape().len() {
        match all[0].shape()[axis] {
            1 => all.iter_mut().for_each(|axes| axes.remove(axis)),
            _ => axis += 1,
        }
    }
}

/// Sorts the axes by the strides of the first operand, slowest first. Insertion sort: there are
/// few, and they usually are in order.
fn sort(all: &mut [&mut Axes]) {
    for axis in 1..all[0].shape().len() {
        let mut at = axis;
        while at > 0 && stride(all[0], at - 1) < stride(all[0], at) {
            all.iter_mut().for_each(|axes| axes.swap(at - 1, at));
            at -= 1;
        }
    }
}

fn stride(axes: &Axes, axis: usize) -> usize {
    axes.strides()[axis].unsigned_abs()
}

/// Merges axes that are one in all operands, except the last `kept` of them.
fn merge(all: &mut [&mut Axes], kept: usize) {
    let mut axis = all[0].shape().len().saturating_sub(kept + 1);
    while axis > 0 {
        axis -= 1;
        if all.iter().all(|axes| axes.continues(axis)) {
            all.iter_mut().for_each(|axes| axes.merge(axis));
        }
    }
}

/// Operands of one element get one axis.
fn pad(all: &mut [&mut Axes]) {
    if all[0].shape().is_empty() {
        all.iter_mut().for_each(|axes| axes.insert(0));
    }
}
