//! Operations on whole arrays, events and devices, and the final checks of a program.

use std::collections::BTreeSet;

use resident::emulation::HazardKind;
use resident::ndarray::{Array, ArrayD, Axis, IxDyn, ShapeBuilder, Slice};
use resident::{Element, Error, Result, SmartArray, Validity};

use super::journal::Use;
use super::kernels::AXES_MAX;
use super::ledger::{Cell, Doing, Ledger, Place};
use super::machine::{ARRAYS, Machine, Promised, below, point};
use super::parts::{Cells, Part, have_one_order, info, is_unbroken};
use super::reference::{Contents, Reference, assert_allowed};
use super::smart::{Smart, layout_of};
use super::value::{FIELDS, Pair, Value};
use super::{Adopted, Maker, Origin, Waiting, World};

/// The shapes of arrays; some have more than six axes, the maximum for a region.
const SHAPES: [&[usize]; 11] = [
    &[10],
    &[4, 5],
    &[5, 4],
    &[4, 5],
    &[2, 3, 4],
    &[7],
    &[3, 1, 4],
    &[],
    &[0],
    &[3, 0],
    &[2, 1, 2, 1, 2, 1, 2, 2],
];

/// The number of shapes whose regions are exact, and that device code takes.
const EXACT_SHAPES: usize = 10;

/// A new array of elements that are counted from 0 in memory order, and its elements by index.
fn array_of<E: Element>(
    shape: &[usize],
    maker: Maker,
    element: impl Fn(u32) -> E,
) -> (SmartArray<E, IxDyn>, Vec<Option<E>>) {
    let order = || IxDyn(shape).set_f(maker.columns_first);
    let len = shape.iter().product();
    let (array, contents) = match maker.origin {
        Origin::Adopted(how) => return adopted(shape, maker, how, element),
        Origin::Zeros => (SmartArray::zeros(order()), Some(E::zeroed())),
        Origin::Full => (SmartArray::full(order(), element(0)), Some(element(0))),
        Origin::Uninit => (SmartArray::uninit(order()), None),
    };
    let layout = |strides: &[isize]| layout_of(shape, strides, false);
    assert_eq!(layout(array.strides()), layout(Array::<u8, _>::zeros(order()).strides()));
    (array, vec![contents; len])
}

/// An array adopted from ndarray, which keeps its strides.
fn adopted<E: Element>(
    shape: &[usize],
    maker: Maker,
    how: Adopted,
    element: impl Fn(u32) -> E,
) -> (SmartArray<E, IxDyn>, Vec<Option<E>>) {
    let has_gaps = how.gaps && !shape.is_empty();
    let mut wide = shape.to_vec();
    if has_gaps {
        wide[0] *= 2;
    }
    let elements = (0..wide.iter().product::<usize>() as u32).map(element).collect();
    let mut array = Array::from_shape_vec(IxDyn(&wide).set_f(maker.columns_first), elements)
        .expect("as many values as elements");
    if has_gaps {
        array.slice_axis_inplace(Axis(0), Slice::new(0, None, 2));
    }
    if how.reversed && !shape.is_empty() {
        array.invert_axis(Axis(shape.len() - 1));
    }
    let contents = array.iter().map(|element| Some(*element)).collect();
    let strides = array.strides().to_vec();
    let array = SmartArray::from(array);
    let layout = |strides: &[isize]| layout_of(shape, strides, false);
    assert!(has_gaps || layout(array.strides()) == layout(&strides));
    (array, contents)
}

/// The ledger's cell for each element of a new array.
fn first_cell(origin: Origin) -> Cell {
    match origin {
        Origin::Adopted(_) => Cell::Stored(BTreeSet::from([Place::Host])),
        Origin::Zeros | Origin::Full => Cell::Constant(BTreeSet::new()),
        Origin::Uninit => Cell::Never,
    }
}

