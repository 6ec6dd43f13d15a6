//! Lets every call that overwrites contents fail at each of its backend calls, over layouts and
//! places of destination and source, and compares what has changed with what the error says.

use std::sync::LazyLock;

use resident::CalledAt;
use resident::ndarray::{SliceInfo, SliceInfoElem, Zip};

use crate::each_call::{add, assert_no_hazards, counting, emulated, fault};
use crate::seeds::RUNS_LATE;
use support::prelude::*;

type Part = SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>;
type Table = SmartArray<u32, Ix2>;

const ROWS: usize = 6;
const COLUMNS: usize = 8;
const CONSTANT: u32 = 7;

/// Destinations: contiguous, with gaps, with steps, reversed, a column.
fn parts() -> [(&'static str, Part); 6] {
    [
        ("whole", s![.., ..]),
        ("rows", s![2..5, ..]),
        ("gaps", s![1..5, 1..7]),
        ("steps", s![..;2, ..;3]),
        ("reversed", s![..;-1, ..;-1]),
        ("column", s![.., 2..3]),
    ]
}

/// The memory of a source.
#[derive(Clone, Copy, Debug)]
enum Form {
    Rows,
    Columns,
    Reversed,
    /// One row, broadcast.
    Repeated,
}

const FORMS: [Form; 4] = [Form::Rows, Form::Columns, Form::Reversed, Form::Repeated];

/// Where an array's contents are newest.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Host,
    Device,
    Both,
    /// The first rows on a device, the others on the host.
    Halves,
    /// The first rows on one device, the others on another.
    TwoDevices,
    Constant,
}

const PLACES: [Place; 6] =
    [Place::Host, Place::Device, Place::Both, Place::Halves, Place::TwoDevices, Place::Constant];

fn old() -> Array2<u32> {
    counting(ROWS, COLUMNS)
}

/// New contents of this shape, none of which is an old one.
fn new(shape: (usize, usize), form: Form) -> Array2<u32> {
    Array2::from_shape_fn(shape, |(row, column)| match form {
        Form::Repeated => 100 + column as u32,
        _ => 100 + (row * shape.1 + column) as u32,
    })
}

/// The same values, with memory of this form; those of a repeated row once.
fn stored(values: &Array2<u32>, form: Form) -> Array2<u32> {
    match form {
        Form::Rows | Form::Reversed => values.clone(),
        Form::Columns => {
            let mut columns = Array2::zeros(values.raw_dim().f());
            columns.assign(values);
            columns
        }
        Form::Repeated => values.slice(s![..1, ..]).to_owned(),
    }
}

/// Something that calls write to.
trait Destination {
    fn read(&self) -> Result<Array2<u32>>;
    fn read_row(&self, row: usize) -> Result<Vec<u32>>;
    fn overwrite(&mut self, values: &Array2<u32>) -> Result<()>;
    /// Adds 0 by a kernel on this stream, which reads the copy there.
    fn add_nothing(&mut self, stream: &Stream) -> Result<()>;
}

static ADD: LazyLock<Kernel<(u32, InOut<u32, Ix2>)>> = LazyLock::new(add);

impl Destination for Table {
    fn read(&self) -> Result<Array2<u32>> {
        self.host().map(|host| host.to_owned())
    }

    fn read_row(&self, row: usize) -> Result<Vec<u32>> {
        self.slice(s![row, ..]).host().map(|row| row.to_vec())
    }

    fn overwrite(&mut self, values: &Array2<u32>) -> Result<()> {
        self.host_overwrite().map(|mut host| host.assign(values))
    }

    fn add_nothing(&mut self, stream: &Stream) -> Result<()> {
        ADD.launch_on(stream, Grid::cover(1), (0, self))
    }
}

impl Destination for DeviceArray<u32, Ix2> {
    fn read(&self) -> Result<Array2<u32>> {
        self.copy_to_host()
    }

    fn read_row(&self, row: usize) -> Result<Vec<u32>> {
        self.slice(s![row, ..]).copy_to_host().map(|row| row.to_vec())
    }

    fn overwrite(&mut self, values: &Array2<u32>) -> Result<()> {
        self.copy_from_host(values)
    }

