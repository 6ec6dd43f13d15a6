//! How this thread waits for MPI.

use std::time::{Duration, Instant};

use crate::error::Result;

/// Calls `is_done` until it returns `true`; `false` if it does not before the deadline. First
/// without a pause, then giving the processor to others, which may be the processes that are waited
/// for, and at last with short sleeps.
pub(crate) fn wait_until(
    deadline: Instant,
    mut is_done: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    const SPIN: Duration = Duration::from_micros(20);
    const YIELD: Duration = Duration::from_millis(1);
    const SLEEP: Duration = Duration::from_micros(50);
    let begin = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= deadline {
            return Ok(false);
        }
        match now - begin {
            waited if waited < SPIN => std::hint::spin_loop(),
            waited if waited < YIELD => std::thread::yield_now(),
            _ => std::thread::sleep(SLEEP),
        }
    }
}
