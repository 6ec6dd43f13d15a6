//! The sweeps on the HIP backend, over the stand-in for HIP.

use std::process::Command;

use support::hip::{driver as kernels, face};

// Included for each of the two stand-ins: its tests have names of their own, by which processes
// run them again.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "driver/mod.rs"]
mod driver;

/// The sweeps of failing calls and of orders again, as HIP 5.2: other calls allocate and free, and
/// another thread tells tasks of work. A process has one runtime, so these run in others.
#[test]
fn as_hip_5_without_pools() {
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program)
        .arg("hip::driver::")
        .env(face::OLDER, "1")
        .env_remove("NEXTEST_EXECUTION_MODE")
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (written, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{written}\n{errors}");
    let count = if cfg!(feature = "dlpack") { 15 } else { 14 };
    assert!(written.contains(&format!("test result: ok. {count} passed")), "{written}");
}