    fn add_nothing(&mut self, stream: &Stream) -> Result<()> {
        ADD.launch_on(stream, Grid::cover(1), (0, self))
    }
}

impl Destination for Array2<u32> {
    fn read(&self) -> Result<Array2<u32>> {
        Ok(self.clone())
    }

    fn read_row(&self, row: usize) -> Result<Vec<u32>> {
        Ok(self.row(row).to_vec())
    }

    fn overwrite(&mut self, values: &Array2<u32>) -> Result<()> {
        self.assign(values);
        Ok(())
    }

    fn add_nothing(&mut self, _stream: &Stream) -> Result<()> {
        Ok(())
    }
}

/// One run of one case.
pub(crate) struct Run<'d> {
    devices: &'d [Device; 2],
    /// Called with `true` before the write, and with `false` after it.
    around: &'d dyn Fn(bool),
    /// Whether work may fail when it runs.
    is_late: bool,
    /// Whether the numbers of bytes in errors are exact: a driver may also count bytes that were
    /// written where the destination was stale.
    is_exact: bool,
    /// The calls that returned an error.
    told: usize,
    /// The errors after which a part was written.
    partial: usize,
    /// The first and the last of the calls of each emulated device that belong to the write.
    calls: [[u64; 2]; 2],
}

/// What a call writes.
struct Effect {
    before: Array2<u32>,
    after: Array2<u32>,
}

impl Effect {
    fn of(before: Array2<u32>, part: Part, values: &Array2<u32>) -> Self {
        let mut after = before.clone();
        after.slice_mut(part).assign(values);
        Self { before, after }
    }
}

fn called_at(error: &Error) -> CalledAt {
    match error {
        Error::Backend { call, .. } | Error::OutOfMemory { call, .. } => *call,
        other => panic!("an unexpected kind of error: {other}"),
    }
}

