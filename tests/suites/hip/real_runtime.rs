//! AMD's own runtime, where it is installed, on a machine without an AMD GPU.

use std::path::Path;

use resident::Device;
use support::test_name;

use super::{alone, assert_says, refused};

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
    alone(test_name!(it_says_that_there_is_no_device), &[("RESIDENT_HIP", file)], || {
        let text = refused(Device::hip(0));
        assert_says(&text, &["shows no GPU", "hipError", "rocminfo"]);
        assert_eq!(Device::all(), [Device::cpu()]);
    });
}
