//! A progress bar on stderr, if that is a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const COLUMNS: usize = 40;
const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// A bar, which is cleared when the value drops.
pub(crate) struct Progress {
    is_shown: bool,
    len_bytes: usize,
    done_bytes: usize,
    drawn: Instant,
}

impl Progress {
    pub(crate) fn start(len_bytes: usize) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Self { is_shown, len_bytes, done_bytes: 0, drawn: Instant::now() }
    }

    /// Counts bytes, and draws the bar if it is old.
    pub(crate) fn advance(&mut self, len_bytes: usize) {
        self.done_bytes += len_bytes;
        if self.is_shown && self.drawn.elapsed() >= REDRAW_EVERY {
            self.drawn = Instant::now();
            let filled = COLUMNS * self.done_bytes / self.len_bytes.max(1);
            let bar = "#".repeat(filled) + &"-".repeat(COLUMNS.saturating_sub(filled));
            let [done, all] = [self.done_bytes, self.len_bytes].map(|bytes| bytes / 1_000_000);
            draw(&format!("\r[{bar}] {done} of {all} MB"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            draw("\r\x1b[K");
        }
    }
}

/// Errors are ignored: the terminal may have been closed.
fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
