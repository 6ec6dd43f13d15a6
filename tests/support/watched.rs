//! Checks of emulated devices at the end of a scenario.

use resident::Device;

/// Asserts that no work on these devices was unordered or out of range, and that none used freed or
/// unwritten memory.
pub fn assert_no_hazard(devices: &[Device]) {
    for device in devices {
        let hazards = device.emulation().expect("an emulated device").hazards();
        assert!(
            hazards.is_empty(),
            "{}",
            hazards.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        );
    }
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
