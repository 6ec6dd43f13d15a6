//! Copies that are still in progress.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ndarray::{Array, ArrayRef, Dimension, IxDyn};

use super::adopt::array_over;
use super::layout::Layout;
use crate::device::{self, Stream};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use crate::storage::{HostBuffer, zeroed_vec};
use crate::transfer::{self, Snapshot};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::{Position, TaskWaker};

/// The result of an asynchronous copy, returned by
/// [`SmartArray::snapshot_on`](crate::SmartArray::snapshot_on): call [`wait`](Self::wait), or
/// `await` it in a task of any executor. It owns the source and the destination of the copy, so the
/// array may be written, moved or dropped at any time. Dropping it does not wait.
///
/// A copy that fails is one failure, however many pieces it has: [`wait`](Self::wait) returns it,
/// and no `synchronize` after that. If nothing waits for the copy, a `synchronize` returns the
/// failure; a `wait` after that returns it too, since it has no array to return. While a `Pending`
/// lives, or if it is forgotten, the library keeps its records of work that failed since (about 200
/// bytes each), because the copy may be among that work.
///
/// ```
/// use resident::{Device, SmartArray, ndarray::s};
///
/// let stream = Device::cpu().stream();
/// let mut state = SmartArray::from(vec![1.0_f32; 100]);
/// drop(state.gpu_mut_on(&stream)?);
/// let head = state.slice(s![..10]).snapshot_on(&stream)?;
/// let tail = state.slice(s![90..]).snapshot_on(&stream)?;       // both copies are queued
/// drop(state);
/// assert_eq!(head.wait()?, tail.wait()?);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// As a future it yields what [`wait`](Self::wait) returns, except for [`Error::InsideKernel`],
/// since polling never waits. Polling it again after it was ready yields [`Error::Backend`].
#[must_use = "wait for the copy, or drop it"]
pub struct Pending<A> {
    snapshot: Option<Snapshot>,
    /// The array's name for messages.
    array: String,
    assemble: fn(HostBuffer, &Arrangement) -> Result<A, u64>,
    arrangement: Arrangement,
    /// Woken when a copy is complete. Made at the first poll.
    task: Option<Arc<TaskWaker>>,
}

/// How the copied elements become an array.
struct Arrangement {
    /// The shape of the copied elements, and their strides in memory without gaps.
    copied: Vec<usize>,
    strides: Vec<isize>,
    /// The array's shape, in which elements of a broadcast view are repeated.
    shape: Vec<usize>,
}

impl<T: Element, D: Dimension> Pending<Array<T, D>> {
    /// `copied` is the layout of the elements in the snapshot's memory.
    pub(super) fn new(snapshot: Snapshot, array: String, copied: &Layout<D>, shape: &D) -> Self {
        let arrangement = Arrangement {
            copied: copied.shape().to_vec(),
            strides: copied.strides().to_vec(),
            shape: shape.slice().to_vec(),
        };
        Self {
            snapshot: Some(snapshot),
            array,
            assemble: assembled::<T, D>,
            arrangement,
            task: None,
        }
    }
}

/// The array; or the number of bytes that the host does not have for it.
fn assembled<T: Element, D: Dimension>(
    buffer: HostBuffer,
    Arrangement { copied, strides, shape }: &Arrangement,
) -> Result<Array<T, D>, u64> {
    let mut dim = D::zeros(copied.len());
    dim.slice_mut().copy_from_slice(copied);
    let array = array_over::<T, D>(buffer, &Layout::new(dim, strides, 0));
    if copied == shape {
        return Ok(array);
    }
    // Not `to_owned`, which panics in ndarray's debug builds for some views without elements.
    let elements = array.broadcast(IxDyn(shape)).map(|view| elements_of(&view));
    let elements = elements.unwrap_or_else(|| Ok(Vec::new()))?;
    let array = Array::from_shape_vec(IxDyn(shape), elements).ok();
    let array = array.and_then(|array| array.into_dimensionality::<D>().ok());
    Ok(array.unwrap_or_else(|| unreachable!("{copied:?} was broadcast to {shape:?}")))
}

