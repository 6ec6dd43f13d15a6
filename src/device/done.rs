//! A future that waits for the work queued on a stream.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Stream, call_error};
use crate::error::{AtCall, Result};
use resident_backend::call_site::CallSite;
use resident_backend::{Position, TaskWaker};

/// Waits for work queued on a stream, in a task of any executor: see [`Stream::done`].
///
/// Dropping or forgetting it changes nothing. It allocates only if it is polled before the work is
/// complete, and then once. After it was ready, each further poll is ready too, and returns the
/// next failure that no call has returned.
///
/// # Errors
///
/// What [`Stream::synchronize`] returns, except for
/// [`Error::InsideKernel`](crate::Error::InsideKernel), since polling never waits.
#[must_use = "a future does nothing unless it is polled"]
pub struct Done {
    stream: Stream,
    position: Position,
    site: CallSite,
    /// Woken when the work is complete. Made at the first poll that finds it incomplete.
    task: Option<Arc<TaskWaker>>,
}

impl Done {
    /// The future of all work queued on `stream` so far.
    pub(super) fn of(stream: Stream, site: CallSite) -> Self {
        let position = stream.position_to_await();
        Self { stream, position, site, task: None }
    }

    fn poll_work(&mut self, context: &Context<'_>) -> Result<bool> {
        let raw = self.stream.raw();
        let polled = raw.poll(self.position).and_then(|is_complete| {
            if !is_complete {
                let task = self.task.get_or_insert_default();
                task.set(context.waker());
                raw.register_waker(self.position, task)?;
            }
            Ok(is_complete)
        });
        polled.map_err(|error| {
            call_error(self.stream.device_ref(), "this", "polling a stream", &error)
        })
    }
}

impl Future for Done {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let site = self.site;
        let outcome = match self.poll_work(context) {
            Ok(false) => return Poll::Pending,
            Ok(true) => self.stream.reported_upto(self.position),
            Err(error) => Err(error),
        };
        Poll::Ready(outcome.at(site))
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        // The waker is the task's; the stream keeps its place for it until the work is complete.
        if let Some(task) = &self.task {
            task.clear();
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Done({} of {})", self.position.0, self.stream)
    }
}
