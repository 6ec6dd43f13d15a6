//! Device memory that is handed to other code, and taken over from it.

use std::sync::Arc;

use ndarray::Dimension;

#[cfg(feature = "dlpack")]
use super::super::adopt;
use super::super::layout::Layout;
#[cfg(feature = "dlpack")]
use super::super::layout::fits;
use super::super::smart::SmartArray;
use super::DeviceArray;
use crate::audit::{self, Cause};
use crate::device::{Stream, call_error};
use crate::element::Element;
use crate::error::{AtCall, Result};
use resident_backend::Address;
use resident_backend::call_site::CallSite;
use resident_core::Access;

/// A handle of an array whose memory other code uses. The use ends when it drops.
pub(crate) struct HandedOut<T: Element, D: Dimension> {
    /// The only handle, if the other code may write.
    array: Arc<DeviceArray<T, D>>,
    access: Access,
    stream: Stream,
    site: CallSite,
    /// Of the array's memory.
    start: Address,
    /// Of the element with index 0, 0, ... from the start.
    #[cfg_attr(not(feature = "dlpack"), expect(dead_code, reason = "only tensors have it"))]
    offset_bytes: u64,
}

impl<T: Element, D: Dimension> HandedOut<T, D> {
    /// For other code that uses the memory in the order of `stream`. `operation` is the call's name
    /// in messages. Writing takes the only handle of the array.
    pub(crate) fn new(
        array: Arc<DeviceArray<T, D>>,
        access: Access,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<Self> {
        let (start, offset_bytes) = array.hand_out(access, stream, operation, site)?;
        Ok(Self { array, access, stream: stream.clone(), site, start, offset_bytes })
    }

    /// As [`new`](Self::new), for other code that follows no stream: the contents are complete.
    pub(crate) fn waiting(
        array: Arc<DeviceArray<T, D>>,
        access: Access,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<Self> {
        array.hand_out(access, stream, operation, site)?;
        let waited = stream.wait_until(stream.raw().tail(), site);
        waited
            .map_err(|error| call_error(stream.device_ref(), "memory", "waiting", &error))
            .at(site)?;
        // Returns an error if the work that wrote the elements failed.
        Self::new(array, access, stream, operation, site)
    }

    #[cfg(feature = "dlpack")]
    pub(crate) fn array(&self) -> &DeviceArray<T, D> {
        &self.array
    }

    #[cfg(feature = "dlpack")]
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// The start of the memory; null if the array has no bytes.
    pub(crate) fn data(&self) -> *mut u8 {
        match self.array.len_bytes() {
            0 => std::ptr::null_mut(),
            _ => self.array.device.backend().hand_out(self.start),
        }
    }
}

impl<T: Element, D: Dimension> Drop for HandedOut<T, D> {
    fn drop(&mut self) {
        // The drop may be called by a function of C, out of which no subscriber may unwind. The
        // thread's next call reports what was copied.
        let _held = audit::hold_reports();
        self.array.take_back(self.access, &self.stream, self.site);
    }
}

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    /// The address of the array's memory, for other code that uses it in the order of `stream`; and
    /// the offset in bytes of the element with index 0, 0, ... The other code's use ends when it
    /// calls [`take_back`](Self::take_back). 0 if the array has no bytes.
    ///
    /// Writing takes the only handle of the array, which the caller keeps until then.
    fn hand_out(
        &self,
        access: Access,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<(Address, u64)> {
        let part = self.part();
        part.expect_home(&self.device, stream, operation, site)?;
        // The other code keeps no account of contents.
        part.with(Access::Read, Cause::Gpu, operation, site, |request| {
            request.expect_written(&self.device)
        })?;
        let first = if access.writes() {
            *part.gpu_mut_on(access, stream, site)?.part.address()
        } else {
            *part.gpu_on(stream, site)?.part.address()
        };
        let offset_bytes = (part.layout.offset() * size_of::<T>()) as u64;
        part.storage.mark_lent();
        Ok((Address(first - offset_bytes), offset_bytes))
    }

    /// Marks the work that other code has queued on `stream` as a use of the array.
    fn take_back(&self, access: Access, stream: &Stream, site: CallSite) {
        // Refused only if the device died or the contents are lost; the memory is freed all the
        // same.
        if access.writes() {
            let _refused = self.part().gpu_changed_on(stream, site);
        } else {
            // The guard's use ends behind the work that is on the stream now.
            let _refused = self.part().gpu_on(stream, site).map(drop);
        }
    }

    /// An array over memory of `stream`'s device, whose contents are complete once the work queued
    /// on the stream so far is complete. The layout has no gaps.
    pub(crate) fn over_memory(
        layout: Layout<D>,
        stream: &Stream,
        address: Address,
        site: CallSite,
    ) -> Self {
        Self::over(SmartArray::over_memory(layout, stream.clone(), address, site), stream)
    }
}

/// The layout of memory of other code that has this shape and these strides, in elements; row-major
/// without strides. `Err` with what is expected if there is none without gaps.
#[cfg(feature = "dlpack")]
pub(crate) fn layout_without_gaps<T: Element, D: Dimension>(
    dim: D,
    strides: Option<&[isize]>,
) -> std::result::Result<Layout<D>, String> {
    if !fits::<T>(dim.slice()) {
        return Err(format!("a shape of at most {} bytes", isize::MAX));
    }
    let rows = dim.default_strides();
    let mut own: Vec<isize> = rows.slice().iter().map(|stride| *stride as isize).collect();
    let given = strides.into_iter().flatten().zip(dim.slice()).zip(&mut own);
    // The stride of a single index has no meaning, and may be too large to be calculated with.
    given.filter(|((_, len), _)| **len > 1).for_each(|((given, _), own)| *own = *given);
    let Some((_, offset)) = adopt::memory_order::<T>(dim.slice(), &own) else {
        return Err("elements without gaps and repetitions; make a contiguous copy first".into());
    };
    Ok(Layout::new(dim, &own, offset))
}

/// The address of the lowest element, where the one with index 0, 0, ... is at `first`. `None` if
/// it is 0 or not aligned, or if elements lie outside of the address space.
#[cfg(feature = "dlpack")]
pub(crate) fn lowest_address<T, D: Dimension>(first: u64, layout: &Layout<D>) -> Option<u64> {
    let start = first.checked_sub((layout.offset() * size_of::<T>()) as u64)?;
    let end = start.checked_add((layout.len() * size_of::<T>()) as u64)?;
    let is_aligned = start.is_multiple_of(align_of::<T>() as u64);
    (start != 0 && is_aligned && usize::try_from(end).is_ok()).then_some(start)
}