/// The elements of a view in row-major order; or the number of bytes that the host does not have
/// for them.
pub(super) fn elements_of<T: Element, D: Dimension>(view: &ArrayRef<T, D>) -> Result<Vec<T>, u64> {
    let len_bytes = (view.len() as u64).saturating_mul(size_of::<T>() as u64);
    if len_bytes == 0 {
        return zeroed_vec(view.len()).ok_or(0);
    }
    let mut elements = Vec::new();
    elements.try_reserve_exact(view.len()).map_err(|_full| len_bytes)?;
    match view.as_slice() {
        Some(slice) => elements.extend_from_slice(slice),
        None => elements.extend(view.iter().copied()),
    }
    Ok(elements)
}

impl<A> Pending<A> {
    /// Waits until the copy is complete, and returns it.
    ///
    /// # Errors
    ///
    /// - [`Error::Backend`] if the copy failed.
    /// - [`Error::Lost`] if work that should have written the source failed.
    /// - [`Error::DeviceLost`] if the device died.
    /// - [`Error::OutOfMemory`] if the host has no memory for the repeated elements of a broadcast
    ///   view.
    /// - [`Error::InsideKernel`] if the call would have to wait inside a kernel body.
    #[track_caller]
    pub fn wait(self) -> Result<A> {
        self.wait_at(call_site())
    }

    /// The copies that are still in progress, or were.
    pub(super) fn queued(&self) -> &[(Stream, Position)] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.queued)
    }

    /// As [`wait`](Self::wait), for the call at `site`.
    pub(super) fn wait_at(mut self, site: CallSite) -> Result<A> {
        let mut snapshot = self.snapshot.take();
        snapshot.iter_mut().for_each(|snapshot| snapshot.unread.end());
        let queued = snapshot.as_ref().map(|snapshot| snapshot.queued.clone()).unwrap_or_default();
        for (stream, position) in &queued {
            stream
                .wait_until(*position, site)
                .map_err(|error| {
                    device::call_error(
                        stream.device_ref(),
                        &self.array,
                        "waiting for a snapshot",
                        &error,
                    )
                })
                .at(site)?;
        }
        self.finish(snapshot).at(site)
    }

    /// Assembles the array once all copies are complete.
    fn finish(&self, snapshot: Option<Snapshot>) -> Result<A> {
        let Some(Snapshot { buffer, queued, inquiry: _inquiry, mut unread }) = snapshot else {
            return Err(Error::Backend {
                call: CalledAt::UNKNOWN,
                device: String::from("the host"),
                operation: String::from("polling a snapshot"),
                cause: String::from("it was taken already; do not poll a future after it is ready"),
            });
        };
        unread.end();
        if let Some(error) = transfer::failure_of_copies(&self.array, &queued) {
            return Err(error);
        }
        let assembled = (self.assemble)(sole_owner(buffer), &self.arrangement);
        assembled.map_err(|requested| Error::host_full(&self.array, requested))
    }
}

/// Waits until no other handle of the buffer exists, and takes the buffer. Work drops its handle of
/// the buffer right after it counts as complete, so this waits only briefly.
pub(super) fn sole_owner(mut buffer: Arc<HostBuffer>) -> HostBuffer {
    loop {
        match Arc::try_unwrap(buffer) {
            Ok(buffer) => return buffer,
            Err(shared) => {
                buffer = shared;
                std::thread::yield_now();
            }
        }
    }
}

/// Prints the array and the shape; uses no device.
impl<A> fmt::Debug for Pending<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = if self.snapshot.is_none() { ", taken" } else { "" };
        write!(f, "Pending(of {}, {:?}{taken})", self.array, self.arrangement.shape)
    }
}

impl<A> Future for Pending<A> {
    type Output = Result<A>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<A>> {
        match self.poll_copies(context) {
            Ok(true) => {
                let snapshot = self.snapshot.take();
                Poll::Ready(self.finish(snapshot))
            }
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<A> Pending<A> {
    /// Whether all copies are complete. If not, the task is woken when the first incomplete copy of
    /// the list has completed, and polls again.
    fn poll_copies(&mut self, context: &Context<'_>) -> Result<bool> {
        let Some(snapshot) = &self.snapshot else { return Ok(true) };
        for (stream, position) in &snapshot.queued {
            let raw = stream.raw();
            let polled = raw.poll(*position).and_then(|is_complete| {
                if !is_complete {
                    let task = self.task.get_or_insert_default();
                    task.set(context.waker());
                    raw.register_waker(*position, task)?;
                }
                Ok(is_complete)
            });
            let is_complete = polled.map_err(|error| {
                device::call_error(stream.device_ref(), &self.array, "polling a snapshot", &error)
            })?;
            if !is_complete {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
