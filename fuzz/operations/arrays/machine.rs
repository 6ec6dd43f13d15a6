//! The real arrays beside the reference: operations on one part are performed on both.

use resident::ndarray::{Array, ArrayD, IxDyn};
use resident::{Device, Emulation, Error, Event, Fault, Grid, Pending, Result, SmartArray, Stream};

use super::journal::{Journal, Misfit, Use, may_be_lost};
use super::kernels::Kernels;
use super::parts::{Cells, Info, Part, in_memory_order, is_unbroken};
use super::reference::{Contents, Reference, assert_allowed};
use super::value::{Value, counting};
use super::{Action, Failing, Maker, Operation, Origin, Program, whole};

/// The number of arrays.
pub(super) const ARRAYS: usize = 4;

pub(super) type Smart<T> = SmartArray<T, IxDyn>;

/// A snapshot in flight, and its expected contents.
pub(super) struct Promised<T> {
    pub(super) pending: Pending<ArrayD<T>>,
    pub(super) contents: ArrayD<Contents<T>>,
    pub(super) may_be_lost: bool,
}

pub(super) struct Machine<T: Value> {
    pub(super) devices: [Device; 2],
    /// Two streams of each device.
    pub(super) streams: Vec<Stream>,
    pub(super) arrays: Vec<Smart<T>>,
    pub(super) references: Vec<Reference<T>>,
    pub(super) kernels: Kernels<T>,
    pub(super) events: Vec<Event>,
    pub(super) promised: Vec<Promised<T>>,
    pub(super) journal: Journal,
    /// Whether a program requested access to overwrite elements and then did not write them.
    pub(super) has_broken_promise: bool,
}

/// The grid of all launches; the bodies ignore it.
pub(super) fn grid() -> Grid {
    Grid::cover(1)
}

pub(super) fn below(number: u8, count: usize) -> usize {
    usize::from(number) % count
}

fn device(program: &Program, second: bool) -> Device {
    let fault = |failing: Failing| {
        let fault = Fault::nth(u64::from(failing.call));
        if failing.late { fault.late() } else { fault }
    };
    let emulation = Emulation::new().seed(program.seed).poison(program.poison);
    let emulation =
        program.memory.map_or(emulation.clone(), |bytes| emulation.memory(u64::from(bytes)));
    let own = program.faults.iter().flatten().filter(|failing| failing.second_device == second);
    Device::emulated(own.fold(emulation, |emulation, failing| emulation.fail(fault(*failing))))
}

impl<T: Value> Machine<T> {
    pub(super) fn new(program: &Program) -> Self {
        let devices = [false, true].map(|second| device(program, second));
        let faults = program.faults.iter().flatten().copied().collect();
        let mut journal = Journal::new(devices.clone(), faults, program.memory.is_some());
        let mut streams = Vec::new();
        for device in &devices {
            let second = (0..4)
                .find_map(|_| journal.judge_plain(device.new_stream()))
                .expect("no more than three calls fail");
            streams.extend([device.stream(), second]);
        }
        let origins = [
            Origin::Adopted { reversed: false, gaps: false },
            Origin::Zeros,
            Origin::Full,
            Origin::Uninit,
        ];
        let maker = |(number, origin)| Maker {
            shape: number as u8,
            columns_first: false,
            value: 40 * number as u8,
            origin,
        };
        let (arrays, references) =
            origins.into_iter().enumerate().map(maker).map(whole::made).unzip();
        Self {
            devices,
            streams,
            arrays,
            references,
            kernels: Kernels::new(),
            events: Vec::new(),
            promised: Vec::new(),
            journal,
            has_broken_promise: false,
        }
    }

