//! Random programs of one array on the host and a device: the prefetches that a model of who reads
//! what finds useless are those that findings tell of, and without them the program copies just so
//! much less.

use proptest::prelude::*;
use resident::ndarray::{Ix1, s};
use resident::{Device, Flow, In, Kernel, Out, Result, SmartArray, Stream};
use support::lab::lab;

use crate::{double, grid, report_of};

/// A place, as an index into tables.
const HOST: usize = 0;
const DEVICE: usize = 1;

const CASES: u32 = 300;

/// What one call does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Prefetch(usize),
    /// Guards: what they read and write, and of which halves.
    Host(Use, Part),
    Gpu(Use, Part),
    Launch(Use, Part),
    Get,
    AssignTo,
    AssignFrom,
    Fill,
    FillOn,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Use {
    Read,
    Change,
    Overwrite,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    Whole,
    /// The first half.
    Half,
}

fn step() -> impl Strategy<Value = Step> {
    let of = || prop_oneof![Just(Use::Read), Just(Use::Change), Just(Use::Overwrite)];
    let part = || prop_oneof![3 => Just(Part::Whole), 1 => Just(Part::Half)];
    prop_oneof![
        4 => (HOST..=DEVICE).prop_map(Step::Prefetch),
        2 => (of(), part()).prop_map(|(of, part)| Step::Host(of, part)),
        2 => (of(), part()).prop_map(|(of, part)| Step::Gpu(of, part)),
        2 => (of(), part()).prop_map(|(of, part)| Step::Launch(of, part)),
        1 => prop_oneof![
            Just(Step::Get),
            Just(Step::AssignTo),
            Just(Step::AssignFrom),
            Just(Step::Fill),
            Just(Step::FillOn)
        ],
    ]
}

/// The array, and what the steps need.
struct Program {
    array: SmartArray<f32, Ix1>,
    /// What is assigned to the array, and what it is assigned to.
    source: SmartArray<f32, Ix1>,
    target: SmartArray<f32, Ix1>,
    device: Device,
    stream: Stream,
}

impl Program {
    fn new() -> Self {
        let device = lab();
        let [array, source, target] = [1.0, 2.0, 3.0].map(|x| SmartArray::from(vec![x; 64]));
        let stream = device.stream();
        Self { array, source, target, device, stream }
    }

    fn run(&mut self, step: Step) -> Result<()> {
        let Self { array, source, target, stream, .. } = self;
        let len = |part| if part == Part::Whole { 64 } else { 32 };
        let show = Kernel::<(In<f32>,)>::new("show").host(|_grid, _| ());
        let set = Kernel::<(Out<f32>,)>::new("set").host(|_grid, (xs,)| xs.fill(3.0));
        match step {
            Step::Prefetch(HOST) => array.prefetch_host(),
            Step::Prefetch(_) => array.prefetch(stream),
            Step::Host(Use::Read, Part::Whole) => array.host().map(drop),
            Step::Host(Use::Change, Part::Whole) => array.host_mut().map(drop),
            Step::Host(Use::Overwrite, Part::Whole) => array.host_overwrite().map(drop),
            Step::Host(Use::Read, _) => array.slice(s![..32]).host().map(drop),
            Step::Host(Use::Change, _) => array.slice_mut(s![..32]).host_mut().map(drop),
            Step::Host(Use::Overwrite, _) => array.slice_mut(s![..32]).host_overwrite().map(drop),
            Step::Gpu(Use::Read, Part::Whole) => array.gpu_on(stream).map(drop),
            Step::Gpu(Use::Change, Part::Whole) => array.gpu_mut_on(stream).map(drop),
            Step::Gpu(Use::Overwrite, Part::Whole) => array.gpu_overwrite_on(stream).map(drop),
            Step::Gpu(Use::Read, _) => array.slice(s![..32]).gpu_on(stream).map(drop),
            Step::Gpu(Use::Change, _) => array.slice_mut(s![..32]).gpu_mut_on(stream).map(drop),
            Step::Gpu(Use::Overwrite, _) => {
                array.slice_mut(s![..32]).gpu_overwrite_on(stream).map(drop)
            }
            Step::Launch(of, part) => {
                let mut view = array.slice_mut(s![..len(part)]);
                match of {
                    Use::Read => show.launch_on(stream, grid(), (&view.view(),)),
                    Use::Change => double().launch_on(stream, grid(), (&mut view,)),
                    Use::Overwrite => set.launch_on(stream, grid(), (&mut view,)),
                }
            }
            Step::Get => array.get(5).map(drop),
            Step::AssignTo => target.assign_on(stream, &*array),
            Step::AssignFrom => array.assign_on(stream, &*source),
            Step::Fill => array.fill(4.0),
            Step::FillOn => array.fill_on(stream, 4.0),
        }
    }
}

