//! Watches of arrays, and the states that they show.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use ndarray::{ArrayRef, ArrayView, Dimension};

use super::layout::Layout;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer::{Next, WatchCore, WatchedState};
use resident_backend::TaskWaker;
use resident_backend::call_site::call_site;
use resident_backend::sync;

/// A live view of an array, returned by [`SmartArray::watch`](crate::SmartArray::watch). While it
/// exists, the newest contents of the array come down to memory of its own by themselves, wherever
/// they are, and states in between are skipped.
///
/// It borrows nothing: another thread may look at it while this one computes. It survives the
/// array. Dropping it ends the copies; forgetting it is safe, and leaves them on.
///
/// # What is copied, and when
///
/// Each change (a launch that writes the array or a part of it, the drop of a `gpu_mut` or
/// `host_mut` guard, `assign`, `fill`, `set` or a copy to the array) asks for a copy of the whole
/// array. What is newest on devices is copied behind the change, on streams of the watch's own. It
/// goes to memory that is page-locked where the device has such memory and is used again. At most
/// one copy is on its way: changes meanwhile are skipped, and the newest of them is copied next, by
/// the thread that changes the array or queries the watch next. Only the last state of an array
/// that is dropped is taken at once. Work that writes the array waits for a copy of it, as for
/// every reader; nothing waits on the host.
///
/// What is newest on the host is copied by the threads that query the watch, 256 KiB at a time; a
/// thread that wants to write the array waits for that long at most. If a guard kept such a query
/// from it, the thread that drops the guard copies. So a program that writes
/// on the host pays only for states that are queried.
///
/// The copies count in [`traffic`](crate::SmartArray::traffic), and in reports with the cause
/// [`watch`](crate::audit::Cause::Watch). An array that has no watch pays nothing; its launches may
/// be a little cheaper than those of an array that has one.
///
/// A change has no state while a part of the array was never written, or while a guard exists with
/// which a part may be written (of the host or of a device). If a guard was forgotten, or gave its
/// view away (`into_view_mut`, `for x in array.host_mut()?`), this ends with the next use of that
/// part.
///
/// Numba's `SmartArray` updated the host after each kernel if it found other references to the
/// host's copy; a watch is the same on request, counted, and without waiting.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, SmartArray};
///
/// let _here = Device::cpu().enter();
/// let step = Kernel::<(InOut<f32>,)>::new("step")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 1.0));
/// let mut field = SmartArray::<f32, _>::zeros((64, 64));
/// let live = field.watch()?;
/// assert!(live.latest().is_none());                     // not changed yet
/// let screen = std::thread::spawn(move || -> resident::Result<f32> {
///     let mut last = 0.0;
///     while let Some(state) = live.changed()? {         // waits for the next state
///         last = state[[0, 0]];                         // a picture would be drawn here
///     }
///     Ok(last)                                          // the array is gone
/// });
/// for _ in 0..100 {
///     step.launch(Grid::cover(field.len()), (&mut field,))?;
/// }
/// drop(field);
/// assert_eq!(screen.join().expect("no panic")?, 100.0); // the last state is never skipped
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use = "an array is watched until its `Watch` is dropped"]
pub struct Watch<T, D> {
    core: Arc<WatchCore>,
    layout: Layout<D>,
    /// The change of the last state that `changed` returned.
    seen: AtomicU64,
    element: PhantomData<fn() -> T>,
}

impl<T: Element, D: Dimension> Watch<T, D> {
    pub(super) fn new(core: Arc<WatchCore>, layout: Layout<D>) -> Self {
        Self { core, layout, seen: AtomicU64::new(0), element: PhantomData }
    }

