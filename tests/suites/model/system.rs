//! The library and the ledgers: each step is performed on both, and the results are compared.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use proptest_state_machine::StateMachineTest;
use resident::ndarray::{ArrayD, Axis, Dim, IxDyn, ShapeBuilder};
use resident::{
    Device, Element, Error, Grid, Pending, Residency, Result, SmartArray, SmartViewMut, Stream,
    Traffic, Validity, audit,
};

use super::arrays::{FIELDS, Pair, Smart};
use super::contents::{Cells, Contents, Misfit, Reference, World, misfit};
use super::ends::Ends;
use super::kernels::{Kernels, mixed};
use super::lab::{Choice, Lab};
use super::ledger::{Access, Cell, Expected, Ledger, Place};
use super::step::{End, Maker, One, Origin, Part, Plan, Shape, Step, Two};

type Array<T> = SmartArray<T, IxDyn>;

/// The real devices and arrays, and the ledgers.
pub(crate) struct System {
    devices: Vec<Device>,
    /// Two streams of each device.
    streams: Vec<Stream>,
    arrays: Vec<Smart>,
    ledgers: Vec<Ledger>,
    /// The traffic of dropped arrays.
    gone: Traffic,
    /// The traffic of the devices before the run.
    before: Traffic,
    /// Snapshots for which the program has not waited yet, and their expected contents.
    pending: Vec<(Pending<ArrayD<u32>>, ArrayD<u32>)>,
    kernels: Kernels,
    lab: Lab,
    steps: u64,
}

/// The machine under test.
#[derive(Debug)]
pub(crate) struct Machine<C>(PhantomData<C>);

impl<C: Choice> StateMachineTest for Machine<C> {
    type SystemUnderTest = System;
    type Reference = Reference<C>;

    fn init_test(world: &World) -> System {
        System::new(world)
    }

    fn apply(mut system: System, world: &World, step: Step) -> System {
        system.steps += 1;
        match system.steps.is_multiple_of(2) {
            true => system.apply_captured(world, &step),
            false => system.apply(world, &step),
        }
        system
    }

    fn check_invariants(system: &System, _: &World) {
        system.check();
    }

    fn teardown(system: System, world: World) {
        system.finish(&world);
    }
}

/// Compares the result of a call with the expected one.
pub(crate) fn expect<T>(outcome: Result<T>, expected: Expected) -> Option<T> {
    match (outcome, expected) {
        (Ok(value), Expected::Fine) => Some(value),
        (Err(Error::Uninitialised { .. }), Expected::Uninitialised)
        | (Err(Error::NotContiguous { .. }), Expected::NotContiguous)
        | (Err(Error::LayoutMismatch { .. }), Expected::LayoutMismatch)
        | (Err(Error::LostUpdate { .. }), Expected::LostUpdate) => None,
        (Ok(_), expected) => panic!("the call succeeded, but {expected:?} was expected"),
        (Err(error), expected) => {
            panic!("{expected:?} was expected, but the call returned {error:?}")
        }
    }
}

pub(crate) fn refusal(misfit: Misfit) -> Expected {
    match misfit {
        Misfit::Broken => Expected::NotContiguous,
        Misfit::Orders => Expected::LayoutMismatch,
    }
}

/// An array of these elements, counted from 0 in memory order.
fn array_of<T: Element>(
    (lab, is_pinned): (&Lab, bool),
    maker: &Maker,
    element: impl Fn(u32) -> T,
) -> Array<T> {
    let shape = || Dim(maker.shape.lens.clone()).set_f(maker.columns_first);
    let len: usize = maker.shape.lens.iter().product();
    match maker.origin {
        Origin::Adopted { reversed } => {
            let elements = (0..len as u32).map(&element).collect();
            let mut array =
                ArrayD::from_shape_vec(shape(), elements).expect("as many as the shape has");
            if reversed {
                array.invert_axis(Axis(0));
            }
            let array = SmartArray::from(array);
            // Pins some arrays, so that the devices access their host memory directly.
            if is_pinned {
                let _here = (lab.pinning_device)().enter();
                array.page_lock().expect("nothing fails");
            }
            array
        }
        Origin::Zeros => SmartArray::zeros(shape()),
        Origin::Full => SmartArray::full(shape(), element(0)),
        Origin::Uninit => SmartArray::uninit(shape()),
    }
}

