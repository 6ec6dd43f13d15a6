//! The kernels of the suite as host functions of the stand-in driver, and the driver as a backend
//! under test.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use resident::{CudaSource, Device};
use resident_stand_in::{
    self as driver, Access, Call, Launch, Length, Parameter, Settings, register,
};

use super::gates;
use super::lab::Rig;

const SCALAR: Parameter = Parameter::Scalar { len_bytes: 4 };
const LENGTH: Parameter = Parameter::Scalar { len_bytes: 8 };

fn counted(access: Access, by: u32) -> Parameter {
    Parameter::Pointer { access, length: Length::Counted { by, element_bytes: 4 } }
}

fn matrix(access: Access) -> Parameter {
    Parameter::View { dimensions: 2, element_bytes: 4, access }
}

/// The parameters of a kernel of the suite.
fn parameters(kernel: &str) -> Vec<Parameter> {
    use Access::{Read, ReadWrite, Write};
    match kernel {
        "add" => vec![SCALAR, counted(ReadWrite, 2), LENGTH],
        "plus" => vec![SCALAR, counted(Read, 3), counted(Write, 3), LENGTH],
        "accumulate" => vec![counted(Read, 2), counted(ReadWrite, 2), LENGTH],
        "gated" => vec![LENGTH, counted(ReadWrite, 2), LENGTH],
        "gated_copy" => vec![LENGTH, counted(Read, 3), counted(Write, 3), LENGTH],
        "add_sized" => vec![SCALAR, matrix(ReadWrite)],
        "copy_sized" => vec![matrix(Read), matrix(Write)],
        "broken" => vec![counted(ReadWrite, 1), LENGTH],
        other => panic!("the suite has no kernel {other}"),
    }
}

/// A kernel as PTX: its parameters, without code.
pub(crate) fn ptx(kernel: &str) -> String {
    let slot = |(index, parameter): (usize, &Parameter)| match parameter {
        Parameter::Scalar { len_bytes: 4 } => format!(".param .u32 p{index}"),
        Parameter::Scalar { .. } | Parameter::Pointer { .. } => format!(".param .u64 p{index}"),
        Parameter::View { dimensions, .. } => {
            format!(".param .align 8 .b8 p{index}[{}]", 8 + 16 * dimensions)
        }
    };
    let slots: Vec<String> = parameters(kernel).iter().enumerate().map(slot).collect();
    format!(
        ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry {kernel}(\n{}\n)\n{{\n\
         ret;\n}}\n",
        slots.join(",\n")
    )
}

/// A parameter that a kernel reads.
fn read<'a>(launch: &'a Launch<'_>, index: usize) -> &'a [u32] {
    // SAFETY: every bit pattern is a valid `u32`. The registration says that the kernel reads the
    // memory, and the driver's hazard check finds other work that writes it.
    unsafe { launch.slice(index) }
}

/// A parameter that a kernel writes.
#[expect(
    clippy::mut_from_ref,
    reason = "it is the memory of the launch, which each function takes once"
)]
fn written<'a>(launch: &'a Launch<'_>, index: usize) -> &'a mut [u32] {
    // SAFETY: as for `read`; each function takes each parameter once, and the parameters do not
    // overlap.
    unsafe { launch.slice_mut(index) }
}

/// Registers all host functions, once in a process.
pub(crate) fn register_kernels() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        register("add", &parameters("add"), |launch| {
            let k: u32 = launch.scalar(0);
            written(launch, 1).iter_mut().for_each(|x| *x = x.wrapping_add(k));
            Ok(())
        });
        register("plus", &parameters("plus"), |launch| {
            let k: u32 = launch.scalar(0);
            let (x, y) = (read(launch, 1), written(launch, 2));
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x.wrapping_add(k));
            Ok(())
        });
        register("accumulate", &parameters("accumulate"), |launch| {
            let (x, y) = (read(launch, 0), written(launch, 1));
            y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x));
            Ok(())
        });
        register_gated();
        register_sized();
        register("broken", &parameters("broken"), |_launch| Err(driver::Fault::IllegalAddress));
    });
}

fn register_gated() {
    register("gated", &parameters("gated"), |launch| {
        gates::pass(launch.scalar(0));
        written(launch, 1).iter_mut().for_each(|x| *x = x.wrapping_add(1));
        Ok(())
    });
    register("gated_copy", &parameters("gated_copy"), |launch| {
        gates::pass(launch.scalar(0));
        written(launch, 2).copy_from_slice(read(launch, 1));
        Ok(())
    });
}

