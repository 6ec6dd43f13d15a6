//! Repeats one scenario. In each run another backend call fails, either immediately or when its
//! work runs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::each_call::fault;
use crate::scenario::{self, Failing, Outcome};
use crate::seeds::RUNS_LATE;
use resident::emulation::Call;
use support::prelude::*;
use support::random::Random;

/// How the two devices run their work.
type Mode = fn() -> Emulation;

const SEEDED: [Mode; 2] =
    [|| Emulation::new().seed(1), || Emulation::new().seed(2).poison(false).page_bytes(8)];
const WORKERS: [Mode; 1] = [Emulation::new];

fn devices(mode: Mode, faults: &[Failing]) -> [Device; 2] {
    [0, 1].map(|device| {
        let own = faults.iter().filter(|fault| fault.device == device);
        Device::emulated(own.fold(mode(), |it, own| it.fail(fault(own.call, own.late))))
    })
}

/// Runs the scenario; if a check fails, prints it together with the faults.
fn run(mode: Mode, faults: &[Failing], looks: bool) -> Outcome {
    let devices = devices(mode, faults);
    let outcome = catch_unwind(AssertUnwindSafe(|| scenario::run(&devices, faults, looks)));
    outcome.unwrap_or_else(|panic| {
        let logs = devices.each_ref().map(calls);
        let called = faults
            .iter()
            .filter_map(|fault| logs[fault.device].get(fault.call as usize - 1))
            .map(ToString::to_string);
        eprintln!("with {faults:?}, looks: {looks}, calls {:?}", called.collect::<Vec<_>>());
        resume_unwind(panic)
    })
}

fn calls(device: &Device) -> Vec<Call> {
    device.emulation().unwrap().calls()
}

/// The calls of the scenario on each device if nothing fails.
fn counted(mode: Mode) -> [Vec<Call>; 2] {
    let devices = devices(mode, &[]);
    let outcome = scenario::run(&devices, &[], false);
    assert_eq!(outcome, Outcome::default(), "without faults, no call is refused");
    devices.map(|device| calls(&device))
}

fn sweep(mode: Mode, late: bool, ways: &[bool]) {
    for (device, calls) in counted(mode).iter().enumerate() {
        for call in calls.iter().filter(|call| !late || RUNS_LATE.contains(&call.kind)) {
            // A check after a refusal downloads everything. Without such checks, the run continues
            // in the same way as without the fault.
            for looks in ways.iter().copied() {
                let outcome = run(mode, &[Failing { device, call: call.number, late }], looks);
                assert!(
                    outcome.refused + outcome.told <= 1,
                    "{call} of device {device}: one fault, {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn each_refused_call_leaves_contents_unchanged_and_can_be_repeated_on_seeded_devices() {
    SEEDED.iter().zip([true, false]).for_each(|(mode, looks)| sweep(*mode, false, &[looks]));
}

#[test]
fn each_refused_call_leaves_contents_unchanged_and_can_be_repeated_with_workers() {
    WORKERS.iter().for_each(|mode| sweep(*mode, false, &[false, true]));
}

#[test]
fn work_that_fails_late_loses_only_what_it_was_to_write_on_seeded_devices() {
    SEEDED.iter().for_each(|mode| sweep(*mode, true, &[true]));
}

#[test]
fn work_that_fails_late_loses_only_what_it_was_to_write_with_workers() {
    WORKERS.iter().for_each(|mode| sweep(*mode, true, &[false]));
}

#[test]
fn pairs_of_faults_leave_every_array_right_or_lost() {
    for mode in SEEDED.iter().chain(&WORKERS) {
        let longest = counted(*mode).map(|calls| calls.len() + 10);
        let mut random = Random::new(longest[0] as u64);
        for _ in 0..100 {
            let faults = [(); 2].map(|()| {
                let device = random.below(2);
                Failing {
                    device,
                    call: 1 + random.below(longest[device]) as u64,
                    late: random.below(2) == 0,
                }
            });
            let outcome = run(*mode, &faults, random.below(2) == 0);
            assert!(outcome.refused + outcome.told <= 2, "{faults:?}: two faults, {outcome:?}");
        }
    }
}

/// The lower half of both arrays is newest on the device, the upper half on the host.
#[test]
fn an_assignment_of_several_parts_is_done_whole_or_not_at_all() {
    let halves = |device: &Device, start: u32| {
        let mut array = SmartArray::from((start..start + 8).collect::<Vec<u32>>());
        let double = Kernel::<(InOut<u32>,)>::new("double")
            .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2));
        double
            .launch_on(&device.stream(), Grid::cover(4), (&mut array.slice_mut(s![..4]),))
            .map(|()| array)
    };
    let mut refused = 0;
    for call in 1..40 {
        let device =
            Device::emulated(Emulation::new().seed(3).poison(false).fail(Fault::nth(call)));
        let (Ok(source), Ok(mut target)) = (halves(&device, 50), halves(&device, 100)) else {
            continue;
        };
        let outcome = target.assign_on(&device.stream(), &source);
        refused += usize::from(outcome.is_err());
        let expected = if outcome.is_ok() {
            source
        } else {
            halves(&Device::emulated(Emulation::new()), 100).expect("no faults there")
        };
        let contents = |array: &SmartArray<u32, _>| {
            array.host().or_else(|_| array.host()).expect("there is one fault").to_vec()
        };
        assert_eq!(contents(&target), contents(&expected), "call {call}");
    }
    assert!(refused >= 2, "the assignment's own calls were refused: {refused}");
}
