//! Chooses the driver: the stand-in with seventeen devices, or this machine's own.

use std::ffi::OsString;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use resident::cudarc::driver::{CudaContext, CudaFunction, CudaStream, sys};
use resident::cudarc::nvrtc;
use support::own_process;

use crate::{kernels, shared};

/// Makes these tests run on the machine's own driver and compiler.
const REAL: &str = "RESIDENT_REAL_DRIVER";

/// A test that takes longer on a real driver counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);

/// What a test needs of a machine with a real driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    Gpu,
    Nvrtc,
    /// Other tests allocate nothing meanwhile.
    FreeMemory,
    /// A driver that shows no GPU.
    NoGpu,
}

/// The first line of each test of a driver. On a real driver it runs the test in another process.
/// Its value is what the test begins with.
macro_rules! on_either_driver {
    ($($need:ident),+) => {
        on_either_driver!($($need),+; ())
    };
    ($($need:ident),+; $beginning:expr) => {{
        let needs = [$(crate::driver::choice::Need::$need),+];
        if crate::driver::choice::has_run(support::test_name!(), &needs) {
            return;
        }
        $beginning
    }};
}

pub(crate) fn is_real() -> bool {
    std::env::var_os(REAL).is_some_and(|value| value != "0")
}

/// Whether nothing is left to do for the caller: the test ran in another process, or this machine
/// lacks what it needs.
#[track_caller]
pub(crate) fn has_run(test: &str, needs: &[Need]) -> bool {
    if !is_real() {
        return false;
    }
    if std::env::var_os(own_process::VARIABLE).is_none() {
        run_elsewhere(test, needs);
        return true;
    }
    match needs.iter().find_map(missing) {
        Some(reason) if std::env::var_os("RESIDENT_REQUIRE_GPU").is_some() => {
            panic!("RESIDENT_REQUIRE_GPU is set, and {reason}")
        }
        Some(reason) => {
            not_done(&reason);
            true
        }
        None => false,
    }
}

/// Says why a test, or a part of it, was not run.
pub(crate) fn not_done(reason: &str) {
    println!("not done: {reason}");
}

#[track_caller]
fn run_elsewhere(test: &str, needs: &[Need]) {
    static MEMORY: RwLock<()> = RwLock::new(());
    let is_alone = needs.contains(&Need::FreeMemory);
    let _alone = is_alone.then(|| MEMORY.write().unwrap_or_else(PoisonError::into_inner));
    let _beside = (!is_alone).then(|| MEMORY.read().unwrap_or_else(PoisonError::into_inner));
    // Otherwise the first launch of a kernel may wait for work behind a closed gate.
    let mut variables = vec![("CUDA_MODULE_LOADING", "EAGER")];
    if needs.contains(&Need::NoGpu) {
        variables.push(("CUDA_VISIBLE_DEVICES", ""));
    }
    let output = own_process::run_within(LIMIT, test, &variables);
    own_process::assert_success(&output, test);
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.find("not done: ").map(|start| &line[start..]))
        .for_each(|line| println!("{test}: {line}"));
}

/// Why this machine does not have what a test needs.
fn missing(need: &Need) -> Option<String> {
    match need {
        // SAFETY: it opens libraries by name: the machine's own driver.
        Need::Gpu | Need::NoGpu if !unsafe { sys::is_culib_present() } => {
            Some("no CUDA driver library was found".to_owned())
        }
        Need::Gpu => match CudaContext::device_count() {
            Ok(0) => Some("the driver shows no GPU".to_owned()),
            Ok(_) => None,
            Err(error) => Some(format!("the driver shows no GPU: {error}")),
        },
        Need::Nvrtc => missing_nvrtc(),
        Need::FreeMemory | Need::NoGpu => None,
    }
}

fn missing_nvrtc() -> Option<String> {
    // cudarc finds a library that is loaded by its SONAME.
    if let Some(path) = std::env::var_os("RESIDENT_NVRTC") {
        stay_loaded(path).unwrap_or_else(|reason| panic!("RESIDENT_NVRTC is set, and {reason}"));
    }
    // SAFETY: it opens libraries by name: the machine's own NVRTC.
    let is_present = unsafe { nvrtc::sys::is_culib_present() };
    (!is_present).then(|| "no NVRTC was found".to_owned())
}

fn stay_loaded(path: OsString) -> Result<(), libloading::Error> {
    // SAFETY: NVRTC, whose initialisers have no preconditions.
    unsafe { libloading::Library::new(path) }.map(std::mem::forget)
}

/// The context of a device. Tests that lose or release theirs each have their own on the stand-in;
/// a real driver has device 0 for each, in a process of its own.
pub(crate) fn context(ordinal: usize) -> Arc<CudaContext> {
    if is_real() { CudaContext::new(0).expect("a device") } else { shared::context(ordinal) }
}

/// A context, and a new stream of it.
pub(crate) fn with_stream(ordinal: usize) -> (Arc<CudaContext>, Arc<CudaStream>) {
    let context = context(ordinal);
    let stream = context.new_stream().expect("a stream");
    (context, stream)
}

/// Two devices; on a machine with fewer, says so.
pub(crate) fn two_contexts() -> Option<[Arc<CudaContext>; 2]> {
    if !is_real() {
        return Some([0, 5].map(shared::context));
    }
    if CudaContext::device_count().is_ok_and(|count| count >= 2) {
        return Some([0, 1].map(|ordinal| CudaContext::new(ordinal).expect("a device")));
    }
    not_done("this machine has fewer than two GPUs");
    None
}

/// One of the kernels.
pub(crate) fn function(context: &Arc<CudaContext>, name: &str) -> CudaFunction {
    if is_real() { kernels::loaded(context, name) } else { kernels::registered(context, name) }
}

/// Finds the compiler: the stand-in, unless `has_run` found the machine's own.
pub(crate) fn load_nvrtc() {
    if !is_real() {
        resident_stand_in_nvrtc::load().expect("the stand-in loads");
    }
}