fn made(lab: &Lab, maker: &Maker, value: u32) -> (Smart, Ledger) {
    let is_adopted = matches!(maker.origin, Origin::Adopted { .. });
    let pair = |number| match maker.origin {
        Origin::Full => Pair { one: value, two: value },
        _ => Pair { one: value + 2 * number, two: value + 2 * number + 1 },
    };
    let place = (lab, value.is_multiple_of(2));
    let array = match maker.shape.has_fields {
        true => Smart::Records(array_of(place, maker, pair)),
        false => Smart::Numbers(array_of(place, maker, |number| value + number)),
    };
    let cell = match maker.origin {
        Origin::Adopted { .. } => Cell::Stored(BTreeSet::from([Place::Host])),
        Origin::Zeros | Origin::Full => Cell::Constant(BTreeSet::new()),
        Origin::Uninit => Cell::Never,
    };
    let fields = if maker.shape.has_fields { FIELDS } else { 1 };
    let len = fields * maker.shape.lens.iter().product::<usize>();
    (array, Ledger::new(vec![cell; len], is_adopted))
}

impl System {
    fn new(world: &World) -> Self {
        let devices = (world.lab.devices)(world);
        let second = |device: &Device| device.new_stream().expect("a stream");
        let streams = devices.iter().flat_map(|device| [device.stream(), second(device)]).collect();
        let (arrays, ledgers) = (0..world.arrays.len())
            .map(|number| made(&world.lab, &Maker::first(number), 100))
            .unzip();
        let before = total(&devices);
        Self {
            devices,
            streams,
            arrays,
            ledgers,
            gone: Traffic::default(),
            before,
            pending: Vec::new(),
            kernels: Kernels::new(&world.lab),
            lab: world.lab,
            steps: 0,
        }
    }

    /// The traffic of all arrays so far.
    fn moved(&self) -> Traffic {
        self.arrays.iter().fold(self.gone, |sum, array| sum + array.traffic())
    }

    /// Applies a step in a capture, whose report has what the arrays say that they copied.
    fn apply_captured(&mut self, world: &World, step: &Step) {
        let before = self.moved();
        let ((), report) = audit::capture(|| self.apply(world, step));
        assert_eq!(report.traffic(), self.moved() - before, "{report}");
        let document = report.to_document();
        let of_sites = document.sites.iter().map(|site| site.bytes).sum::<u64>();
        assert_eq!(of_sites, report.traffic().moved().bytes);
        assert_eq!(document.records_forgotten, 0);
    }

    fn apply(&mut self, world: &World, step: &Step) {
        let shape =
            |array: &Smart| Shape { lens: array.shape().to_vec(), has_fields: array.has_fields() };
        let shapes: Vec<Shape> = self.arrays.iter().map(shape).collect();
        let lane = step.lane(self.streams.len());
        match step.plan(&shapes, self.streams.len()) {
            Plan::One { array, part, operation } => {
                self.one(world, (array, part), operation, lane, step.value);
            }
            Plan::Two { from, to, operation } => self.two(world, from, to, operation, lane),
            Plan::Combine { one, other, into } => self.combine(world, one, other, into, lane),
            Plan::Halves { array, axis, at, from, to, operation } => {
                self.halves(world, array, (axis, at), (from, to), operation, lane);
            }
            Plan::Combs { array, other_lane } => {
                self.combs(world, array, [lane, other_lane], step.value);
            }
            Plan::Clone { from, into } => self.clone_part(world, from, into),
            Plan::Renew { array, maker } => {
                self.replace(array, made(&self.lab, &maker, step.value));
            }
            Plan::Return { array } => self.give_back(world, array),
            Plan::Synchronize { device } => match device {
                Some(device) => self.devices[device].synchronize().expect("nothing fails"),
                None => self.streams[lane].synchronize().expect("nothing fails"),
            },
        }
    }

