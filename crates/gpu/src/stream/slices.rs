//! cudarc's slices as device memory: an array takes a slice over, and gives a slice away.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut, DriverError};

use super::handle::GpuStreamHandle;
use crate::cudarc_contexts::checked;
use crate::driver::invalid;
use crate::memory::cudarc_slice::CudarcSlice;
use crate::memory::external::ExternalAllocation;
use crate::memory::pointer;
use resident_backend::{Address, BackendError, Label, LabelText, RawStream};

impl GpuStreamHandle {
    /// cudarc's object for this stream.
    fn cudarc_stream(&self) -> Result<&Arc<CudaStream>, BackendError> {
        let reason = || invalid("cudarc", "the stream is not on an NVIDIA GPU".to_owned());
        self.stream().ok_or_else(reason)
    }

    /// Takes a slice over. Work queued on this stream from now on runs after all work that the
    /// slice's owner queued with it.
    pub fn take_over<T: 'static>(&self, mut slice: CudaSlice<T>) -> Result<Address, BackendError> {
        let stream = self.cudarc_stream()?;
        let address = keeping_recorded_error(stream.context(), || {
            checked(stream.join(slice.stream()), "cuStreamWaitEvent")?;
            // The call orders this stream after the uses on other streams that cudarc tracks.
            // Dropping cudarc's guard records one of cudarc's events on this stream.
            let (address, guard) = slice.device_ptr_mut(stream);
            drop(guard);
            Ok(address)
        })?;
        let external = ExternalAllocation::Slice(CudarcSlice::new(slice));
        self.0.device.memory().insert_external(address, external)?;
        Ok(Address(address))
    }

    /// The number of the GPU to which memory belongs; `None` if the driver did not allocate it.
    pub fn gpu_of(&self, address: u64) -> Result<Option<usize>, BackendError> {
        self.0.device.context().make_current()?;
        Ok(pointer::device_ordinal(self.0.driver(), address))
    }

    /// Makes work queued here from now on run after the work queued on a stream of other code so
    /// far.
    ///
    /// # Safety
    ///
    /// The handle is that of a stream of this GPU's primary context.
    pub unsafe fn wait_for_handle(&self, handle: u64) -> Result<(), BackendError> {
        let stream = self.cudarc_stream()?;
        let handle = std::ptr::without_provenance_mut(handle as usize);
        // SAFETY: the caller promises that the handle is a stream of this context. It is used in
        // this call only.
        let other = unsafe { stream.context().wrap_borrowed_stream(handle) };
        keeping_recorded_error(stream.context(), || {
            checked(stream.join(&other), "cuStreamWaitEvent")
        })
    }

    /// The memory at an address as a slice, which owns it from now on: either the slice that was
    /// taken over, or a new slice over the library's memory. Work queued on this stream from now
    /// on, and uses of the slice, run after all earlier work on the memory. On `Err` the library
    /// keeps the memory.
    pub fn give_away<T: 'static>(
        &self,
        address: Address,
        len: usize,
    ) -> Result<CudaSlice<T>, BackendError> {
        let mut slice = match self.0.device.memory().take_external(address.0) {
            Some(external) => self.return_external(address, external)?,
            None => self.own_memory_as_slice(address, len)?,
        };
        let stream = Arc::clone(slice.stream());
        // cudarc's tracking records the tail of the slice's own stream, which was made to wait for
        // this stream, as the last use.
        let recorded = keeping_recorded_error(stream.context(), || {
            drop(slice.device_ptr_mut(&stream));
            Ok(())
        });
        if recorded.is_err() {
            // Without tracking, all work must be complete, so that there is nothing to track. If
            // waiting for a stream fails, its context is dead.
            let _complete = self.wait_before(&stream);
        }
        Ok(slice)
    }

    fn return_external<T: 'static>(
        &self,
        address: Address,
        external: ExternalAllocation,
    ) -> Result<CudaSlice<T>, BackendError> {
        let keep = |external| self.0.device.memory().insert_external(address.0, external);
        let slice = match external {
            ExternalAllocation::Slice(slice) => slice,
            external @ ExternalAllocation::Object { .. } => {
                keep(external)?;
                return Err(invalid("give_away", "another library owns the memory".to_owned()));
            }
        };
        if let Err(error) = self.make_wait(slice.stream()) {
            keep(ExternalAllocation::Slice(slice))?;
            return Err(error);
        }
        let other_type = || "the slice has elements of another type".to_owned();
        slice.downcast().ok_or_else(|| invalid("give_away", other_type()))
    }

    fn own_memory_as_slice<T>(
        &self,
        address: Address,
        len: usize,
    ) -> Result<CudaSlice<T>, BackendError> {
        let memory = self.0.device.memory();
        if memory.is_mapped(address) {
            let advice = "cudarc's slices cannot own mapped host memory or managed memory: give a \
                          `try_clone` away";
            return Err(invalid("give_away", String::from(advice)));
        }
        if memory.is_reserved(address) {
            let copy = self.copy_of_pages(address, (len * size_of::<T>()) as u64)?;
            let slice = self.own_memory_as_slice(copy, len);
            // The one of the two that the array does not need any more.
            let unused = if slice.is_ok() { address } else { copy };
            self.free(unused)?;
            return slice;
        }
        memory.check_live(address.0)?;
        let stream = self.cudarc_stream()?;
        keeping_recorded_error(stream.context(), || {
            // cudarc creates two events for the slice, and panics if the driver refuses, so this
            // first checks that the driver can create events.
            let events = [stream.context().new_event(None), stream.context().new_event(None)];
            events.into_iter().try_for_each(|event| checked(event, "cuEventCreate").map(drop))
        })?;
        memory.remove_live(address.0);
        // SAFETY: the address is that of live memory of at least `len` elements (the array's), and
        // `remove_live` took it from the library. The slice frees the memory as the library would:
        // by `cuMemFreeAsync`, or by `cuMemFree` on a device without pools. Its bytes are
        // initialised, and its elements are plain data.
        Ok(unsafe { stream.upgrade_device_ptr(address.0, len) })
    }
}

