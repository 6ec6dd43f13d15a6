//! What to do with an array whose shape does not fit, or an index that is out of range.

use std::fmt::Write as _;

/// What to pass in place of an array of shape `seen` where `expected` is needed.
pub(crate) fn to_shape(seen: &[usize], expected: &[usize]) -> String {
    rearranged(seen, expected)
        .or_else(|| reshaped(seen, expected))
        .unwrap_or_else(|| format!("pass one of shape {expected:?}"))
}

/// What to pass in place of an operand of shape `seen` that must broadcast to `to`.
pub(crate) fn to_broadcast(seen: &[usize], to: &[usize]) -> String {
    let differs = |(seen, to): (&usize, &usize)| *seen != 1 && seen != to;
    let pairs = || seen.iter().rev().zip(to.iter().rev());
    if let Some(step) = rearranged(seen, to) {
        return step;
    }
    if seen.len() > to.len() {
        return format!(
            "it has {} axes, and may have {}; pass a part with fewer axes: `index_axis`",
            seen.len(),
            to.len()
        );
    }
    if seen.len() + 1 == to.len() && to.starts_with(seen) {
        return format!("insert the axis behind: `insert_axis(Axis({}))`", seen.len());
    }
    let back = pairs().position(differs).unwrap_or(0);
    let (seen_len, to_len) = pairs().nth(back).unwrap_or((&0, &0));
    let axis = seen.len().saturating_sub(1 + back);
    format!(
        "its axis {axis} has length {seen_len}, and must have {to_len}, or 1 to be repeated; pass \
         a part (`slice`), or an operand of another shape"
    )
}

/// What to pass as a result that must have this shape.
pub(crate) fn to_result(expected: &[usize]) -> String {
    format!("pass `SmartArray::uninit({expected:?})`, or a part of that shape")
}

/// Why no element has this index along an axis of that length.
pub(crate) fn out_of_range(index: impl std::fmt::Display, len: usize) -> String {
    match len.checked_sub(1) {
        Some(last) => {
            format!("index {index} is out of range: length {len}, so indices go to {last}")
        }
        None => format!("index {index} is out of range: length 0, so there is no index"),
    }
}

/// Why no element has this index in that shape.
pub(crate) fn no_element(index: &[usize], shape: &[usize]) -> String {
    if index.len() != shape.len() {
        return format!("it has {} axes, so give as many indices", shape.len());
    }
    let axis = index.iter().zip(shape).position(|(index, len)| index >= len).unwrap_or(0);
    let fault = out_of_range(index[axis], shape[axis]);
    if shape.len() == 1 { fault } else { format!("on axis {axis}, {fault}") }
}

/// The view of the array that has the shape: its transpose, or a part of it.
fn rearranged(seen: &[usize], expected: &[usize]) -> Option<String> {
    if seen.iter().rev().eq(expected) {
        return Some(String::from("pass its transpose, which has that shape: `t()`"));
    }
    let has_part = seen.len() == expected.len() && seen.iter().zip(expected).all(|(a, b)| a >= b);
    if !has_part || seen.is_empty() {
        return None;
    }
    let mut part = String::from("pass a part of that shape, such as `slice(s![");
    for (axis, len) in expected.iter().enumerate() {
        let comma = if axis == 0 { "" } else { ", " };
        let _ = write!(part, "{comma}..{len}");
    }
    Some(part + "])`")
}

fn reshaped(seen: &[usize], expected: &[usize]) -> Option<String> {
    let len = |shape: &[usize]| shape.iter().try_fold(1, |len: usize, axis| len.checked_mul(*axis));
    let is_same = len(seen).is_some() && len(seen) == len(expected);
    is_same.then(|| format!("pass it in that shape: `reshape({expected:?})`"))
}
