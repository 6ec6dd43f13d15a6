//! Parts of arrays, by ndarray's slicing.

use arbitrary::Arbitrary;
use resident::ndarray::{ArrayD, IxDyn, SliceInfo, SliceInfoElem};

/// The number of axes for which a slice is drawn at random; further axes repeat these slices.
const AXES: usize = 3;

/// The elements of a part in index order, each given by its position in the array's memory.
pub(super) type Cells = ArrayD<usize>;

/// ndarray's slice argument.
pub(super) type Info = SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>;

/// A part as drawn at random, before it is fitted to a shape.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Part {
    kind: u8,
    axes: [Choice; AXES],
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Choice {
    kind: u8,
    start: u8,
    len: u8,
}

fn range(start: usize, end: usize, step: isize) -> SliceInfoElem {
    SliceInfoElem::Slice { start: start as isize, end: Some(end as isize), step }
}

fn info(elements: Vec<SliceInfoElem>) -> Info {
    Info::try_from(elements).expect("as many axes as a dynamic dimension has")
}

impl Choice {
    fn resolve(self, extent: usize) -> SliceInfoElem {
        let (start, len) = (usize::from(self.start), usize::from(self.len));
        match self.kind % 8 {
            0 | 1 => range(0, extent, 1),
            2 => range(0, extent, -1),
            3 if extent > 0 => SliceInfoElem::Index((start % extent) as isize),
            kind => {
                let start = start % (extent + 1);
                let step = 1 + isize::from(self.kind / 8 % 3);
                range(
                    start,
                    start + len % (extent + 1 - start),
                    if kind == 7 { -step } else { step },
                )
            }
        }
    }
}

impl Part {
    /// The part of an array of this shape: often the whole array, rarely with an additional axis.
    pub(super) fn resolve(&self, shape: &[usize]) -> Info {
        let choices = shape.iter().zip(self.axes.iter().cycle());
        let mut elements: Vec<SliceInfoElem> = match self.kind % 4 {
            0 => shape.iter().map(|extent| range(0, *extent, 1)).collect(),
            _ => choices.map(|(extent, choice)| choice.resolve(*extent)).collect(),
        };
        if self.kind / 4 % 8 == 7 {
            elements.insert(0, SliceInfoElem::NewAxis);
        }
        info(elements)
    }
}

/// Slices of arrays of these shapes, all cut to one shape, as large as possible. Whole arrays if
/// their numbers of axes differ.
pub(super) fn common<const N: usize>(shapes: [&[usize]; N]) -> [Info; N] {
    let all_alike = shapes.iter().all(|shape| shape.len() == shapes[0].len());
    let extent = |axis: usize| shapes.iter().map(|shape| shape[axis]).min().unwrap_or(0);
    shapes.map(|shape| {
        let axes = (0..shape.len())
            .map(|axis| range(0, if all_alike { extent(axis) } else { shape[axis] }, 1));
        info(axes.collect())
    })
}

/// The part of an array that has every second index along `axis`.
pub(super) fn comb(shape: &[usize], axis: usize, first: usize) -> Info {
    let all = |(other, extent): (usize, &usize)| {
        if other == axis { range(first, *extent, 2) } else { range(0, *extent, 1) }
    };
    info(shape.iter().enumerate().map(all).collect())
}

/// All indices of the first axis but the last one, and all but the first one. `None` if there are
/// none.
pub(super) fn shifted(shape: &[usize]) -> Option<[Info; 2]> {
    let (first, others) = shape.split_first().filter(|(first, _)| **first > 0)?;
    let from = |start| {
        let others = others.iter().map(|extent| range(0, *extent, 1));
        info(std::iter::once(range(start, first - 1 + start, 1)).chain(others).collect())
    };
    Some([from(0), from(1)])
}

/// Elements in memory order, the order of a flat parameter (a slice).
pub(super) fn in_memory_order(cells: &Cells) -> Vec<usize> {
    let mut sorted: Vec<usize> = cells.iter().copied().collect();
    sorted.sort_unstable();
    sorted
}

/// Whether the elements lie in memory without gaps.
pub(super) fn is_unbroken(cells: &Cells) -> bool {
    let sorted = in_memory_order(cells);
    sorted.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

/// Whether two parts have the same memory order: the elements with equal indices have equal ranks
/// in memory.
pub(super) fn have_one_order(one: &Cells, other: &Cells) -> bool {
    let ranks = |cells: &Cells| -> Vec<usize> {
        let sorted = in_memory_order(cells);
        cells.iter().filter_map(|cell| sorted.binary_search(cell).ok()).collect()
    };
    ranks(one) == ranks(other)
}
