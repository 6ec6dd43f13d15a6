//! The span of `tracing` around a wait of a thread, which shows where the time of a program's own
//! spans goes.
//!
//! A wait is often in the midst of a call, and some are in destructors. So a subscriber that panics
//! in one of these spans unwinds no call: only the panic hook gets the panic.

use std::cell::Cell;

use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Level, span};

use resident_backend::timeline::{self, Awaited};
use resident_backend::unwinding::contain_panic;

thread_local! {
    /// Whether this thread is telling a subscriber of a wait: its own waits have no spans.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Waits for work of a stream, with the span of the wait, if a subscriber may want it and the work
/// is not complete. Callers hold no lock and no claim, since a subscriber may use arrays.
#[inline]
pub(super) fn waiting<T>(
    awaited: Awaited<'_>,
    is_over: impl Fn() -> bool,
    wait: impl FnOnce() -> T,
) -> T {
    let is_wanted = LevelFilter::current() >= LevelFilter::DEBUG && !is_over();
    let _span = is_wanted.then(|| WaitSpan::enter(&awaited));
    timeline::waiting(awaited, is_over, wait)
}

/// The span of a wait, while it lasts.
struct WaitSpan {
    /// `None` if the subscriber panicked, or waits itself.
    entered: Option<EnteredSpan>,
}

impl WaitSpan {
    #[cold]
    fn enter(awaited: &Awaited<'_>) -> Self {
        let Awaited { device, stream, site, reason } = *awaited;
        let span = || {
            let reason = reason.as_str();
            span!(
                target: "resident::wait",
                Level::DEBUG,
                "wait",
                reason,
                device,
                stream = i64::from(stream),
                site = %site
            )
        };
        Self { entered: telling(|| span().entered()) }
    }
}

impl Drop for WaitSpan {
    fn drop(&mut self) {
        if let Some(entered) = self.entered.take() {
            telling(|| drop(entered));
        }
    }
}

/// Runs code of a subscriber, unless this thread does already.
fn telling<T>(run: impl FnOnce() -> T) -> Option<T> {
    if TELLING.try_with(|telling| telling.replace(true)).unwrap_or(true) {
        return None;
    }
    let outcome = contain_panic(run);
    let _ = TELLING.try_with(|telling| telling.set(false));
    outcome
}
