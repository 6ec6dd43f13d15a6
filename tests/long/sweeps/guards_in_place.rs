//! Every sequence of a guard and the uses behind it, on memory of every kind: no call waits for
//! ever, and all contents are right, whether the guard was dropped, was forgotten, or is alive.

use std::mem::forget;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use resident::ndarray::ArrayViewMut2;
use resident::{DeviceMut, DeviceRef};

use crate::each_call::{add, assert_no_hazards};
use crate::environment::Sample;
use support::prelude::*;

/// A case takes less than a millisecond. On a busy machine a process may stop for seconds.
const CASE_LIMIT: Duration = Duration::from_secs(60);

/// The rows of the part that a guard covers; the other rows are those behind.
const HALF: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    Ordinary,
    PageLocked,
    Mapped,
    Managed,
    LentPinned,
    LentMapped,
}

/// What has written the lower rows before the guard.
#[derive(Clone, Copy, Debug)]
enum Before {
    Host,
    Fill,
    OtherDevice,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Guard {
    Read,
    Write,
    Overwrite,
    /// By `into_gpu_mut_on`.
    Into,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Covers {
    All,
    UpperRows,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Dropped,
    Forgotten,
    /// While it lives, the other rows are used.
    AliveBesideUses,
    /// While it lives, all rows are read.
    AliveBesideReads,
}

#[derive(Clone, Copy, Debug)]
enum On {
    Own,
    Other,
}

#[derive(Clone, Copy, Debug)]
enum Use {
    Fill,
    FillOn,
    HostMut,
    HostOverwrite,
    Launch,
    LaunchOnOther,
    Assign,
    Set,
    Read(Read),
}

#[derive(Clone, Copy, Debug)]
enum Read {
    Host,
    OtherDevice,
    AssignFrom,
    Get,
    Snapshot,
}

const READS: [Read; 5] =
    [Read::Host, Read::OtherDevice, Read::AssignFrom, Read::Get, Read::Snapshot];
const WRITES: [Use; 8] = [
    Use::Fill,
    Use::FillOn,
    Use::HostMut,
    Use::HostOverwrite,
    Use::Launch,
    Use::LaunchOnOther,
    Use::Assign,
    Use::Set,
];

#[derive(Clone, Copy, Debug)]
struct Case {
    memory: Memory,
    before: Before,
    guard: Guard,
    covers: Covers,
    end: End,
    on: On,
    first: Use,
    second: Option<Use>,
}

/// The streams of the device that accesses the memory, and of another one.
struct Place {
    device: Device,
    own: Stream,
    other: Stream,
    add: Kernel<(u32, InOut<u32, Ix2>)>,
    add_on_other: Kernel<(u32, InOut<u32, Ix2>)>,
}

type All<'a> = SmartViewMut<'a, u32, Ix2>;
type Model<'a> = ArrayViewMut2<'a, u32>;

/// A guard that is kept.
#[allow(dead_code, reason = "they are only kept")]
enum Open<'a> {
    Read(DeviceRef<'a, u32, Ix2>),
    Write(DeviceMut<'a, u32, Ix2>),
}

fn start() -> Array2<u32> {
    Array2::from_shape_fn((2 * HALF, 2), |(row, column)| (10 * row + column) as u32)
}

impl Place {
    fn new(device: &Device, other: &Device) -> Self {
        Self {
            device: device.clone(),
            own: device.new_stream().expect("a stream"),
            other: other.new_stream().expect("a stream"),
            add: add(),
            add_on_other: add(),
        }
    }

    fn run(&self, case: Case) -> Result<()> {
        let _here = self.device.enter();
        let (mut lent, mut model) = (start(), start());
        let use_all = |all: &mut All<'_>, model: &mut Array2<u32>| self.go(case, all, model);
        match case.memory {
            Memory::Ordinary => use_all(&mut SmartArray::from(lent).view_mut(), &mut model),
            Memory::PageLocked => {
                let mut array = SmartArray::from(lent);
                array.page_lock()?;
                use_all(&mut array.view_mut(), &mut model)
            }
            Memory::Mapped => {
                let mut array = SmartArray::from(MappedArray::from_array(lent)?);
                use_all(&mut array.view_mut(), &mut model)
            }
            Memory::Managed => {
                let mut array = SmartArray::from(ManagedArray::from_array(lent)?);
                use_all(&mut array.view_mut(), &mut model)
            }
            Memory::LentPinned => {
                with_pinned(&mut lent, |all| use_all(all, &mut model))?;
                assert_eq!(lent, model, "{case:?}");
                Ok(())
            }
            Memory::LentMapped => {
                with_mapped(&mut lent, |all| use_all(all, &mut model))?;
                assert_eq!(lent, model, "{case:?}");
                Ok(())
            }
        }
    }

    fn go(&self, case: Case, all: &mut All<'_>, model: &mut Array2<u32>) -> Result<()> {
        let lower = s![HALF.., ..];
        let mut rows = all.slice_mut(lower);
        match case.before {
            Before::Host => {}
            Before::Fill => self.apply(Use::Fill, &mut rows, model.slice_mut(lower))?,
            Before::OtherDevice => {
                self.apply(Use::LaunchOnOther, &mut rows, model.slice_mut(lower))?;
            }
        }
        match case.end {
            End::Dropped | End::Forgotten => {
                self.use_after(case, all, model)?;
                self.apply_both(case, all, model.view_mut())?;
            }
            End::AliveBesideUses => {
                let (mut upper, mut rows) = all.reborrow().split_at(Axis(0), HALF);
                let open = self.open(case, &mut upper)?;
                self.apply_both(case, &mut rows, model.slice_mut(lower))?;
                drop(open);
                self.settle(case, &mut upper, model.slice_mut(s![..HALF, ..]))?;
            }
            End::AliveBesideReads => {
                let part = match case.covers {
                    Covers::All => all.view(),
                    Covers::UpperRows => all.slice(s![..HALF, ..]),
                };
                let open = part.gpu_on(self.stream(case.on))?;
                for read in [Some(case.first), case.second].into_iter().flatten() {
                    if let Use::Read(read) = read {
                        self.read(read, all.view(), model)?;
                    }
                }
                drop(open);
            }
        }
        self.read(Read::Host, all.view(), model)
    }

    /// Opens the guard and ends it.
    fn use_after(&self, case: Case, all: &mut All<'_>, model: &mut Array2<u32>) -> Result<()> {
        let rows = if case.covers == Covers::All { s![.., ..] } else { s![..HALF, ..] };
        let mut part = all.slice_mut(rows);
        let open = self.open(case, &mut part)?;
        match case.end {
            End::Forgotten => forget(open),
            _ => drop(open),
        }
        self.settle(case, &mut part, model.slice_mut(rows))
    }

    /// What a guard was to overwrite, and did not, is overwritten with a constant.
    fn settle(&self, case: Case, part: &mut All<'_>, model: Model<'_>) -> Result<()> {
        match case.guard {
            Guard::Overwrite => self.apply(Use::Fill, part, model),
            _ => Ok(()),
        }
    }

    fn stream(&self, on: On) -> &Stream {
        match on {
            On::Own => &self.own,
            On::Other => &self.other,
        }
    }

    fn open<'a>(&self, case: Case, part: &'a mut All<'_>) -> Result<Open<'a>> {
        let stream = self.stream(case.on);
        match case.guard {
            Guard::Read => part.gpu_on(stream).map(Open::Read),
            Guard::Write => part.gpu_mut_on(stream).map(Open::Write),
            Guard::Overwrite => part.gpu_overwrite_on(stream).map(Open::Write),
            Guard::Into => part.reborrow().into_gpu_mut_on(stream).map(Open::Write),
        }
    }

    fn apply_both(&self, case: Case, part: &mut All<'_>, mut model: Model<'_>) -> Result<()> {
        self.apply(case.first, part, model.view_mut())?;
        case.second.map_or(Ok(()), |second| self.apply(second, part, model))
    }

    fn apply(&self, one: Use, part: &mut All<'_>, mut model: Model<'_>) -> Result<()> {
        match one {
            Use::Fill => {
                model.fill(3);
                part.fill(3)
            }
            Use::FillOn => {
                model.fill(4);
                part.fill_on(&self.own, 4)
            }
            Use::HostMut => {
                model += 1;
                part.host_mut().map(|mut host| *host += 1)
            }
            Use::HostOverwrite => {
                model.fill(8);
                part.host_overwrite().map(|mut host| host.fill(8))
            }
            Use::Launch => {
                model += 100;
                self.add.launch_on(&self.own, Grid::cover(1), (100, part))
            }
            Use::LaunchOnOther => {
                model += 200;
                self.add_on_other.launch_on(&self.other, Grid::cover(1), (200, part))
            }
            Use::Assign => {
                let new = Array2::from_elem(model.raw_dim(), 7);
                model.assign(&new);
                part.assign(&SmartArray::from(new))
            }
            Use::Set => {
                model[[1, 1]] = 9;
                part.set((1, 1), 9)
            }
            Use::Read(read) => self.read(read, part.view(), &model.to_owned()),
        }
    }

    fn read(&self, read: Read, part: SmartView<'_, u32, Ix2>, model: &Array2<u32>) -> Result<()> {
        match read {
            Read::Host => assert_eq!(*part.host()?, *model),
            Read::OtherDevice => drop(part.gpu_on(&self.other)?),
            Read::AssignFrom => {
                let mut to = SmartArray::<u32, _>::zeros(model.raw_dim());
                to.assign(&part)?;
                assert_eq!(*to.host()?, *model);
            }
            Read::Get => assert_eq!(part.get((1, 0))?, model[[1, 0]]),
            Read::Snapshot => assert_eq!(part.snapshot_on(&self.own)?.wait()?, *model),
        }
        Ok(())
    }
}

/// Ends the process, with the case, if a case takes too long.
struct Watchdog(Arc<Mutex<(u64, Option<Case>)>>);

impl Watchdog {
    fn new() -> Self {
        let running = Arc::default();
        let watched = Arc::downgrade(&running);
        std::thread::spawn(move || watch(&watched));
        Self(running)
    }

    fn next(&self, case: Case) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *running = (running.0 + 1, Some(case));
    }
}

fn watch(watched: &Weak<Mutex<(u64, Option<Case>)>>) {
    let mut last = None;
    while let Some(running) = watched.upgrade() {
        let (number, case) = *running.lock().unwrap_or_else(PoisonError::into_inner);
        drop(running);
        if last == Some(number) {
            eprintln!("does not return: {case:?}");
            std::process::abort();
        }
        last = Some(number);
        std::thread::sleep(CASE_LIMIT);
    }
}

fn each_guard(mut visit: impl FnMut(Guard, Covers, End)) {
    for guard in [Guard::Read, Guard::Write, Guard::Overwrite, Guard::Into] {
        for end in [End::Dropped, End::Forgotten] {
            visit(guard, Covers::All, end);
            visit(guard, Covers::UpperRows, end);
        }
        visit(guard, Covers::UpperRows, End::AliveBesideUses);
    }
    visit(Guard::Read, Covers::All, End::AliveBesideReads);
    visit(Guard::Read, Covers::UpperRows, End::AliveBesideReads);
}

/// All uses behind a guard, and those that write followed by another; of reads alone, all pairs.
fn each_sequence(end: End, mut visit: impl FnMut(Use, Option<Use>)) {
    const SECOND: [Use; 6] = [
        Use::Fill,
        Use::HostMut,
        Use::LaunchOnOther,
        Use::Read(Read::Host),
        Use::Read(Read::OtherDevice),
        Use::Read(Read::Snapshot),
    ];
    let reads = READS.map(Use::Read);
    if end == End::AliveBesideReads {
        for first in reads {
            reads.into_iter().for_each(|second| visit(first, Some(second)));
        }
        return;
    }
    reads.into_iter().chain(WRITES).for_each(|first| visit(first, None));
    for first in WRITES {
        SECOND.into_iter().for_each(|second| visit(first, Some(second)));
    }
}

fn each_case(memories: &[Memory], mut visit: impl FnMut(Case)) {
    for memory in memories.iter().copied() {
        for before in [Before::Host, Before::Fill, Before::OtherDevice] {
            for on in [On::Own, On::Other] {
                each_guard(|guard, covers, end| {
                    each_sequence(end, |first, second| {
                        visit(Case { memory, before, guard, covers, end, on, first, second });
                    });
                });
            }
        }
    }
}

/// Memory that only the host accesses, and memory that a device accesses too.
const OF_HOST: [Memory; 3] = [Memory::Ordinary, Memory::PageLocked, Memory::LentPinned];
pub(crate) const IN_PLACE: [Memory; 3] = [Memory::Mapped, Memory::Managed, Memory::LentMapped];

/// One of seven cases, from the `first` on: each guard and sequence of uses in several memories.
pub(crate) fn sample(first: u64) -> Sample {
    Sample::new(7, first)
}

/// Runs cases on memory that `device` accesses.
pub(crate) fn run_all(device: &Device, other: &Device, memories: &[Memory], sample: Sample) {
    let (place, watchdog) = (Place::new(device, other), Watchdog::new());
    let mut number = 0;
    each_case(memories, |case| {
        if sample.has(number) {
            watchdog.next(case);
            place.run(case).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        }
        number += 1;
    });
    for device in [device, other] {
        device.synchronize().expect("nothing fails");
    }
}

#[test]
fn guards_and_uses_in_any_sequence_end_on_the_embedded_device() {
    let (device, other) = (Device::cpu(), Device::emulated(Emulation::new()));
    run_all(&device, &other, &OF_HOST, sample(0));
    run_all(&device, &other, &IN_PLACE, sample(1));
}

#[test]
fn guards_and_uses_in_any_sequence_end_on_seeded_devices() {
    let devices = [1, 2].map(|seed| Device::emulated(Emulation::new().seed(seed)));
    run_all(&devices[0], &devices[1], &IN_PLACE, sample(2));
    assert_no_hazards(&devices, "any sequence");
}
