//! Parts of arrays, by ndarray's slicing.

use arbitrary::Arbitrary;
use resident::ndarray::{ArrayD, IxDyn, SliceInfo, SliceInfoElem};

/// The number of axes for which a slice is drawn at random; further axes repeat these slices.
const AXES: usize = 3;

/// What is done with parts of different numbers of axes.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Surplus {
    /// They stay as they are, and an operation that needs parts of one shape is refused.
    Kept,
    /// Of the last axes that one has and another has not, index 0 is taken.
    Indexed,
}

/// The elements of a part in index order, each given by its position in the array's memory.
pub(super) type Cells = ArrayD<usize>;

/// ndarray's slice argument.
pub(super) type Info = SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>;

/// A part of one array: of records it has one of the fields, a last index.
pub(super) type Elements = Vec<SliceInfoElem>;

/// A part as drawn at random, before it is fitted to a shape.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Part {
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

pub(super) fn info(elements: &[SliceInfoElem]) -> Info {
    Info::try_from(elements.to_vec()).expect("as many axes as a dynamic dimension has")
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
                let end = start + len % (extent + 1 - start);
                range(start, end, if kind == 7 { -step } else { step })
            }
        }
    }
}

impl Part {
    /// The part of an array of this shape: often the whole array, rarely with an additional axis.
    pub(super) fn resolve(&self, shape: &[usize]) -> Elements {
        let choices = shape.iter().zip(self.axes.iter().cycle());
        let mut elements: Elements = match self.kind % 4 {
            0 => shape.iter().map(|extent| range(0, *extent, 1)).collect(),
            _ => choices.map(|(extent, choice)| choice.resolve(*extent)).collect(),
        };
        if self.kind / 4 % 8 == 7 {
            elements.insert(0, SliceInfoElem::NewAxis);
        }
        elements
    }

    /// The field that it has of records.
    pub(super) fn field(&self) -> SliceInfoElem {
        SliceInfoElem::Index(isize::from(self.kind / 128))
    }
}

/// Slices of arrays of these shapes, all cut to one shape, as large as possible. Whole arrays if
/// their numbers of axes differ and stay so.
pub(super) fn common<const N: usize>(shapes: [&[usize]; N], surplus: Surplus) -> [Info; N] {
    let kept = shapes.iter().map(|shape| shape.len()).min().unwrap_or(0);
    let all_fit = shapes.iter().all(|shape| match surplus {
        Surplus::Kept => shape.len() == kept,
        Surplus::Indexed => !shape[kept..].contains(&0),
    });
    let extent = |axis: usize| shapes.iter().map(|shape| shape[axis]).min().unwrap_or(0);
    shapes.map(|shape| {
        let axis = |axis: usize| {
            if !all_fit {
                range(0, shape[axis], 1)
            } else if axis < kept {
                range(0, extent(axis), 1)
            } else {
                SliceInfoElem::Index(0)
            }
        };
        info(&(0..shape.len()).map(axis).collect::<Elements>())
    })
}

/// The part of an array that has every second index along `axis`.
pub(super) fn comb(shape: &[usize], axis: usize, first: usize) -> Elements {
    let all = |(other, extent): (usize, &usize)| {
        if other == axis { range(first, *extent, 2) } else { range(0, *extent, 1) }
    };
    shape.iter().enumerate().map(all).collect()
}

/// All indices of the first axis but the last one, and all but the first one. `None` if there are
/// none.
pub(super) fn shifted(shape: &[usize]) -> Option<[Info; 2]> {
    let (first_len, others) = shape.split_first().filter(|(first, _)| **first > 0)?;
    let from = |start| {
        let others = others.iter().map(|extent| range(0, *extent, 1));
        let first = std::iter::once(range(start, first_len - 1 + start, 1));
        info(&first.chain(others).collect::<Elements>())
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
