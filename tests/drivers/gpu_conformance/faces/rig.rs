//! A stand-in for a driver as a backend under test: the kernels in CUDA C, and as host functions
//! those that wait at a gate. Each of the two stand-ins, `super::face`, has its own copy.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use resident::Device;
use support::eventually;
use support::own_process::{HANG_LIMIT, has_run};

use super::face::{
    self as driver, Access, Call, HOST_FUNCTION, Launch, Length, PAIRS, Parameter, STREAMS,
    Settings, declare, register,
};
use crate::suite::gates;
use crate::suite::lab::{self, Rig, Test};

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
        other => panic!("the suite has no kernel {other}"),
    }
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

/// Says what memory the kernels access, and registers those that wait at a gate, once in a process.
pub(crate) fn declare_kernels() {
    static DECLARED: Once = Once::new();
    DECLARED.call_once(|| {
        for kernel in ["add", "plus", "accumulate", "add_sized", "copy_sized"] {
            declare(kernel, &parameters(kernel));
        }
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
    });
}

/// The GPU backend on the stand-in.
struct StandIn;

/// Runs a test on the stand-in, in a process of its own. Its kernels need a C++ compiler.
pub(crate) fn run(name: &str, test: Test) {
    /// The tests of a process share one driver, so they run one at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    if has_run(name) {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    lab::run(&StandIn, test);
}

/// Loads the driver, opens its devices, and clears the record of calls.
pub(crate) fn open(settings: Settings, count: usize) -> Vec<Device> {
    driver::load(settings).unwrap_or_else(|fault| panic!("{fault}"));
    driver::load_compiler();
    declare_kernels();
    let devices: Vec<Device> = (0..count)
        .map(|ordinal| driver::device(ordinal).unwrap_or_else(|error| panic!("{error}")))
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

/// The number of streams created and not destroyed, in all tests of this process.
static KEPT_STREAMS: AtomicUsize = AtomicUsize::new(0);

/// The streams that wake tasks, which a device keeps, in all tests of this process.
static WAKING_STREAMS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The streams that tests of the suite leak: `a_stream_is_awaited` forgets a future.
const FORGOTTEN: usize = 1;

/// Asserts that all streams were destroyed, except one stream for frees per device, a few that wake
/// tasks, and those that tests forget.
fn assert_streams_end(made: usize, ended: usize, calls: &[Call]) {
    let mut waking = WAKING_STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = waking.len();
    waking.extend(calls.iter().filter(|call| call.name == HOST_FUNCTION).map(|it| it.stream));
    let devices = driver::device_count();
    assert!(waking.len() <= 16 * devices, "{} streams wake tasks", waking.len());
    // If a test has taken the record of calls, the creations may be missing.
    let mut more = made.saturating_sub(ended + waking.len() - known);
    // The thread that wakes tasks may have the last handle of a stream until its next round. Those
    // that are kept are not waited for, or not for long.
    let kept_max = (devices + FORGOTTEN).saturating_sub(KEPT_STREAMS.load(Ordering::Relaxed));
    let start = Instant::now();
    let is_late = |more| more > 0 && start.elapsed() < Duration::from_millis(200);
    while is_late(more) || more > kept_max && start.elapsed() < HANG_LIMIT {
        std::thread::sleep(Duration::from_millis(10));
        let late = driver::take_calls().iter().filter(|call| call.name == STREAMS.1).count();
        more = more.saturating_sub(late);
    }
    let kept = KEPT_STREAMS.fetch_add(more, Ordering::Relaxed) + more;
    assert!(
        kept <= devices + FORGOTTEN,
        "{made} streams were created and {ended} destroyed; {kept} are left in all"
    );
}

impl Rig for StandIn {
    fn devices(&self, count: usize) -> Vec<Device> {
        open(driver::settings(), count)
    }

    fn assert_clean(&self, devices: &[Device]) {
        assert_eq!(driver::take_hazards(), Vec::<String>::new(), "hazards");
        assert_eq!(driver::take_notes(), Vec::<String>::new(), "notes");
        for device in devices {
            eventually(0, &format!("bytes in use on {device}"), || {
                device.trim().unwrap_or_else(|error| panic!("{device}: {error}"));
                driver::memory_in_use(device.ordinal() as u32)
            });
        }
        let calls = driver::take_calls();
        let count =
            |name: &str| calls.iter().filter(|call| call.name == name && call.code == 0).count();
        for (made, ended) in PAIRS {
            let made_count: usize = made.iter().map(|name| count(name)).sum();
            assert_eq!(made_count, count(ended), "calls of {made:?} and of {ended}");
        }
        let (create, destroy) = STREAMS;
        assert_streams_end(count(create), count(destroy), &calls);
    }
}
