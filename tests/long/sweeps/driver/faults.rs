//! Runs one scenario on the GPU backend repeatedly. In each run another driver call fails, or the
//! device dies at another call.

use support::prelude::*;

use super::{
    ILLEGAL_ADDRESS, OUT_OF_MEMORY, Swept, UNKNOWN, deaths, driver, kernels, nth, sweep,
    two_devices,
};
use crate::device_arrays;
use crate::environment::Sample;

/// The scenario on two GPUs; its steps import this module.
mod scenario {
    use resident::ndarray::s;
    use resident::{Device, Error, Result};

    use crate::bench::Bench;
    use crate::model::{ARRAYS, Model, ROWS};
    use crate::steps::{Step, steps};

    /// One run, and the number of refused calls.
    pub(crate) struct Run {
        bench: Bench,
        model: Model,
        /// Whether all contents are checked after each refusal, before the call is repeated.
        looks: bool,
        pub(crate) refused: usize,
    }

    /// Repeats a call until it succeeds. With one fault, the second or third attempt succeeds.
    fn again<T>(refused: &mut usize, mut call: impl FnMut() -> Result<T>) -> T {
        for _ in 0..4 {
            match call() {
                Ok(value) => return value,
                Err(error) => {
                    assert_refusal(&error);
                    *refused += 1;
                }
            }
        }
        panic!("a call fails for ever")
    }

    /// Asserts that a refused call has changed nothing.
    fn assert_refusal(error: &Error) {
        match error {
            Error::Backend { cause, .. } => {
                let says = ["nothing was queued", "no contents have changed"];
                assert!(says.iter().any(|says| cause.contains(says)), "{error}");
            }
            Error::OutOfMemory { .. } => {}
            Error::Compile { log, .. } => {
                assert!(log.contains(super::driver::MODULE_CALLS), "{error}");
            }
            other => panic!("an unexpected kind of error: {other:?}"),
        }
    }

    impl Run {
        pub(crate) fn new(devices: &[Device; 2], looks: bool) -> Self {
            let mut refused = 0;
            let bench = Bench::new(devices, |device| again(&mut refused, || device.new_stream()));
            Self { bench, model: Model::new(), looks, refused }
        }

        /// Runs all steps, and repeats each step that was refused.
        pub(crate) fn go(mut self) -> usize {
            steps().iter().for_each(|step| self.take(step));
            self.verify("at the end");
            let Self {
                bench: Bench { devices, streams, arrays, clone, pending, .. },
                mut refused,
                ..
            } = self;
            drop((arrays, clone, pending, streams));
            devices.iter().for_each(|device| again(&mut refused, || device.synchronize()));
            // If the driver refused to free memory, a later call tries again.
            devices.iter().for_each(|device| again(&mut refused, || device.trim()));
            for device in &devices {
                let in_use = [(); 2].map(|()| device.memory().in_use);
                assert_eq!(in_use[1], 0, "{device} leaks");
            }
            refused
        }

        fn take(&mut self, step: &Step) {
            for _ in 0..4 {
                self.bench.seen.clear();
                match (step.run)(&mut self.bench) {
                    Ok(()) => {
                        let expected = self.model.apply(step);
                        return assert_eq!(self.bench.seen, expected, "step \"{}\"", step.name);
                    }
                    Err(error) => {
                        assert_refusal(&error);
                        self.refused += 1;
                    }
                }
                if self.looks {
                    self.verify(step.name);
                }
            }
            panic!("step \"{}\" fails for ever", step.name);
        }

        /// Checks that each row has the model's values.
        fn verify(&mut self, when: &str) {
            for row in (0..ARRAYS).flat_map(|array| (0..ROWS).map(move |row| (array, row))) {
                let array = &self.bench.arrays[row.0];
                let refused = &mut self.refused;
                let seen = again(refused, || match array.slice(s![row.1, ..]).host() {
                    Ok(host) => Ok(Some(host.to_vec())),
                    Err(Error::Uninitialised { .. }) => Ok(None),
                    Err(error) => Err(error),
                });
                assert_eq!(seen, self.model.row(row), "row {row:?} {when}");
            }
        }
    }
}

/// Runs the scenario once for each driver call of a sample, which fails. Most failures are returned
/// to the caller; the other failures only reduce speed, or are handled later.
fn sweep_scenario(code: u32, looks: bool, sample: Sample) {
    let devices = two_devices();
    let swept = sweep(code, sample.numbers(), || scenario::Run::new(&devices, looks).go());
    assert_most_are_told(&swept, 100);
}

#[track_caller]
fn assert_most_are_told(swept: &Swept, calls_min: u64) {
    let Swept { end, runs, told } = *swept;
    assert!(end > calls_min && told > runs / 2, "{told} refusals in {runs} runs, {end} calls");
}

#[test]
fn each_refused_call_leaves_contents_unchanged_and_can_be_repeated() {
    support::own_process!();
    sweep_scenario(UNKNOWN, false, Sample::new(3, 0));
}

#[test]
fn each_refused_call_leaves_contents_unchanged_when_read_at_once() {
    support::own_process!();
    sweep_scenario(UNKNOWN, true, Sample::new(3, 1));
}

#[test]
fn each_call_without_memory_leaves_contents_unchanged() {
    support::own_process!();
    sweep_scenario(OUT_OF_MEMORY, false, Sample::new(3, 2));
}

/// The program on device arrays. A copy of many runs that is refused in the middle has written some
/// of them.
#[test]
fn each_refused_call_on_device_arrays_can_be_repeated() {
    support::own_process!();
    let devices = two_devices();
    for (code, first) in [(OUT_OF_MEMORY, 0), (UNKNOWN, 1)] {
        let numbers = Sample::new(2, first).numbers();
        assert_most_are_told(&sweep(code, numbers, || device_arrays::run(&devices, false)), 60);
    }
}