impl Run<'_> {
    /// Repeats a call until it succeeds. With one fault, the second or third attempt does.
    fn again<T>(&mut self, call: impl FnMut() -> Result<T>) -> T {
        self.again_or_lost(call).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As `again`, and returns errors that a repetition does not mend.
    fn again_or_lost<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..4 {
            match call() {
                Err(Error::Backend { .. } | Error::OutOfMemory { .. }) => self.told += 1,
                other => return other,
            }
        }
        panic!("a call fails for ever")
    }

    /// Makes arrays with the work on them done. If work failed, makes them again.
    fn made<T>(&mut self, mut make: impl FnMut(&[Device; 2]) -> Result<T>) -> T {
        let devices = self.devices;
        self.again(|| {
            let made = make(devices);
            let settled = devices.iter().try_for_each(Device::synchronize);
            let made = made?;
            settled.map(|()| made)
        })
    }

    fn call_counts(&self) -> [u64; 2] {
        self.devices
            .each_ref()
            .map(|device| device.emulation().map_or(0, |emulation| emulation.calls().len() as u64))
    }

    fn settle(&mut self) {
        for device in self.devices {
            self.told += usize::from(device.synchronize().is_err());
        }
    }

    /// Makes the call, and checks contents against what it returned. Repeats it if it failed.
    fn write<A: Destination>(
        &mut self,
        destination: &mut A,
        effect: &Effect,
        mut call: impl FnMut(&mut A) -> Result<()>,
    ) {
        let before = self.call_counts();
        (self.around)(true);
        let outcome = call(destination);
        (self.around)(false);
        let after = self.call_counts();
        self.calls = [0, 1].map(|device| [before[device] + 1, after[device]]);
        if self.is_late {
            self.settle();
        }
        match outcome {
            Err(error) => {
                self.told += 1;
                if let Some(seen) = self.contents(destination, effect) {
                    self.check_error(&error, effect, &seen);
                    // The device's copy has the same contents.
                    let stream = self.devices[0].stream();
                    self.again(|| destination.add_nothing(&stream));
                    assert_eq!(self.contents(destination, effect), Some(seen), "{error}");
                }
                self.again(|| call(destination));
                if self.is_late {
                    self.settle();
                }
            }
            Ok(()) => {
                if let Some(seen) = self.contents(destination, effect) {
                    return assert_eq!(seen, effect.after);
                }
                self.again(|| destination.overwrite(&effect.after));
            }
        }
        assert_eq!(self.contents(destination, effect).as_ref(), Some(&effect.after));
    }

    /// The contents; `None` if some are lost, which only those can be that work which failed was to
    /// write.
    fn contents(&mut self, of: &impl Destination, effect: &Effect) -> Option<Array2<u32>> {
        if let Ok(seen) = of.read() {
            return Some(seen);
        }
        // Row by row, if some are lost.
        let mut seen = Array2::zeros((ROWS, COLUMNS));
        let mut is_lost = false;
        for row in 0..ROWS {
            let is_written = effect.before.row(row) != effect.after.row(row);
            match self.again_or_lost(|| of.read_row(row)) {
                Ok(values) => {
                    seen.row_mut(row).iter_mut().zip(values).for_each(|(to, from)| *to = from);
                }
                Err(Error::Lost { .. }) if self.is_late && is_written => is_lost = true,
                Err(other) => panic!("row {row}: {other}"),
            }
        }
        (!is_lost).then_some(seen)
    }

    /// An error counts the bytes that are written, and says that nothing was queued only if none
    /// is.
    fn check_error(&mut self, error: &Error, effect: &Effect, seen: &Array2<u32>) {
        let (text, written_bytes) = (error.to_string(), called_at(error).written_bytes());
        let mut changed_bytes = 0;
        Zip::from(seen).and(&effect.before).and(&effect.after).for_each(|seen, before, after| {
            assert!([before, after].contains(&seen), "{seen}, not {before} or {after}: {text}");
            changed_bytes += if seen == before { 0 } else { 4 };
        });
        assert!(changed_bytes <= written_bytes, "{changed_bytes} bytes changed: {text}");
        if self.is_exact && !self.is_late {
            assert_eq!(changed_bytes, written_bytes, "{text}");
        }
        assert_eq!(text.contains("bytes were already written"), written_bytes > 0, "{text}");
        if written_bytes > 0 {
            assert!(!text.contains("nothing was queued"), "{text}");
        } else if !self.is_late && matches!(error, Error::Backend { .. }) {
            let says = ["nothing was queued", "no contents have changed"];
            assert!(says.iter().any(|says| text.contains(says)), "{text}");
        }
        self.partial += usize::from(written_bytes > 0);
    }
}

/// Brings contents to a place, where they are newest.
fn put(array: &mut Table, place: Place, devices: &[Device; 2]) -> Result<()> {
    let [here, there] = devices.each_ref().map(Device::stream);
    let half = array.shape()[0] / 2;
    let newest_on = |stream: &Stream, part: Part, array: &mut Table| {
        array.slice_mut(part).gpu_mut_on(stream).map(drop)
    };
    match place {
        Place::Host => Ok(()),
        Place::Device => newest_on(&here, s![.., ..], array),
        Place::Both => array.gpu_on(&here).map(drop),
        Place::Halves => newest_on(&here, s![..half, ..], array),
        Place::TwoDevices => {
            newest_on(&here, s![..half, ..], array)?;
            newest_on(&there, s![half.., ..], array)
        }
        Place::Constant => array.fill_on(&here, CONSTANT),
    }
}

fn contents_at(place: Place, values: Array2<u32>) -> Array2<u32> {
    if place == Place::Constant { Array2::from_elem(values.raw_dim(), CONSTANT) } else { values }
}

fn table(values: &Array2<u32>, place: Place, devices: &[Device; 2]) -> Result<Table> {
    let mut array = SmartArray::from(values.clone());
    put(&mut array, place, devices).map(|()| array)
}

