//! Blocks a stream, so that only queueing is timed.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use resident::{Grid, Kernel, Stream};

/// A launch that waits until it is released.
#[derive(Clone)]
pub struct Gate {
    state: Arc<(Mutex<GateState>, Condvar)>,
    kernel: Kernel<(u32,)>,
}

#[derive(Clone, Copy, PartialEq)]
enum GateState {
    Open,
    Closed,
    Reached,
}

impl Gate {
    pub fn new() -> Self {
        let state = Arc::new((Mutex::new(GateState::Open), Condvar::new()));
        let inside = Arc::clone(&state);
        let kernel = Kernel::<(u32,)>::new("gate").host(move |_grid, (_turn,)| wait(&inside));
        Self { state, kernel }
    }

    /// The mean time in nanoseconds of a call of `queue`, over `turns` calls, while no queued work
    /// runs.
    pub fn time_queueing(&self, stream: &Stream, turns: usize, mut queue: impl FnMut()) -> f64 {
        self.close(stream);
        let start = Instant::now();
        for _ in 0..turns {
            queue();
        }
        let elapsed_ns = start.elapsed().as_nanos() as f64;
        self.open();
        stream.synchronize().expect("nothing failed");
        elapsed_ns / turns as f64
    }

    fn close(&self, stream: &Stream) {
        let (state, changed) = &*self.state;
        *state.lock().expect("no panic") = GateState::Closed;
        self.kernel.launch_on(stream, Grid::cover(1), (0,)).expect("launched");
        let reached = changed
            .wait_while(state.lock().expect("no panic"), |state| *state != GateState::Reached);
        drop(reached.expect("no panic"));
    }

    fn open(&self) {
        let (state, changed) = &*self.state;
        *state.lock().expect("no panic") = GateState::Open;
        changed.notify_all();
    }
}

fn wait((state, changed): &(Mutex<GateState>, Condvar)) {
    let mut now = state.lock().expect("no panic");
    if *now == GateState::Closed {
        *now = GateState::Reached;
        changed.notify_all();
        drop(changed.wait_while(now, |state| *state != GateState::Open).expect("no panic"));
    }
}