type Matrix = SmartArray<u32, Ix2>;

fn add() -> Kernel<(u32, InOut<u32, Ix2>)> {
    let kernel = Kernel::new("add");
    // SAFETY: a host function replaces it, which accesses only the view's elements.
    unsafe { kernel.cuda(kernels::code("add")) }
}

fn matrix(value: u32) -> Matrix {
    SmartArray::from(Array2::from_elem((8, 8), value))
}

/// A small program on a device that may die during it. It returns errors of calls that may fail,
/// and asserts whatever must be true in any case.
fn program(device: &Device) -> Result<()> {
    // A device that is already dead cannot create a stream.
    let (add, other) = (add(), device.new_stream().unwrap_or_else(|_| device.stream()));
    let [mut host_newest, mut device_newest, mut both] = [1, 2, 3].map(matrix);
    let mut lost = false;
    let mut note = |outcome: Result<()>| match outcome {
        Ok(()) => {}
        Err(Error::DeviceLost { .. }) => lost = true,
        Err(error) => panic!("an unexpected kind of error: {error}"),
    };
    {
        // These arrays are pinned, so the device accesses their host memory directly.
        let _here = device.enter();
        note(host_newest.page_lock());
        note(both.page_lock());
    }
    for turn in 0..4 {
        note(add.launch_on(&device.stream(), Grid::cover(64), (1, &mut device_newest)));
        note(both.prefetch(&other));
        note(add.launch_on(&other, Grid::cover(64), (1, &mut both.slice_mut(s![..4, ..]))));
        note(both.prefetch_host());
        note(host_newest.prefetch(&device.stream()));
        note(host_newest.host_mut().map(|mut host| host.fill(10 + turn)));
        note(device_newest.snapshot_on(&other).and_then(|snapshot| snapshot.wait().map(drop)));
    }
    // The host's copy is the newest, so the array is always usable.
    assert_eq!(host_newest.host()?.sum(), 64 * 13);
    assert_eq!(host_newest.get((3, 3))?, 13);
    // Below the fourth row, this array was only copied to the device, never written there.
    assert_eq!(both.slice(s![4.., ..]).host()?.sum(), 32 * 3);
    for array in [&mut device_newest, &mut both] {
        match array.host().map(|host| host.to_owned()) {
            Ok(seen) => assert!(
                seen.rows().into_iter().all(|row| row.iter().all(|x| *x == row[0])),
                "{seen}"
            ),
            Err(Error::DeviceLost { .. }) => {}
            Err(error) => panic!("an unexpected kind of error: {error}"),
        }
        // An access that overwrites makes a lost array usable, on the host and on another device.
        array.host_overwrite()?.fill(5);
        assert_eq!(array.host()?.sum(), 320);
        drop(array.gpu_mut_on(&Device::cpu().stream())?);
        assert_eq!(array.host()?.sum(), 320);
    }
    note(device_newest.fill_on(&device.stream(), 1));
    device_newest.fill(2)?;
    assert_eq!(device_newest.host()?.sum(), 128);
    // The library never waits for memory that the device may have accessed.
    assert_eq!(
        [host_newest, device_newest, both]
            .map(|array| array.into_array().map_or(0, |array| array.sum())),
        [64 * 13, 128, 320]
    );
    println!("lost: {}", assert_reported_once(device) || lost);
    Ok(())
}

/// Asserts that the device reports a failure at most once; returns whether it did.
fn assert_reported_once(device: &Device) -> bool {
    let told: Vec<Result<()>> = (0..4).map(|_| device.synchronize()).collect();
    assert!(told.iter().skip(1).all(Result::is_ok), "a failure is reported once: {told:?}");
    let Err(error) = &told[0] else { return false };
    assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
    let text = error.to_string();
    driver::LOST_SAYS.iter().for_each(|part| assert!(text.contains(part), "{error}"));
    true
}

fn die(kill: fn(u64)) {
    let Some(nth) = nth() else { return };
    let [device, peer] = two_devices();
    driver::take_calls();
    if nth > 0 {
        kill(nth);
    }
    program(&device).unwrap_or_else(|error| panic!("{error}"));
    driver::forget_faults();
    // Another device stays usable, and so does the embedded device.
    let mut array = matrix(7);
    add().launch_on(&peer.stream(), Grid::cover(64), (1, &mut array)).expect("another device");
    assert_eq!(array.host().expect("another device").sum(), 8 * 64);
    println!("calls: {}", driver::calls().len());
}

// The tests below start this program repeatedly, with `--exact`, `--include-ignored` and the name
// of one of the next two tests.

#[test]
#[ignore = "run in processes of its own by the tests below"]
fn dies_at_work() {
    die(|nth| driver::fail_late(nth, ILLEGAL_ADDRESS));
}

#[test]
#[ignore = "run in processes of its own by the tests below"]
fn dies_at_a_call() {
    die(|nth| driver::fail_any(nth, ILLEGAL_ADDRESS));
}

#[test]
fn a_device_lost_at_any_work_loses_only_its_own_contents() {
    assert_eq!(deaths(test_name!(dies_at_work), 0..1), 0);
    assert_eq!(deaths(test_name!(dies_at_work), 1..24), 23);
}

#[test]
fn a_device_found_lost_at_any_call_loses_only_its_own_contents() {
    assert_eq!(deaths(test_name!(dies_at_a_call), 0..1), 0);
    assert!(deaths(test_name!(dies_at_a_call), (1..100).step_by(3)) > 25);
}