/// A case: its name and its program.
pub(crate) type Case = (String, Box<dyn Fn(&mut Run<'_>)>);

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    assignments(&mut cases);
    for (name, part) in parts() {
        for place in PLACES {
            cases.push(fill(name, part, place));
            cases.push(copy_from_slice(name, part, place));
        }
        for form in FORMS {
            cases.push(upload(name, part, form));
            for device in 0..2 {
                cases.push(copy_from_device(name, part, form, device));
            }
        }
        cases.extend([from_pinned(name, part), to_pinned(name, part), to_host(name, part)]);
    }
    cases.push(within());
    cases
}

/// Each place of the destination with each of the source; layouts take turns.
fn assignments(cases: &mut Vec<Case>) {
    let mut number = 0;
    for to in PLACES {
        for from in PLACES {
            for target in [None, Some(0), Some(1)] {
                for _ in 0..2 {
                    let ((name, part), form) = (parts()[number % 6], FORMS[number / 6 % 4]);
                    cases.push(assignment((name, part), form, (to, from), target));
                    number += 5;
                }
            }
        }
    }
}

fn assignment(
    (name, part): (&str, Part),
    form: Form,
    (to, from): (Place, Place),
    target: Option<usize>,
) -> Case {
    let program = move |run: &mut Run<'_>| {
        let before = contents_at(to, old());
        let shape = before.slice(part).dim();
        let values = contents_at(from, new(shape, form));
        let effect = Effect::of(before, part, &values);
        let kept = contents_at(from, stored(&new(shape, form), form));
        let (mut destination, source) = run.made(|devices| {
            let source = table(&stored(&new(shape, form), form), from, devices)?;
            Ok((table(&old(), to, devices)?, source))
        });
        let stream = target.map(|device| run.devices[device].stream());
        let source_view = || {
            let view = source.view();
            match form {
                Form::Repeated => view.broadcast(shape),
                _ => Ok(view),
            }
        };
        run.write(&mut destination, &effect, |destination| {
            let (mut to, from) = (destination.slice_mut(part), source_view()?);
            match &stream {
                Some(stream) => to.assign_on(stream, &from),
                None => to.assign(&from),
            }
        });
        assert_eq!(run.again(|| source.host().map(|host| host.to_owned())), kept, "the source");
    };
    let name = format!("assign {name} on {target:?}, {to:?}, from {form:?}, {from:?}");
    (name, Box::new(program))
}

fn fill(name: &str, part: Part, place: Place) -> Case {
    let program = move |run: &mut Run<'_>| {
        let before = contents_at(place, old());
        let values = Array2::from_elem(before.slice(part).dim(), 500);
        let effect = Effect::of(before, part, &values);
        let mut destination = run.made(|devices| table(&old(), place, devices));
        let stream = run.devices[0].stream();
        run.write(&mut destination, &effect, |to| to.slice_mut(part).fill_on(&stream, 500));
    };
    (format!("fill {name}, {place:?}"), Box::new(program))
}

fn copy_from_slice(name: &str, part: Part, place: Place) -> Case {
    let program = move |run: &mut Run<'_>| {
        let before = contents_at(place, old());
        let values = new(before.slice(part).dim(), Form::Rows);
        let effect = Effect::of(before, part, &values);
        let mut destination = run.made(|devices| table(&old(), place, devices));
        let elements = values.as_slice().expect("row-major");
        run.write(&mut destination, &effect, |to| to.slice_mut(part).copy_from_slice(elements));
    };
    (format!("copy_from_slice {name}, {place:?}"), Box::new(program))
}

/// A device array with the old contents.
fn there(devices: &[Device; 2]) -> Result<DeviceArray<u32, Ix2>> {
    DeviceArray::from_host_on(&devices[0].stream(), &old())
}

fn upload(name: &str, part: Part, form: Form) -> Case {
    let program = move |run: &mut Run<'_>| {
        let values = new(old().slice(part).dim(), form);
        let effect = Effect::of(old(), part, &values);
        let mut destination = run.made(there);
        let from = stored(&values, form);
        let reversed = values.slice(s![..;-1, ..;-1]).to_owned();
        run.write(&mut destination, &effect, |to| {
            let mut to = to.slice_mut(part);
            match form {
                Form::Repeated => to.copy_from_host(&from.broadcast(values.dim()).expect("fits")),
                Form::Reversed => to.copy_from_host(&reversed.slice(s![..;-1, ..;-1])),
                _ => to.copy_from_host(&from),
            }
        });
    };
    (format!("copy_from_host {name}, {form:?}"), Box::new(program))
}

