//! One axis, cut into parts for the processes along it.

use std::ops::Range;

/// The cells of the part with this index: the first parts have one cell more if the division is
/// uneven.
pub(super) fn part(cells: usize, parts: usize, index: usize) -> Range<usize> {
    let (least, larger) = (cells / parts, cells % parts);
    let start = least * index + larger.min(index);
    start..start + least + usize::from(index < larger)
}
