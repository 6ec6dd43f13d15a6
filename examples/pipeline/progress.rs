//! A progress bar on stderr for long work. It draws nothing if stderr is not a terminal.
//!
//! Launches return when they are queued, so the bar follows events: a step counts when the device
//! has completed it.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use resident::{Event, Result, Stream};

/// No bar is drawn for work that takes less time than this.
const SHOW_AFTER: Duration = Duration::from_millis(600);
const REDRAW_EVERY: Duration = Duration::from_millis(100);
const BAR_COLUMNS: usize = 30;

/// A bar that its own thread draws until it is dropped.
pub struct Progress {
    thread: Option<(Arc<Shared>, JoinHandle<()>)>,
}

/// The state that the working thread and the drawing thread share.
struct Shared {
    state: Mutex<BarState>,
    finished: Condvar,
}

struct BarState {
    steps: usize,
    done: usize,
    /// The current step of the working thread.
    label: String,
    /// Steps queued on a device, in order, whose completion has not been seen yet.
    queued: Vec<(&'static str, Event)>,
    is_finished: bool,
}

impl Progress {
    /// Starts a bar with the given number of steps.
    pub fn start(steps: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let state = BarState {
            steps,
            done: 0,
            label: String::new(),
            queued: Vec::new(),
            is_finished: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), finished: Condvar::new() });
        let drawn = Arc::clone(&shared);
        // If the thread cannot be started, the program runs without a bar.
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || draw_until_finished(&drawn))
            .ok();
        Self { thread: thread.map(|thread| (shared, thread)) }
    }

    /// No bar.
    pub fn hidden() -> Self {
        Self { thread: None }
    }

    /// Sets the label of the next step. `done` ends the step.
    pub fn begin(&self, label: &str) {
        self.update(|state| label.clone_into(&mut state.label));
    }

    /// Counts one step of this thread.
    pub fn done(&self) {
        self.update(|state| state.done += 1);
    }

    /// Counts a step when all work queued on the stream so far has run.
    pub fn follow(&self, label: &'static str, stream: &Stream) -> Result<()> {
        if self.thread.is_some() {
            let event = stream.record()?;
            self.update(|state| state.queued.push((label, event)));
        }
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut BarState)) {
        if let Some((shared, _)) = &self.thread {
            change(&mut shared.lock());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((shared, thread)) = self.thread.take() {
            shared.lock().is_finished = true;
            shared.finished.notify_one();
            // The thread does not panic, and a missing bar would not be a reason to fail.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BarState {
    /// Counts the steps that the devices have completed. A failed event counts as complete; the
    /// working thread gets the error.
    fn count_completed(&mut self) {
        let before = self.queued.len();
        self.queued.retain(|(_, event)| !event.is_complete().unwrap_or(true));
        self.done += before - self.queued.len();
    }

    fn line(&self) -> String {
        let filled = (BAR_COLUMNS * self.done / self.steps.max(1)).min(BAR_COLUMNS);
        let label = self.queued.first().map_or(self.label.as_str(), |(label, _)| label);
        format!(
            "\r[{}{}] {}/{} {label}\x1b[K",
            "#".repeat(filled),
            "-".repeat(BAR_COLUMNS - filled),
            self.done,
            self.steps
        )
    }
}

fn draw_until_finished(shared: &Shared) {
    let started = Instant::now();
    let mut has_drawn = false;
    let mut state = shared.lock();
    while !state.is_finished {
        state = shared
            .finished
            .wait_timeout(state, REDRAW_EVERY)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        state.count_completed();
        if !state.is_finished && started.elapsed() > SHOW_AFTER {
            draw(&state.line());
            has_drawn = true;
        }
    }
    if has_drawn {
        draw("\r\x1b[K");
    }
}

/// Errors are ignored: the terminal may have been closed.
fn draw(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
}
