//! The real arrays beside the reference: operations on one part are performed on both.

use resident::ndarray::{ArrayD, IxDyn};
use resident::{Device, Error, Event, Grid, Pending, Result, Stream};

use super::journal::{Journal, Misfit, Use, may_be_lost};
use super::kernels::Kernels;
use super::lab::Lab;
use super::ledger::{Doing, Ledgers, Place};
use super::parts::{Cells, Elements, Part, in_memory_order, info, is_unbroken};
use super::reference::{Contents, Reference, assert_allowed};
use super::replays::Chains;
use super::smart::Smart;
use super::value::{Value, counting};
use super::{Action, Operation, World};

/// The number of arrays.
pub(super) const ARRAYS: usize = 4;

/// A snapshot in flight, and its expected contents.
pub(super) struct Promised<T> {
    pub(super) pending: Pending<ArrayD<T>>,
    pub(super) contents: ArrayD<Contents<T>>,
    pub(super) may_be_lost: bool,
}

pub(super) struct Machine<T: Value> {
    pub(super) lab: Lab,
    pub(super) devices: Vec<Device>,
    /// Two streams of each device.
    pub(super) streams: Vec<Stream>,
    pub(super) arrays: Vec<Smart<T>>,
    pub(super) references: Vec<Reference<T>>,
    /// If no call can fail.
    pub(super) ledgers: Option<Ledgers>,
    pub(super) kernels: Kernels<T>,
    pub(super) chains: Chains<T>,
    pub(super) events: Vec<Event>,
    pub(super) promised: Vec<Promised<T>>,
    pub(super) journal: Journal,
    /// Whether a program requested access to overwrite elements and then did not write them.
    pub(super) has_broken_promise: bool,
    /// The number of operations so far.
    pub(super) taken: u32,
}

/// The grid of all launches; the bodies ignore it.
pub(super) fn grid() -> Grid {
    Grid::cover(1)
}

pub(super) fn below(number: u8, count: usize) -> usize {
    usize::from(number) % count
}

impl<T: Value> Machine<T> {
    pub(super) fn new(world: &World, lab: &Lab) -> Self {
        let devices = (lab.devices)(world);
        let mut journal = Journal::new(devices.clone(), world);
        let mut streams = Vec::new();
        for device in &devices {
            let second = (0..4)
                .find_map(|_| journal.judge_plain(device.new_stream()))
                .expect("no more than three calls fail");
            streams.extend([device.stream(), second]);
        }
        let mut machine = Self {
            lab: *lab,
            ledgers: world.is_counted().then(|| Ledgers::new(&devices)),
            devices,
            streams,
            arrays: Vec::new(),
            references: Vec::new(),
            kernels: Kernels::new(lab),
            chains: Chains::new(),
            events: Vec::new(),
            promised: Vec::new(),
            journal,
            has_broken_promise: false,
            taken: 0,
        };
        machine.add_first_arrays(world);
        machine
    }

    /// Whether the program keeps no guard and every promise, and has no device array and no array
    /// of many axes: if traffic is counted, or kernels are device code.
    pub(super) fn is_restrained(&self) -> bool {
        self.ledgers.is_some() || self.lab.code.is_some()
    }

    pub(super) fn perform(&mut self, operation: &Operation) {
        let is_restrained = self.is_restrained();
        match *operation {
            Operation::One { action: Action::Break, .. } | Operation::Explicit { .. }
                if is_restrained => {}
            Operation::One { array, part, lane, value, action } => {
                self.one(below(array, ARRAYS), &part, lane, self.value(value), action);
            }
            Operation::Pair { arrays, parts, surplus, lane, transfer } => {
                self.pair(arrays, &parts, surplus, lane, transfer);
            }
            Operation::Combine { arrays, parts, surplus, lane } => {
                self.combine(arrays, &parts, surplus, lane);
            }
            Operation::Halves(halves) => self.halves(&halves),
            Operation::Replay(replay) => self.replay(&replay),
            Operation::Combs { array, axis, lanes, value } => {
                self.combs(below(array, ARRAYS), axis, lanes, self.value(value));
            }
            Operation::Clone { array, part, into } => {
                self.clone_part(below(array, ARRAYS), &part, below(into, ARRAYS));
            }
            Operation::Renew { array, maker } => self.renew(below(array, ARRAYS), maker),
            Operation::Return { array } => self.give_back(below(array, ARRAYS)),
            Operation::Look { array, part } => self.look(below(array, ARRAYS), &part),
            Operation::Record { lane } => self.record(lane),
            Operation::WaitEvent { lane, event } => self.wait_event(lane, event),
            Operation::WaitPending { pending } => self.wait_pending(pending),
            Operation::Synchronize { what } => self.synchronize(what),
            Operation::Explicit { array, part, lane, value, visits } => {
                self.explicit(below(array, ARRAYS), &part, lane, self.value(value), &visits);
            }
        }
    }