/// Which places have each half, and which prefetches there nothing has read yet.
struct Model {
    valid: [[bool; 2]; 2],
    pending: [Vec<(usize, bool)>; 2],
    /// The prefetches that can be left out, and how many of them copy something.
    useless: Vec<usize>,
    copies: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            valid: [[true, false]; 2],
            pending: Default::default(),
            useless: Vec::new(),
            copies: 0,
        }
    }

    /// Brings halves to a place; what is copied is read where it is. Returns whether it copies.
    fn bring(&mut self, place: usize, part: Part) -> bool {
        let halves = if part == Part::Whole { 0..2 } else { 0..1 };
        let mut copies = false;
        for half in halves {
            copies |= !self.valid[half][place];
            self.valid[half][place] = true;
        }
        if copies {
            self.pending[1 - place].clear();
        }
        copies
    }

    fn run(&mut self, index: usize, step: Step) {
        let (place, of, part) = match step {
            Step::Prefetch(place) => {
                // Without a useless prefetch the next one of the same contents would copy them.
                let copies = self.bring(place, Part::Whole);
                if copies || !self.pending[place].is_empty() {
                    self.pending[place].push((index, copies));
                }
                return;
            }
            Step::Host(of, part) => (HOST, of, part),
            Step::Gpu(of, part) | Step::Launch(of, part) => (DEVICE, of, part),
            Step::Get => {
                // It reads the host's copy, or copies the element from the device.
                let place = if self.valid[0][HOST] { HOST } else { DEVICE };
                self.pending[place].clear();
                return;
            }
            Step::AssignTo => (DEVICE, Use::Read, Part::Whole),
            Step::AssignFrom => (DEVICE, Use::Overwrite, Part::Whole),
            Step::Fill | Step::FillOn => (DEVICE, Use::Overwrite, Part::Whole),
        };
        if of != Use::Overwrite {
            self.bring(place, part);
            self.pending[place].clear();
        }
        if of == Use::Read {
            return;
        }
        for half in 0..if part == Part::Whole { 2 } else { 1 } {
            self.valid[half] = [false; 2];
            self.valid[half][place] = true;
            if matches!(step, Step::Fill | Step::FillOn) {
                // A constant is at each place without a copy.
                self.valid[half] = [true; 2];
            }
        }
        let pending = self.pending.iter_mut().flat_map(std::mem::take);
        match part {
            Part::Whole => {
                for (index, copies) in pending.collect::<Vec<_>>() {
                    self.useless.push(index);
                    self.copies += u64::from(copies);
                }
            }
            // What may still be read is not known.
            Part::Half => drop(pending.collect::<Vec<_>>()),
        }
    }
}

/// Runs the steps but those, and returns what they copied and what the findings say.
fn run(steps: &[Step], left_out: &[usize]) -> Result<(Flow, Flow)> {
    let mut program = Program::new();
    program.source.prefetch(&program.stream)?;
    let before = program.device.traffic();
    let report = report_of(|| {
        let kept = steps.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
        kept.map(|(_, step)| *step).try_for_each(|step| program.run(step))
    })?;
    assert_eq!(report.traffic(), program.device.traffic() - before, "{report}");
    program.device.synchronize()?;
    let kinds = ["overwritten_upload", "unread_download"];
    let findings = report.findings().into_iter();
    let told = findings.filter(|finding| kinds.contains(&&*finding.kind));
    let told =
        told.fold((0, 0), |(count, bytes), finding| (count + finding.count, bytes + finding.bytes));
    Ok((report.traffic().moved(), Flow { count: told.0, bytes: told.1 }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn findings_tell_of_the_prefetches_that_nothing_reads(
        steps in proptest::collection::vec(step(), 1..25)
    ) {
        let mut model = Model::new();
        steps.iter().enumerate().for_each(|(index, step)| model.run(index, *step));
        let (moved, told) = run(&steps, &[]).expect("nothing fails");
        let (moved_without, _) = run(&steps, &model.useless).expect("nothing fails");
        prop_assert_eq!(told.count, model.copies, "{:?}", model.useless);
        let saved = moved - moved_without;
        prop_assert_eq!((told.count, told.bytes), (saved.count, saved.bytes));
    }
}

/// The model says the same of a program by hand.
#[test]
fn the_model_knows_useless_prefetches() {
    let mut model = Model::new();
    let steps = [
        Step::Prefetch(DEVICE),
        Step::Launch(Use::Change, Part::Whole),
        Step::Prefetch(HOST),
        Step::Launch(Use::Change, Part::Whole),
        Step::Prefetch(HOST),
        Step::Get,
        Step::Launch(Use::Change, Part::Whole),
    ];
    steps.iter().enumerate().for_each(|(index, step)| model.run(index, *step));
    assert_eq!(model.useless, [2]);
}