impl<T: Value> Machine<T> {
    pub(super) fn add_first_arrays(&mut self, world: &World) {
        let adopted = Adopted { reversed: false, gaps: false, pinned: world.varied };
        let origins = [Origin::Adopted(adopted), Origin::Zeros, Origin::Full, Origin::Uninit];
        for (number, origin) in origins.into_iter().enumerate() {
            let maker = Maker {
                shape: number as u8,
                columns_first: world.varied && number == 2,
                fields: world.varied && number == 1,
                value: 40 * number as u8,
                origin,
            };
            let (array, reference) = self.made(maker);
            if let Some(ledgers) = &mut self.ledgers {
                ledgers.arrays.push(ledger_of(&reference, &first_cell(origin)));
            }
            self.arrays.push(array);
            self.references.push(reference);
        }
    }

    /// A new array, and its reference.
    fn made(&self, maker: Maker) -> (Smart<T>, Reference<T>) {
        let shapes = if self.is_restrained() { EXACT_SHAPES } else { SHAPES.len() };
        let shape = SHAPES[below(maker.shape, shapes)];
        let value = self.value(maker.value);
        let (mut array, elements): (_, Vec<Option<T>>) = if maker.fields {
            let pair = |position| Pair::counted(value, position);
            let (array, pairs) = array_of(shape, maker, pair);
            let fields = |pair: Option<Pair<T>>| match pair {
                Some(pair) => pair.fields().map(Some),
                None => [None; FIELDS],
            };
            (Smart::Records(array), pairs.into_iter().flat_map(fields).collect())
        } else {
            let (array, elements) = array_of(shape, maker, |position| T::of(value + position));
            (Smart::Numbers(array), elements)
        };
        if matches!(maker.origin, Origin::Adopted(Adopted { pinned: true, .. })) {
            let _here = (self.lab.pinning_device)().enter();
            array.page_lock().expect("nothing fails");
        }
        let contents =
            elements.into_iter().map(|it| it.map_or(Contents::Unwritten, Contents::Value));
        let reference = Reference::new(array.layout(), contents);
        (array, reference)
    }

    /// Replaces an array. All its elements are recorded as this cell.
    fn install(&mut self, array: usize, smart: Smart<T>, reference: Reference<T>, cell: &Cell) {
        if let Some(ledgers) = &mut self.ledgers {
            ledgers.replace(array, ledger_of(&reference, cell));
        }
        (self.arrays[array], self.references[array]) = (smart, reference);
    }

    pub(super) fn renew(&mut self, array: usize, maker: Maker) {
        let (smart, reference) = self.made(maker);
        self.install(array, smart, reference, &first_cell(maker.origin));
    }

    pub(super) fn clone_part(&mut self, array: usize, part: &Part, into: usize) {
        let part = self.arrays[array].resolve(part);
        let cells = self.references[array].layout.slice(info(&part)).to_owned();
        // Views of the clone may have one more axis.
        if self.is_restrained() && (cells.is_empty() || cells.ndim() >= AXES_MAX) {
            return;
        }
        let outcome = self.arrays[array].slice(&part).try_clone();
        // Elements that were never written are not read, and stay unwritten in the clone.
        let source = &self.references[array];
        let is_written = |cell: &usize| source.elements[*cell].contents != Contents::Unwritten;
        let read = Array::from_iter(cells.iter().copied().filter(is_written)).into_dyn();
        let uses = [Use::read(array, read)];
        self.journal.made_elements = cells.len();
        let judged = self.judge(outcome, Doing::Other, &uses, &[]);
        self.journal.made_elements = 0;
        let Some(clone) = judged else {
            return;
        };
        let clone = Smart::Numbers(clone);
        let source = &self.references[array];
        let mut reference = Reference::new(clone.layout(), source.contents(&cells));
        // It keeps the memory order of a part without gaps.
        let has_order = |order: &Cells| have_one_order(&reference.layout, order);
        let rows = Cells::from_shape_vec(cells.raw_dim(), (0..cells.len()).collect());
        let rows = rows.expect("as many");
        let order = if is_unbroken(&cells) { &cells } else { &rows };
        assert!(has_order(order), "{:?} of {cells:?}", reference.layout);
        for (to, from) in reference.layout.iter().zip(&cells) {
            reference.elements[*to].may_be_lost =
                source.elements[*from].may_be_lost || source.is_doubtful;
        }
        reference.is_doubtful = source.is_doubtful;
        self.count_clone(array, &cells, &clone, &reference, into);
        (self.arrays[into], self.references[into]) = (clone, reference);
    }

