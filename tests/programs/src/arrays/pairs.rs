//! Operations on two and three parts.

use resident::ndarray::{Axis, IxDyn};
use resident::{Result, SmartView, SmartViewMut, Stream};

use super::journal::{Misfit, Use, may_be_lost};
use super::kernels::Kernels;
use super::ledger::{Doing, Place};
use super::machine::{ARRAYS, Machine, below, grid};
use super::parts::{
    Cells, Elements, Info, Part, Surplus, comb, common, have_one_order, info, is_unbroken,
};
use super::reference::Contents;
use super::smart::Smart;
use super::value::{Value, combined};
use super::{Halves, Transfer};

/// Copies one part to another.
fn carry<T: Value>(
    kernels: &Kernels<T>,
    stream: &Stream,
    transfer: Transfer,
    source: &SmartView<'_, T, IxDyn>,
    target: &mut SmartViewMut<'_, T, IxDyn>,
) -> Result<()> {
    let (kernels, len) = (kernels.of(target.shape().len()), source.len() as u64);
    match transfer {
        Transfer::Copy { flat: false } => kernels.copy.launch_on(stream, grid(), (source, target)),
        Transfer::Copy { flat: true } => {
            kernels.copy_flat.launch_on(stream, grid(), (source, target, len))
        }
        Transfer::CallCopy => kernels.copy.call(grid(), (source, target)),
        Transfer::Assign => target.assign(source),
        Transfer::AssignOn => target.assign_on(stream, source),
    }
}

/// Whether an assignment repeats elements: what it counts then, the reference does not know, and
/// tests of its own look at what it writes.
fn repeats(transfer: Transfer, source: &Cells, target: &Cells) -> bool {
    matches!(transfer, Transfer::Assign | Transfer::AssignOn)
        && source.shape() != target.shape()
        && source.broadcast(target.raw_dim()).is_some()
}

/// The reasons why a transfer between these parts must be refused.
fn misfits(transfer: Transfer, source: &Cells, target: &Cells) -> Vec<Misfit> {
    let is_flat = matches!(transfer, Transfer::Copy { flat: true });
    let all = [
        (source.shape() != target.shape(), Misfit::Shapes),
        (is_flat && !(is_unbroken(source) && is_unbroken(target)), Misfit::Gaps),
        (is_flat && !have_one_order(source, target), Misfit::Orders),
    ];
    all.into_iter().filter(|(applies, _)| *applies).map(|(_, misfit)| misfit).collect()
}

/// Parts of two arrays, cut to one shape.
pub(super) struct Parts {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) elements: [Elements; 2],
    pub(super) crops: [Info; 2],
    pub(super) source: Cells,
    pub(super) target: Cells,
}

impl<T: Value> Machine<T> {
    pub(super) fn two_parts(&self, arrays: [u8; 2], parts: &[Part; 2], surplus: Surplus) -> Parts {
        let from = below(arrays[0], ARRAYS);
        let to = (from + 1 + below(arrays[1], ARRAYS - 1)) % ARRAYS;
        let elements = [(from, &parts[0]), (to, &parts[1])]
            .map(|(array, part)| self.arrays[array].resolve(part));
        let [source, target] = [(from, &elements[0]), (to, &elements[1])]
            .map(|(array, part)| self.references[array].layout.slice(info(part)));
        let crops = common([source.shape(), target.shape()], surplus);
        let (source, target) =
            (source.slice(&crops[0]).to_owned(), target.slice(&crops[1]).to_owned());
        Parts { from, to, elements, crops, source, target }
    }

    pub(super) fn pair(
        &mut self,
        arrays: [u8; 2],
        parts: &[Part; 2],
        surplus: Surplus,
        lane: u8,
        transfer: Transfer,
    ) {
        let Parts { from, to, elements: parts, crops, source, target } =
            self.two_parts(arrays, parts, surplus);
        if repeats(transfer, &source, &target) {
            return;
        }
        let stream = self.stream(lane);
        let [from_array, to_array] = self.arrays.get_disjoint_mut([from, to]).expect("two arrays");
        let view = from_array.slice(&parts[0]);
        let mut outer = to_array.slice_mut(&parts[1]);
        let (view, mut outer) = (view.slice(&crops[0]), outer.slice_mut(&crops[1]));
        let outcome = carry(&self.kernels, &stream, transfer, &view, &mut outer);
        self.carried(outcome, transfer, lane, [(from, source), (to, target)]);
    }

    pub(super) fn halves(&mut self, halves: &Halves) {
        let Halves { array, axis, at, parts, surplus, lane, transfer } = *halves;
        let array = below(array, ARRAYS);
        let smart = &mut self.arrays[array];
        let shape = smart.shape().to_vec();
        if shape.is_empty() {
            return;
        }
        let axis = below(axis, shape.len());
        let at = below(at, shape[axis] + 1);
        let part = |part: &Part, len: usize| {
            let mut shape = shape.clone();
            shape[axis] = len;
            smart.resolve_in(&shape, part)
        };
        let parts = [part(&parts[0], at), part(&parts[1], shape[axis] - at)];
        let (left, right) = self.references[array].layout.view().split_at(Axis(axis), at);
        let (source, target) = (left.slice(info(&parts[0])), right.slice(info(&parts[1])));
        let crops = common([source.shape(), target.shape()], surplus);
        let (source, target) =
            (source.slice(&crops[0]).to_owned(), target.slice(&crops[1]).to_owned());
        if repeats(transfer, &source, &target) {
            return;
        }
        let stream = self.stream(lane);
        let [view, mut outer] = self.arrays[array].halves(Axis(axis), at, parts.each_ref());
        let (view, mut outer) = (view.slice(&crops[0]), outer.slice_mut(&crops[1]));
        let outcome = carry(&self.kernels, &stream, transfer, &view, &mut outer);
        self.carried(outcome, transfer, lane, [(array, source), (array, target)]);
    }

