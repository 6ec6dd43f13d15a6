//! Randomly drawn steps, and their meaning for arrays of given shapes.
//!
//! A step is a kind and raw numbers. Each number is taken modulo the number of choices, so every
//! step is legal in every state, and proptest can shrink a failing run by omitting steps and
//! reducing numbers.

use std::fmt;

use proptest::prelude::*;
use resident::ndarray::SliceInfoElem;

use super::arrays::FIELDS;

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    HostMut,
    HostOverwrite,
    Gpu,
    GpuMut,
    GpuOverwrite,
    Stamp,
    StampFlat,
    Mix,
    MixFlat,
    CallStamp,
    CallMix,
    Prefetch,
    PrefetchHost,
    Snapshot,
    Fill,
    FillOn,
    Get,
    Set,
    HostChanged,
    GpuChanged,
    Copy,
    CopyFlat,
    CallCopy,
    Assign,
    AssignOn,
    Combine,
    HalvesCopy,
    HalvesAssign,
    HalvesAssignOn,
    Combs,
    Clone,
    Renew,
    Return,
    Synchronize,
}

impl Kind {
    const ALL: [Self; 35] = [
        Self::Host,
        Self::HostMut,
        Self::HostOverwrite,
        Self::Gpu,
        Self::GpuMut,
        Self::GpuOverwrite,
        Self::Stamp,
        Self::StampFlat,
        Self::Mix,
        Self::MixFlat,
        Self::CallStamp,
        Self::CallMix,
        Self::Prefetch,
        Self::PrefetchHost,
        Self::Snapshot,
        Self::Fill,
        Self::FillOn,
        Self::Get,
        Self::Set,
        Self::HostChanged,
        Self::GpuChanged,
        Self::Copy,
        Self::CopyFlat,
        Self::CallCopy,
        Self::Assign,
        Self::AssignOn,
        Self::Combine,
        Self::HalvesCopy,
        Self::HalvesAssign,
        Self::HalvesAssignOn,
        Self::Combs,
        Self::Clone,
        Self::Renew,
        Self::Return,
        Self::Synchronize,
    ];
}

/// A step as drawn.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) arrays: [u8; 3],
    pub(crate) lane: u8,
    pub(crate) value: u32,
    pub(crate) picks: [u8; 24],
}

/// Prints one line, so that a failing program is readable.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.picks.iter().rposition(|pick| *pick != 0).map_or(0, |last| last + 1);
        write!(
            f,
            "{:?} {:?} lane {} value {} picks {:?}",
            self.kind,
            self.arrays,
            self.lane,
            self.value,
            &self.picks[..last]
        )
    }
}

impl Step {
    pub(crate) fn strategy() -> BoxedStrategy<Self> {
        // Accesses by the host and by devices are drawn more often than other steps, since each
        // makes other copies stale.
        let sides =
            [Kind::Host, Kind::HostMut, Kind::Gpu, Kind::Gpu, Kind::GpuMut, Kind::Stamp, Kind::Mix];
        let kind = proptest::sample::select([&Kind::ALL[..], &sides].concat());
        (kind, any::<[u8; 3]>(), any::<u8>(), 1..1000_u32, any::<[u8; 24]>())
            .prop_map(|(kind, arrays, lane, value, picks)| Self {
                kind,
                arrays,
                lane,
                value,
                picks,
            })
            .boxed()
    }
}

/// The shape of an array.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) lens: Vec<usize>,
    /// Whether the elements are records, whose fields are a last axis beyond `lens`.
    pub(crate) has_fields: bool,
}

/// A part of an array, by ndarray's slicing. It has one of the fields of records.
pub(crate) type Part = Vec<SliceInfoElem>;

/// An array, and a part of it.
pub(crate) type End = (usize, Part);

/// An operation on one part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum One {
    Host,
    HostMut,
    HostOverwrite,
    Gpu,
    /// The guard is dropped: a forgotten guard would keep its device alive, and with it the
    /// workers, or the simulation of all later programs.
    GpuMut,
    GpuOverwrite,
    Stamp {
        flat: bool,
    },
    Mix {
        flat: bool,
    },
    CallStamp,
    CallMix,
    Prefetch,
    /// Whether the step names the stream, or the library chooses it.
    PrefetchHost {
        is_asked: bool,
    },
    /// A snapshot. The program may wait for it later, when the array has other contents.
    Snapshot {
        kept: bool,
    },
    Fill,
    FillOn,
    /// Reads one element of the part; the number selects it.
    Get(usize),
    Set(usize),
    HostChanged,
    GpuChanged,
}

/// An operation on two parts of one shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Two {
    Copy { flat: bool },
    CallCopy,
    Assign,
    AssignOn,
}

/// The properties of a new array.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) shape: Shape,
    pub(crate) columns_first: bool,
    pub(crate) origin: Origin,
}

/// The initial contents of a new array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Adopted { reversed: bool },
    Zeros,
    Full,
    Uninit,
}

