//! The reference: the value of each element, if it has one. The reference does not model where
//! elements are valid.

use std::fmt;
use std::marker::PhantomData;

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use resident::ndarray::{
    ArrayD, Axis, Dim, IxDyn, ShapeBuilder, Slice, SliceInfo, SliceInfoElem, stack,
};

use super::arrays::FIELDS;
use super::lab::{Choice, Lab};
use super::step::{Maker, One, Origin, Part, Plan, Shape, Step, Two};

/// The number of arrays.
const ARRAYS: usize = 4;

/// ndarray's slice argument for a part.
pub(crate) fn info(part: &Part) -> SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn> {
    SliceInfo::try_from(part.clone()).expect("as many axes as a dynamic dimension has")
}

/// The elements of a part in index order, each given by its position in the array's memory.
pub(crate) type Cells = ArrayD<usize>;

/// One array's contents.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    /// The position in memory of the number at each index. The fields of records are a last axis.
    pub(crate) layout: Cells,
    pub(crate) has_fields: bool,
    /// The values in memory order; `None` if the element was never written.
    pub(crate) values: Vec<Option<u32>>,
}

/// The contents of all arrays, and the other properties of a run.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) lab: Lab,
    /// The seed; `None` if each stream has a worker thread.
    pub(crate) seed: Option<u64>,
    pub(crate) devices: usize,
    /// Whether stale copies are filled with poison bytes. These fills are additional work, which
    /// changes the order of other work.
    pub(crate) poison: bool,
    pub(crate) arrays: Vec<Contents>,
}

/// Prints only the randomly drawn properties: the arrays are always the same.
impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World(seed {:?}, {} devices, poison {})", self.seed, self.devices, self.poison)
    }
}

/// The reason why a launch is refused before it reads any contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Broken,
    Orders,
}

impl Contents {
    fn made(maker: &Maker, value: u32) -> Self {
        let Shape { lens, has_fields } = &maker.shape;
        let len: usize = lens.iter().product();
        let shape = Dim(lens.clone()).set_f(maker.columns_first);
        let mut layout =
            Cells::from_shape_vec(shape, (0..len).collect()).expect("as many numbers as elements");
        if matches!(maker.origin, Origin::Adopted { reversed: true }) {
            layout.invert_axis(Axis(0));
        }
        if *has_fields {
            let fields = [0, 1].map(|field| layout.mapv(|record| FIELDS * record + field));
            layout = stack(Axis(lens.len()), &fields.each_ref().map(|field| field.view()))
                .expect("fields of one shape");
        }
        let value = |number: usize| match maker.origin {
            Origin::Adopted { .. } => Some(value + number as u32),
            Origin::Zeros => Some(0),
            Origin::Full => Some(value),
            Origin::Uninit => None,
        };
        Self { has_fields: *has_fields, values: (0..layout.len()).map(value).collect(), layout }
    }

    /// An array of zeros in the place of this one.
    pub(crate) fn zeros(&self) -> Maker {
        let axes = self.layout.ndim() - usize::from(self.has_fields);
        let lens = self.layout.shape()[..axes].to_vec();
        let shape = Shape { lens, has_fields: self.has_fields };
        Maker { shape, columns_first: false, origin: Origin::Zeros }
    }

    pub(crate) fn cells(&self, part: &Part) -> Cells {
        self.layout.slice(info(part)).to_owned()
    }

    pub(crate) fn is_defined(&self, cells: &Cells) -> bool {
        cells.iter().all(|cell| self.values[*cell].is_some())
    }

    /// The values of cells, all of which must be defined.
    pub(crate) fn of(&self, cells: &Cells) -> ArrayD<u32> {
        cells.map(|cell| self.values[*cell].expect("a defined element"))
    }

    fn set(&mut self, cells: &Cells, values: impl IntoIterator<Item = u32>) {
        for (cell, value) in cells.iter().zip(values) {
            self.values[*cell] = Some(value);
        }
    }