    pub(super) fn take(&mut self, operation: &Operation) {
        match operation {
            Operation::One { array, part, lane, value, action } => {
                self.one(below(*array, ARRAYS), part, *lane, u32::from(*value), *action);
            }
            Operation::Pair { arrays, parts, lane, transfer } => {
                self.pair(*arrays, parts, *lane, *transfer);
            }
            Operation::Combine { arrays, parts, lane } => self.combine(*arrays, parts, *lane),
            Operation::Halves { array, axis, at, parts, lane, transfer } => {
                self.halves(*array, (*axis, *at), parts, *lane, *transfer);
            }
            Operation::Combs { array, axis, lanes, value } => {
                self.combs(*array, *axis, *lanes, u32::from(*value));
            }
            Operation::Clone { array, part, into } => {
                self.clone_part(below(*array, ARRAYS), part, below(*into, ARRAYS));
            }
            Operation::Renew { array, maker } => self.renew(below(*array, ARRAYS), *maker),
            Operation::Return { array } => self.give_back(below(*array, ARRAYS)),
            Operation::Look { array, part } => self.look(below(*array, ARRAYS), part),
            Operation::Record { lane } => self.record(*lane),
            Operation::WaitEvent { lane, event } => self.wait_event(*lane, *event),
            Operation::WaitPending { pending } => self.wait_pending(*pending),
            Operation::Synchronize { what } => self.synchronize(*what),
            Operation::Explicit { array, part, lane, value, visits } => {
                let target = (below(*array, ARRAYS), part);
                self.explicit(target, (*lane, u32::from(*value)), visits);
            }
        }
    }

    pub(super) fn stream(&self, lane: u8) -> Stream {
        self.streams[below(lane, self.streams.len())].clone()
    }

    fn one(&mut self, array: usize, part: &Part, lane: u8, value: u32, action: Action) {
        let info = part.resolve(self.arrays[array].shape());
        let cells = self.references[array].layout.slice(&info).to_owned();
        let target = Target { array, cells, lane, value };
        match action {
            Action::Host
            | Action::HostMut
            | Action::HostOverwrite
            | Action::HostChanged
            | Action::CallStamp
            | Action::CallMix => {
                self.on_host(target, &info, action);
            }
            Action::Stamp { .. } | Action::Mix { .. } | Action::Break => {
                self.launch(target, &info, action);
            }
            Action::Fill | Action::FillOn | Action::Get(_) | Action::Set(_) => {
                self.on_elements(target, &info, action);
            }
            _ => self.on_device(target, &info, action),
        }
    }

    fn on_host(&mut self, target: Target, info: &Info, action: Action) {
        let Target { array, cells, value, .. } = target;
        let mut view = self.arrays[array].slice_mut(info);
        let (outcome, used) = match action {
            Action::Host => {
                (view.host().map(|host| Some(host.to_owned())), Use::read(array, cells))
            }
            Action::HostMut => {
                let outcome = view
                    .host_mut()
                    .map(|mut host| host.iter_mut().for_each(|x| *x = x.mixed(value)));
                (outcome.map(|()| None), Use::change(array, cells))
            }
            Action::HostOverwrite => {
                let outcome = view.host_overwrite().map(|mut host| {
                    host.iter_mut().zip(counting(value)).for_each(|(x, value)| *x = value);
                });
                (outcome.map(|()| None), Use::overwrite(array, cells))
            }
            Action::HostChanged => match view.host_changed() {
                Err(Error::LostUpdate { .. }) => return,
                outcome => (outcome.map(|()| None), Use::change(array, cells)),
            },
            Action::CallMix => (
                self.kernels.mix.call(grid(), (value, &mut view)).map(|()| None),
                Use::change(array, cells),
            ),
            _ => (
                self.kernels.stamp.call(grid(), (value, &mut view)).map(|()| None),
                Use::overwrite(array, cells),
            ),
        };
        let uses = [used];
        let Some(seen) = self.journal.judge(outcome, &mut self.references, &uses, &[]) else {
            return;
        };
        let ([Use { cells, .. }], reference) = (&uses, &mut self.references[array]);
        reference.save(cells);
        if let Some(seen) = seen {
            assert_allowed(&seen, &reference.contents(cells));
        }
        match action {
            Action::HostMut | Action::CallMix => self.change(&uses[0], value, false),
            Action::HostOverwrite | Action::CallStamp => self.stamp(&uses[0], value, false),
            _ => {}
        }
    }

