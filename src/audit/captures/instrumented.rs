//! Futures that run in a scope.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::capture::Scope;

pin_project! {
    /// A future whose polls run in a [`Scope`]: made by [`Scope::instrument`]. So does its drop.
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is polled"]
    pub struct Instrumented<F> {
        // `None` once it is dropped.
        #[pin]
        future: Option<F>,
        scope: Scope,
    }

    impl<F> PinnedDrop for Instrumented<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.scope.run(|| this.future.set(None));
        }
    }
}

impl Scope {
    /// A future of which each poll runs in this scope, as by [`run`](Self::run), whichever thread
    /// of an executor polls it: for tasks that outlive the call that spawns them. Between two polls
    /// the thread's work counts as before. `tracing`'s `instrument` is alike.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}};
    /// # fn block_on<F: Future + Send>(task: F) -> F::Output where F::Output: Send {
    /// #     let mut task = pin!(task);
    /// #     loop {
    /// #         let mut context = Context::from_waker(Waker::noop());
    /// #         let poll = task.as_mut().poll(&mut context);
    /// #         if let std::task::Poll::Ready(output) = poll { return output; }
    /// #     }
    /// # }
    ///
    /// let array = SmartArray::from(vec![1.0_f32; 1000]);
    /// let (outcome, report) = audit::capture(|| {
    ///     let task = async {
    ///         let stream = Device::cpu().stream();
    ///         array.prefetch(&stream)?;
    ///         stream.done().await
    ///     };
    ///     let task = audit::scope().instrument(task);
    ///     // An executor polls it on threads of its own.
    ///     std::thread::scope(|threads| threads.spawn(|| block_on(task)).join().unwrap())
    /// });
    /// outcome?;
    /// assert_eq!(report.traffic().to_device.bytes, 4000);
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn instrument<F>(&self, future: F) -> Instrumented<F> {
        Instrumented { future: Some(future), scope: self.clone() }
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.future.as_pin_mut() {
            Some(future) => this.scope.run(|| future.poll(context)),
            // Only the drop takes the future.
            None => unreachable!("a dropped future is polled"),
        }
    }
}