    fn one(&mut self, world: &World, (array, part): End, operation: One, lane: usize, value: u32) {
        let contents = &world.arrays[array];
        let cells = contents.cells(&part);
        let mut view = self.arrays[array].slice_mut(&part);
        let (ledger, stream, device) =
            (&mut self.ledgers[array], &self.streams[lane], Place::Device(lane / 2));
        match operation {
            One::Host | One::HostMut | One::HostOverwrite => {
                access_on_host(ledger, &mut view, contents, &cells, operation, value);
            }
            One::Gpu | One::Prefetch | One::GpuMut | One::PrefetchHost { .. } => {
                access_or_prefetch(ledger, &mut view, stream, device, &cells, operation);
            }
            One::Snapshot { kept } => {
                let pending = snapshot(ledger, &view, stream, &cells)
                    .map(|pending| (pending, contents.of(&cells)));
                self.pending.extend(pending);
                if !kept {
                    self.settle_snapshots();
                }
            }
            One::Fill => {
                ledger.fill(&cells, None);
                view.fill(value).expect("a fill cannot fail");
            }
            One::FillOn => {
                ledger.fill(&cells, Some(device));
                view.fill_on(stream, value).expect("there is enough memory");
            }
            One::Get(number) => get(ledger, &view, number, &cells, contents),
            One::Set(number) => set(ledger, &mut view, number, &cells, value),
            One::HostChanged => {
                expect(view.host_changed(), ledger.changed(Place::Host, &cells));
            }
            One::GpuChanged => {
                expect(view.gpu_changed_on(stream), ledger.changed(device, &cells));
            }
            One::GpuOverwrite
            | One::Stamp { .. }
            | One::Mix { .. }
            | One::CallStamp
            | One::CallMix => {
                let kernels = &self.kernels;
                launch_one(kernels, ledger, &mut view, stream, device, &cells, operation, value);
            }
        }
    }

    fn two(&mut self, world: &World, from: End, to: End, operation: Two, lane: usize) {
        let (source, destination) =
            (world.arrays[from.0].cells(&from.1), world.arrays[to.0].cells(&to.1));
        let [from_array, to_array] =
            self.arrays.get_disjoint_mut([from.0, to.0]).expect("two arrays");
        let (view, mut target) = (from_array.slice(&from.1), to_array.slice_mut(&to.1));
        let ends = Ends {
            view,
            target: target.reborrow(),
            ledgers: &mut self.ledgers,
            arrays: [from.0, to.0],
            source,
            destination,
        };
        ends.carry(&self.kernels, operation, (&self.streams[lane], lane / 2), &self.devices);
    }

    fn halves(
        &mut self,
        world: &World,
        array: usize,
        (axis, at): (usize, usize),
        (from, to): (Part, Part),
        operation: Two,
        lane: usize,
    ) {
        let [source, destination] = world.halves(array, axis, at, &from, &to);
        let [view, target] = self.arrays[array].halves(Axis(axis), at, [&from, &to]);
        let ends = Ends {
            view: view.view(),
            target,
            ledgers: &mut self.ledgers,
            arrays: [array, array],
            source,
            destination,
        };
        ends.carry(&self.kernels, operation, (&self.streams[lane], lane / 2), &self.devices);
    }

    fn combine(&mut self, world: &World, one: End, other: End, into: End, lane: usize) {
        let place = Place::Device(lane / 2);
        let ends = [(&one, Access::Read), (&other, Access::Read), (&into, Access::ReadWrite)];
        let parts: Vec<(usize, Cells, Access)> = ends
            .map(|(end, access)| (end.0, world.arrays[end.0].cells(&end.1), access))
            .into_iter()
            .collect();
        let expected = launched(&mut self.ledgers, place, &parts);
        // The written array is moved out of the list, since the other two may be the same array.
        let mut target = std::mem::replace(&mut self.arrays[into.0], Smart::none());
        let (x, y) = (self.arrays[one.0].slice(&one.1), self.arrays[other.0].slice(&other.1));
        let combine = &self.kernels.of(x.shape().len()).combine;
        let outcome = combine.launch_on(
            &self.streams[lane],
            Grid::cover(1),
            (&x, &y, &mut target.slice_mut(&into.1)),
        );
        expect(outcome, expected);
        self.arrays[into.0] = target;
    }

    /// Changes even rows on one stream and writes odd rows on another, or one field and the other;
    /// both views live at once.
    fn combs(&mut self, world: &World, array: usize, lanes: [usize; 2], value: u32) {
        let Some([even, odd]) = world.combs(array) else { return };
        let first = launched(
            &mut self.ledgers,
            Place::Device(lanes[0] / 2),
            &[(array, even, Access::ReadWrite)],
        );
        let second = launched(
            &mut self.ledgers,
            Place::Device(lanes[1] / 2),
            &[(array, odd, Access::Overwrite)],
        );
        let [mut even, mut odd] = self.arrays[array].combs();
        let [stream, other] = lanes.map(|lane| &self.streams[lane]);
        let kernels = self.kernels.of(even.ndim());
        expect(kernels.mix.launch_on(stream, Grid::cover(1), (value, &mut even)), first);
        expect(kernels.stamp.launch_on(other, Grid::cover(1), (value, &mut odd)), second);
    }