    /// No two operations write equal numbers, so that no stale copy equals the newest.
    pub(super) fn value(&self, value: u8) -> u32 {
        u32::from(value) + 256 * self.taken
    }

    fn lane(&self, lane: u8) -> usize {
        below(lane, self.streams.len())
    }

    pub(super) fn stream(&self, lane: u8) -> Stream {
        self.streams[self.lane(lane)].clone()
    }

    /// A stream of another device.
    pub(super) fn stream_elsewhere(&self, lane: u8) -> Stream {
        self.streams[(self.lane(lane) + 2) % self.streams.len()].clone()
    }

    /// A launch on this stream.
    pub(super) fn launching(&self, lane: u8) -> Doing {
        Doing::Launch(self.lane(lane) / 2)
    }

    pub(super) fn place(&self, lane: u8) -> Place {
        Place::Device(self.lane(lane) / 2)
    }

    /// Checks the result of a call that makes these uses, and records the call. Returns `None` if
    /// the call failed for a permitted reason; such a call changes nothing.
    pub(super) fn judge<R>(
        &mut self,
        outcome: Result<R>,
        doing: Doing,
        uses: &[Use],
        misfits: &[Misfit],
    ) -> Option<R> {
        if let Some(ledgers) = &mut self.ledgers
            && misfits.is_empty()
        {
            ledgers.record(doing, uses);
        }
        self.journal.judge(outcome, &mut self.references, uses, misfits)
    }

    fn one(&mut self, array: usize, part: &Part, lane: u8, value: u32, action: Action) {
        let part = self.arrays[array].resolve(part);
        let cells = self.references[array].layout.slice(info(&part)).to_owned();
        let target = Target { array, cells, lane, value };
        match action {
            Action::Host
            | Action::HostMut
            | Action::HostOverwrite
            | Action::CallStamp
            | Action::CallMix => self.on_host(target, &part, action),
            Action::Stamp { .. } | Action::Mix { .. } | Action::Break => {
                self.launch(target, &part, action);
            }
            Action::HostChanged | Action::GpuChanged => self.changed(target, &part, action),
            Action::Fill | Action::FillOn | Action::Get(_) | Action::Set(_) => {
                self.on_elements(target, &part, action);
            }
            _ => self.on_device(target, &part, action),
        }
    }

    fn on_host(&mut self, target: Target, part: &Elements, action: Action) {
        let Target { array, cells, value, .. } = target;
        let mut view = self.arrays[array].slice_mut(part);
        let kernels = self.kernels.of(cells.ndim());
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
            Action::CallMix => {
                let outcome = kernels.mix.call(grid(), (value, &mut view));
                (outcome.map(|()| None), Use::change(array, cells))
            }
            _ => {
                let outcome = kernels.stamp.call(grid(), (value, &mut view));
                (outcome.map(|()| None), Use::overwrite(array, cells))
            }
        };
        let uses = [used];
        let Some(seen) = self.judge(outcome, Doing::Access(Place::Host), &uses, &[]) else {
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

    fn launch(&mut self, target: Target, part: &Elements, action: Action) {
        let (stream, doing) = (self.stream(target.lane), self.launching(target.lane));
        let Target { array, cells, value, .. } = target;
        let is_flat = matches!(action, Action::Stamp { flat: true } | Action::Mix { flat: true });
        let misfits: &[Misfit] =
            if is_flat && !is_unbroken(&cells) { &[Misfit::Gaps] } else { &[] };
        let view = &mut self.arrays[array].slice_mut(part);
        let (kernels, len) = (self.kernels.of(cells.ndim()), cells.len() as u64);
        let outcome = match action {
            Action::Stamp { flat: false } => {
                kernels.stamp.launch_on(&stream, grid(), (value, view))
            }
            Action::Stamp { flat: true } => {
                kernels.stamp_flat.launch_on(&stream, grid(), (value, view, len))
            }
            Action::Mix { flat: false } => kernels.mix.launch_on(&stream, grid(), (value, view)),
            Action::Mix { flat: true } => {
                kernels.mix_flat.launch_on(&stream, grid(), (value, view, len))
            }
            _ => kernels.broken.launch_on(&stream, grid(), (view,)),
        };
        let uses = [if matches!(action, Action::Stamp { .. }) {
            Use::overwrite(array, cells)
        } else {
            Use::change(array, cells)
        }];
        if self.judge(outcome, doing, &uses, misfits).is_none() {
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
                self.change(&uses[0], value, true);
            }
        }
    }