    /// Calls `into_array`, checks the result, and makes a new array of it. If the call fails, the
    /// array is lost, and zeros of its shape replace it.
    pub(super) fn give_back(&mut self, array: usize) {
        let zeros = self.arrays[array].zeros();
        let taken = std::mem::replace(&mut self.arrays[array], Smart::none());
        let uses = [Use::read(array, self.references[array].layout.clone())];
        let outcome = taken.given_back();
        let judged = self.judge(outcome, Doing::Access(Place::Host), &uses, &[]);
        let Some((given, again)) = judged else {
            return self.replace_by_zeros(array, zeros);
        };
        assert_allowed(&given, &self.references[array].contents(&uses[0].cells));
        let contents = given.iter().map(|value| Contents::Value(*value));
        let reference = Reference::new(again.layout(), contents);
        self.install(array, again, reference, &Cell::Stored(BTreeSet::from([Place::Host])));
    }

    pub(super) fn replace_by_zeros(&mut self, array: usize, zeros: Smart<T>) {
        let contents = std::iter::repeat(Contents::Value(T::of(0)));
        let reference = Reference::new(zeros.layout(), contents);
        self.install(array, zeros, reference, &first_cell(Origin::Zeros));
    }

    /// Checks that queries copy nothing.
    pub(super) fn look(&mut self, array: usize, part: &Part) {
        let (smart, traffic) = (&self.arrays[array], self.arrays[array].traffic());
        let view = smart.slice(&smart.resolve(part));
        let residency = view.residency();
        let words = format!("{} {view:?} {residency}", smart.words());
        assert!(!words.is_empty());
        let bytes = (view.len() * size_of::<T>()) as u64;
        let mut places = self.places().map(|place| self.validity_in(&residency, place));
        assert!(places.all(|place| match place {
            Validity::Partial { valid_bytes } => (1..bytes).contains(&valid_bytes),
            _ => true,
        }));
        assert_eq!(smart.traffic(), traffic);
    }

    pub(super) fn record(&mut self, lane: u8) {
        let outcome = self.stream(lane).record();
        self.events.extend(self.journal.judge_plain(outcome));
    }

    pub(super) fn wait_event(&mut self, lane: u8, event: u8) {
        if !self.events.is_empty() {
            let outcome = self.stream(lane).wait(&self.events[below(event, self.events.len())]);
            self.journal.judge_plain(outcome);
        }
    }

    pub(super) fn wait_pending(&mut self, pending: u8) {
        if !self.promised.is_empty() {
            let promised = self.promised.swap_remove(below(pending, self.promised.len()));
            self.fulfil(promised);
        }
    }

    pub(super) fn fulfil(&mut self, promised: Promised<T>) {
        match promised.pending.wait() {
            Ok(seen) => assert_allowed(&seen, &promised.contents),
            Err(Error::Lost { .. }) if promised.may_be_lost => {}
            Err(error) => self.journal.note_of_wait(&error),
        }
    }

    pub(super) fn synchronize(&mut self, what: Waiting) {
        let outcome = match what {
            Waiting::Device(device) => {
                self.devices[below(device, self.devices.len())].synchronize()
            }
            Waiting::Stream(lane) => self.stream(lane).synchronize(),
            Waiting::Event(_) if self.events.is_empty() => return,
            Waiting::Event(event) => self.events[below(event, self.events.len())].synchronize(),
            Waiting::Everything => return self.settle(),
        };
        self.journal.judge_plain(outcome);
    }

