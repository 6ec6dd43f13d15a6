//! Memory of somebody else's in which an array lives: slices of cudarc's, kept whole until the
//! array gives them back or is gone.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut, DriverError};

use super::call::{checked, invalid};
use super::queue::CudaQueue;
use crate::backend::{Address, BackendError};

/// A slice of whatever element.
pub(super) struct Lent {
    pub(super) len_bytes: u64,
    slice: Box<dyn Slice>,
}

trait Slice: Send + 'static {
    /// On which it will be freed, behind all that is queued there.
    fn stream(&self) -> &Arc<CudaStream>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: 'static> Slice for CudaSlice<T> {
    fn stream(&self) -> &Arc<CudaStream> {
        Self::stream(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Lent {
    pub(super) fn stream(&self) -> &CudaStream {
        self.slice.stream()
    }

    /// Whether freeing it is queued on its stream; otherwise cudarc waits for that.
    pub(super) fn frees_in_order(&self) -> bool {
        self.slice.stream().context().has_async_alloc()
    }
}

impl CudaQueue {
    /// Takes a slice over: what is queued on this stream from now on comes after everything that
    /// its owner queued with it.
    pub(crate) fn take_over<T: 'static>(
        &self,
        mut slice: CudaSlice<T>,
    ) -> Result<Address, BackendError> {
        let len_bytes = slice.num_bytes() as u64;
        let own = self.stream();
        settled(own.context(), || {
            checked(own.join(slice.stream()), "cuStreamWaitEvent")?;
            // Uses on other streams, as far as cudarc tracks them, are waited for by this; what it
            // hands back records one of its own events here.
            let (address, tracked) = slice.device_ptr_mut(own);
            drop(tracked);
            Ok(address)
        })
        .and_then(|address| {
            self.device().memory().keep(address, Lent { len_bytes, slice: Box::new(slice) })?;
            Ok(Address(address))
        })
    }

    /// The memory at an address as a slice, which is its owner from now on: the one that it was
    /// taken over from, or a fresh one over memory of our own. All work on it so far is ordered
    /// before what is queued on this stream now, and that before what the slice is used for. After
    /// a refusal the memory is where it was.
    pub(crate) fn give_away<T: 'static>(
        &self,
        address: Address,
        len: usize,
    ) -> Result<CudaSlice<T>, BackendError> {
        let memory = self.device().memory();
        let mut slice = match memory.defer_drop(address.0) {
            Some(lent) => self.give_back(address, lent)?,
            None => self.own_as_slice(address, len)?,
        };
        let stream = Arc::clone(slice.stream());
        // cudarc's tracking learns where the last use was: at the end of the slice's own stream,
        // which comes after ours.
        let told = settled(stream.context(), || {
            drop(slice.device_ptr_mut(&stream));
            Ok(())
        });
        if told.is_err() {
            // Then nothing may be left for it to track. What cannot be waited for is a dead
            // context's.
            let _over = self.wait_before(&stream);
        }
        Ok(slice)
    }

    fn give_back<T: 'static>(
        &self,
        address: Address,
        lent: Lent,
    ) -> Result<CudaSlice<T>, BackendError> {
        let memory = self.device().memory();
        if let Err(refusal) = self.hold_up(lent.stream()) {
            memory.keep(address.0, lent)?;
            return Err(refusal);
        }
        match lent.slice.into_any().downcast::<CudaSlice<T>>() {
            Ok(slice) => Ok(*slice),
            Err(_) => {
                Err(invalid("give_away", "the slice has elements of another type".to_owned()))
            }
        }
    }

    fn own_as_slice<T>(&self, address: Address, len: usize) -> Result<CudaSlice<T>, BackendError> {
        let memory = self.device().memory();
        memory.known(address.0)?;
        let stream = self.stream();
        settled(stream.context(), || {
            // cudarc makes two events for the slice, and panics where it gets none: whether it
            // would is found out before.
            let tried = [stream.context().new_event(None), stream.context().new_event(None)];
            tried.into_iter().try_for_each(|event| checked(event, "cuEventCreate").map(drop))
        })?;
        memory.forget(address.0);
        // SAFETY: the address is that of live memory of at least `len` elements (the array's), and
        // nobody else knows of it any more (`forget`). The slice frees it by `cuMemFreeAsync`, or
        // where the device has no pools by `cuMemFree`, as memory of ours is freed. Its bytes are
        // initialised, and the elements are plain data.
        Ok(unsafe { stream.upgrade_device_ptr(address.0, len) })
    }
}

/// Runs calls of cudarc's that keep their errors for the next call, and returns the first. What was
/// kept from before stays kept: it is somebody else's.
fn settled<R>(
    context: &CudaContext,
    calls: impl FnOnce() -> Result<R, BackendError>,
) -> Result<R, BackendError> {
    let before: Result<(), DriverError> = context.check_err();
    let outcome = calls();
    let kept = checked(context.check_err(), "cuStreamWaitEvent");
    context.record_err(before);
    outcome.and_then(|value| kept.map(|()| value))
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({} bytes)", self.len_bytes)
    }
}