    fn on_device(&mut self, target: Target, part: &Elements, action: Action) {
        let (stream, place) = (self.stream(target.lane), self.place(target.lane));
        let (lane, Target { array, cells, value, .. }) = (target.lane, target);
        let is_restrained = self.is_restrained();
        let mut view = self.arrays[array].slice_mut(part);
        // The sanitizer would report the heap memory of a forgotten guard as leaked.
        let has_heap = part.len() > 4 || cells.is_empty();
        let (outcome, doing, used) = match action {
            Action::GpuMut { forgotten } => {
                let is_forgotten = forgotten && !has_heap && !is_restrained;
                let end = |guard| if is_forgotten { std::mem::forget(guard) } else { drop(guard) };
                let outcome = view.gpu_mut_on(&stream).map(end);
                self.references[array].is_guarded |= is_forgotten && outcome.is_ok();
                (outcome, Doing::Access(place), Use::change(array, cells))
            }
            Action::GpuOverwrite { kept } => {
                let outcome = view.gpu_overwrite_on(&stream).map(drop);
                let kernels = self.kernels.of(cells.ndim());
                let stamped = ((kept || is_restrained) && outcome.is_ok())
                    .then(|| kernels.stamp.launch_on(&stream, grid(), (value, &mut view)));
                let target = Target { array, cells, lane, value };
                return self.overwritten(outcome, target, stamped);
            }
            Action::Gpu => {
                let outcome = view.gpu_on(&stream).map(drop);
                (outcome, Doing::Access(place), Use::read(array, cells))
            }
            Action::Prefetch => {
                (view.prefetch(&stream), Doing::Access(place), Use::read(array, cells))
            }
            Action::PrefetchHost { named } => {
                let outcome =
                    if named { view.prefetch_host_on(&stream) } else { view.prefetch_host() };
                (outcome, Doing::Access(Place::Host), Use::read(array, cells))
            }
            _ => {
                let outcome = view.snapshot_on(&stream);
                self.promise(outcome, Use::read(array, cells));
                if matches!(action, Action::Snapshot { kept: false }) {
                    self.promised.pop().into_iter().for_each(|promised| self.fulfil(promised));
                }
                return;
            }
        };
        let uses = [used];
        let is_done = self.judge(outcome, doing, &uses, &[]).is_some();
        if is_done && uses[0].access.writes() {
            self.keep(&uses);
        }
        if let (Some(ledgers), Action::PrefetchHost { .. }) = (&mut self.ledgers, action) {
            ledgers.arrays[array].unsettled.extend(&uses[0].cells);
        }
    }

    /// Declares the copy at one place as changed, which is an error unless the newest contents are
    /// there.
    fn changed(&mut self, target: Target, part: &Elements, action: Action) {
        let (stream, device) = (self.stream(target.lane), self.place(target.lane));
        let Target { array, cells, .. } = target;
        let mut view = self.arrays[array].slice_mut(part);
        let (outcome, place) = match action {
            Action::HostChanged => (view.host_changed(), Place::Host),
            _ => (view.gpu_changed_on(&stream), device),
        };
        let is_refused = matches!(outcome, Err(Error::LostUpdate { .. }));
        if let Some(ledgers) = &self.ledgers {
            assert_eq!(is_refused, !ledgers.arrays[array].is_valid(&cells, place));
        }
        if is_refused {
            return;
        }
        let uses = [Use::change(array, cells)];
        if self.judge(outcome, Doing::Other, &uses, &[]).is_none() {
            return;
        }
        if let Some(ledgers) = &mut self.ledgers {
            ledgers.arrays[array].write(place, &uses[0].cells);
        }
        if place == Place::Host {
            return self.references[array].save(&uses[0].cells);
        }
        self.keep(&uses);
    }

    /// Updates the reference after an access for overwriting, whether or not the program then wrote
    /// the elements.
    fn overwritten(&mut self, outcome: Result<()>, target: Target, stamped: Option<Result<()>>) {
        let Target { array, cells, lane, value } = target;
        let uses = [Use::overwrite(array, cells)];
        if self.judge(outcome, Doing::Access(self.place(lane)), &uses, &[]).is_none() {
            return;
        }
        let lost = may_be_lost(&self.references, &uses);
        self.write(&uses[0], std::iter::repeat(Contents::Anything), lost);
        let is_kept = stamped
            .is_some_and(|outcome| self.judge(outcome, self.launching(lane), &uses, &[]).is_some());
        self.has_broken_promise |= !is_kept;
        if is_kept {
            self.stamp(&uses[0], value, lost || may_be_lost(&self.references, &uses));
        }
    }