    fn clone_part(&mut self, world: &World, (from, part): End, into: usize) {
        let cells = world.arrays[from].cells(&part);
        if cells.is_empty() {
            return;
        }
        let clone = self.arrays[from].slice(&part).try_clone().expect("there is enough memory");
        let pairs = cells.iter().copied().zip(world.arrays[into].layout.iter().copied());
        let mut ledger = self.ledgers[from].clone_of(pairs, cells.len());
        // The library chooses the order of the devices.
        let order = std::mem::replace(&mut ledger.devices, self.order_of(&clone.residency()));
        assert_eq!(
            order.iter().collect::<BTreeSet<_>>(),
            ledger.devices.iter().collect::<BTreeSet<_>>(),
            "devices of a clone"
        );
        self.replace(into, (Smart::Numbers(clone), ledger));
    }

    /// Calls `into_array`, checks the result, and converts it back.
    fn give_back(&mut self, world: &World, array: usize) {
        let contents = &world.arrays[array];
        let taken = std::mem::replace(&mut self.arrays[array], Smart::none());
        let expected = self.ledgers[array].access(Place::Host, &contents.layout, Access::Read);
        let fresh = match expect(taken.given_back(), expected) {
            Some((given, again)) => {
                assert_eq!(given, contents.of(&contents.layout));
                let host = Cell::Stored(BTreeSet::from([Place::Host]));
                (again, Ledger::new(vec![host; contents.values.len()], true))
            }
            None => made(&self.lab, &contents.zeros(), 0),
        };
        self.replace(array, fresh);
    }

    fn replace(&mut self, array: usize, (fresh, ledger): (Smart, Ledger)) {
        self.gone += self.ledgers[array].traffic;
        (self.arrays[array], self.ledgers[array]) = (fresh, ledger);
    }

    /// The device numbers of an array, in its order.
    fn order_of(&self, residency: &Residency) -> Vec<usize> {
        residency.devices().map(|(device, _)| number_of(device, &self.devices)).collect()
    }

    /// Checks residency, element by element and as a whole, and traffic.
    fn check(&self) {
        for (number, (array, ledger)) in self.arrays.iter().zip(&self.ledgers).enumerate() {
            assert_eq!(array.traffic(), ledger.traffic, "traffic of array {number}");
            let places =
                std::iter::once(Place::Host).chain((0..self.devices.len()).map(Place::Device));
            for place in places {
                let expected = validity(ledger, ledger.cells.iter(), place);
                assert_eq!(
                    validity_of(&array.residency(), place, &self.devices),
                    expected,
                    "array {number} at {place:?}"
                );
            }
            assert_eq!(
                self.order_of(&array.residency()),
                ledger.devices,
                "devices of array {number}"
            );
        }
        assert_eq!((self.lab.hazards)(&self.devices), Vec::<String>::new());
    }

    fn settle_snapshots(&mut self) {
        for (pending, expected) in self.pending.drain(..) {
            assert_eq!(pending.wait().expect("nothing fails"), expected);
        }
    }

    /// Compares the devices' totals with those of the arrays; a copy between two devices is counted
    /// by both of them.
    fn check_device_totals(&self) {
        let arrays = self.moved();
        let both =
            arrays + Traffic { between_devices: arrays.between_devices, ..Traffic::default() };
        assert_eq!(total(&self.devices), self.before + both, "totals of devices and of arrays");
    }

    /// Reads all arrays, drops them, and waits for all work.
    fn finish(mut self, world: &World) {
        self.settle_snapshots();
        for (array, contents) in self.arrays.iter().zip(&world.arrays) {
            check_cells(array, contents);
            if contents.is_defined(&contents.layout) {
                let numbers = array.numbers().expect("defined");
                assert_eq!(numbers, contents.of(&contents.layout));
            }
        }
        self.check_device_totals();
        let Self { devices, streams, arrays, lab, .. } = self;
        drop(arrays);
        devices.iter().for_each(|device| device.synchronize().expect("nothing fails"));
        drop(streams);
        assert_eq!((lab.hazards)(&devices), Vec::<String>::new());
        for device in &devices {
            assert_eq!(device.memory().in_use, 0, "bytes left on {device}");
        }
    }
}

