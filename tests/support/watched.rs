//! Checks of emulated devices at the end of a scenario.

use resident::Device;

/// No work on any of these devices was unordered, out of range, or of memory that was freed or
/// never written.
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

/// With all arrays dropped: nothing fails, there is no hazard, and no byte is left allocated.
pub fn assert_nothing_left(devices: &[Device]) {
    devices.iter().for_each(|device| device.synchronize().expect("nothing fails"));
    assert_no_hazard(devices);
    for device in devices {
        assert_eq!(device.memory().in_use, 0, "bytes left on {device}");
    }
}
