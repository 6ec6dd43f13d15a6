//! A thread that waits for a stream runs the stream's ready operations itself. So it need not sleep
//! until the worker has been woken and has run them.
//!
//! An operation is ready if every earlier one of its stream has completed. The thread that takes it
//! from the queue, under the stream's lock, runs it. If the worker has taken it, with others, they
//! are not in the queue any more, and the thread that waits sleeps.
//!
//! A thread of a rayon pool runs no launches: if the body uses rayon, the thread may run other
//! tasks of the program within it.

use std::sync::Arc;

use super::operation::{ControlOperation, QueuedOperation};
use super::stream::{EmbeddedStream, StreamPoint};
use resident_backend::Position;
use resident_backend::thread_pools::is_pool_thread;

/// The number of streams, each of which waits for the next, among which a ready operation is looked
/// for.
const STREAMS_MAX: usize = 8;

/// What a stream is to do next.
#[expect(clippy::large_enum_variant, reason = "to run an operation is the frequent case")]
enum Next {
    Run(QueuedOperation),
    /// The next operation waits for this point of another stream.
    WaitFor(StreamPoint),
}

impl EmbeddedStream {
    /// Runs ready operations on this thread until `position` has completed, or until there is none:
    /// then another thread runs the next one. The caller holds no lock, and does not run queued
    /// work. A thread that is ending runs none, since bodies may use thread-locals.
    pub(super) fn run_ready_until(self: &Arc<Self>, position: Position) {
        if !resident_host_code::can_run_blocks() {
            return;
        }
        while !self.progress.is_complete(position) {
            let Some((stream, queued)) = take_ready(self, position) else { return };
            stream.run_own(queued);
        }
    }

    /// The next operation of this stream, if it is ready and not behind `position`. If it is work,
    /// takes it from the queue.
    #[inline]
    fn next_until(&self, position: Position) -> Option<Next> {
        let mut state = self.lock();
        let (next, control) = state.queued.front().filter(|(next, _)| *next <= position)?;
        // No other thread runs an earlier operation. Later operations wait for this one.
        let is_ready = next.0 == self.progress.completed().0 + 1;
        match control {
            _ if !is_ready || self.is_seeded() => None,
            Some(ControlOperation::Wait(point)) if !point.is_complete() => {
                Some(Next::WaitFor(point.clone()))
            }
            None if state.queued.begins_with_launch() && is_pool_thread() => None,
            _ => state.queued.pop().map(Next::Run),
        }
    }
}

/// A ready operation of `stream`, or of a stream that it waits for.
#[inline]
fn take_ready(
    stream: &Arc<EmbeddedStream>,
    position: Position,
) -> Option<(Arc<EmbeddedStream>, QueuedOperation)> {
    let (mut stream, mut position) = (Arc::clone(stream), position);
    for _ in 0..STREAMS_MAX {
        match stream.next_until(position)? {
            Next::Run(queued) => return Some((stream, queued)),
            Next::WaitFor(point) => (stream, position) = (point.stream, point.position),
        }
    }
    None
}