/// Reads or writes a part on the host, and compares the contents read.
fn access_on_host(
    ledger: &mut Ledger,
    view: &mut SmartViewMut<'_, u32, IxDyn>,
    contents: &Contents,
    cells: &Cells,
    operation: One,
    value: u32,
) {
    if operation == One::Host {
        let expected = ledger.access(Place::Host, cells, Access::Read);
        if let Some(host) = expect(view.host(), expected) {
            assert_eq!(host.to_owned(), contents.of(cells));
        }
    } else if operation == One::HostMut {
        let expected = ledger.access(Place::Host, cells, Access::ReadWrite);
        if let Some(mut host) = expect(view.host_mut(), expected) {
            host.iter_mut().for_each(|x| *x = mixed(*x, value));
        }
    } else {
        let expected = ledger.access(Place::Host, cells, Access::Overwrite);
        if let Some(mut host) = expect(view.host_overwrite(), expected) {
            host.iter_mut().zip(value..).for_each(|(x, value)| *x = value);
        }
    }
}

/// Requests a guard of a device's copy, or prefetches it, and compares the result with that of the
/// ledger.
fn access_or_prefetch(
    ledger: &mut Ledger,
    view: &mut SmartViewMut<'_, u32, IxDyn>,
    stream: &Stream,
    device: Place,
    cells: &Cells,
    operation: One,
) {
    let (place, access) = match operation {
        One::PrefetchHost { .. } => (Place::Host, Access::Read),
        One::GpuMut => (device, Access::ReadWrite),
        _ => (device, Access::Read),
    };
    let expected = ledger.access(place, cells, access);
    match operation {
        One::Gpu => drop(expect(view.gpu_on(stream), expected)),
        One::GpuMut => drop(expect(view.gpu_mut_on(stream), expected)),
        One::PrefetchHost { is_asked } => {
            ledger.unsettled.extend(cells);
            let outcome =
                if is_asked { view.prefetch_host_on(stream) } else { view.prefetch_host() };
            expect(outcome, expected);
        }
        _ => {
            expect(view.prefetch(stream), expected);
        }
    }
}

/// The total traffic of all devices.
fn total(devices: &[Device]) -> Traffic {
    devices.iter().fold(Traffic::default(), |sum, device| sum + device.traffic())
}

pub(crate) fn number_of(device: &Device, devices: &[Device]) -> usize {
    devices.iter().position(|known| known == device).expect("a device of this run")
}

/// Reads each element: a defined element must have its value, and reading any other must be
/// refused.
fn check_cells(array: &Smart, contents: &Contents) {
    for (index, cell) in contents.layout.indexed_iter() {
        match (array.get(&index), contents.values[*cell]) {
            (Ok(value), Some(expected)) => assert_eq!(value, expected, "element {cell}"),
            (Err(Error::Uninitialised { .. }), None) => {}
            (outcome, expected) => {
                panic!("element {cell} is {outcome:?}, but {expected:?} was expected")
            }
        }
    }
}

pub(crate) fn validity_of(residency: &Residency, place: Place, devices: &[Device]) -> Validity {
    match place {
        Place::Host => residency.host(),
        Place::Device(device) => residency.on(&devices[device]),
    }
}

fn validity<'a>(ledger: &Ledger, cells: impl Iterator<Item = &'a Cell>, place: Place) -> Validity {
    let valid: Vec<bool> = cells.map(|cell| cell.is_valid(place)).collect();
    match valid.iter().filter(|valid| **valid).count() {
        _ if !ledger.memory.contains(&place) => Validity::Absent,
        count if count == valid.len() => Validity::Valid,
        0 => Validity::Stale,
        count => Validity::Partial { valid_bytes: 4 * count as u64 },
    }
}

/// Applies a launch to the ledgers: each argument becomes valid where it is needed, then the
/// written elements are newest there.
pub(crate) fn launched(
    ledgers: &mut [Ledger],
    place: Place,
    parts: &[(usize, Cells, Access)],
) -> Expected {
    let mut copied = Vec::new();
    for (array, cells, access) in parts {
        match ledgers[*array].acquire(place, cells, *access) {
            Ok(bytes) => copied.push(bytes),
            Err(refusal) => return refusal,
        }
    }
    for ((array, cells, access), copied) in parts.iter().zip(copied) {
        ledgers[*array].spare(cells, copied);
        if *access != Access::Read {
            ledgers[*array].write(place, cells);
        }
    }
    Expected::Fine
}