/// A step with its numbers resolved.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    One {
        array: usize,
        part: Part,
        operation: One,
    },
    Two {
        from: End,
        to: End,
        operation: Two,
    },
    Combine {
        one: End,
        other: End,
        into: End,
    },
    /// An operation between the two sides of `split_at_mut`; the parts are parts of the sides.
    Halves {
        array: usize,
        axis: usize,
        at: usize,
        from: Part,
        to: Part,
        operation: Two,
    },
    /// Operations on the even and odd indices of axis 0, by `multi_slice_mut`, or on the two fields
    /// of records.
    Combs {
        array: usize,
        other_lane: usize,
    },
    Clone {
        from: End,
        into: usize,
    },
    Renew {
        array: usize,
        maker: Maker,
    },
    /// `into_array`, and conversion back.
    Return {
        array: usize,
    },
    Synchronize {
        device: Option<usize>,
    },
}

/// Yields the raw numbers, one after the other.
struct Picks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Picks<'_> {
    fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes[self.at % self.bytes.len()];
        self.at += 1;
        usize::from(byte) % count
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }
}

fn range(start: usize, count: usize, step: usize, reversed: bool) -> SliceInfoElem {
    let end = if count == 0 { start } else { start + (count - 1) * step + 1 };
    let step = if reversed { -(step as isize) } else { step as isize };
    SliceInfoElem::Slice { start: start as isize, end: Some(end as isize), step }
}

/// Any part of an array: all of it, or for each axis everything, one index, or a range with steps
/// in either direction; and rarely an empty part.
fn any_part(shape: &Shape, picks: &mut Picks<'_>) -> Part {
    let whole = picks.below(3) == 0;
    let axis = |extent: &usize| match if whole { 0 } else { picks.below(5) } {
        0 => range(0, *extent, 1, false),
        1 => SliceInfoElem::Index(picks.below(*extent) as isize),
        _ => {
            let (start, step) = (picks.below(*extent), 1 + picks.below(3));
            let count =
                if picks.one_in(16) { 0 } else { 1 + picks.below(1 + (extent - 1 - start) / step) };
            range(start, count, step, picks.one_in(3))
        }
    };
    let part = shape.lens.iter().map(axis).collect();
    with_field(part, shape, picks)
}

/// Adds one of the fields to a part of records.
fn with_field(mut part: Part, shape: &Shape, picks: &mut Picks<'_>) -> Part {
    if shape.has_fields {
        part.push(SliceInfoElem::Index(picks.below(FIELDS) as isize));
    }
    part
}

/// Parts of one shape, one for each array.
fn equal_parts<const N: usize>(shapes: [&Shape; N], picks: &mut Picks<'_>) -> [Part; N] {
    let axes = shapes.iter().map(|shape| shape.lens.len()).min().unwrap_or(0);
    let kept = if axes > 1 && picks.one_in(3) { 1 } else { axes };
    let counts: Vec<usize> = (0..kept)
        .map(|axis| 1 + picks.below(shapes.iter().map(|shape| shape.lens[axis]).min().unwrap_or(1)))
        .collect();
    shapes.map(|shape| {
        let axis = |(axis, extent): (usize, &usize)| match counts.get(axis) {
            None => SliceInfoElem::Index(picks.below(*extent) as isize),
            Some(count) => {
                let steps = if *count > 1 { (extent - 1) / (count - 1) } else { 1 };
                let step = 1 + picks.below(steps.min(3));
                range(picks.below(extent - (count - 1) * step), *count, step, picks.one_in(4))
            }
        };
        let part = shape.lens.iter().enumerate().map(axis).collect();
        with_field(part, shape, picks)
    })
}

/// The shapes of new arrays.
const SHAPES: [&[usize]; 6] = [&[10], &[4, 5], &[5, 4], &[2, 3, 2], &[7], &[3, 1, 4]];

impl Maker {
    fn picked(picks: &mut Picks<'_>) -> Self {
        let (shape, origin) = (picks.below(SHAPES.len()), picks.below(4));
        let made = Self::of(shape, origin, picks.one_in(3), picks.one_in(3));
        Self { shape: Shape { has_fields: picks.one_in(3), ..made.shape }, ..made }
    }

    /// The arrays that a run starts with.
    pub(crate) fn first(number: usize) -> Self {
        let made = Self::of(number, number, number == 2, false);
        Self { shape: Shape { has_fields: number == 1, ..made.shape }, ..made }
    }

    fn of(shape: usize, origin: usize, columns_first: bool, reversed: bool) -> Self {
        let origin = match origin {
            0 => Origin::Adopted { reversed },
            1 => Origin::Zeros,
            2 => Origin::Full,
            _ => Origin::Uninit,
        };
        let shape = Shape { lens: SHAPES[shape].to_vec(), has_fields: false };
        Self { shape, columns_first, origin }
    }
}