    pub(super) fn promise(&mut self, outcome: Result<Pending<ArrayD<T>>>, used: Use) {
        let uses = [used];
        let most = self.most_bytes_to_host(&uses[0]);
        let Some(pending) = self.judge(outcome, Doing::Look, &uses, &[]) else {
            return;
        };
        self.accept_bytes_to_host(&uses[0], most);
        let contents = self.references[uses[0].array].contents(&uses[0].cells);
        let may_be_lost = may_be_lost(&self.references, &uses);
        self.promised.push(Promised { pending, contents, may_be_lost });
    }

    fn on_elements(&mut self, target: Target, part: &Elements, action: Action) {
        let (stream, place) = (self.stream(target.lane), self.place(target.lane));
        let Target { array, cells, value, .. } = target;
        let mut view = self.arrays[array].slice_mut(part);
        match action {
            Action::Fill => {
                let outcome = view.fill(T::of(value));
                self.fill(outcome, None, Use::overwrite(array, cells), value);
            }
            Action::FillOn => {
                let outcome = view.fill_on(&stream, T::of(value));
                self.fill(outcome, Some(place), Use::overwrite(array, cells), value);
            }
            Action::Get(number) => {
                let Some((index, cell)) = nth(&cells, number) else { return };
                let outcome = view.get(index);
                let uses = [Use::read(array, cell)];
                let Some(seen) = self.judge(outcome, Doing::Look, &uses, &[]) else {
                    return;
                };
                let reference = &mut self.references[array];
                assert_allowed(&point(seen), &reference.contents(&uses[0].cells));
                reference.save(&uses[0].cells);
            }
            Action::Set(number) => {
                let Some((index, cell)) = nth(&cells, number) else { return };
                let outcome = view.set(index, T::of(value));
                let uses = [Use::overwrite(array, cell)];
                if self.judge(outcome, Doing::Other, &uses, &[]).is_some() {
                    if let Some(ledgers) = &mut self.ledgers {
                        ledgers.arrays[array].set(uses[0].cells[[]]);
                    }
                    self.stamp(&uses[0], value, may_be_lost(&self.references, &uses));
                }
            }
            other => unreachable!("{other:?} is no operation on elements"),
        }
    }

    /// Every location can fill in a constant itself, so no failure can lose it.
    fn fill(&mut self, outcome: Result<()>, place: Option<Place>, used: Use, value: u32) {
        let uses = [used];
        if self.judge(outcome, Doing::Other, &uses, &[]).is_some() {
            let Use { array, cells, .. } = &uses[0];
            if let Some(ledgers) = &mut self.ledgers {
                ledgers.arrays[*array].fill(cells, place);
            }
            self.write(&uses[0], std::iter::repeat(Contents::Value(T::of(value))), false);
        }
    }

    pub(super) fn stamp(&mut self, used: &Use, value: u32, may_be_lost: bool) {
        self.write(used, counting(value).map(Contents::Value), may_be_lost);
    }

    pub(super) fn change(&mut self, used: &Use, value: u32, may_be_lost: bool) {
        let changed = self.references[used.array]
            .contents(&used.cells)
            .map(|contents| contents.map(|old| old.mixed(value)));
        self.write(used, changed, may_be_lost);
    }

    /// The elements of the first use keep their contents, which a failure may lose.
    pub(super) fn keep(&mut self, uses: &[Use]) {
        let lost = may_be_lost(&self.references, uses);
        let contents = self.references[uses[0].array].contents(&uses[0].cells);
        self.write(&uses[0], contents, lost);
    }

    pub(super) fn write(
        &mut self,
        used: &Use,
        contents: impl IntoIterator<Item = Contents<T>>,
        may_be_lost: bool,
    ) {
        let cells = used.cells.iter().copied();
        self.references[used.array].write(cells, contents, may_be_lost);
    }
}

/// One part, and the other arguments of an operation on it.
pub(super) struct Target {
    pub(super) array: usize,
    pub(super) cells: Cells,
    pub(super) lane: u8,
    pub(super) value: u32,
}

/// An array of one element, without axes.
pub(super) fn point<T: Clone>(element: T) -> ArrayD<T> {
    ArrayD::from_elem(IxDyn(&[]), element)
}

/// An element of a part, if it has any.
pub(super) fn nth(cells: &Cells, number: u8) -> Option<(IxDyn, Cells)> {
    let (index, cell) = cells.indexed_iter().nth(below(number, cells.len().max(1)))?;
    Some((index, point(*cell)))
}