    /// The newest complete state; `None` before the first. Waits for no work, and costs a look at
    /// the copy that is on its way; if none is and the array has changed since, queues one, and
    /// copies what is newest on the host.
    ///
    /// ```
    /// # use resident::{Device, Grid, InOut, Kernel, SmartArray};
    /// # let _here = Device::cpu().enter();
    /// # let step = Kernel::<(InOut<f32>,)>::new("step")
    /// #     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 1.0));
    /// let mut field = SmartArray::<f32, _>::ones(8);
    /// let live = field.watch()?;
    /// step.launch(Grid::cover(8), (&mut field,))?;
    /// Device::cpu().synchronize()?;
    /// let state = live.latest().expect("complete by now");
    /// assert_eq!((state.change(), state.sum()), (1, 16.0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn latest(&self) -> Option<WatchState<T, D>> {
        self.core.latest().map(|state| self.show(state))
    }

    /// Waits for the next state: one that is newer than all that this method and
    /// [`when_changed`](Self::when_changed) have returned. `None` if the array was dropped, and its
    /// last state returned. If no thread changes the array, the call waits for the next change.
    ///
    /// # Errors
    ///
    /// The watch goes on after an error, with the next change.
    ///
    /// - [`Lost`](crate::Error::Lost) if work that should have written some of the elements failed.
    /// - [`Backend`](crate::Error::Backend) if a copy failed or was refused.
    /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for a state.
    /// - [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
    ///   kernel body.
    #[track_caller]
    pub fn changed(&self) -> Result<Option<WatchState<T, D>>> {
        let site = call_site();
        let next = self.core.wait(self.seen.load(Ordering::Relaxed), site).at(site)?;
        Ok(next.map(|state| self.see(state)))
    }

    /// As [`changed`](Self::changed), for a task of any executor: a future that is ready with the
    /// next state. Dropping it changes nothing.
    ///
    /// # Errors
    ///
    /// As [`changed`](Self::changed), except for [`InsideKernel`](crate::Error::InsideKernel).
    #[track_caller]
    pub fn when_changed(&self) -> Changed<'_, T, D> {
        Changed { watch: self, task: None, site: call_site() }
    }

    fn see(&self, state: Arc<WatchedState>) -> WatchState<T, D> {
        self.seen.fetch_max(state.change, Ordering::Relaxed);
        self.show(state)
    }

    fn show(&self, state: Arc<WatchedState>) -> WatchState<T, D> {
        // SAFETY: the memory has the length and the memory order of the array, which has this
        // layout, and all of it is initialised (`HostMemory`). It is complete: nothing writes it
        // until the last handle of `state` has dropped, and the view keeps one.
        let view = unsafe { self.layout.view(state.base()) };
        WatchState { view, state }
    }
}

impl<T, D> fmt::Debug for Watch<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch(of {})", self.core.array())
    }
}

/// A complete state of a watched array, on the host: dereferences to an `ndarray::ArrayRef`, as
/// [`HostRef`](crate::HostRef) does. It never changes, and is independent of the array and of the
/// [`Watch`]. Its memory is used for a later state once it is dropped.
pub struct WatchState<T: 'static, D: Dimension> {
    /// Of the memory of `state`.
    view: ArrayView<'static, T, D>,
    state: Arc<WatchedState>,
}

impl<T, D: Dimension> WatchState<T, D> {
    /// Which change of the array this state shows, counted from 1 since the watch began. Several
    /// parts of an array that are written count as several changes.
    #[must_use]
    pub fn change(&self) -> u64 {
        self.state.change
    }
}

impl<T, D: Dimension> Deref for WatchState<T, D> {
    type Target = ArrayRef<T, D>;

    #[inline]
    fn deref(&self) -> &ArrayRef<T, D> {
        &self.view
    }
}

impl<T: fmt::Debug, D: Dimension> fmt::Debug for WatchState<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view, f)
    }
}

/// Waits for the next state of a watched array: see [`Watch::when_changed`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Changed<'w, T, D> {
    watch: &'w Watch<T, D>,
    /// Made when the future is first polled in vain.
    task: Option<Arc<TaskWaker>>,
    site: resident_backend::call_site::CallSite,
}

impl<T: Element, D: Dimension> Changed<'_, T, D> {
    fn poll_next(&mut self, context: &Context<'_>) -> Result<Poll<Option<WatchState<T, D>>>> {
        let (watch, seen) = (self.watch, self.watch.seen.load(Ordering::Relaxed));
        // A change between the question and the registration is asked about again.
        for is_registered in [false, true] {
            match watch.core.next(seen)? {
                Next::State(state) => return Ok(Poll::Ready(Some(watch.see(state)))),
                Next::Over => return Ok(Poll::Ready(None)),
                next if is_registered => self.wake_for(next, context)?,
                _ => {
                    let task = self.task.get_or_insert_default();
                    task.set(context.waker());
                    watch.core.wake_at_news(task);
                }
            }
        }
        Ok(Poll::Pending)
    }

    fn wake_for(&self, next: Next, context: &Context<'_>) -> Result<()> {
        match (next, &self.task) {
            (Next::Queued(stream, position), Some(task)) => {
                let registered = stream.raw().register_waker(position, task);
                registered.map_err(|error| self.watch.core.call_error(&stream, "polling", &error))
            }
            (Next::Blocked, _) => {
                // Another thread is inside a call, and does not tell when it is over.
                sync::assert_none_held();
                context.waker().wake_by_ref();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl<T: Element, D: Dimension> Future for Changed<'_, T, D> {
    type Output = Result<Option<WatchState<T, D>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let site = self.site;
        match self.poll_next(context) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(state)) => Poll::Ready(Ok(state)),
            Err(error) => Poll::Ready(Err(error).at(site)),
        }
    }
}

impl<T, D> Drop for Changed<'_, T, D> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            self.watch.core.forget_task(task);
            task.clear();
        }
    }
}

impl<T, D> fmt::Debug for Changed<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Changed({:?})", self.watch)
    }
}