    fn launch(&mut self, target: Target, info: &Info, action: Action) {
        let (stream, Target { array, cells, value, .. }) = (self.stream(target.lane), target);
        let is_flat = matches!(action, Action::Stamp { flat: true } | Action::Mix { flat: true });
        let misfits: &[Misfit] =
            if is_flat && !is_unbroken(&cells) { &[Misfit::Gaps] } else { &[] };
        let view = &mut self.arrays[array].slice_mut(info);
        let kernels = &self.kernels;
        let outcome = match action {
            Action::Stamp { flat: false } => {
                kernels.stamp.launch_on(&stream, grid(), (value, view))
            }
            Action::Stamp { flat: true } => {
                kernels.stamp_flat.launch_on(&stream, grid(), (value, view))
            }
            Action::Mix { flat: false } => kernels.mix.launch_on(&stream, grid(), (value, view)),
            Action::Mix { flat: true } => {
                kernels.mix_flat.launch_on(&stream, grid(), (value, view))
            }
            _ => kernels.broken.launch_on(&stream, grid(), (view,)),
        };
        let uses = [if matches!(action, Action::Stamp { .. }) {
            Use::overwrite(array, cells)
        } else {
            Use::change(array, cells)
        }];
        if self.journal.judge(outcome, &mut self.references, &uses, misfits).is_none() {
            return;
        }
        let lost = may_be_lost(&self.references, &uses);
        match action {
            Action::Stamp { flat: true } => {
                let sorted = in_memory_order(&uses[0].cells);
                self.references[array].write(sorted, counting(value).map(Contents::Value), lost);
            }
            Action::Stamp { .. } => self.stamp(&uses[0], value, lost),
            Action::Mix { .. } => self.change(&uses[0], value, lost),
            _ => {
                self.journal.expect_failure();
                self.references[array].is_doubtful = true;
                self.change(&uses[0], value, true);
            }
        }
    }

    fn on_device(&mut self, target: Target, info: &Info, action: Action) {
        let (stream, Target { array, cells, value, .. }) = (self.stream(target.lane), target);
        let mut view = self.arrays[array].slice_mut(info);
        // The sanitizer would report the heap memory of a forgotten guard as leaked.
        let has_heap = info.len() > 4 || cells.is_empty();
        let (outcome, used) = match action {
            Action::GpuMut { forgotten } => {
                let end = |guard| {
                    if forgotten && !has_heap { std::mem::forget(guard) } else { drop(guard) }
                };
                (view.gpu_mut_on(&stream).map(end), Use::change(array, cells))
            }
            Action::GpuOverwrite { kept } => {
                let outcome = view.gpu_overwrite_on(&stream).map(drop);
                let is_handed_out = outcome.is_ok();
                let stamped = (kept && is_handed_out)
                    .then(|| self.kernels.stamp.launch_on(&stream, grid(), (value, &mut view)));
                return self.overwritten(outcome, Use::overwrite(array, cells), stamped, value);
            }
            Action::GpuChanged => match view.gpu_changed_on(&stream) {
                Err(Error::LostUpdate { .. }) => return,
                outcome => (outcome, Use::change(array, cells)),
            },
            Action::Gpu => (view.gpu_on(&stream).map(drop), Use::read(array, cells)),
            Action::Prefetch => (view.prefetch(&stream), Use::read(array, cells)),
            Action::PrefetchHost => (view.prefetch_host(), Use::read(array, cells)),
            _ => {
                let outcome = view.snapshot_on(&stream);
                return self.promise(outcome, Use::read(array, cells));
            }
        };
        let uses = [used];
        if self.journal.judge(outcome, &mut self.references, &uses, &[]).is_some() && uses[0].writes
        {
            let lost = may_be_lost(&self.references, &uses);
            let contents = self.references[array].contents(&uses[0].cells);
            self.references[array].write(uses[0].cells.iter().copied(), contents, lost);
        }
    }

