//! A progress bar on stderr for work that takes long; nothing at all where stderr is no terminal.
//!
//! Launches return when they are queued, so the bar follows events: a step counts when the device
//! has got there.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use resident::{Event, Result, Stream};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(600);
const REDRAW_EVERY: Duration = Duration::from_millis(100);
const BAR_COLUMNS: usize = 30;

/// A bar that draws itself from a thread of its own until it is dropped.
pub struct Progress {
    painter: Option<(Arc<Board>, JoinHandle<()>)>,
}

/// What the working thread tells the painting one.
struct Board {
    state: Mutex<State>,
    finished: Condvar,
}

struct State {
    steps: usize,
    done: usize,
    /// What this thread itself is at.
    label: String,
    /// Queued on a device, in order, and not seen complete yet.
    queued: Vec<(&'static str, Event)>,
    is_finished: bool,
}

impl Progress {
    /// A bar of so many steps.
    pub fn start(steps: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let state =
            State { steps, done: 0, label: String::new(), queued: Vec::new(), is_finished: false };
        let board = Arc::new(Board { state: Mutex::new(state), finished: Condvar::new() });
        let painted = Arc::clone(&board);
        // A machine that has no thread left for a bar does its work without one.
        let painter =
            std::thread::Builder::new().name("progress".into()).spawn(move || paint(&painted)).ok();
        Self { painter: painter.map(|thread| (board, thread)) }
    }

    /// No bar at all.
    pub fn hidden() -> Self {
        Self { painter: None }
    }

    /// Says what comes next. A step that ends is told by `done`.
    pub fn begin(&self, label: &str) {
        self.update(|state| label.clone_into(&mut state.label));
    }

    /// One step of this thread is done.
    pub fn done(&self) {
        self.update(|state| state.done += 1);
    }

    /// Counts a step when everything queued on the stream up to now has run.
    pub fn follow(&self, label: &'static str, stream: &Stream) -> Result<()> {
        if self.painter.is_some() {
            let event = stream.record()?;
            self.update(|state| state.queued.push((label, event)));
        }
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        if let Some((board, _)) = &self.painter {
            change(&mut board.lock());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((board, painter)) = self.painter.take() {
            board.lock().is_finished = true;
            board.finished.notify_one();
            // The painter cannot fail, and a missing bar would be no reason to fail here.
            let _ = painter.join();
        }
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts what the devices have done meanwhile. An event that fails is over, too; the working
    /// thread will hear of it.
    fn look(&mut self) {
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

fn paint(board: &Board) {
    let started = Instant::now();
    let mut has_drawn = false;
    let mut state = board.lock();
    while !state.is_finished {
        state = board
            .finished
            .wait_timeout(state, REDRAW_EVERY)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        state.look();
        if !state.is_finished && started.elapsed() > PATIENCE {
            draw(&state.line());
            has_drawn = true;
        }
    }
    if has_drawn {
        draw("\r\x1b[K");
    }
}

/// A terminal that went away takes its bar along.
fn draw(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
}
