//! The time limit of launches, for tests of kernels that might not end.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use resident_backend::environment;

/// The environment variable for the limit, in seconds.
const VARIABLE: &str = "RESIDENT_LAUNCH_TIMEOUT";

/// The compiler's option for code that calls `poll` now and then.
pub(super) const OPTION: &str = "-fsanitize-coverage=trace-pc";

/// What such code needs behind it.
pub(super) const HEADER: &str = include_str!("launch_timeout.hpp");

thread_local! {
    /// When the blocks that this thread of the machine runs must have ended.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The limit, if there is one. The error says what the variable is, and what it may be.
pub fn limit() -> Result<Option<Duration>, String> {
    static LIMIT: LazyLock<Result<Option<Duration>, String>> =
        LazyLock::new(|| environment::seconds(VARIABLE));
    LIMIT.clone()
}

/// Starts the time of the blocks that this thread runs next.
pub(super) fn start() {
    let limit = limit().ok().flatten();
    DEADLINE.set(limit.and_then(|limit| Instant::now().checked_add(limit)));
}

/// What to say if the time is over.
pub(super) fn overrun() -> Option<String> {
    let deadline = DEADLINE.get()?;
    let limit = limit().ok().flatten()?;
    (Instant::now() > deadline).then(|| {
        format!(
            "it ran longer than {limit:?}, the limit in {VARIABLE}; correct the loop that does not \
             end, or raise the limit; a loop in an included header that waits for `volatile` \
             memory needs `__nanosleep(20)` in it, so that other threads run"
        )
    })
}
