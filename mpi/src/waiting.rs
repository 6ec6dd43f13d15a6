//! How this thread waits for MPI.

use std::time::{Duration, Instant};

use crate::error::Result;

/// Calls `is_done` until it returns `true`, and returns how long that took: zero if it did at once,
/// `None` if it does not before the deadline. First without a pause, then giving the processor to
/// others, which may be the processes that are waited for, and at last with short sleeps, before
/// each of which it calls `before_sleep`.
pub(crate) fn wait_until(
    deadline: Instant,
    mut is_done: impl FnMut() -> Result<bool>,
    mut before_sleep: impl FnMut() -> Result<()>,
) -> Result<Option<Duration>> {
    const SPIN: Duration = Duration::from_micros(20);
    const YIELD: Duration = Duration::from_millis(1);
    const SLEEP: Duration = Duration::from_micros(50);
    if is_done()? {
        return Ok(Some(Duration::ZERO));
    }
    let begin = Instant::now();
    loop {
        let is_done = is_done()?;
        let now = Instant::now();
        if is_done {
            return Ok(Some(now - begin));
        }
        if now >= deadline {
            return Ok(None);
        }
        match now - begin {
            waited if waited < SPIN => std::hint::spin_loop(),
            waited if waited < YIELD => std::thread::yield_now(),
            _ => {
                before_sleep()?;
                std::thread::sleep(SLEEP);
            }
        }
    }
}