    fn carried(
        &mut self,
        outcome: Result<()>,
        transfer: Transfer,
        lane: u8,
        [(from, source), (to, target)]: [(usize, Cells); 2],
    ) {
        let misfits = misfits(transfer, &source, &target);
        let doing = match transfer {
            Transfer::Copy { .. } => self.launching(lane),
            Transfer::CallCopy => Doing::Access(Place::Host),
            Transfer::Assign | Transfer::AssignOn => Doing::Other,
        };
        let uses = [Use::read(from, source), Use::overwrite(to, target)];
        if self.judge(outcome, doing, &uses, &misfits).is_none() {
            // It takes several calls if its sources are several devices, which the reference does
            // not know.
            if matches!(doing, Doing::Other) && misfits.is_empty() && self.ledgers.is_none() {
                self.forget(&uses[1]);
            }
            return;
        }
        match transfer {
            Transfer::Assign => self.count_assign(&uses),
            Transfer::AssignOn => self.count_assign_on(&uses, lane),
            _ => {}
        }
        let contents = self.references[from].contents(&uses[0].cells);
        let on_host = matches!(transfer, Transfer::CallCopy);
        let lost = !on_host && may_be_lost(&self.references, &uses);
        self.write(&uses[1], contents, lost);
        if on_host {
            self.references[from].save(&uses[0].cells);
        }
    }

    pub(super) fn combine(
        &mut self,
        arrays: [u8; 3],
        parts: &[Part; 3],
        surplus: Surplus,
        lane: u8,
    ) {
        let into = below(arrays[2], ARRAYS);
        let [one, other] =
            [arrays[0], arrays[1]].map(|array| (into + 1 + below(array, ARRAYS - 1)) % ARRAYS);
        let numbers = [one, other, into];
        let parts: [_; 3] = std::array::from_fn(|at| self.arrays[numbers[at]].resolve(&parts[at]));
        let cells: [_; 3] =
            std::array::from_fn(|at| self.references[numbers[at]].layout.slice(info(&parts[at])));
        let crops = common(cells.each_ref().map(|cells| cells.shape()), surplus);
        let cells: [Cells; 3] = std::array::from_fn(|at| cells[at].slice(&crops[at]).to_owned());
        // The written array is moved out of the list, since the other two may be the same array.
        let mut written = std::mem::replace(&mut self.arrays[into], Smart::none());
        let read = |at: usize| self.arrays[numbers[at]].slice(&parts[at]);
        let (x, y, mut z) = (read(0), read(1), written.slice_mut(&parts[2]));
        let arguments = (&x.slice(&crops[0]), &y.slice(&crops[1]), &mut z.slice_mut(&crops[2]));
        let combine = &self.kernels.of(cells[2].ndim()).combine;
        let outcome = combine.launch_on(&self.stream(lane), grid(), arguments);
        self.arrays[into] = written;
        let has_one_shape = cells.iter().all(|part| part.shape() == cells[0].shape());
        let [x, y, z] = cells;
        let uses = [Use::read(one, x), Use::read(other, y), Use::change(into, z)];
        let misfits: &[Misfit] = if has_one_shape { &[] } else { &[Misfit::Shapes] };
        if self.judge(outcome, self.launching(lane), &uses, misfits).is_some() {
            self.combined(&uses);
        }
    }

    fn combined(&mut self, uses: &[Use; 3]) {
        let [x, y, z] =
            uses.each_ref().map(|used| self.references[used.array].contents(&used.cells));
        let values = x.iter().zip(&y).zip(&z).map(|((x, y), z)| match (x, y, z) {
            (Contents::Value(x), Contents::Value(y), Contents::Value(z)) => {
                Contents::Value(combined(*x, *y, *z))
            }
            _ => Contents::Anything,
        });
        self.write(&uses[2], values, may_be_lost(&self.references, uses));
    }

    /// Changes every second index of an axis on one stream and writes the others on another, or one
    /// field and the other; both views are alive at once.
    pub(super) fn combs(&mut self, array: usize, axis: u8, lanes: [u8; 2], value: u32) {
        let layout = &self.references[array].layout;
        let shape = self.arrays[array].shape();
        let axis = below(axis, shape.len().max(1));
        let cells = if self.arrays[array].has_fields() {
            [0, 1].map(|field| layout.index_axis(Axis(shape.len()), field).to_owned())
        } else if shape.get(axis).is_some_and(|len| *len > 1) {
            [0, 1].map(|first| layout.slice(info(&comb(shape, axis, first))).to_owned())
        } else {
            return;
        };
        let [stream, other] = lanes.map(|lane| self.stream(lane));
        let [mut first, mut second] = self.arrays[array].combs(axis);
        let kernels = self.kernels.of(cells[0].ndim());
        let mixed = kernels.mix.launch_on(&stream, grid(), (value, &mut first));
        let stamped = kernels.stamp.launch_on(&other, grid(), (value, &mut second));
        let [even, odd] = cells;
        let uses = [Use::change(array, even)];
        if self.judge(mixed, self.launching(lanes[0]), &uses, &[]).is_some() {
            self.change(&uses[0], value, may_be_lost(&self.references, &uses));
        }
        let uses = [Use::overwrite(array, odd)];
        if self.judge(stamped, self.launching(lanes[1]), &uses, &[]).is_some() {
            self.stamp(&uses[0], value, may_be_lost(&self.references, &uses));
        }
    }
}