impl GpuStreamHandle {
    /// Copies committed pages to memory that a slice can free: cudarc does not unmap pages.
    fn copy_of_pages(&self, pages: Address, len_bytes: u64) -> Result<Address, BackendError> {
        let label = Label { text: LabelText::Text("memory of a slice".into()), site: None };
        let copy = self.allocate(len_bytes, &label)?;
        match self.copy_on_device(pages, copy, len_bytes) {
            Ok(()) => Ok(copy),
            Err(error) => self.free(copy).and(Err(error)),
        }
    }

    fn copy_on_device(
        &self,
        Address(from): Address,
        Address(to): Address,
        len_bytes: u64,
    ) -> Result<(), BackendError> {
        self.0.prepare_to_queue()?;
        let mut state = self.0.state();
        let (copy, stream) = (&self.0.driver().copy_on_device, self.0.raw_stream());
        // SAFETY: the context is current. Both memories have so many bytes, and frees of them are
        // queued here after the copy.
        let outcome = unsafe { (copy.function)(to, from, len_bytes as usize, stream) };
        self.0.record_death_locked(copy.check(outcome))?;
        self.0.next_position(&mut state);
        Ok(())
    }
}

/// Runs cudarc calls that store their errors in the context for the next caller, and returns the
/// first error of these calls. An error that was stored earlier is for other code and stays stored.
fn keeping_recorded_error<R>(
    context: &CudaContext,
    calls: impl FnOnce() -> Result<R, BackendError>,
) -> Result<R, BackendError> {
    let before: Result<(), DriverError> = context.check_err();
    let outcome = calls();
    let recorded = checked(context.check_err(), "cuStreamWaitEvent");
    context.record_err(before);
    outcome.and_then(|value| recorded.map(|()| value))
}