impl Step {
    /// The operation that the step performs on at least three arrays of these shapes.
    pub(crate) fn plan(&self, shapes: &[Shape], lanes: usize) -> Plan {
        let mut picks = Picks { bytes: &self.picks, at: 0 };
        let [array, other, third] = distinct(self.arrays, shapes.len());
        match self.kind {
            Kind::Copy => self.two(shapes, [array, other], Two::Copy { flat: false }, &mut picks),
            Kind::CopyFlat => {
                self.two(shapes, [array, other], Two::Copy { flat: true }, &mut picks)
            }
            Kind::CallCopy => self.two(shapes, [array, other], Two::CallCopy, &mut picks),
            Kind::Assign => self.two(shapes, [array, other], Two::Assign, &mut picks),
            Kind::AssignOn => self.two(shapes, [array, other], Two::AssignOn, &mut picks),
            Kind::Combine => {
                // The two parts that are read may belong to one array and overlap.
                let second = if picks.one_in(2) { array } else { third };
                let [one, two, into] =
                    equal_parts([&shapes[array], &shapes[second], &shapes[other]], &mut picks);
                Plan::Combine { one: (array, one), other: (second, two), into: (other, into) }
            }
            Kind::HalvesCopy => {
                self.halves(shapes, array, Two::Copy { flat: picks.one_in(3) }, &mut picks)
            }
            Kind::HalvesAssign => self.halves(shapes, array, Two::Assign, &mut picks),
            Kind::HalvesAssignOn => self.halves(shapes, array, Two::AssignOn, &mut picks),
            Kind::Combs => Plan::Combs { array, other_lane: picks.below(lanes) },
            Kind::Clone => {
                Plan::Clone { from: (array, any_part(&shapes[array], &mut picks)), into: other }
            }
            Kind::Renew => Plan::Renew { array, maker: Maker::picked(&mut picks) },
            Kind::Return => Plan::Return { array },
            Kind::Synchronize => {
                Plan::Synchronize { device: picks.one_in(2).then(|| self.lane(lanes) / 2) }
            }
            _ => self.one(shapes, array, &mut picks),
        }
    }

    /// The stream that the step uses.
    pub(crate) fn lane(&self, lanes: usize) -> usize {
        favoured(self.lane, lanes)
    }

    fn one(&self, shapes: &[Shape], array: usize, picks: &mut Picks<'_>) -> Plan {
        let operation = match self.kind {
            Kind::Host => One::Host,
            Kind::HostMut => One::HostMut,
            Kind::HostOverwrite => One::HostOverwrite,
            Kind::Gpu => One::Gpu,
            Kind::GpuMut => One::GpuMut,
            Kind::GpuOverwrite => One::GpuOverwrite,
            Kind::Stamp => One::Stamp { flat: false },
            Kind::StampFlat => One::Stamp { flat: true },
            Kind::Mix => One::Mix { flat: false },
            Kind::MixFlat => One::Mix { flat: true },
            Kind::CallStamp => One::CallStamp,
            Kind::CallMix => One::CallMix,
            Kind::Prefetch => One::Prefetch,
            Kind::PrefetchHost => One::PrefetchHost { is_asked: picks.one_in(2) },
            Kind::Snapshot => One::Snapshot { kept: picks.one_in(2) },
            Kind::Fill => One::Fill,
            Kind::FillOn => One::FillOn,
            Kind::Get => One::Get(picks.below(64)),
            Kind::Set => One::Set(picks.below(64)),
            Kind::HostChanged => One::HostChanged,
            Kind::GpuChanged => One::GpuChanged,
            kind => unreachable!("{kind:?} is no operation on one part"),
        };
        Plan::One { array, part: any_part(&shapes[array], picks), operation }
    }

    fn two(
        &self,
        shapes: &[Shape],
        [from, to]: [usize; 2],
        operation: Two,
        picks: &mut Picks<'_>,
    ) -> Plan {
        let [source, destination] = equal_parts([&shapes[from], &shapes[to]], picks);
        Plan::Two { from: (from, source), to: (to, destination), operation }
    }

    fn halves(
        &self,
        shapes: &[Shape],
        array: usize,
        operation: Two,
        picks: &mut Picks<'_>,
    ) -> Plan {
        let mut left = shapes[array].clone();
        let Some(axis) = left.lens.iter().position(|len| *len > 1) else {
            return Plan::Synchronize { device: None };
        };
        let mut right = left.clone();
        let at = 1 + picks.below(left.lens[axis] - 1);
        (left.lens[axis], right.lens[axis]) = (at, left.lens[axis] - at);
        let [from, to] = equal_parts([&left, &right], picks);
        Plan::Halves { array, axis, at, from, to, operation }
    }
}

/// Chooses the first of `count` choices half of the time, so that steps often use earlier results.
fn favoured(byte: u8, count: usize) -> usize {
    Some(usize::from(byte) % (2 * count)).filter(|number| *number < count).unwrap_or(0)
}

fn distinct([one, other, third]: [u8; 3], count: usize) -> [usize; 3] {
    let one = favoured(one, count);
    let other = (one + 1 + usize::from(other) % (count - 1)) % count;
    let third = (0..count)
        .cycle()
        .skip(usize::from(third) % count)
        .find(|third| ![one, other].contains(third));
    [one, other, third.unwrap_or(one)]
}
