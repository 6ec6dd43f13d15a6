//! Operations on an array that is a device array for a while.

use resident::ndarray::{Array, ArrayD, IxDyn};
use resident::{DeviceArray, DeviceViewMut, Error, Result, SmartArray, Stream};

use super::Visit;
use super::journal::{Use, may_be_lost};
use super::ledger::Doing;
use super::machine::{Machine, Target, grid, nth, point};
use super::parts::{Part, info, shifted};
use super::reference::{Contents, assert_allowed};
use super::smart::Smart;
use super::value::{Value, counting};

type View<'a, T> = DeviceViewMut<'a, T, IxDyn>;

/// Whether copies of `into_device` failed when they ran: `synchronize` returns their failures.
fn is_late(error: &Error) -> bool {
    matches!(error, Error::Backend { operation, .. } if operation == "into_device")
}

impl<T: Value> Machine<T> {
    /// Takes an array of numbers to the device of a stream, makes the visits to a part, and makes a
    /// coherent array of it again.
    pub(super) fn explicit(
        &mut self,
        array: usize,
        part: &Part,
        lane: u8,
        value: u32,
        visits: &[Visit],
    ) {
        let Some(mut there) = self.taken_to(array, &self.stream(lane)) else { return };
        let info = info(&part.resolve(there.shape()));
        let cells = self.references[array].layout.slice(&info).to_owned();
        for visit in visits {
            let target = Target { array, cells: cells.clone(), lane, value };
            self.visit(there.slice_mut(&info), target, *visit);
        }
        self.arrays[array] = Smart::Numbers(SmartArray::from_device(there));
    }

    /// An error drops the array, and zeros of its shape replace it.
    fn taken_to(&mut self, array: usize, stream: &Stream) -> Option<DeviceArray<T, IxDyn>> {
        if self.arrays[array].has_fields() {
            return None;
        }
        let zeros = self.arrays[array].zeros();
        let Smart::Numbers(taken) = std::mem::replace(&mut self.arrays[array], Smart::none())
        else {
            unreachable!("an array of numbers");
        };
        let strides = taken.strides().to_vec();
        let uses = [Use::change(array, self.references[array].layout.clone())];
        let outcome = taken.into_device(&stream.device());
        let judged = match outcome {
            Err(error) if is_late(&error) => None,
            outcome => self.judge(outcome, Doing::Other, &uses, &[]),
        };
        let Some(there) = judged else {
            self.replace_by_zeros(array, zeros);
            return None;
        };
        assert!(there.is_empty() || there.strides() == strides);
        self.keep(&uses);
        Some(there)
    }

    fn visit(&mut self, mut view: View<'_, T>, target: Target, visit: Visit) {
        let (stream, Target { array, cells, value, lane }) = (self.stream(target.lane), target);
        match visit {
            Visit::Read => self.looked_at(view.copy_to_host(), Use::read(array, cells)),
            Visit::Promise => {
                self.promise(view.copy_to_host_on(&stream), Use::read(array, cells));
            }
            Visit::Write => {
                let values: Vec<T> = counting(value).take(cells.len()).collect();
                let values = Array::from_shape_vec(cells.raw_dim(), values).expect("as many");
                let outcome = view.copy_from_host_on(&stream, &values);
                let written = values.map(|value| Contents::Value(*value));
                self.copied(outcome, &[Use::overwrite(array, cells)], written);
            }
            Visit::Fill => {
                let outcome = view.fill_on(&stream, T::of(value));
                let written = cells.map(|_| Contents::Value(T::of(value)));
                self.copied(outcome, &[Use::overwrite(array, cells)], written);
            }
            Visit::Shift => {
                let Some([from, to]) = shifted(cells.shape()) else { return };
                let [read, written] = [&from, &to].map(|info| cells.slice(info).to_owned());
                let contents = self.references[array].contents(&read);
                let here = stream.enter();
                let outcome = view.copy_within(&from, &to);
                drop(here);
                let uses = [Use::overwrite(array, written), Use::read(array, read)];
                self.copied(outcome, &uses, contents);
            }
            Visit::Mix => {
                let mix = &self.kernels.of(cells.ndim()).mix;
                let outcome = mix.launch_on(&stream, grid(), (value, &mut view));
                let uses = [Use::change(array, cells)];
                if self.judge(outcome, Doing::Other, &uses, &[]).is_some() {
                    self.change(&uses[0], value, may_be_lost(&self.references, &uses));
                }
            }
            Visit::Get(number) => {
                let Some((index, cell)) = nth(&cells, number) else { return };
                self.looked_at(view.get(index).map(point), Use::read(array, cell));
            }
            Visit::Elsewhere => {
                let mix = &self.kernels.of(cells.ndim()).mix;
                let elsewhere = self.stream_elsewhere(lane);
                let outcome = mix.launch_on(&elsewhere, grid(), (value, &mut view));
                assert!(matches!(outcome, Err(Error::WrongDevice { .. })), "{outcome:?}");
            }
        }
    }

    /// Checks elements that the host waited for.
    fn looked_at(&mut self, outcome: Result<ArrayD<T>>, used: Use) {
        let uses = [used];
        if let Some(seen) = self.journal.judge_wait(outcome, &mut self.references, &uses) {
            let [Use { array, cells, .. }] = &uses;
            assert_allowed(&seen, &self.references[*array].contents(cells));
        }
    }

    /// Updates the reference after a copy to the elements of the first use. A copy of several runs
    /// that is refused may have written some of them.
    fn copied(
        &mut self,
        outcome: Result<()>,
        uses: &[Use],
        contents: impl IntoIterator<Item = Contents<T>>,
    ) {
        let judged = self.judge(outcome, Doing::Other, uses, &[]);
        if judged.is_none() {
            return self.forget(&uses[0]);
        }
        self.write(&uses[0], contents, may_be_lost(&self.references, uses));
    }

    /// After a copy of several calls was refused, of which some may have written their elements.
    pub(super) fn forget(&mut self, written: &Use) {
        let elements = &mut self.references[written.array].elements;
        for cell in &written.cells {
            elements[*cell].contents = elements[*cell].contents.after_refused_copy();
        }
    }
}
