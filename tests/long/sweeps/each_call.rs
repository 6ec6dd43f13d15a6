//! Runs a program once for each of its backend calls, which fails: when it is made, or when its
//! work runs.

use support::prelude::*;

use crate::seeds::RUNS_LATE;
use crate::steps::with_device_code;

/// `x += k`.
pub(crate) fn add() -> Kernel<(u32, InOut<u32, Ix2>)> {
    let kernel = Kernel::new("add").host(|_, (k, mut x)| x += k);
    // SAFETY: the stand-in's host function accesses only the view's elements.
    unsafe { with_device_code(kernel) }
}

/// `0, 1, 2, ..`.
pub(crate) fn counting(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(row, column)| (row * columns + column) as u32)
}

/// Repeats a call until it succeeds. With one fault, the second or third attempt succeeds.
pub(crate) fn again<T>(told: &mut usize, mut call: impl FnMut() -> Result<T>) -> T {
    for _ in 0..4 {
        match call() {
            Ok(value) => return value,
            Err(
                Error::Backend { .. }
                | Error::OutOfMemory { .. }
                | Error::Lost { .. }
                | Error::Compile { .. },
            ) => *told += 1,
            Err(other) => panic!("an unexpected kind of error: {other:?}"),
        }
    }
    panic!("a call fails for ever")
}

pub(crate) fn fault(call: u64, is_late: bool) -> Fault {
    if is_late { Fault::nth(call).late() } else { Fault::nth(call) }
}

/// Devices with these settings, of which a call of one fails.
pub(crate) fn emulated<const N: usize>(
    emulation: &Emulation,
    failing: Option<(usize, Fault)>,
) -> [Device; N] {
    std::array::from_fn(|device| {
        let own = failing.iter().filter(|(number, _)| *number == device);
        Device::emulated(own.fold(emulation.clone(), |it, (_, fault)| it.fail(*fault)))
    })
}

#[track_caller]
pub(crate) fn assert_no_hazards(devices: &[Device], what: &str) {
    for device in devices {
        assert_eq!(device.emulation().expect("emulated").hazards(), [], "{what}");
    }
}

/// What a sweep met.
pub(crate) struct Swept {
    /// The kinds of all calls.
    pub(crate) kinds: Vec<CallKind>,
    pub(crate) runs: usize,
    /// The calls that returned an error, in all runs.
    pub(crate) told: usize,
}

/// Runs the program once without a fault, and once for each call that may fail. It gets whether
/// work fails when it runs, and returns the number of errors.
pub(crate) fn sweep<const N: usize>(
    is_late: bool,
    run: impl Fn(&[Device; N], bool) -> usize,
) -> Swept {
    let emulation = Emulation::new().seed(3).page_bytes(16);
    let devices = emulated(&emulation, None);
    assert_eq!(run(&devices, is_late), 0, "without faults, no call is refused");
    let calls = devices.map(|device| device.emulation().expect("emulated").calls());
    let kinds = calls.iter().flatten().map(|call| call.kind).collect();
    let mut swept = Swept { kinds, runs: 0, told: 0 };
    for (device, calls) in calls.iter().enumerate() {
        for call in calls.iter().filter(|call| !is_late || RUNS_LATE.contains(&call.kind)) {
            let devices = emulated(&emulation, Some((device, fault(call.number, is_late))));
            swept.told += run(&devices, is_late);
            swept.runs += 1;
            assert_no_hazards(&devices, &call.to_string());
        }
    }
    swept
}
