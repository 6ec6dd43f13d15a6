//! Arrays in managed memory.

use ndarray::{ArrayBase, ArrayRef, Data, Dimension, ShapeBuilder};

use super::super::device_array::DeviceArray;
use super::super::layout::Layout;
use super::super::smart::SmartArray;
use super::constructors::constructors;
use crate::audit::Cause;
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer;
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::{AdviceChange, MemoryAdvice, PrefetchTarget};
use resident_core::Access;

/// An array in managed memory (unified memory), whose pages the driver moves between the host and
/// one device when either accesses them. Numba's `managed_array`, CUDA's `cuMemAllocManaged`.
///
/// Kernels on that device take it as they take a [`DeviceArray`], and it dereferences to one. The
/// host accesses it through guards, which wait for queued work that uses it, as those of a
/// [`SmartArray`] do. Pages that are not where they are accessed arrive one by one, slowly, unless
/// [`prefetch`](Self::prefetch) or [`prefetch_host_on`](Self::prefetch_host_on) moves them ahead of
/// the use; no report counts them. A [`SmartArray`] copies large blocks instead.
///
/// Where the host must not access managed memory while any kernel runs (Windows, WSL, Jetson), the
/// library refuses to make one. It is never larger than what the device has free, and counts as
/// [`in_use`](crate::Memory::in_use) there. On the embedded device it is ordinary memory.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, ManagedArray};
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let device = Device::cpu();
/// let _here = device.enter();
/// let mut frame = ManagedArray::<f32, _>::zeros((4, 100))?;
/// frame.host_mut()?.fill(1.5);
/// frame.prefetch(&device.stream())?;
/// double.launch(Grid::cover(frame.len()), (&mut frame,))?;
/// frame.prefetch_host_on(&device.stream())?;                        // behind the kernel
/// assert_eq!(frame.host()?.sum(), 1200.0);                          // waits for both
/// # Ok::<(), resident::Error>(())
/// ```
pub struct ManagedArray<T: Element, D: Dimension> {
    pub(super) array: DeviceArray<T, D>,
}

/// How managed memory will be used, for [`ManagedArray::advise`]. CUDA's `CUmem_advise`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// The array is mostly read. Each reader gets copies of the pages, which a write removes.
    ReadMostly,
    /// Where pages stay if they can, and are accessed from elsewhere.
    PreferredLocation(MemoryLocation),
    /// Who accesses the array, without moving its pages.
    AccessedBy(MemoryLocation),
}

/// A memory, or the processors beside it. CUDA's `CUmemLocation`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryLocation {
    /// The host.
    Host,
    /// A device of the kind of the array's device.
    Device(Device),
}

/// Managed memory has no options.
#[derive(Default)]
struct NoOptions;

impl<T: Element, D: Dimension> ManagedArray<T, D> {
    constructors!(
        ManagedArray, NoOptions, "managed memory of the current device",
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the device has less memory free, or
        ///   [`Device::set_memory_limit`] allows less.
        /// - [`Backend`](crate::Error::Backend) if the driver refuses, or if the host must not
        ///   access managed memory while kernels run on the device;
        ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    );

    #[track_caller]
    fn allocated(array: SmartArray<T, D>, _: NoOptions, site: CallSite) -> Result<Self> {
        let device = Device::current().at(site)?;
        let request =
            array.request(Access::Overwrite, Cause::Explicit, "allocating managed memory", site);
        transfer::allocate_managed(&request, &device)?;
        Ok(Self { array: DeviceArray::over(array, &device.current_stream()) })
    }

    /// The zeros are a constant, with which the first user fills the memory.
    #[track_caller]
    fn with_zeros(array: SmartArray<T, D>, options: NoOptions, site: CallSite) -> Result<Self> {
        let made = Self::allocated(array, options, site)?;
        made.array.part().fill(T::zeroed(), site)?;
        Ok(made)
    }

    /// Moves the pages to the device, in the order of `stream`, after the work that writes them.
    /// CUDA's `cuMemPrefetchAsync`. Contents do not change.
    ///
    /// # Errors
    ///
    /// - [`WrongDevice`](crate::Error::WrongDevice) if `stream` belongs to another device.
    /// - [`Lost`](crate::Error::Lost) if work that should have written some elements failed.
    /// - [`Backend`](crate::Error::Backend) if the driver refuses;
    ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn prefetch(&self, stream: &Stream) -> Result<()> {
        self.prefetch_to(stream, PrefetchTarget::Device, "prefetch", call_site())
    }

    /// As [`prefetch`](Self::prefetch), to the host.
    ///
    /// # Errors
    ///
    /// As [`prefetch`](Self::prefetch).
    #[track_caller]
    pub fn prefetch_host_on(&self, stream: &Stream) -> Result<()> {
        self.prefetch_to(stream, PrefetchTarget::Host, "prefetch_host_on", call_site())
    }

    fn prefetch_to(
        &self,
        stream: &Stream,
        to: PrefetchTarget,
        operation: &str,
        site: CallSite,
    ) -> Result<()> {
        let part = self.array.part();
        part.expect_home(self.array.home(), stream, operation, site)?;
        part.with(Access::Read, Cause::Prefetch, operation, site, |request| {
            transfer::prefetch_managed(request, stream, to)
        })
    }

    /// Tells the driver how the array will be used, at once. CUDA's `cuMemAdvise`. Contents do not
    /// change.
    ///
    /// ```
    /// use resident::{Advice, Device, ManagedArray, MemoryLocation};
    ///
    /// let _here = Device::cpu().enter();
    /// let table = ManagedArray::<f32, _>::zeros(1000)?;
    /// table.advise(&Advice::PreferredLocation(MemoryLocation::Host))?;
    /// table.withdraw_advice(&Advice::PreferredLocation(MemoryLocation::Host))?;
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`WrongDevice`](crate::Error::WrongDevice) if the advice names a device of another kind.
    /// - [`Backend`](crate::Error::Backend) if the driver refuses;
    ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn advise(&self, advice: &Advice) -> Result<()> {
        self.change_advice(advice, AdviceChange::Set, "advise", call_site())
    }

    /// Takes advice back. CUDA's `CU_MEM_ADVISE_UNSET_..`.
    ///
    /// # Errors
    ///
    /// As [`advise`](Self::advise).
    #[track_caller]
    pub fn withdraw_advice(&self, advice: &Advice) -> Result<()> {
        self.change_advice(advice, AdviceChange::Unset, "withdraw_advice", call_site())
    }

    fn change_advice(
        &self,
        advice: &Advice,
        change: AdviceChange,
        operation: &str,
        site: CallSite,
    ) -> Result<()> {
        let place = |location: &MemoryLocation| match location {
            MemoryLocation::Host => Ok(None),
            MemoryLocation::Device(device) => {
                self.expect_kind(device, operation, site)?;
                Ok(Some(device.ordinal()))
            }
        };
        let advice = match advice {
            Advice::ReadMostly => MemoryAdvice::ReadMostly,
            Advice::PreferredLocation(location) => {
                MemoryAdvice::PreferredLocation(place(location)?)
            }
            Advice::AccessedBy(location) => MemoryAdvice::AccessedBy(place(location)?),
        };
        self.array.part().with(Access::Read, Cause::Explicit, operation, site, |request| {
            transfer::advise(request, self.array.home(), advice, change)
        })
    }

    fn expect_kind(&self, device: &Device, operation: &str, site: CallSite) -> Result<()> {
        let home = self.array.home();
        if device.kind() == home.kind() {
            return Ok(());
        }
        let storage = self.array.part().storage;
        Err(transfer::wrong_device(storage, home, operation, device.name()).at(site))
    }
}
