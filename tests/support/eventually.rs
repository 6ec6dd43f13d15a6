//! Waits for what other threads do soon.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::own_process::HANG_LIMIT;

/// Waits until `seen` is what is expected. Threads of the library may hold a last handle for a
/// moment, and on a busy machine that is long.
///
/// # Panics
///
/// With the last value, after [`HANG_LIMIT`].
#[track_caller]
pub fn eventually<T: PartialEq + Debug>(expected: T, what: &str, mut seen: impl FnMut() -> T) {
    let start = Instant::now();
    loop {
        let last = seen();
        if last == expected {
            return;
        }
        assert!(start.elapsed() < HANG_LIMIT, "{what}: {last:?} instead of {expected:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
