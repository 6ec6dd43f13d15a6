//! Functions of the host that run behind a stream's work.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Stream, call_error, host_thread, wait_span};
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::fork::{self, ForkMark};
use resident_backend::panic_message::panic_message;
use resident_backend::sync::{EventCount, Mutex};
use resident_backend::thread_pools::{self, note_pool_threads};

use resident_backend::timeline::{Awaited, WaitReason};
use resident_backend::{BackendError, Position, TaskWaker, scope};

/// What the handle does, in errors.
const WAITING: &str = "waiting for a host function";

/// A function of the host that runs behind a stream's work, returned by
/// [`Stream::launch_host_function`], which has an example: call [`wait`](Self::wait), or `await` it
/// in a task of any executor, for the function's result. Dropping it does not wait, and does not
/// stop the function.
///
/// # Errors
///
/// As a future it yields what [`wait`](Self::wait) returns, except for [`Error::InsideKernel`],
/// since polling never waits. Polling it again after it was ready yields [`Error::Backend`].
#[must_use = "wait for the function's result, or drop the handle"]
pub struct HostFunction<R> {
    stream: Stream,
    position: Position,
    site: CallSite,
    shared: Arc<Shared<R>>,
}

/// What the handle shares with the thread that runs the function.
struct Shared<R> {
    /// Of the process with the thread.
    process: ForkMark,
    outcome: Mutex<Outcome<R>>,
    /// Announced when the function is over.
    ended: EventCount,
    task: Arc<TaskWaker>,
}

enum Outcome<R> {
    Pending,
    Returned(R),
    /// Why there is no result.
    Missing(String),
}

/// Belongs to the function. If the function is dropped unused, the handle says so.
struct Sender<R>(Arc<Shared<R>>);

impl<R: Send + 'static> HostFunction<R> {
    pub(super) fn launch(
        stream: &Stream,
        function: impl FnOnce() -> R + Send + 'static,
        site: CallSite,
    ) -> Result<Self> {
        note_pool_threads();
        let shared = Arc::new(Shared {
            process: ForkMark::new(),
            outcome: Mutex::new(Outcome::Pending),
            ended: EventCount::new(),
            task: Arc::default(),
        });
        let (position, sender) = (stream.position_to_await(), Sender(Arc::clone(&shared)));
        let run = Box::new(move || sender.0.finish(catch_unwind(AssertUnwindSafe(function))));
        let properties = stream.device_ref().properties();
        let added = stream.core().add_host_function(position, properties, run);
        added.map_err(|fault| {
            function_error(stream, "launching a host function", fault.to_string())
        })?;
        Ok(Self { stream: stream.clone(), position, site, shared })
    }

    /// Whether the function has returned, or panicked. Does not wait.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !matches!(*self.shared.outcome.lock(), Outcome::Pending)
    }

    /// Waits until the function has returned, and returns its result.
    ///
    /// # Errors
    ///
    /// - [`Error::Backend`] if the function panicked, with the panic's message; if the driver's
    ///   wait for the work before it fails; or if the caller is a host function that runs before
    ///   this one on the same stream, and so would wait for itself.
    /// - [`Error::DeviceLost`] if the device died.
    /// - [`Error::InsideKernel`] if the call would have to wait inside a kernel body.
    #[track_caller]
    pub fn wait(self) -> Result<R> {
        let (stream, site) = (&self.stream, call_site());
        let awaited = Awaited {
            device: stream.device_ref().name_str(),
            stream: stream.number(),
            site,
            reason: WaitReason::HostFunction,
        };
        let is_over = || self.is_complete();
        let over = wait_span::waiting(awaited, is_over, || self.wait_until_over());
        over.and_then(|()| self.take()).at(site)
    }

    fn wait_until_over(&self) -> Result<()> {
        let Shared { ended, .. } = &*self.shared;
        while !self.is_complete() {
            let seen = ended.current();
            self.refuse_endless_wait()?;
            // The work of a seeded device runs in this wait.
            let waited = self.stream.raw().synchronize_to(self.position);
            waited.map_err(|error| self.call_error(&error))?;
            if !self.is_complete() {
                thread_pools::wait_after(ended, seen);
            }
        }
        Ok(())
    }

    fn refuse_endless_wait(&self) -> Result<()> {
        self.check_process()?;
        if scope::is_in_body() {
            return Err(Error::InsideKernel {
                call: CalledAt::UNKNOWN,
                operation: String::from(WAITING),
                waits_for: format!("a host function behind the work of {}", self.stream),
            });
        }
        if host_thread::runs_for(self.stream.id()) {
            let cause = "this is called by a host function of the same stream, which must return \
                         before the other one starts; queue that one on another stream";
            return Err(function_error(&self.stream, WAITING, String::from(cause)));
        }
        Ok(())
    }

    /// Refuses to wait in a forked child, where no thread runs the function.
    fn check_process(&self) -> Result<()> {
        if self.shared.process.is_own() {
            return Ok(());
        }
        Err(self.call_error(&fork::refusal("wait", &format!("stream {}", self.stream))))
    }

    /// The result of a function that is over.
    fn take(&self) -> Result<R> {
        let taken = Outcome::Missing(String::from("its result was taken before"));
        let outcome = std::mem::replace(&mut *self.shared.outcome.lock(), taken);
        match outcome {
            Outcome::Returned(result) => Ok(result),
            Outcome::Missing(cause) => Err(function_error(&self.stream, WAITING, cause)),
            Outcome::Pending => unreachable!("the function is over"),
        }
    }

    fn poll_result(&self, context: &Context<'_>) -> Result<Option<R>> {
        let Shared { task, .. } = &*self.shared;
        task.set(context.waker());
        if self.is_complete() {
            task.clear();
            return self.take().map(Some);
        }
        self.check_process()?;
        if !self.stream.device_ref().properties().runs_by_itself {
            let raw = self.stream.raw();
            // On a seeded device each poll runs one operation.
            let polled = raw.poll(self.position).and_then(|is_complete| {
                if is_complete { Ok(()) } else { raw.register_waker(self.position, task) }
            });
            polled.map_err(|error| self.call_error(&error))?;
        }
        Ok(None)
    }
}

