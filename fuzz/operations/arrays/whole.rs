//! Operations on whole arrays, events and devices, and the final checks of a program.

use resident::emulation::HazardKind;
use resident::ndarray::{Array, ArrayD, Axis, IxDyn, ShapeBuilder, Slice};
use resident::{Error, Result, Validity};

use super::journal::Use;
use super::machine::{Machine, Promised, Smart, below};
use super::parts::{Cells, Part};
use super::reference::{Contents, Reference, assert_allowed};
use super::value::{Value, counting};
use super::{Maker, Origin, Waiting};

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

/// A new array, and its reference.
pub(super) fn made<T: Value>(maker: Maker) -> (Smart<T>, Reference<T>) {
    let shape = SHAPES[below(maker.shape, SHAPES.len())];
    let order = || IxDyn(shape).set_f(maker.columns_first);
    let value = T::of(u32::from(maker.value));
    let array = match maker.origin {
        Origin::Adopted { reversed, gaps } => return adopted(maker, shape, reversed, gaps),
        Origin::Zeros => Smart::zeros(order()),
        Origin::Full => Smart::full(order(), value),
        Origin::Uninit => Smart::uninit(order()),
    };
    let contents = match maker.origin {
        Origin::Zeros => Contents::Value(T::of(0)),
        Origin::Full => Contents::Value(value),
        _ => Contents::Unwritten,
    };
    let reference = Reference::new(array.shape(), array.strides(), std::iter::repeat(contents));
    (array, reference)
}

fn adopted<T: Value>(
    maker: Maker,
    shape: &[usize],
    reversed: bool,
    gaps: bool,
) -> (Smart<T>, Reference<T>) {
    let values: Vec<T> =
        counting(u32::from(maker.value)).take(2 * shape.iter().product::<usize>()).collect();
    let mut array = match shape.split_first() {
        Some((first, rest)) if gaps => {
            let wide: Vec<usize> = std::iter::once(2 * first).chain(rest.iter().copied()).collect();
            let mut array = Array::from_shape_vec(IxDyn(&wide).set_f(maker.columns_first), values)
                .expect("twice as many values");
            array.slice_axis_inplace(Axis(0), Slice::new(0, None, 2));
            array
        }
        _ => {
            let values = values[..shape.iter().product()].to_vec();
            Array::from_shape_vec(IxDyn(shape).set_f(maker.columns_first), values)
                .expect("as many values as elements")
        }
    };
    if reversed && !shape.is_empty() {
        array.invert_axis(Axis(shape.len() - 1));
    }
    let contents: Vec<Contents<T>> = array.iter().map(|value| Contents::Value(*value)).collect();
    let array = Smart::from(array);
    let reference = Reference::new(array.shape(), array.strides(), contents);
    (array, reference)
}

impl<T: Value> Machine<T> {
    pub(super) fn renew(&mut self, array: usize, maker: Maker) {
        (self.arrays[array], self.references[array]) = made(maker);
    }

    pub(super) fn clone_part(&mut self, array: usize, part: &Part, into: usize) {
        let info = part.resolve(self.arrays[array].shape());
        let cells = self.references[array].layout.slice(&info).to_owned();
        let outcome = self.arrays[array].slice(&info).try_clone();
        // Elements that were never written are not read, and stay unwritten in the clone.
        let source = &self.references[array];
        let read: Vec<usize> = cells
            .iter()
            .copied()
            .filter(|cell| source.elements[*cell].contents != Contents::Unwritten)
            .collect();
        let uses = [Use::read(
            array,
            Cells::from_shape_vec(IxDyn(&[read.len()]), read).expect("one axis"),
        )];
        let Some(clone) = self.journal.judge(outcome, &mut self.references, &uses, &[]) else {
            return;
        };
        let source = &self.references[array];
        let mut reference = Reference::new(clone.shape(), clone.strides(), source.contents(&cells));
        for (to, from) in reference.layout.iter().zip(&cells) {
            reference.elements[*to].may_be_lost =
                source.elements[*from].may_be_lost || source.is_doubtful;
        }
        reference.is_doubtful = source.is_doubtful;
        (self.arrays[into], self.references[into]) = (clone, reference);
    }

    /// Calls `into_array`, checks the result, and makes a new array of it. If the call fails, the
    /// array is lost, and zeros of its shape replace it.
    pub(super) fn give_back(&mut self, array: usize) {
        let taken = std::mem::replace(&mut self.arrays[array], Smart::uninit(IxDyn(&[0])));
        let (shape, strides) = (taken.shape().to_vec(), taken.strides().to_vec());
        let uses = [Use::read(array, self.references[array].layout.clone())];
        let outcome = taken.into_array();
        let Some(given) = self.journal.judge(outcome, &mut self.references, &uses, &[]) else {
            return self.replace_by_zeros(array, &shape);
        };
        assert_allowed(&given, &self.references[array].contents(&uses[0].cells));
        // Without elements, strides have no meaning.
        assert!(given.is_empty() || given.strides() == strides);
        let contents: Vec<Contents<T>> =
            given.iter().map(|value| Contents::Value(*value)).collect();
        self.arrays[array] = Smart::from(given);
        self.references[array] = Reference::new(&shape, self.arrays[array].strides(), contents);
    }