fn copy_from_device(name: &str, part: Part, form: Form, device: usize) -> Case {
    let program = move |run: &mut Run<'_>| {
        let values = new(old().slice(part).dim(), form);
        // The constant is in the destination's memory.
        let effect = Effect::of(contents_at(Place::Constant, old()), part, &values);
        let kept = stored(&values, form);
        let (mut destination, source) = run.made(|devices| {
            let source = DeviceArray::from_host_on(&devices[device].stream(), &kept)?;
            let mut destination = there(devices)?;
            destination.fill(CONSTANT)?;
            Ok((destination, source))
        });
        let reversed = run.made(|devices| {
            let reversed = values.slice(s![..;-1, ..;-1]).to_owned();
            DeviceArray::from_host_on(&devices[device].stream(), &reversed)
        });
        run.write(&mut destination, &effect, |to| {
            let mut to = to.slice_mut(part);
            match form {
                Form::Repeated => to.copy_from_device(&source.broadcast(values.dim())?),
                Form::Reversed => to.copy_from_device(&reversed.slice(s![..;-1, ..;-1])),
                _ => to.copy_from_device(&source),
            }
        });
        assert_eq!(run.again(|| source.copy_to_host()), kept, "the source");
    };
    (format!("copy_from_device {name}, {form:?} on device {device}"), Box::new(program))
}

fn from_pinned(name: &str, part: Part) -> Case {
    let program = move |run: &mut Run<'_>| {
        let values = new(old().slice(part).dim(), Form::Rows);
        let effect = Effect::of(old(), part, &values);
        let (mut destination, source) = run.made(|devices| {
            let _here = devices[0].enter();
            Ok((there(devices)?, PinnedArray::from_array(values.view())?))
        });
        run.write(&mut destination, &effect, |to| to.slice_mut(part).copy_from_pinned(&source));
        assert_eq!(run.again(|| source.host().map(|host| host.to_owned())), values);
    };
    (format!("copy_from_pinned {name}"), Box::new(program))
}

fn to_pinned(name: &str, part: Part) -> Case {
    let program = move |run: &mut Run<'_>| {
        let values = new(old().slice(part).dim(), Form::Rows);
        let effect = Effect::of(old(), part, &values);
        let (mut destination, source) = run.made(|devices| {
            let _here = devices[0].enter();
            let source = DeviceArray::from_host_on(&devices[0].stream(), &values)?;
            Ok((SmartArray::from(PinnedArray::from_array(old())?), source))
        });
        run.write(&mut destination, &effect, |to| source.copy_to_pinned(&mut to.slice_mut(part)));
        assert_eq!(run.again(|| source.copy_to_host()), values);
    };
    (format!("copy_to_pinned {name}"), Box::new(program))
}

fn to_host(name: &str, part: Part) -> Case {
    let program = move |run: &mut Run<'_>| {
        let values = new(old().slice(part).dim(), Form::Rows);
        let effect = Effect::of(old(), part, &values);
        let source = run.made(|devices| DeviceArray::from_host_on(&devices[0].stream(), &values));
        run.write(&mut old(), &effect, |to| source.copy_to_host_into(&mut to.slice_mut(part)));
        assert_eq!(run.again(|| source.copy_to_host()), values);
    };
    (format!("copy_to_host_into {name}"), Box::new(program))
}

fn within() -> Case {
    let program = |run: &mut Run<'_>| {
        let effect = Effect::of(old(), s![1.., 2..], &old().slice(s![..5, ..6]).to_owned());
        let mut destination = run.made(there);
        run.write(&mut destination, &effect, |to| to.copy_within(s![..5, ..6], s![1.., 2..]));
    };
    (String::from("copy_within"), Box::new(program))
}

/// Prints the case if a check of it fails.
struct Named<'n>(&'n str, String);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the case is {}; {}", self.0, self.1);
        }
    }
}

/// What one run of a case did.
pub(crate) struct Outcome {
    /// How many calls returned an error.
    pub(crate) told: usize,
    /// How many of these had written a part.
    pub(crate) partial: usize,
    calls: [[u64; 2]; 2],
}