    fn mix(&mut self, cells: &Cells, value: u32) {
        if self.is_defined(cells) {
            let mixed: Vec<u32> =
                self.of(cells).iter().map(|old| super::kernels::mixed(*old, value)).collect();
            self.set(cells, mixed);
        }
    }

    /// A clone of a part keeps the part's memory order if the part has no gaps.
    fn clone_of(&self, cells: &Cells) -> Self {
        let (len, lowest) = (cells.len(), cells.iter().min().copied().unwrap_or(0));
        let layout = if misfit(&[cells]).is_none() {
            cells.map(|cell| cell - lowest)
        } else {
            Cells::from_shape_vec(cells.raw_dim(), (0..len).collect())
                .expect("as many numbers as elements")
        };
        let mut values = vec![None; len];
        layout.iter().zip(cells).for_each(|(to, from)| values[*to] = self.values[*from]);
        Self { layout, has_fields: false, values }
    }
}

/// Elements in memory order, the order of a flat parameter (a slice).
pub(crate) fn in_memory_order(cells: &Cells) -> Cells {
    let mut sorted: Vec<usize> = cells.iter().copied().collect();
    sorted.sort_unstable();
    ArrayD::from_shape_vec(Dim(vec![sorted.len()]), sorted).expect("one axis")
}

/// The reason why parts cannot be passed for flat parameters (slices) of one launch: gaps, or
/// elements that do not correspond by position in memory.
pub(crate) fn misfit(parts: &[&Cells]) -> Option<Misfit> {
    let is_broken = |cells: &Cells| match (cells.iter().min(), cells.iter().max()) {
        (Some(lowest), Some(highest)) => highest - lowest + 1 != cells.len(),
        _ => false,
    };
    if parts.iter().any(|cells| is_broken(cells)) {
        return Some(Misfit::Broken);
    }
    let ranks = |cells: &Cells| -> Vec<usize> {
        let lowest = cells.iter().min().copied().unwrap_or(0);
        cells.iter().map(|cell| cell - lowest).collect()
    };
    let all_alike = parts.windows(2).all(|pair| ranks(pair[0]) == ranks(pair[1]));
    (!all_alike).then_some(Misfit::Orders)
}

impl World {
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        self.arrays.iter().map(|contents| contents.zeros().shape).collect()
    }

    fn one(&mut self, array: usize, part: &Part, operation: One, value: u32) {
        let contents = &mut self.arrays[array];
        let cells = contents.cells(part);
        let flat = misfit(&[&cells]).is_none();
        match operation {
            One::HostMut | One::CallMix | One::Mix { flat: false } => contents.mix(&cells, value),
            One::Mix { flat: true } if flat => contents.mix(&cells, value),
            One::HostOverwrite
            | One::CallStamp
            | One::GpuOverwrite
            | One::Stamp { flat: false } => contents.set(&cells, value..),
            One::Stamp { flat: true } if flat => contents.set(&in_memory_order(&cells), value..),
            One::Fill | One::FillOn => contents.set(&cells, std::iter::repeat(value)),
            One::Set(number) if !cells.is_empty() => {
                let cell =
                    *cells.iter().nth(number % cells.len()).expect("a number below the length");
                contents.values[cell] = Some(value);
            }
            _ => {}
        }
    }

    fn copy(
        &mut self,
        (from, source): (usize, Cells),
        (to, destination): (usize, Cells),
        operation: Two,
    ) {
        if matches!(operation, Two::Copy { flat: true })
            && misfit(&[&source, &destination]).is_some()
        {
            return;
        }
        if self.arrays[from].is_defined(&source) {
            let values = self.arrays[from].of(&source);
            self.arrays[to].set(&destination, values);
        }
    }

    fn combine(&mut self, [one, other, into]: [(usize, Cells); 3]) {
        if [&one, &other, &into].iter().any(|(array, cells)| !self.arrays[*array].is_defined(cells))
        {
            return;
        }
        let values = |(array, cells): &(usize, Cells)| self.arrays[*array].of(cells);
        let (x, y, z) = (values(&one), values(&other), values(&into));
        let combined: Vec<u32> = x
            .iter()
            .zip(&y)
            .zip(&z)
            .map(|((x, y), z)| super::kernels::combined(*x, *y, *z))
            .collect();
        self.arrays[into.0].set(&into.1, combined);
    }

    /// Cells of the even and the odd indices of axis 0, or of the two fields of records.
    pub(crate) fn combs(&self, array: usize) -> Option<[Cells; 2]> {
        let Contents { layout, has_fields, .. } = &self.arrays[array];
        if *has_fields {
            let fields = Axis(layout.ndim() - 1);
            return Some([0, 1].map(|field| layout.index_axis(fields, field).to_owned()));
        }
        let is_divisible = layout.ndim() > 0 && layout.shape()[0] > 1;
        is_divisible.then(|| {
            let comb =
                |first: isize| layout.slice_axis(Axis(0), Slice::new(first, None, 2)).to_owned();
            [comb(0), comb(1)]
        })
    }

    /// The cells of a part of each side of a split.
    pub(crate) fn halves(
        &self,
        array: usize,
        axis: usize,
        at: usize,
        from: &Part,
        to: &Part,
    ) -> [Cells; 2] {
        let (left, right) = self.arrays[array].layout.view().split_at(Axis(axis), at);
        [left.slice(info(from)).to_owned(), right.slice(info(to)).to_owned()]
    }
}

