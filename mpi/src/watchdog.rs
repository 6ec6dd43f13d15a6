//! Ends the process if a call of MPI that blocks takes longer than the time-out.
//!
//! MPI has no other form of these calls: to initialise, to finalise, and those of files. If a
//! process that has to take part in one is gone, the others would wait in it forever. Launchers end
//! the whole job when a process ends like this.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

/// Watches a call until it is dropped.
pub(crate) struct Watchdog {
    _over: Option<Sender<()>>,
}

impl Watchdog {
    /// Ends the process after `timeout`. Watches nothing if the system gives no thread.
    pub(crate) fn start(operation: &'static str, timeout: Duration) -> Self {
        let (over, is_over) = channel::<()>();
        let watch = move || {
            if is_over.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                say(&format!(
                    "resident-mpi: ends the process: `{operation}`: another process did not answer \
                     within {timeout:?}; look at that process, or set RESIDENT_MPI_TIMEOUT to more \
                     seconds"
                ));
                // Launchers throw away what they have not yet read.
                std::thread::sleep(Duration::from_millis(100));
                std::process::abort();
            }
        };
        let thread = Builder::new().name("resident-mpi watchdog".into()).spawn(watch);
        Self { _over: thread.is_ok().then_some(over) }
    }
}

/// Writes a line to standard error, in one piece, as launchers end processes amid a line. Panics
/// nowhere.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
