//! Host arrays of the user that are pinned or mapped for the time of a call.

use ndarray::{ArrayRef, Dimension};

use super::super::adopt;
use super::super::layout::Layout;
use super::super::smart::SmartArray;
use super::super::view::SmartViewMut;
use crate::audit::Cause;
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use crate::storage::{HostBuffer, Origin};
use crate::transfer;
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::sync;
use resident_core::Access;
use resident_core::layout::MemoryOrder;

/// Pins (page-locks) an array of the program for devices of the current device's kind, and lends it
/// to `run` as an exclusive view, which kernels and copies use without staging. Numba's
/// `cuda.pinned`.
///
/// Before the call returns, the newest contents are copied back to the array, all work that uses
/// its memory is complete, and it is unpinned; also if `run` returns an error or panics. The array
/// may have any axis order and direction, but no gaps.
///
/// The borrow shows that the memory is live and that nothing else uses it. So memory that was
/// freed, or is lent already, cannot be pinned: programs that try do not compile.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, ndarray::Array1, with_pinned};
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let _here = Device::cpu().enter();
/// let mut samples = Array1::<f32>::ones(1000);
/// with_pinned(&mut samples, |pinned| double.launch(Grid::cover(1000), (pinned,)))?;
/// assert_eq!(samples.sum(), 2000.0);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// The error of `run`; else:
///
/// - [`NoDevice`](crate::Error::NoDevice) if there is no current device.
/// - [`NotContiguous`](crate::Error::NotContiguous) if the array has gaps.
/// - [`Backend`](crate::Error::Backend) if the system refuses to pin more (`ulimit -l`), or if a
///   part of the memory, or of its first or last page, is registered with CUDA already.
/// - [`Lost`](crate::Error::Lost) or [`DeviceLost`](crate::Error::DeviceLost) if the newest
///   contents of some elements are lost; these elements then have old values.
/// - [`Backend`](crate::Error::Backend) if the device refused three times to copy newer contents
///   back; these elements then have old values.
/// - [`InsideKernel`](crate::Error::InsideKernel) inside a kernel body.
#[track_caller]
pub fn with_pinned<T: Element, D: Dimension, R>(
    array: &mut ArrayRef<T, D>,
    run: impl FnOnce(&mut SmartViewMut<'_, T, D>) -> Result<R>,
) -> Result<R> {
    let site = call_site();
    let device = Device::current().at(site)?;
    // SAFETY: `array` is borrowed for longer than this call, which does not use it before it has
    // ended the loan.
    let loan = unsafe { Loan::new(array, "with_pinned", site) }?;
    let request = loan.array.request(Access::Read, Cause::Explicit, "with_pinned", site);
    transfer::page_lock(&request, &device)?;
    loan.run(run)
}

/// Maps an array of the program to the current device, and lends it to `run` as an exclusive view,
/// whose memory the host and kernels on that device both access: nothing is copied between the two.
/// Numba's `cuda.mapped`; CUDA's `cuMemHostRegister` with `DEVICEMAP`.
///
/// Uses are ordered as those of any array: guards of the host wait for kernels. A GPU accesses the
/// memory over its link at each use: this suits what is used once, or rarely. Another device gets a
/// copy of its own. Before the call returns, the newest contents are in the array, all work that
/// uses its memory is complete, and it is unmapped; also if `run` returns an error or panics. The
/// array may have any axis order and direction, but no gaps.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, ndarray::Array1, with_mapped};
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let _here = Device::cpu().enter();
/// let mut samples = Array1::<f32>::ones(1000);
/// let sum = with_mapped(&mut samples, |mapped| {
///     double.launch(Grid::cover(1000), (&mut *mapped,))?;           // copies nothing
///     Ok(mapped.host()?.sum())                                      // waits for the kernel
/// })?;
/// assert_eq!((sum, samples.sum()), (2000.0, 2000.0));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// As [`with_pinned`]; and [`Backend`](crate::Error::Backend) if the device cannot map host memory.
#[track_caller]
pub fn with_mapped<T: Element, D: Dimension, R>(
    array: &mut ArrayRef<T, D>,
    run: impl FnOnce(&mut SmartViewMut<'_, T, D>) -> Result<R>,
) -> Result<R> {
    let site = call_site();
    let device = Device::current().at(site)?;
    // SAFETY: `array` is borrowed for longer than this call, which does not use it before it has
    // ended the loan.
    let loan = unsafe { Loan::new(array, "with_mapped", site) }?;
    let request = loan.array.request(Access::Overwrite, Cause::Explicit, "with_mapped", site);
    transfer::map_lent(&request, &device)?;
    loan.run(run)
}

/// An array over memory that the caller lends. The loan ends when this value drops, at the latest.
struct Loan<T: Element, D: Dimension> {
    array: SmartArray<T, D>,
    operation: &'static str,
    site: CallSite,
    is_ended: bool,
}

impl<T: Element, D: Dimension> Loan<T, D> {
    /// # Safety
    ///
    /// The memory of `array` is accessed only through the loan until it has dropped. The caller
    /// keeps the loan to itself and drops it.
    unsafe fn new(
        array: &mut ArrayRef<T, D>,
        operation: &'static str,
        site: CallSite,
    ) -> Result<Self> {
        transfer::expect_outside_kernels(operation, site)?;
        let Some((layout, memory_order)) = layout_of(array) else {
            return Err(has_gaps(array, operation, site));
        };
        let origin = match memory_order.len_bytes() {
            0 => Origin::Uninitialised,
            len_bytes => {
                let lowest = array.as_mut_ptr().wrapping_sub(layout.offset());
                // SAFETY: the array has no gaps (`layout_of`), so that its elements are the
                // initialised bytes from the lowest one on. The caller promises that nothing else
                // accesses them; `end` waits for queued work.
                Origin::Host(unsafe { HostBuffer::lent(lowest.cast(), len_bytes as usize) })
            }
        };
        let array = SmartArray::over(layout, memory_order, origin, site);
        Ok(Self { array, operation, site, is_ended: false })
    }

    /// Calls `run` with a view, and ends the loan.
    fn run<R>(mut self, run: impl FnOnce(&mut SmartViewMut<'_, T, D>) -> Result<R>) -> Result<R> {
        sync::assert_none_held();
        let outcome = run(&mut self.array.view_mut());
        let ended = self.end();
        outcome.and_then(|value| ended.map(|()| value))
    }

    fn end(&mut self) -> Result<()> {
        self.is_ended = true;
        let request =
            self.array.request(Access::ReadWrite, Cause::Explicit, self.operation, self.site);
        transfer::end_loan(&request)
    }
}

impl<T: Element, D: Dimension> Drop for Loan<T, D> {
    fn drop(&mut self) {
        if !self.is_ended {
            // The call returns another error, or panics.
            let _also = self.end();
        }
    }
}

fn layout_of<T: Element, D: Dimension>(array: &ArrayRef<T, D>) -> Option<(Layout<D>, MemoryOrder)> {
    let (memory_order, offset) = adopt::memory_order::<T>(array.shape(), array.strides())?;
    Some((Layout::new(array.raw_dim(), array.strides(), offset), memory_order))
}

fn has_gaps<T, D: Dimension>(array: &ArrayRef<T, D>, operation: &str, site: CallSite) -> Error {
    Error::NotContiguous {
        call: CalledAt::from(site),
        array: String::from("the array"),
        parameter: format!("the argument of `{operation}`"),
        layout: format!("shape {:?} and strides {:?}", array.shape(), array.strides()),
        instead: String::from("pass a copy without gaps: `as_standard_layout`"),
    }
}
