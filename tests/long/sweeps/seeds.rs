//! Runs a program on seeded devices under many seeds: each draws another legal order of the work,
//! and lets another call fail. `RESIDENT_SWEEP_SEEDS` sets the number of seeds:
//!
//! ```sh
//! RESIDENT_SWEEP_SEEDS=5000 cargo test -p resident-tests-long --test sweeps seeds_
//! ```

use std::thread;

use crate::each_call::{assert_no_hazards, emulated, fault};
use crate::environment::asked;
use support::prelude::*;

/// The work that can fail when it runs.
pub(crate) const RUNS_LATE: [CallKind; 8] = [
    CallKind::Upload,
    CallKind::Download,
    CallKind::CopyWithin,
    CallKind::CopyBetween,
    CallKind::Fill,
    CallKind::Poison,
    CallKind::Launch,
    CallKind::Chain,
];

/// The calls of this device that may fail.
fn failing(device: &Device, is_late: bool) -> Vec<u64> {
    let calls = device.emulation().expect("emulated").calls();
    let may_fail = calls.iter().filter(|call| !is_late || RUNS_LATE.contains(&call.kind));
    may_fail.map(|call| call.number).collect()
}

/// Prints the seed if its run panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the seed is {}", self.0);
        }
    }
}

/// Runs the program with each seed: once without faults, when no call may return an error, and once
/// with one. The program gets the devices and whether work fails when it runs, and returns the
/// number of errors.
pub(crate) fn sweep<const N: usize>(default: u64, run: impl Fn(&[Device; N], bool) -> usize) {
    for seed in 0..asked("RESIDENT_SWEEP_SEEDS", default) {
        let _named = Named(seed);
        let (is_late, which) = (seed % 2 == 1, (seed / 2) as usize % N);
        let emulation = Emulation::new().seed(seed).page_bytes(seed % 3 * 8);
        let devices = emulated(&emulation, None);
        assert_eq!(run(&devices, is_late), 0, "an error without a fault");
        let calls = failing(&devices[which], is_late);
        // A prime, so that neighbouring seeds take calls that are far apart.
        let fault = fault(calls[(seed * 7_919) as usize % calls.len()], is_late);
        let failing = emulated(&emulation, Some((which, fault)));
        let told = run(&failing, is_late);
        assert!(told <= 2, "{told} errors of one fault");
        [devices, failing].iter().for_each(|devices| assert_no_hazards(devices, "under a seed"));
    }
}