    pub(super) fn replace_by_zeros(&mut self, array: usize, shape: &[usize]) {
        self.arrays[array] = Smart::zeros(IxDyn(shape));
        let zeros = std::iter::repeat(Contents::Value(T::of(0)));
        self.references[array] = Reference::new(shape, self.arrays[array].strides(), zeros);
    }

    /// Checks that queries copy nothing.
    pub(super) fn look(&mut self, array: usize, part: &Part) {
        let (smart, traffic) = (&self.arrays[array], self.arrays[array].traffic());
        let view = smart.slice(part.resolve(smart.shape()));
        let residency = view.residency();
        let words = format!("{smart:?} {view:?} {residency} {}", smart.name());
        assert!(!words.is_empty());
        let bytes = (view.len() * size_of::<T>()) as u64;
        let places =
            [residency.host(), residency.on(&self.devices[0]), residency.on(&self.devices[1])];
        let is_proper_part = |place: &Validity| match place {
            Validity::Partial { valid_bytes } => (1..bytes).contains(valid_bytes),
            _ => true,
        };
        assert!(places.iter().all(is_proper_part));
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

    fn fulfil(&mut self, promised: Promised<T>) {
        match promised.pending.wait() {
            Ok(seen) => assert_allowed(&seen, &promised.contents),
            Err(Error::Lost { .. }) if promised.may_be_lost => {}
            Err(error) => self.journal.note_of_wait(&error),
        }
    }

    pub(super) fn synchronize(&mut self, what: Waiting) {
        let outcome = match what {
            Waiting::Device(second) => self.devices[usize::from(second)].synchronize(),
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
        self.settle();
        (0..self.arrays.len()).for_each(|array| self.verify(array));
        // The program waits for some snapshots, and drops others before they are complete.
        while self.promised.len() > 1 {
            self.wait_pending(0);
        }
        self.arrays.clear();
        self.promised.clear();
        self.events.clear();
        self.settle();
        let tries = 1 + self.journal.failures_left();
        for device in &self.devices {
            let mut hazards = device.emulation().expect("an emulated device").hazards();
            // If the program did not write the elements that it requested to overwrite,
            // `race_check` reports later reads of that memory.
            hazards.retain(|hazard| {
                !(self.has_broken_promise && hazard.kind == HazardKind::NeverWritten)
            });
            assert!(
                hazards.is_empty(),
                "{}",
                hazards.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            );
            assert!(
                (0..tries).any(|_| device.memory().in_use == 0),
                "{} bytes left on {device}",
                device.memory().in_use
            );
        }
    }

    /// Reads the whole array; if that is refused, reads each element. Of the elements that were
    /// never written, only the first is read, to save time.
    fn verify(&mut self, array: usize) {
        let uses = [Use::read(array, self.references[array].layout.clone())];
        let outcome: Result<ArrayD<T>> = self.arrays[array].host().map(|host| host.to_owned());
        if let Some(seen) = self.journal.judge(outcome, &mut self.references, &uses, &[]) {
            return assert_allowed(&seen, &self.references[array].contents(&uses[0].cells));
        }
        let is_unwritten =
            |cell: usize| self.references[array].elements[cell].contents == Contents::Unwritten;
        let numbered = || uses[0].cells.indexed_iter().map(|(index, cell)| (index, *cell));
        let written = numbered().filter(|(_, cell)| !is_unwritten(*cell));
        let tried: Vec<(IxDyn, usize)> =
            written.chain(numbered().find(|(_, cell)| is_unwritten(*cell))).collect();
        for (index, cell) in tried {
            self.verify_element(array, &index, cell);
        }
    }

    fn verify_element(&mut self, array: usize, index: &IxDyn, cell: usize) {
        let cell = Cells::from_elem(IxDyn(&[]), cell);
        let uses = [Use::read(array, cell)];
        for _ in 0..=self.journal.failures_left() {
            let outcome = self.arrays[array].get(index.clone());
            let is_refused =
                matches!(outcome, Err(Error::Uninitialised { .. } | Error::Lost { .. }));
            let judged = self.journal.judge(outcome, &mut self.references, &uses, &[]);
            if let Some(seen) = judged {
                return assert_allowed(
                    &Array::from_elem(IxDyn(&[]), seen),
                    &self.references[array].contents(&uses[0].cells),
                );
            }
            if is_refused {
                return;
            }
        }
        panic!("element {index:?} can never be read");
    }
}