/// The reference state machine for a backend.
#[derive(Debug)]
pub(crate) struct Reference<C>(PhantomData<C>);

impl<C: Choice> ReferenceStateMachine for Reference<C> {
    type State = World;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<World> {
        let arrays: Vec<Contents> =
            (0..ARRAYS).map(|number| Contents::made(&Maker::first(number), 100)).collect();
        (any::<u64>(), 2..=3_usize, any::<bool>())
            .prop_map(move |(seed, devices, poison)| World {
                lab: C::LAB,
                seed: C::LAB.is_seeded.then_some(seed),
                devices,
                poison,
                arrays: arrays.clone(),
            })
            .boxed()
    }

    fn transitions(_: &World) -> BoxedStrategy<Step> {
        Step::strategy()
    }

    fn apply(mut world: World, step: &Step) -> World {
        let cells = |world: &World, (array, part): &(usize, Part)| {
            (*array, world.arrays[*array].cells(part))
        };
        match step.plan(&world.shapes(), 2 * world.devices) {
            Plan::One { array, part, operation } => world.one(array, &part, operation, step.value),
            Plan::Two { from, to, operation } => {
                world.copy(cells(&world, &from), cells(&world, &to), operation);
            }
            Plan::Combine { one, other, into } => {
                world.combine([one, other, into].map(|end| cells(&world, &end)));
            }
            Plan::Halves { array, axis, at, from, to, operation } => {
                let [from, to] = world.halves(array, axis, at, &from, &to);
                world.copy((array, from), (array, to), operation);
            }
            Plan::Combs { array, .. } => {
                if let Some([even, odd]) = world.combs(array) {
                    world.arrays[array].mix(&even, step.value);
                    world.arrays[array].set(&odd, step.value..);
                }
            }
            Plan::Clone { from, into } => {
                let (from, cells) = cells(&world, &from);
                if !cells.is_empty() {
                    world.arrays[into] = world.arrays[from].clone_of(&cells);
                }
            }
            Plan::Renew { array, maker } => {
                world.arrays[array] = Contents::made(&maker, step.value);
            }
            Plan::Return { array } => {
                let contents = &mut world.arrays[array];
                // If the conversion fails, the array is dropped, and zeros of its shape replace it.
                if contents.values.iter().any(Option::is_none) {
                    *contents = Contents::made(&contents.zeros(), 0);
                }
            }
            Plan::Synchronize { .. } => {}
        }
        world
    }
}
