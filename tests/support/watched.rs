//! Checks of emulated devices at the end of a scenario.

use std::fmt::Display;

use resident::Device;
use resident::emulation::CallKind;

/// The number of backend calls of that kind.
pub fn count_of(device: &Device, kind: CallKind) -> usize {
    let calls = device.emulation().expect("an emulated device").calls();
    calls.iter().filter(|call| call.kind == kind).count()
}

/// Asserts that no work on these devices was unordered or out of range, and that none used freed or
/// unwritten memory.
#[track_caller]
pub fn assert_no_hazard(devices: &[Device]) {
    devices.iter().for_each(|device| assert_no_hazard_in("all", device));
}

/// As [`assert_no_hazard`], for the device of a case.
#[track_caller]
pub fn assert_no_hazard_in(case: impl Display, device: &Device) {
    let hazards = device.emulation().expect("an emulated device").hazards();
    let text: Vec<String> = hazards.iter().map(ToString::to_string).collect();
    assert!(hazards.is_empty(), "{case}: {}", text.join("\n"));
}

/// Called after all arrays are dropped: asserts that nothing failed, there is no hazard, and no
/// byte is allocated.
pub fn assert_nothing_left(devices: &[Device]) {
    devices.iter().for_each(|device| device.synchronize().expect("nothing fails"));
    assert_no_hazard(devices);
    for device in devices {
        assert_eq!(device.memory().in_use, 0, "bytes left on {device}");
    }
}
