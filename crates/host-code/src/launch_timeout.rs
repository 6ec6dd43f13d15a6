//! The time limit of launches, for tests of kernels that might not end.
//!
//! On Linux on x86-64 a signal interrupts the thread of the machine whose time is over
//! (`faults/time_limit.rs`), wherever it is. Elsewhere compiled code looks at the time now and
//! then, but in loops that compute nothing.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use resident_backend::environment;

/// The environment variable for the limit, in seconds.
const VARIABLE: &str = "RESIDENT_LAUNCH_TIMEOUT";

/// Whether compiled code is to look at the time itself.
const MUST_POLL: bool = !cfg!(all(target_os = "linux", target_arch = "x86_64"));

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

/// Whether code that is compiled now is to call `poll`.
pub(super) fn polls() -> Result<bool, String> {
    Ok(limit()?.is_some() && MUST_POLL)
}

/// Starts the time of the blocks that this thread runs next.
pub(super) fn start() {
    let limit = limit().ok().flatten();
    DEADLINE.set(limit.and_then(|limit| Instant::now().checked_add(limit)));
}

/// Whether the time of the blocks that this thread runs is over. A handler of signals may ask.
pub(super) fn is_over() -> bool {
    DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline)
}

/// What to say if the time is over.
pub(super) fn overrun() -> Option<String> {
    is_over().then(text)
}

#[cold]
pub(super) fn text() -> String {
    let limit = limit().ok().flatten().unwrap_or_default();
    format!(
        "it ran longer than {limit:?}, the limit in {VARIABLE}; correct the loop that does not \
         end, or raise the limit; a loop in an included header that waits for `volatile` memory \
         needs `__nanosleep(20)` in it, so that other threads run"
    )
}