    /// Updates the reference after an access for overwriting, whether or not the program then wrote
    /// the elements.
    fn overwritten(
        &mut self,
        outcome: Result<()>,
        used: Use,
        stamped: Option<Result<()>>,
        value: u32,
    ) {
        let uses = [used];
        if self.journal.judge(outcome, &mut self.references, &uses, &[]).is_none() {
            return;
        }
        let lost = may_be_lost(&self.references, &uses);
        let Use { array, cells, .. } = &uses[0];
        self.references[*array].write(
            cells.iter().copied(),
            std::iter::repeat(Contents::Anything),
            lost,
        );
        let is_kept = stamped.is_some_and(|outcome| {
            self.journal.judge(outcome, &mut self.references, &uses, &[]).is_some()
        });
        self.has_broken_promise |= !is_kept;
        if is_kept {
            self.stamp(&uses[0], value, lost || may_be_lost(&self.references, &uses));
        }
    }

    pub(super) fn promise(&mut self, outcome: Result<Pending<ArrayD<T>>>, used: Use) {
        let uses = [used];
        let Some(pending) = self.journal.judge(outcome, &mut self.references, &uses, &[]) else {
            return;
        };
        let contents = self.references[uses[0].array].contents(&uses[0].cells);
        self.promised.push(Promised {
            pending,
            contents,
            may_be_lost: may_be_lost(&self.references, &uses),
        });
    }

    fn on_elements(&mut self, target: Target, info: &Info, action: Action) {
        let (stream, Target { array, cells, value, .. }) = (self.stream(target.lane), target);
        let mut view = self.arrays[array].slice_mut(info);
        match action {
            Action::Fill => {
                let outcome = view.fill(T::of(value));
                self.fill(outcome, Use::overwrite(array, cells), value);
            }
            Action::FillOn => {
                let outcome = view.fill_on(&stream, T::of(value));
                self.fill(outcome, Use::overwrite(array, cells), value);
            }
            Action::Get(number) => {
                let Some((index, cell)) = nth(&cells, number) else { return };
                let outcome = view.get(index);
                let uses = [Use::read(array, cell)];
                let Some(seen) = self.journal.judge(outcome, &mut self.references, &uses, &[])
                else {
                    return;
                };
                let reference = &mut self.references[array];
                assert_allowed(
                    &Array::from_elem(IxDyn(&[]), seen),
                    &reference.contents(&uses[0].cells),
                );
                reference.save(&uses[0].cells);
            }
            Action::Set(number) => {
                let Some((index, cell)) = nth(&cells, number) else { return };
                let outcome = view.set(index, T::of(value));
                let uses = [Use::overwrite(array, cell)];
                if self.journal.judge(outcome, &mut self.references, &uses, &[]).is_some() {
                    self.stamp(&uses[0], value, may_be_lost(&self.references, &uses));
                }
            }
            other => unreachable!("{other:?} is no operation on elements"),
        }
    }

    /// Every location can fill in a constant itself, so no failure can lose it.
    fn fill(&mut self, outcome: Result<()>, used: Use, value: u32) {
        let uses = [used];
        if self.journal.judge(outcome, &mut self.references, &uses, &[]).is_some() {
            let cells = uses[0].cells.iter().copied();
            self.references[uses[0].array].write(
                cells,
                std::iter::repeat(Contents::Value(T::of(value))),
                false,
            );
        }
    }

    pub(super) fn stamp(&mut self, used: &Use, value: u32, may_be_lost: bool) {
        self.references[used.array].write(
            used.cells.iter().copied(),
            counting(value).map(Contents::Value),
            may_be_lost,
        );
    }

    pub(super) fn change(&mut self, used: &Use, value: u32, may_be_lost: bool) {
        let changed = self.references[used.array]
            .contents(&used.cells)
            .map(|contents| contents.map(|old| old.mixed(value)));
        self.references[used.array].write(used.cells.iter().copied(), changed, may_be_lost);
    }
}

/// One part, and the other arguments of an operation on it.
pub(super) struct Target {
    pub(super) array: usize,
    pub(super) cells: Cells,
    pub(super) lane: u8,
    pub(super) value: u32,
}

/// An element of a part, if it has any.
pub(super) fn nth(cells: &Cells, number: u8) -> Option<(IxDyn, Cells)> {
    let (index, cell) = cells.indexed_iter().nth(below(number, cells.len().max(1)))?;
    Some((index, Cells::from_elem(IxDyn(&[]), *cell)))
}