fn register_sized() {
    register("add_sized", &parameters("add_sized"), |launch| {
        let (k, x) = (launch.scalar::<u32>(0), launch.view(1));
        (0..x.len()).for_each(|index| x.set(index, x.get::<u32>(index).wrapping_add(k)));
        Ok(())
    });
    register("copy_sized", &parameters("copy_sized"), |launch| {
        let (x, y) = (launch.view(0), launch.view(1));
        (0..y.len()).for_each(|index| y.set(index, x.get::<u32>(index)));
        Ok(())
    });
}

/// The CUDA backend on the stand-in driver.
pub(crate) struct StandIn;

/// Loads the driver, opens its devices, and clears the record of calls.
pub(crate) fn open(settings: Settings, count: usize) -> Vec<Device> {
    driver::load(settings).unwrap_or_else(|fault| panic!("{fault}"));
    register_kernels();
    let devices: Vec<Device> = (0..count)
        .map(|ordinal| Device::cuda(ordinal).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    // Completes work that a failed test has left, so that it does not affect the next test.
    devices.iter().for_each(|device| {
        device.synchronize().and_then(|()| device.trim()).unwrap_or_else(|error| panic!("{error}"));
    });
    driver::take_calls();
    driver::take_hazards();
    driver::take_notes();
    devices
}

/// Driver calls that create an object, with the call that destroys it.
const PAIRS: [(&[&str], &str); 4] = [
    (&["cuMemAllocFromPoolAsync"], "cuMemFreeAsync"),
    (&["cuMemAlloc_v2", "cuMemAllocManaged"], "cuMemFree_v2"),
    (&["cuMemHostAlloc"], "cuMemFreeHost"),
    (&["cuMemHostRegister_v2"], "cuMemHostUnregister"),
];

/// The number of streams created and not destroyed, in all tests of this process.
static KEPT_STREAMS: AtomicUsize = AtomicUsize::new(0);

/// The streams that wake tasks, which a device keeps, in all tests of this process.
static WAKING_STREAMS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Asserts that all streams were destroyed, except one stream for frees per device, and a few that
/// wake tasks.
fn assert_streams_end(made: usize, ended: usize, calls: &[Call]) {
    let mut waking = WAKING_STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = waking.len();
    waking.extend(calls.iter().filter(|call| call.name == "cuLaunchHostFunc").map(|it| it.stream));
    let devices = Device::all().len();
    assert!(waking.len() <= 16 * devices, "{} streams wake tasks", waking.len());
    // If a test has taken the record of calls, the creations may be missing.
    let more = made.saturating_sub(ended + waking.len() - known);
    let kept = KEPT_STREAMS.fetch_add(more, Ordering::Relaxed) + more;
    assert!(
        kept < devices,
        "{made} streams were created and {ended} destroyed; {kept} are left in all"
    );
}

impl Rig for StandIn {
    fn devices(&self, count: usize) -> Vec<Device> {
        open(crate::stand_in::settings(), count)
    }

    fn code(&self, kernel: &str) -> CudaSource {
        CudaSource::ptx(ptx(kernel))
    }

    fn has_gates(&self) -> bool {
        true
    }

    fn assert_clean(&self, devices: &[Device]) {
        assert_eq!(driver::take_hazards(), Vec::<String>::new(), "hazards");
        assert_eq!(driver::take_notes(), Vec::<String>::new(), "notes");
        devices
            .iter()
            .for_each(|device| device.trim().unwrap_or_else(|error| panic!("{device}: {error}")));
        for device in devices {
            assert_eq!(
                driver::memory_in_use(device.ordinal() as u32),
                0,
                "bytes in use on {device}"
            );
        }
        let calls = driver::take_calls();
        let count =
            |name: &str| calls.iter().filter(|call| call.name == name && call.code == 0).count();
        for (made, ended) in PAIRS {
            let made_count: usize = made.iter().map(|name| count(name)).sum();
            assert_eq!(made_count, count(ended), "calls of {made:?} and of {ended}");
        }
        assert_streams_end(count("cuStreamCreate"), count("cuStreamDestroy_v2"), &calls);
    }
}
