//! The devices under test, and the checks at the end of a test.

use resident::audit::{Document, DocumentRecord};
use resident::{Arguments, CudaSource, Flow, Signature};
use support::prelude::*;

use super::cuda;
use super::kernels::Kernels;

/// A backend under test.
pub(crate) trait Rig: Sync {
    /// Returns this many devices, or all if the machine has fewer.
    fn devices(&self, count: usize) -> Vec<Device>;
    /// The device code of the suite's kernels.
    fn code(&self) -> CudaSource {
        CudaSource::c(cuda::SOURCE)
    }

    /// See [`Lab::has_gates`].
    fn has_gates(&self) -> bool {
        true
    }

    /// Called after a test has dropped everything and all work has run: asserts that there was no
    /// hazard (unordered accesses) and that no memory is still allocated.
    fn assert_clean(&self, devices: &[Device]);
}

/// The environment of a test.
pub(crate) struct Lab {
    devices: Vec<Device>,
    code: CudaSource,
    has_gates: bool,
    kernels: Kernels,
}

/// One test of the suite.
pub(crate) type Test = fn(&Lab) -> Result<()>;

/// Runs a test, and checks that no memory stays allocated.
pub(crate) fn run(rig: &dyn Rig, test: Test) {
    let (devices, code) = (rig.devices(2), rig.code());
    let kernels = Kernels::new(&code);
    let lab = Lab { devices, code, has_gates: rig.has_gates(), kernels };
    test(&lab).unwrap_or_else(|error| panic!("{error}"));
    for device in &lab.devices {
        device.synchronize().unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    for device in &lab.devices {
        let what = format!("bytes that no array holds any more on {device}");
        eventually(0, &what, || device.memory().in_use);
    }
    rig.assert_clean(&lab.devices);
}

impl Lab {
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

    /// Two new streams of the device under test.
    pub(crate) fn two_streams(&self) -> Result<[Stream; 2]> {
        Ok([self.new_stream()?, self.new_stream()?])
    }

    /// Two devices of the kind under test, if there are two.
    pub(crate) fn pair(&self) -> Option<[Device; 2]> {
        let pair = <[Device; 2]>::try_from(self.devices.clone()).ok();
        if pair.is_none() {
            println!("not done: this machine has one device of the kind");
        }
        pair
    }

    pub(crate) fn code(&self) -> &CudaSource {
        &self.code
    }

    /// Whether a kernel waits at a gate until the gate is opened, rather than for a fixed time.
    pub(crate) fn has_gates(&self) -> bool {
        self.has_gates
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Asserts that both bodies do the same. On the embedded device that takes a C++ compiler:
    /// `cuda_on_host` compares there.
    pub(crate) fn assert_same<S: Signature>(
        &self,
        kernel: &Kernel<S>,
        grid: Grid,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        if self.device().emulation().is_none() {
            assert_eq!(kernel.compare(&self.device(), grid, arguments, 0.0)?, None);
        }
        Ok(())
    }
}

/// Does `work`, and asserts that the audit has the copies that the devices counted meanwhile: in
/// its totals, its sites and its records. No other test may use the devices, and `work` no others.
/// What launches avoid is of the whole life of a device, and 0 while more was moved, so differences
/// of it say nothing of `work`.
pub(crate) fn with_checked_totals<T>(devices: &[Device], work: impl FnOnce() -> T) -> T {
    let total = || devices.iter().map(Device::traffic).sum::<Traffic>();
    let before = total();
    let (value, report) = audit::capture(work);
    let mut expected = total() - before;
    // Both devices count a copy between them.
    expected.between_devices.count /= 2;
    expected.between_devices.bytes /= 2;
    expected.avoided = report.traffic().avoided;
    assert_eq!(report.traffic(), expected, "{report}");
    let document = report.to_document();
    let sites = document.sites.iter();
    let of_sites = by_direction(sites.map(|site| (&*site.direction, site.count, site.bytes)));
    assert_eq!(of_sites, directions(expected), "{report}");
    assert_eq!(document.records_forgotten, 0);
    assert_eq!(by_direction(copies(&document)), directions(expected), "{report}");
    value
}

/// The direction and the bytes of each copy in the records.
fn copies(document: &Document) -> impl Iterator<Item = (&str, u64, u64)> {
    document.records.iter().filter_map(|record| match record {
        DocumentRecord::Copy { direction, bytes, .. } => Some((&**direction, 1, *bytes)),
        _ => None,
    })
}

fn directions(traffic: Traffic) -> [Flow; 3] {
    [traffic.to_device, traffic.to_host, traffic.between_devices]
}

fn by_direction<'d>(flows: impl Iterator<Item = (&'d str, u64, u64)>) -> [Flow; 3] {
    let mut sums = [Flow::default(); 3];
    for (direction, count, bytes) in flows {
        let directions = ["to_device", "to_host", "between_devices"];
        let index = directions.iter().position(|known| *known == direction);
        sums[index.expect("a known direction")] += Flow { count, bytes };
    }
    sums
}
