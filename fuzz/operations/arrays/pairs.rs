//! Operations on two and three parts.

use resident::ndarray::{Axis, IxDyn};
use resident::{Result, SmartView, SmartViewMut, Stream};

use super::Transfer;
use super::journal::{Misfit, Use, may_be_lost};
use super::kernels::Kernels;
use super::machine::{ARRAYS, Machine, Smart, below, grid};
use super::parts::{Cells, Part, comb, common, have_one_order, is_unbroken};
use super::reference::Contents;
use super::value::{Value, combined};

/// Copies one part to another.
fn carry<T: Value>(
    kernels: &Kernels<T>,
    stream: &Stream,
    transfer: Transfer,
    source: &SmartView<'_, T, IxDyn>,
    target: &mut SmartViewMut<'_, T, IxDyn>,
) -> Result<()> {
    match transfer {
        Transfer::Copy { flat: false } => kernels.copy.launch_on(stream, grid(), (source, target)),
        Transfer::Copy { flat: true } => {
            kernels.copy_flat.launch_on(stream, grid(), (source, target))
        }
        Transfer::CallCopy => kernels.copy.call(grid(), (source, target)),
        Transfer::Assign => target.assign(source),
        Transfer::AssignOn => target.assign_on(stream, source),
    }
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

impl<T: Value> Machine<T> {
    pub(super) fn pair(
        &mut self,
        arrays: [u8; 2],
        parts: &[Part; 2],
        lane: u8,
        transfer: Transfer,
    ) {
        let from = below(arrays[0], ARRAYS);
        let to = (from + 1 + below(arrays[1], ARRAYS - 1)) % ARRAYS;
        let stream = self.stream(lane);
        let infos = [(from, &parts[0]), (to, &parts[1])]
            .map(|(array, part)| part.resolve(self.arrays[array].shape()));
        let [source, target] = [(from, &infos[0]), (to, &infos[1])]
            .map(|(array, info)| self.references[array].layout.slice(info));
        let crops = common([source.shape(), target.shape()]);
        let (source, target) =
            (source.slice(&crops[0]).to_owned(), target.slice(&crops[1]).to_owned());
        let [from_array, to_array] = self.arrays.get_disjoint_mut([from, to]).expect("two arrays");
        let view = from_array.slice(&infos[0]);
        let mut outer = to_array.slice_mut(&infos[1]);
        let outcome = carry(
            &self.kernels,
            &stream,
            transfer,
            &view.slice(&crops[0]),
            &mut outer.slice_mut(&crops[1]),
        );
        self.carried(outcome, transfer, [(from, source), (to, target)]);
    }

    pub(super) fn halves(
        &mut self,
        array: u8,
        (axis, at): (u8, u8),
        parts: &[Part; 2],
        lane: u8,
        transfer: Transfer,
    ) {
        let array = below(array, ARRAYS);
        let shape = self.arrays[array].shape().to_vec();
        if shape.is_empty() {
            return;
        }
        let axis = below(axis, shape.len());
        let (at, stream) = (below(at, shape[axis] + 1), self.stream(lane));
        let (left, right) = self.references[array].layout.view().split_at(Axis(axis), at);
        let infos = [parts[0].resolve(left.shape()), parts[1].resolve(right.shape())];
        let (source, target) = (left.slice(&infos[0]), right.slice(&infos[1]));
        let crops = common([source.shape(), target.shape()]);
        let (source, target) =
            (source.slice(&crops[0]).to_owned(), target.slice(&crops[1]).to_owned());
        let (left, mut right) = self.arrays[array].split_at_mut(Axis(axis), at);
        let view = left.slice(&infos[0]);
        let mut outer = right.slice_mut(&infos[1]);
        let outcome = carry(
            &self.kernels,
            &stream,
            transfer,
            &view.slice(&crops[0]),
            &mut outer.slice_mut(&crops[1]),
        );
        self.carried(outcome, transfer, [(array, source), (array, target)]);
    }

    fn carried(
        &mut self,
        outcome: Result<()>,
        transfer: Transfer,
        [(from, source), (to, target)]: [(usize, Cells); 2],
    ) {
        let misfits = misfits(transfer, &source, &target);
        let is_assigned = matches!(transfer, Transfer::Assign | Transfer::AssignOn);
        let uses = [Use::read(from, source), Use::overwrite(to, target)];
        if self.journal.judge(outcome, &mut self.references, &uses, &misfits).is_none() {
            // It takes several calls if its sources are several devices, which the model does not
            // know.
            if is_assigned && misfits.is_empty() {
                self.forget(&uses[1]);
            }
            return;
        }
        let contents = self.references[from].contents(&uses[0].cells);
        let on_host = matches!(transfer, Transfer::CallCopy);
        let lost = !on_host && may_be_lost(&self.references, &uses);
        self.references[to].write(uses[1].cells.iter().copied(), contents, lost);
        if on_host {
            self.references[from].save(&uses[0].cells);
        }
    }

    pub(super) fn combine(&mut self, arrays: [u8; 3], parts: &[Part; 3], lane: u8) {
        let into = below(arrays[2], ARRAYS);
        let [one, other] =
            [arrays[0], arrays[1]].map(|array| (into + 1 + below(array, ARRAYS - 1)) % ARRAYS);
        let numbers = [one, other, into];
        let stream = self.stream(lane);
        let infos: [_; 3] =
            std::array::from_fn(|at| parts[at].resolve(self.arrays[numbers[at]].shape()));
        let cells: [_; 3] =
            std::array::from_fn(|at| self.references[numbers[at]].layout.slice(&infos[at]));
        let crops = common(cells.each_ref().map(|cells| cells.shape()));
        let cells: [Cells; 3] = std::array::from_fn(|at| cells[at].slice(&crops[at]).to_owned());
        // The written array is moved out of the list, since the other two may be the same array.
        let mut written = std::mem::replace(&mut self.arrays[into], Smart::uninit(IxDyn(&[0])));
        let read = |at: usize| self.arrays[numbers[at]].slice(&infos[at]);
        let (x, y, mut z) = (read(0), read(1), written.slice_mut(&infos[2]));
        let arguments = (&x.slice(&crops[0]), &y.slice(&crops[1]), &mut z.slice_mut(&crops[2]));
        let outcome = self.kernels.combine.launch_on(&stream, grid(), arguments);
        self.arrays[into] = written;
        let has_one_shape = cells.iter().all(|part| part.shape() == cells[0].shape());
        let [x, y, z] = cells;
        let uses = [Use::read(one, x), Use::read(other, y), Use::change(into, z)];
        self.combined(outcome, &uses, if has_one_shape { &[] } else { &[Misfit::Shapes] });
    }

    fn combined(&mut self, outcome: Result<()>, uses: &[Use; 3], misfits: &[Misfit]) {
        if self.journal.judge(outcome, &mut self.references, uses, misfits).is_none() {
            return;
        }
        let [x, y, z] =
            uses.each_ref().map(|used| self.references[used.array].contents(&used.cells));
        let values = x.iter().zip(&y).zip(&z).map(|((x, y), z)| match (x, y, z) {
            (Contents::Value(x), Contents::Value(y), Contents::Value(z)) => {
                Contents::Value(combined(*x, *y, *z))
            }
            _ => Contents::Anything,
        });
        let lost = may_be_lost(&self.references, uses);
        self.references[uses[2].array].write(uses[2].cells.iter().copied(), values, lost);
    }

    /// Changes every second index of an axis on one stream and writes the others on another; both
    /// views are alive at once.
    pub(super) fn combs(&mut self, array: u8, axis: u8, lanes: [u8; 2], value: u32) {
        let array = below(array, ARRAYS);
        let shape = self.arrays[array].shape().to_vec();
        if shape.is_empty() {
            return;
        }
        let axis = below(axis, shape.len());
        if shape[axis] < 2 {
            return;
        }
        let infos = [0, 1].map(|first| comb(&shape, axis, first));
        let [even, odd] =
            infos.each_ref().map(|info| self.references[array].layout.slice(info).to_owned());
        let [stream, other] = lanes.map(|lane| self.stream(lane));
        let (mut first, mut second) = self.arrays[array].multi_slice_mut((&infos[0], &infos[1]));
        let mixed = self.kernels.mix.launch_on(&stream, grid(), (value, &mut first));
        let stamped = self.kernels.stamp.launch_on(&other, grid(), (value, &mut second));
        let uses = [Use::change(array, even)];
        if self.journal.judge(mixed, &mut self.references, &uses, &[]).is_some() {
            self.change(&uses[0], value, may_be_lost(&self.references, &uses));
        }
        let uses = [Use::overwrite(array, odd)];
        if self.journal.judge(stamped, &mut self.references, &uses, &[]).is_some() {
            self.stamp(&uses[0], value, may_be_lost(&self.references, &uses));
        }
    }
}
