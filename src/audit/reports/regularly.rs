//! Threads that write the reports of `RESIDENT_AUDIT` while the program runs: every so many
//! seconds, and at signals.

use std::thread;
use std::time::Duration;

use super::outputs::{Signal, VARIABLE, say};
use resident_backend::unwinding::contain_panic;

/// Starts the threads that are needed, which call `write`. May be called with locks held.
pub(in crate::audit) fn start(every: Option<Duration>, signals: &[Signal], write: fn()) {
    if let Some(every) = every {
        spawn(move || {
            loop {
                thread::sleep(every);
                contain_panic(write);
            }
        });
    }
    if !signals.is_empty() {
        write_at(signals, write);
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name("resident-audit".to_owned()).spawn(work);
    if let Err(error) = thread {
        say(format_args!("{VARIABLE}: reports are written at exit only: {error}"));
    }
}

#[cfg(unix)]
fn write_at(signals: &[Signal], write: fn()) {
    let numbers = signals.iter().map(|signal| signal.number());
    match signal_hook::iterator::Signals::new(numbers) {
        Ok(mut signals) => spawn(move || {
            for _signal in signals.forever() {
                contain_panic(write);
            }
        }),
        Err(error) => say(format_args!("{VARIABLE}: no report is written at a signal: {error}")),
    }
}

#[cfg(not(unix))]
fn write_at(_signals: &[Signal], _write: fn()) {
    say(format_args!("{VARIABLE}: no report is written at a signal: this system has none"));
}
