//! The body in Rust of the search for the best element.

use crate::ops::arithmetic::Number;

/// The index of the first smallest element of a line, or of the first NaN; with `is_better` the
/// other way round, of the largest.
pub(super) fn best_of<T: Number>(
    line: impl Iterator<Item = (u64, T)>,
    is_better: &impl Fn(T, T) -> bool,
) -> u64 {
    let mut best: Option<(u64, T)> = None;
    for (index, element) in line {
        match best {
            Some((_, value)) if !is_better(element, value) => {}
            _ => best = Some((index, element)),
        }
    }
    best.map_or(0, |(index, _)| index)
}
