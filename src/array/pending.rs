//! An answer on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ndarray::{Array, Dimension};

use super::layout::Layout;
use super::owned::packed_array;
use crate::backend::failure;
use crate::device;
use crate::element::Element;
use crate::error::{Error, Result, Text};
use crate::storage::HostBuffer;
use crate::transfer::Snapshot;

/// Something that is being copied, by [`SmartArray::snapshot_on`](crate::SmartArray::snapshot_on):
/// [`wait`](Self::wait) for it, or `await` it in a task of any executor. It owns both ends of the
/// copy, so the array may be written, moved or dropped meanwhile; dropping it waits for nothing.
///
/// ```
/// use resident::{Device, SmartArray, ndarray::s};
///
/// let stream = Device::cpu().stream();
/// let mut state = SmartArray::from(vec![1.0_f32; 100]);
/// drop(state.gpu_mut_on(&stream)?);
/// let (head, tail) = (state.slice(s![..10]).snapshot_on(&stream)?, state.slice(s![90..]).snapshot_on(&stream)?);     // both on their way
/// drop(state);
/// assert_eq!(head.wait()?, tail.wait()?);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// As a future it gives what [`wait`](Self::wait) returns, and never [`Error::InsideKernel`], since
/// it waits for nothing; polled again after it was ready, [`Error::Backend`].
#[must_use = "a pending copy is of use to whoever waits for it"]
pub struct Pending<A> {
    snapshot: Option<Snapshot>,
    /// For messages.
    array: String,
    assemble: fn(HostBuffer, &[usize], &[bool]) -> A,
    shape: Vec<usize>,
    reversed: Vec<bool>,
}

impl<T: Element, D: Dimension> Pending<Array<T, D>> {
    pub(super) fn new(snapshot: Snapshot, array: String, layout: Layout<D>) -> Self {
        let reversed = layout
            .strides()
            .iter()
            .zip(layout.shape())
            .map(|(stride, len)| *stride < 0 && *len > 1)
            .collect();
        Self {
            snapshot: Some(snapshot),
            array,
            assemble: packed_array::<T, D>,
            shape: layout.shape().to_vec(),
            reversed,
        }
    }
}

impl<A> Pending<A> {
    /// Waits until it is there.
    ///
    /// # Errors
    ///
    /// What the copy failed with: [`Error::Backend`] by itself, [`Error::Lost`] if work failed that
    /// was to write what it reads, [`Error::DeviceLost`] if the device died;
    /// [`Error::InsideKernel`] if it would have to wait inside a kernel body.
    pub fn wait(mut self) -> Result<A> {
        let snapshot = self.snapshot.take();
        let queued = snapshot.as_ref().map(|snapshot| snapshot.queued.clone()).unwrap_or_default();
        for (stream, position) in &queued {
            stream.queue().synchronize_to(*position).map_err(|refusal| {
                device::call_error(
                    stream.device_ref(),
                    &self.array,
                    "waiting for a snapshot",
                    &refusal,
                )
            })?;
        }
        self.finish(snapshot)
    }

    /// Everything is complete.
    fn finish(&self, snapshot: Option<Snapshot>) -> Result<A> {
        let Some(Snapshot { buffer, queued }) = snapshot else {
            return Err(Error::Backend {
                device: Text::new("the host"),
                operation: Text::new("polling a snapshot"),
                cause: Text::new(
                    "it was taken already; a future is not to be polled after it is ready",
                ),
            });
        };
        for (stream, position) in queued {
            if let Some(record) = failure::at(stream.id(), position) {
                stream.core().mark_reported(position);
                return Err(self.failed(&stream, &record));
            }
        }
        Ok((self.assemble)(sole_owner(buffer), &self.shape, &self.reversed))
    }

    fn failed(&self, stream: &device::Stream, record: &failure::FailureRecord) -> Error {
        if !record.inherited || record.kind != failure::FailureKind::Contents {
            return device::late_error(stream.device_ref(), record);
        }
        Error::Lost {
            array: Text::new(self.array.as_str()),
            operation: Text::new(record.operation.as_str()),
            site: Text::new(
                record.site.map_or_else(|| "an unknown line".to_owned(), ToString::to_string),
            ),
            cause: Text::new(record.cause.as_str()),
        }
    }
}

/// The buffer, once the completed work has let go of it, which it does right after it counts as
/// completed.
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

/// Of what, and its shape; asks no device.
impl<A> fmt::Debug for Pending<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = if self.snapshot.is_none() { ", taken" } else { "" };
        write!(f, "Pending(of {}, {:?}{taken})", self.array, self.shape)
    }
}

impl<A> Future for Pending<A> {
    type Output = Result<A>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<A>> {
        let queued =
            self.snapshot.as_ref().map(|snapshot| snapshot.queued.clone()).unwrap_or_default();
        for (stream, position) in &queued {
            let failed = |refusal| {
                device::call_error(stream.device_ref(), &self.array, "polling a snapshot", &refusal)
            };
            match stream.queue().poll(*position) {
                Ok(true) => {}
                Ok(false) => {
                    return match stream.queue().register_waker(context.waker().clone()) {
                        Ok(()) => Poll::Pending,
                        Err(refusal) => Poll::Ready(Err(failed(refusal))),
                    };
                }
                Err(refusal) => return Poll::Ready(Err(failed(refusal))),
            }
        }
        let snapshot = self.snapshot.take();
        Poll::Ready(self.finish(snapshot))
    }
}
