//! Kernels that do not end, with a time limit. The tests run in processes of their own, since the
//! limit is a variable of the process.

use resident::{Emulation, Grid, InOut, Result, SmartArray};
use support::own_process;

use crate::one_of;

/// A busy machine may stop a process for seconds, but these launches never end.
const LIMIT: (&str, &str) = ("RESIDENT_LAUNCH_TIMEOUT", "0.2");

/// Of which the first ends if it is not endless.
const SOURCE: &str = r#"
    extern "C" __global__ void count(int *x, int is_endless) {
        __syncthreads();
        volatile int steps = 0;
        while (is_endless || steps < 1000) ++steps;
        x[threadIdx.x] = steps;
    }
    extern "C" __global__ void wait(int *x) { while (atomicAdd(x + blockIdx.x, 0) == 0); }
    // Counting adds no shared memory to the most.
    extern "C" __global__ void full(int *x) {
        __shared__ int all[12288];
        all[threadIdx.x] = 1;
        x[0] = all[0];
    }
"#;

/// Launches a kernel that never ends if `is_endless`, on a device that checks kernels and on one
/// that does not.
fn launch(is_endless: bool) -> Result<()> {
    let count = one_of::<(InOut<i32>, i32)>(SOURCE, "count");
    for is_checked in [false, true] {
        let device = resident::Device::emulated(Emulation::new().sanitize(is_checked));
        let mut x = SmartArray::<i32, _>::zeros(4);
        count.launch_on(&device.stream(), Grid::new(1, 4), (&mut x, i32::from(is_endless)))?;
        device.synchronize()?;
        assert_eq!(x.to_vec()?, [1000; 4]);
    }
    Ok(())
}

#[test]
fn far_below_the_limit() {
    own_process!([("RESIDENT_LAUNCH_TIMEOUT", "600")]);
    launch(false).expect("it ends");
    let _is_ready = one_of::<(InOut<i32>,)>(SOURCE, "full");
}

#[test]
fn launches_end_at_the_limit_and_name_the_kernel() {
    own_process!([LIMIT]);
    let text = launch(true).expect_err("it does not end").to_string();
    let words = ["kernel \"kernel\"", "it ran longer than 200ms", "a loop in an included header"];
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
    // Threads, and blocks, that wait for what no other one writes.
    let wait = one_of::<(InOut<i32>,)>(SOURCE, "wait");
    for is_checked in [false, true] {
        let device = resident::Device::emulated(Emulation::new().sanitize(is_checked));
        let mut x = SmartArray::<i32, _>::zeros(3);
        wait.launch_on(&device.stream(), Grid::new(3, 4), (&mut x,)).expect("it is queued");
        let error = device.synchronize().expect_err("it does not end");
        assert!(error.to_string().contains("it ran longer than 200ms"), "{error}");
    }
}

#[test]
fn a_wrong_limit_is_refused() {
    own_process!([("RESIDENT_LAUNCH_TIMEOUT", "soon")]);
    // SAFETY: the kernel does nothing.
    let nothing = unsafe {
        resident::Kernel::<(InOut<i32>,)>::new("nothing")
            .cuda("extern \"C\" __global__ void nothing(int *x) {}")
    };
    let error = nothing.prepare(&resident::Device::cpu()).expect_err("the limit is no number");
    let text = error.to_string();
    assert!(text.contains("RESIDENT_LAUNCH_TIMEOUT=soon: expected a number of seconds"), "{text}");
}