impl<R> HostFunction<R> {
    fn call_error(&self, error: &BackendError) -> Error {
        call_error(self.stream.device_ref(), "this", WAITING, error)
    }
}

impl<R> Shared<R> {
    fn finish(&self, outcome: std::thread::Result<R>) {
        self.end(match outcome {
            Ok(result) => Outcome::Returned(result),
            Err(payload) => {
                Outcome::Missing(format!("the function panicked: {}", panic_message(payload)))
            }
        });
    }

    /// Stores the outcome and wakes threads and tasks that wait for it.
    fn end(&self, outcome: Outcome<R>) {
        *self.outcome.lock() = outcome;
        self.ended.announce();
        self.task.wake();
    }
}

impl<R> Drop for Sender<R> {
    fn drop(&mut self) {
        let is_pending = matches!(*self.0.outcome.lock(), Outcome::Pending);
        if is_pending {
            self.0.end(Outcome::Missing(String::from("the system refused a thread to run it")));
        }
    }
}

impl<R: Send + 'static> Future for HostFunction<R> {
    type Output = Result<R>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        match self.poll_result(context) {
            Ok(None) => Poll::Pending,
            Ok(Some(result)) => Poll::Ready(Ok(result)),
            Err(error) => Poll::Ready(Err(error).at(self.site)),
        }
    }
}

impl<R> Drop for HostFunction<R> {
    fn drop(&mut self) {
        self.shared.task.clear();
    }
}

impl<R> fmt::Debug for HostFunction<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostFunction(after {} of {})", self.position.0, self.stream)
    }
}

fn function_error(stream: &Stream, operation: &str, cause: String) -> Error {
    Error::Backend {
        call: CalledAt::UNKNOWN,
        device: stream.device_ref().name(),
        operation: String::from(operation),
        cause,
    }
}