/// Runs a case.
pub(crate) fn run(
    (name, program): &Case,
    devices: &[Device; 2],
    (is_late, is_exact): (bool, bool),
    around: &dyn Fn(bool),
    fault: String,
) -> Outcome {
    let _named = Named(name, fault);
    let calls = [[0; 2]; 2];
    let mut run = Run { devices, around, is_late, is_exact, told: 0, partial: 0, calls };
    program(&mut run);
    Outcome { told: run.told, partial: run.partial, calls: run.calls }
}

/// Runs each case once for each call of its write, which fails.
fn sweep(is_late: bool) -> Swept {
    let mut swept = Swept::default();
    // Both devices share a simulation, and make copies in small pieces.
    let emulation = Emulation::new().seed(5).pieces(64);
    for case in &cases() {
        let devices = emulated(&emulation, None);
        let whole = run(case, &devices, (is_late, true), &|_| (), String::from("no fault"));
        assert_eq!(whole.told, 0, "{}: without faults, no call is refused", case.0);
        let calls = devices.map(|device| device.emulation().expect("emulated").calls());
        for (device, [first, last]) in whole.calls.into_iter().enumerate() {
            let own = calls[device].iter().filter(|call| (first..=last).contains(&call.number));
            for call in own.filter(|call| !is_late || RUNS_LATE.contains(&call.kind)) {
                let fault = fault(call.number, is_late);
                let devices = emulated(&emulation, Some((device, fault)));
                let what = format!("{call} of device {device} fails");
                let outcome = run(case, &devices, (is_late, true), &|_| (), what);
                assert_no_hazards(&devices, &call.to_string());
                swept.runs += 1;
                swept.told += outcome.told;
                swept.partial += outcome.partial;
            }
        }
    }
    swept
}

/// Sums over all runs.
#[derive(Default, Debug)]
struct Swept {
    runs: usize,
    told: usize,
    partial: usize,
}

#[test]
fn an_error_of_a_refused_write_says_what_is_written() {
    let Swept { runs, told, partial } = sweep(false);
    assert!(told > runs / 2 && partial > 50, "{told} errors, {partial} partial, {runs} runs");
}

#[test]
fn work_of_a_write_that_fails_late_harms_nothing_else() {
    let Swept { runs, told, .. } = sweep(true);
    assert!(told > runs / 4, "{told} errors in {runs} runs");
}

/// A fill that fails before a guard's work damages what the guard's work read. The guard's elements
/// are lost then, and no copy to the host returns the failure of the fill as its own.
#[test]
fn copies_to_the_host_tell_alike_of_work_that_failed_before() {
    let read = |nth, into: bool| {
        let device = Device::emulated(Emulation::new().seed(1).fail(Fault::nth(nth).late()));
        let stream = device.stream();
        let mut array = DeviceArray::<u32, _>::full_on(&stream, (2, 3), CONSTANT)?;
        drop(array.gpu_mut_on(&stream)?);
        let mut copy = Array2::zeros((2, 3));
        let read = match into {
            true => array.copy_to_host_into(&mut copy),
            false => array.copy_to_host().map(|elements| copy.assign(&elements)),
        };
        Ok((read.map(|()| copy), device.synchronize()))
    };
    let mut lost = 0;
    for nth in 1..12 {
        let outcomes: [Result<_>; 2] = [false, true].map(|into| read(nth, into));
        match outcomes {
            [Ok((Ok(one), first)), Ok((Ok(other), second))] => {
                assert_eq!(one, other);
                assert_eq!(first.is_ok(), second.is_ok(), "call {nth}");
            }
            [Ok((Err(one), first)), Ok((Err(other), second))] => {
                let kind = std::mem::discriminant::<Error>;
                assert_eq!(kind(&one), kind(&other), "call {nth}: {one}; {other}");
                assert_eq!(first.is_ok(), second.is_ok(), "call {nth}: {one}; {other}");
                lost += usize::from(matches!(one, Error::Lost { .. }));
            }
            other => panic!("call {nth}: {other:?}"),
        }
    }
    assert!(lost > 0, "a fill failed");
}
