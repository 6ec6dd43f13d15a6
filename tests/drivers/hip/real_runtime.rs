//! AMD's own runtime, where it is installed, on a machine without an AMD GPU.

use std::path::Path;

use resident::{Device, Error, Grid, InOut, Kernel, SmartArray};
use resident_stand_in_hip::{self as driver, Settings};
use support::{assert_says, own_process};

use super::refused;

/// Where packages install it.
const FILES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5",
    "/opt/rocm/lib/libamdhip64.so",
    "/usr/lib/x86_64-linux-gnu/libamdhip64.so.6",
];

#[test]
fn it_says_that_there_is_no_device() {
    let Some(file) = FILES.into_iter().find(|file| Path::new(file).exists()) else {
        println!("not done: AMD's runtime is not installed ({})", FILES.join(", "));
        return;
    };
    if Path::new("/dev/kfd").exists() {
        println!("not done: this machine may have an AMD GPU");
        return;
    }
    own_process!([("RESIDENT_HIP", file)]);
    let text = refused(Device::hip(0));
    assert_says(&text, &["shows no GPU", "hipError", "rocminfo"]);
    assert_eq!(Device::all(), [Device::cpu()]);
}

/// The real compiler refuses a kernel that takes a warp for 32 lanes, where a wavefront has 64, and
/// the stand-in for the runtime takes what it makes for 32.
#[test]
fn a_kernel_for_32_lanes_is_refused_on_64() {
    // Since HIP 6 the compiler is in another file.
    let is_compiler = |file: &&str| file.ends_with(".so.5") && Path::new(file).exists();
    let Some(file) = FILES.into_iter().find(is_compiler) else {
        println!("not done: AMD's compiler is not installed ({})", FILES.join(", "));
        return;
    };
    own_process!([("RESIDENT_HIPRTC", file), ("RESIDENT_CACHE", "off")]);
    driver::load(Settings::new().devices(1)).expect("it loads");
    let gpu = Device::hip(0).expect("it opens");
    let text = r#"
        extern "C" __global__ void sum(float *x) {
            for (int by = 16; by > 0; by /= 2)
                x[threadIdx.x] += __shfl_down_sync(0xffffffff, x[threadIdx.x], by);
        }
    "#;
    // SAFETY: it is never launched with an effect: it does not compile.
    let kernel = unsafe { Kernel::<(InOut<f32>,)>::new("sum").cuda(text) };
    let mut x = SmartArray::<f32, _>::ones(64);
    let outcome = kernel.launch_on(&gpu.stream(), Grid::new(1, 64), (&mut x,));
    let Err(Error::Compile { log, .. }) = &outcome else { panic!("{outcome:?}") };
    assert_says(log, &["gfx90a", "have 64 lanes", "resident::all_lanes()", "sum.cu:4"]);
    assert_eq!(x.host().expect("it is unchanged").sum(), 64.0);
}
