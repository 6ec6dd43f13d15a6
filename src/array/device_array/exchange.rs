//! Device memory that is handed to other code, and taken over from it.

use ndarray::Dimension;

use super::super::adopt;
use super::super::layout::{Layout, fits};
use super::super::smart::SmartArray;
use super::DeviceArray;
use crate::audit::Cause;
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use resident_backend::Address;
use resident_backend::call_site::CallSite;
use resident_core::Access;

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    /// The address of the array's memory, for other code that uses it in the order of `stream`; and
    /// the offset in bytes of the element with index 0, 0, ... The other code's use ends when it
    /// calls [`take_back`](Self::take_back). 0 if the array has no bytes.
    ///
    /// Writing takes the only handle of the array, which the caller keeps until then.
    pub(crate) fn hand_out(
        &self,
        access: Access,
        stream: &Stream,
        site: CallSite,
    ) -> Result<(Address, u64)> {
        let part = self.part();
        part.expect_home(&self.device, stream, "into_dlpack", site)?;
        // The other code keeps no account of contents.
        part.with(Access::Read, Cause::Gpu, "into_dlpack", site, |request| {
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
    pub(crate) fn take_back(&self, access: Access, stream: &Stream, site: CallSite) {
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
pub(crate) fn lowest_address<T, D: Dimension>(first: u64, layout: &Layout<D>) -> Option<u64> {
    let start = first.checked_sub((layout.offset() * size_of::<T>()) as u64)?;
    let end = start.checked_add((layout.len() * size_of::<T>()) as u64)?;
    let is_aligned = start.is_multiple_of(align_of::<T>() as u64);
    (start != 0 && is_aligned && usize::try_from(end).is_ok()).then_some(start)
}
