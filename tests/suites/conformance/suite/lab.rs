//! The devices under test, and the checks at the end of a test.

use resident::{CudaSource, Device, Result, Stream};

/// A backend under test.
pub(crate) trait Rig: Sync {
    /// Returns this many devices, or all if the machine has fewer.
    fn devices(&self, count: usize) -> Vec<Device>;
    /// The device code of a kernel of the suite.
    fn code(&self, kernel: &str) -> CudaSource;
    /// Whether a kernel waits at a gate until the gate is opened, rather than for a fixed time.
    fn has_gates(&self) -> bool;
    /// Called after a test has dropped everything and all work has run: asserts that there was no
    /// hazard (unordered accesses) and that no memory is still allocated.
    fn assert_clean(&self, devices: &[Device]);
}

/// The environment of a test.
pub(crate) struct Lab<'a> {
    rig: &'a dyn Rig,
    devices: Vec<Device>,
}

/// One test of the suite.
pub(crate) type Test = fn(&Lab<'_>) -> Result<()>;

/// Runs a test, and checks that no memory stays allocated.
pub(crate) fn run(rig: &dyn Rig, test: Test) {
    let lab = Lab { rig, devices: rig.devices(2) };
    test(&lab).unwrap_or_else(|error| panic!("{error}"));
    for device in &lab.devices {
        device.synchronize().unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    for device in &lab.devices {
        assert_eq!(device.memory().in_use, 0, "bytes that no array holds any more on {device}");
    }
    rig.assert_clean(&lab.devices);
}

impl Lab<'_> {
    /// The device under test.
    pub(crate) fn device(&self) -> Device {
        self.devices[0].clone()
    }

    /// The default stream of the device under test.
    pub(crate) fn stream(&self) -> Stream {
        self.devices[0].stream()
    }

    /// A new stream of the device under test.
    pub(crate) fn new_stream(&self) -> Result<Stream> {
        self.devices[0].new_stream()
    }

    /// Two devices of the kind under test, if there are two.
    pub(crate) fn pair(&self) -> Option<[Device; 2]> {
        let pair = <[Device; 2]>::try_from(self.devices.clone()).ok();
        if pair.is_none() {
            println!("not done: this machine has one device of the kind");
        }
        pair
    }

    pub(crate) fn code(&self, kernel: &str) -> CudaSource {
        self.rig.code(kernel)
    }

    pub(crate) fn has_gates(&self) -> bool {
        self.rig.has_gates()
    }
}