    /// Waits for all work, and collects every failure that `synchronize` returns.
    fn settle(&mut self) {
        for device in self.devices.clone() {
            let tries = 1 + self.journal.failures_left();
            let is_done =
                (0..tries).any(|_| self.journal.judge_plain(device.synchronize()).is_some());
            assert!(is_done, "{device} fails for ever");
        }
        self.references.iter_mut().for_each(|reference| reference.is_doubtful = false);
    }

    /// Checks that all values that were not lost are right, that no memory stays allocated, and
    /// that there were no unordered accesses.
    pub(super) fn finish(mut self) {
        match self.ledgers.take() {
            Some(ledgers) => {
                (0..ARRAYS).for_each(|array| self.verify_each(array));
                (0..ARRAYS).for_each(|array| self.verify(array));
                self.check_totals(&ledgers);
            }
            None => {
                self.settle();
                (0..ARRAYS).for_each(|array| self.verify(array));
            }
        }
        // The program waits for some snapshots, and drops others before they are complete.
        while self.promised.len() > 1 {
            self.wait_pending(0);
        }
        self.arrays.clear();
        self.promised.clear();
        self.chains.clear();
        self.events.clear();
        self.settle();
        // If the program did not write the elements that it requested to overwrite, `race_check`
        // reports later reads of that memory.
        let pardoned = self.has_broken_promise.then_some(HazardKind::NeverWritten);
        let hazards = (self.lab.hazards)(&self.devices, pardoned);
        assert!(hazards.is_empty(), "{}", hazards.join("\n"));
        let tries = 1 + self.journal.failures_left();
        for device in &self.devices {
            let in_use = || device.memory().in_use;
            assert!((0..tries).any(|_| in_use() == 0), "{} bytes left on {device}", in_use());
        }
    }

    /// Reads the whole array; if that is refused, reads each element.
    fn verify(&mut self, array: usize) {
        let uses = [Use::read(array, self.references[array].layout.clone())];
        let outcome: Result<ArrayD<T>> = self.arrays[array].numbers();
        match self.judge(outcome, Doing::Other, &uses, &[]) {
            Some(seen) => assert_allowed(&seen, &self.references[array].contents(&uses[0].cells)),
            None => self.verify_each(array),
        }
    }

    /// Reads each element. Of the elements that were never written, only the first is read, to save
    /// time.
    fn verify_each(&mut self, array: usize) {
        let reference = &self.references[array];
        let is_unwritten = |cell: usize| reference.elements[cell].contents == Contents::Unwritten;
        let numbered = || reference.layout.indexed_iter().map(|(index, cell)| (index, *cell));
        let written = numbered().filter(|(_, cell)| !is_unwritten(*cell));
        let tried: Vec<(IxDyn, usize)> =
            written.chain(numbered().find(|(_, cell)| is_unwritten(*cell))).collect();
        for (index, cell) in tried {
            self.verify_element(array, &index, cell);
        }
    }

    fn verify_element(&mut self, array: usize, index: &IxDyn, cell: usize) {
        let uses = [Use::read(array, point(cell))];
        for _ in 0..=self.journal.failures_left() {
            let outcome = self.arrays[array].get(index);
            let is_refused =
                matches!(outcome, Err(Error::Uninitialised { .. } | Error::Lost { .. }));
            if let Some(seen) = self.judge(outcome, Doing::Other, &uses, &[]) {
                let allowed = self.references[array].contents(&uses[0].cells);
                return assert_allowed(&point(seen), &allowed);
            }
            if is_refused {
                return;
            }
        }
        panic!("element {index:?} can never be read");
    }
}

/// The ledger of a new array, all whose elements are this cell.
fn ledger_of<T: Value>(reference: &Reference<T>, cell: &Cell) -> Ledger {
    Ledger::new(size_of::<T>() as u64, cell, reference.layout.len())
}