#[allow(clippy::too_many_arguments, reason = "the parts of one launch")]
fn launch_one(
    kernels: &Kernels,
    ledger: &mut Ledger,
    view: &mut SmartViewMut<'_, u32, IxDyn>,
    stream: &Stream,
    device: Place,
    cells: &Cells,
    operation: One,
    value: u32,
) {
    let grid = Grid::cover(1);
    let unfit = misfit(&[cells]).map(refusal);
    let ledgers = std::slice::from_mut(ledger);
    let (kernels, len) = (kernels.of(view.shape().len()), view.len() as u64);
    let mut launch = |access| launched(ledgers, device, &[(0, cells.clone(), access)]);
    match operation {
        One::GpuOverwrite => {
            // Foreign work (work that other code queues) that writes all elements, as an
            // overwriting guard requires. It is represented by a launch on the guard's stream.
            let _ = launch(Access::Overwrite);
            drop(view.gpu_overwrite_on(stream).expect("there is enough memory"));
            kernels.stamp.launch_on(stream, grid, (value, &mut *view)).expect("an overwrite");
        }
        One::Stamp { flat: true } => {
            let expected = unfit.unwrap_or_else(|| launch(Access::Overwrite));
            expect(kernels.stamp_flat.launch_on(stream, grid, (value, &mut *view, len)), expected);
        }
        One::Mix { flat: true } => {
            let expected = unfit.unwrap_or_else(|| launch(Access::ReadWrite));
            expect(kernels.mix_flat.launch_on(stream, grid, (value, &mut *view, len)), expected);
        }
        One::Stamp { flat: false } => {
            let expected = launch(Access::Overwrite);
            expect(kernels.stamp.launch_on(stream, grid, (value, &mut *view)), expected);
        }
        One::Mix { flat: false } => {
            let expected = launch(Access::ReadWrite);
            expect(kernels.mix.launch_on(stream, grid, (value, &mut *view)), expected);
        }
        One::CallStamp => {
            let expected = ledger.access(Place::Host, cells, Access::Overwrite);
            expect(kernels.stamp.call(grid, (value, &mut *view)), expected);
        }
        One::CallMix => {
            let expected = ledger.access(Place::Host, cells, Access::ReadWrite);
            expect(kernels.mix.call(grid, (value, &mut *view)), expected);
        }
        other => unreachable!("{other:?} launches nothing"),
    }
}

fn snapshot(
    ledger: &mut Ledger,
    view: &SmartViewMut<'_, u32, IxDyn>,
    stream: &Stream,
    cells: &Cells,
) -> Option<Pending<ArrayD<u32>>> {
    let (before, most) = (ledger.traffic.to_host, ledger.most_looked_at(cells));
    let expected = ledger.look(cells);
    let pending = expect(view.snapshot_on(stream), expected)?;
    if cells.iter().any(|cell| ledger.unsettled.contains(cell)) {
        // A snapshot does not wait for downloads: an element whose download is in flight may be
        // copied from a device.
        let moved = view.traffic().to_host;
        assert!(
            moved.bytes >= ledger.traffic.to_host.bytes && moved.bytes <= before.bytes + most,
            "{moved:?} after {before:?}"
        );
        ledger.traffic.to_host = moved;
    }
    Some(pending)
}

fn get(
    ledger: &mut Ledger,
    view: &SmartViewMut<'_, u32, IxDyn>,
    number: usize,
    cells: &Cells,
    contents: &Contents,
) {
    if cells.is_empty() {
        return;
    }
    let (index, cell) =
        cells.indexed_iter().nth(number % cells.len()).expect("a number below the length");
    let lone = Cells::from_elem(Dim(Vec::new()), *cell);
    if let Some(value) = expect(view.get(index), ledger.look(&lone)) {
        assert_eq!(Some(value), contents.values[*cell]);
    }
}

fn set(
    ledger: &mut Ledger,
    view: &mut SmartViewMut<'_, u32, IxDyn>,
    number: usize,
    cells: &Cells,
    value: u32,
) {
    if cells.is_empty() {
        return;
    }
    let (index, cell) =
        cells.indexed_iter().nth(number % cells.len()).expect("a number below the length");
    ledger.set(*cell);
    view.set(index, value).expect("there is enough memory");
}
