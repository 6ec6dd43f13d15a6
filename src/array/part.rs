//! Implements the methods of `SmartArray`, `SmartView` and `SmartViewMut` in terms of `transfer`.

use std::marker::PhantomData;

use ndarray::{Dimension, Ix0};

use super::device_guard::{DeviceMut, DevicePart, DeviceRef};
use super::host_guard::{HostMut, HostRef};
use super::layout::{Layout, element_bytes};
use super::pending::{Pending, elements_of};
use crate::audit::{Cause, Residency};
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result, fitting};
use crate::storage::{ArrayState, HostBuffer, OpenRead, Storage};
use crate::transfer::{
    self, CallerWaits, CopyCall, Opened, ReadAt, Request, SnapshotCall, StoredView, Target,
};
use resident_backend::call_site::CallSite;
use resident_backend::{Address, Bytes, Dependencies, failure};
use resident_core::Access;
use resident_core::coherence::{Content, Location, Undefined};
use resident_core::ordering::UseEnd;

/// A part of an array, borrowed for `'a`. Methods that write need an exclusive borrow: only `&mut
/// self` methods of `SmartArray` and `SmartViewMut` may call them.
#[derive(Debug)]
pub(super) struct Part<'a, 'l, T, D> {
    /// Guards may live as long as this borrow.
    pub(super) storage: &'a Storage,
    pub(super) layout: &'l Layout<D>,
    /// The part's elements, which may be fields of the array's elements.
    element: PhantomData<fn() -> T>,
}

// Not derived, since a derived implementation would require `D: Copy`.
impl<T, D> Copy for Part<'_, '_, T, D> {}

impl<T, D> Clone for Part<'_, '_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, 'l, T: Element, D: Dimension> Part<'a, 'l, T, D> {
    #[inline]
    pub(super) fn of(storage: &'a Storage, layout: &'l Layout<D>) -> Self {
        Self { storage, layout, element: PhantomData }
    }

    #[inline]
    pub(super) fn with<R>(
        &self,
        access: Access,
        cause: Cause,
        operation: &str,
        site: CallSite,
        serve: impl FnOnce(&Request<'_>) -> R,
    ) -> R {
        self.stored_view().with_selection(|selection| {
            serve(&Request::new(self.storage, selection, access, cause, operation, site))
        })
    }

    #[inline]
    pub(super) fn stored_view(&self) -> StoredView<'l>
    where
        'a: 'l,
    {
        self.layout.stored_in::<T>(self.storage)
    }

    /// Whether a device accesses the array's host memory itself.
    pub(super) fn is_host_mapped(&self) -> bool {
        self.storage.lock().is_host_mapped()
    }

    // Methods of the host's copy. The caller chooses the guards' lifetime within the array's
    // borrow, since the guards of a view may outlive the view. Reads take `self` by value, so that
    // its two pointers stay in registers.

    #[inline]
    pub(super) fn host<'g>(self, site: CallSite) -> Result<HostRef<'g, T, D>>
    where
        'a: 'g,
    {
        let base = match self.storage.published.ready_on_host() {
            Some(base) => base,
            None => self.bring_to_host(site)?,
        };
        // SAFETY: the part is valid on the host now, in memory that starts at `base`: the whole
        // array was, or `bring_to_host` made it valid. The caller's shared borrow excludes the
        // `&mut` methods that make the part stale, and copies never write elements that are valid
        // at their destination. So nothing writes the part for 'g.
        Ok(HostRef::new(unsafe { self.layout.view(base) }, self.storage))
    }

    pub(super) fn try_host<'g>(self, site: CallSite) -> Result<Option<HostRef<'g, T, D>>>
    where
        'a: 'g,
    {
        let is_ready = self.storage.published.ready_on_host().is_some()
            || self.with(Access::Read, Cause::Host, "try_host", site, transfer::is_host_at_hand)?;
        if is_ready { self.host(site).map(Some) } else { Ok(None) }
    }

    /// Keeps the contents of a part of a number.
    pub(super) fn discard(&self, site: CallSite) {
        if !self.stored_view().has_whole_numbers() {
            return;
        }
        self.with(Access::Overwrite, Cause::Explicit, "discard", site, transfer::discard);
    }

    pub(super) fn to_vec(self, site: CallSite) -> Result<Vec<T>> {
        let host = self.host(site)?;
        elements_of(&host).map_err(|requested| self.host_full(requested, site))
    }

    fn host_full(&self, requested: u64, site: CallSite) -> Error {
        // Of a view that repeats elements it needs more bytes than the array has.
        let copy = format!("a copy of shape {:?} of {}", self.layout.shape(), self.storage.named());
        Error::host_full(&copy, requested).at(site)
    }

    /// Makes the part valid on the host, and returns the start of the host's memory.
    #[cold]
    fn bring_to_host(self, site: CallSite) -> Result<*mut u8> {
        self.with(Access::Read, Cause::Host, "host", site, transfer::acquire_host)?;
        Ok(self.storage.host_base())
    }

    pub(super) fn host_mut<'g>(&self, access: Access, site: CallSite) -> Result<HostMut<'g, T, D>>
    where
        'a: 'g,
    {
        let operation = if access == Access::Overwrite { "host_overwrite" } else { "host_mut" };
        self.stored_view().expect_whole_numbers(operation, site)?;
        let write = self.with(access, Cause::Host, operation, site, transfer::write_on_host)?;
        let base = self.storage.host_base();
        // SAFETY: `write_on_host` waited for all queued work that uses the part on the host, and
        // the memory was zeroed or written when it was allocated. The caller's exclusive borrow
        // excludes every other access for 'g. Work queued during 'g writes no element that is valid
        // on the host, and reads the host's elements only for accesses that the borrow excludes.
        Ok(HostMut { view: unsafe { self.layout.view_mut(base) }, write })
    }

    /// Marks the host's copy as newest after the program wrote it through a pointer.
    pub(super) fn host_changed(&self, site: CallSite) -> Result<()> {
        self.stored_view().expect_whole_numbers("host_changed", site)?;
        self.with(Access::ReadWrite, Cause::Host, "host_changed", site, |request| {
            self.expect_newest(|state| Some(state.host_location()), "the host").at(site)?;
            transfer::write_on_host(request).map(drop)
        })
    }

    /// Returns an error unless the newest contents of the whole part are at `location`, which is
    /// `None` for a device without a copy.
    fn expect_newest(
        &self,
        location: impl FnOnce(&ArrayState) -> Option<Location>,
        changed: &str,
    ) -> Result<()> {
        let memory_order = self.storage.memory_order();
        let selection = self.stored_view().selection();
        if memory_order.is_empty() || selection.is_empty() {
            return Ok(());
        }
        let mut state = self.storage.lock();
        state.reconcile(memory_order);
        let location = location(&state);
        let mut is_newest = location.is_some();
        selection.for_each_region(memory_order, |region| {
            is_newest = is_newest
                && location.is_some_and(|location| state.coherence.is_valid(location, region));
        });
        if is_newest {
            return Ok(());
        }
        let mut holders = std::collections::BTreeSet::new();
        selection.for_each_region(memory_order, |region| {
            state.coherence.visit_contents(region, |_, content| {
                holders.extend(describe_newest(&state, content));
            });
        });
        drop(state);
        let newest = holders.into_iter().collect::<Vec<_>>().join(" and ");
        Err(transfer::lost_update(self.storage, changed.to_owned(), newest))
    }

    // Methods of a device's copy.

    #[inline]
    pub(super) fn gpu_on<'g>(self, stream: &Stream, site: CallSite) -> Result<DeviceRef<'g, T, D>>
    where
        'a: 'g,
    {
        let is_whole = self.stored_view().is_whole();
        let published = &self.storage.published;
        let known =
            if is_whole { published.reader_address(stream.id().0, failure::epoch()) } else { None };
        let (base, read) = match known {
            Some(base) => (base, None),
            None => self.bring_to_device(stream, site)?,
        };
        Ok(DeviceRef {
            part: DevicePart::new::<T>(self.storage, self.layout, base, stream),
            _read: read,
            element: PhantomData,
        })
    }

    #[cold]
    fn bring_to_device(self, stream: &Stream, site: CallSite) -> Result<(u64, Option<OpenRead>)> {
        self.with(Access::Read, Cause::Gpu, "gpu", site, |request| {
            let opened = transfer::open_guard(request, stream)?;
            Ok((opened.address.0, opened.read))
        })
    }

    pub(super) fn gpu_mut_on<'g>(
        &self,
        access: Access,
        stream: &Stream,
        site: CallSite,
    ) -> Result<DeviceMut<'g, T, D>>
    where
        'a: 'g,
    {
        let operation = if access == Access::Overwrite { "gpu_overwrite" } else { "gpu_mut" };
        self.stored_view().expect_whole_numbers(operation, site)?;
        let Opened { location, address: Address(base), .. } =
            self.with(access, Cause::Gpu, operation, site, |request| {
                transfer::open_guard(request, stream)
            })?;
        let part = DevicePart::new::<T>(self.storage, self.layout, base, stream);
        Ok(DeviceMut::new(part, location))
    }

    /// Marks the device's copy as newest after external work queued on `stream` changed it.
    pub(super) fn gpu_changed_on(&self, stream: &Stream, site: CallSite) -> Result<()> {
        self.stored_view().expect_whole_numbers("gpu_changed", site)?;
        self.with(Access::ReadWrite, Cause::Gpu, "gpu_changed", site, |request| {
            if self.storage.memory_order().is_empty() || request.selection.is_empty() {
                return Ok(());
            }
            let device = stream.device_ref();
            let location = |state: &ArrayState| state.find_location(device);
            self.expect_newest(location, &device.name()).at(site)?;
            let mut depends = Dependencies::new();
            let acquired = transfer::acquire_on(request, stream, &mut depends)?;
            let upto = UseEnd::at(stream.raw().reserve_position());
            transfer::mark_foreign(request, stream, acquired, upto, depends)
        })
    }

    // Operations that are performed where the newest contents are.

    pub(super) fn fill(&self, value: T, site: CallSite) -> Result<()> {
        self.with_constants(&value, "fill", site, |request, value| {
            transfer::fill(request, value);
            Ok(())
        })
    }

    pub(super) fn fill_on(&self, stream: &Stream, value: T, site: CallSite) -> Result<()> {
        self.with_constants(&value, "fill_on", site, |request, value| {
            transfer::fill_on(request, stream, value)
        })
    }

    /// Calls `serve` with the constants that fill the part: with one, unless the array's elements
    /// are smaller.
    fn with_constants(
        &self,
        value: &T,
        operation: &str,
        site: CallSite,
        mut serve: impl FnMut(&Request<'_>, Bytes) -> Result<()>,
    ) -> Result<()> {
        let (stored, value) = (self.stored_view(), bytes_of(value));
        if stored.has_fields() {
            let (access, cause) = (Access::Overwrite, Cause::Explicit);
            return self
                .with(access, cause, operation, site, |request| serve(request, value.clone()));
        }
        stored.expect_whole_numbers(operation, site)?;
        let mut filled_bytes = 0;
        for (view, constant) in stored.constants(&value) {
            let element_bytes = constant.len() as u32;
            let view = StoredView { view: view.strided(), element_bytes, ..stored };
            let selection = view.selection();
            let request = view.request(&selection, Access::Overwrite, operation, site);
            serve(&request, Bytes::from_slice(constant))
                .map_err(|error| error.after_writing(filled_bytes))?;
            filled_bytes += selection.len_bytes(self.storage.memory_order());
        }
        Ok(())
    }

    pub(super) fn get(&self, index: &[usize], site: CallSite) -> Result<T> {
        if let Some(value) = self.get_newest(index, site) {
            return Ok(value);
        }
        let layout = self.element(index, "get", site)?;
        let element = Part::<T, Ix0>::of(self.storage, &layout);
        let (stored, selection) = (element.stored_view(), element.stored_view().selection());
        if !stored.has_fields() {
            return Ok(element.copy_now(None, "get", site)?.into_scalar());
        }
        match transfer::read_element(&stored.request(&selection, Access::Read, "get", site))? {
            Some(bytes) if size_of::<T>() > 0 => Ok(bytemuck::pod_read_unaligned(&bytes)),
            Some(_) => Ok(T::zeroed()),
            // Its fields are in different places.
            None => Ok(element.copy_now(None, "get", site)?.into_scalar()),
        }
    }

    /// The element, if the whole array can be read on the host, or is newest on one device.
    fn get_newest(&self, index: &[usize], site: CallSite) -> Option<T> {
        let offset = self.layout.element(index)?;
        if size_of::<T>() == 0 {
            return None;
        }
        if let Some(base) = self.storage.published.ready_on_host() {
            let element = base.cast::<T>().wrapping_add(offset);
            // SAFETY: the whole array is valid on the host: `ready_on_host` returned its start, and
            // host memory is aligned for its elements and their fields. `Layout::element` checked
            // the index. The caller's shared borrow excludes the `&mut` methods that write the
            // element, and copies never write elements that are valid at their destination.
            return Some(unsafe { element.read() });
        }
        let mut value = T::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut value);
        transfer::read_newest(self.storage, offset, bytes, site).then_some(value)
    }

    /// Writes one element where it is newest; on `stream`'s device, if a stream is given.
    pub(super) fn set(
        &self,
        stream: Option<&Stream>,
        index: &[usize],
        value: T,
        site: CallSite,
    ) -> Result<()> {
        let layout = self.element(index, "set", site)?;
        let element = layout.stored_in::<T>(self.storage);
        if !element.has_fields() {
            let element = Part::<T, Ix0>::of(self.storage, &layout);
            return match stream {
                Some(stream) => element.fill_on(stream, value, site),
                None => element.fill(value, site),
            };
        }
        let selection = element.selection();
        let request = element.request(&selection, Access::Overwrite, "set", site);
        transfer::write_element(&request, stream, bytes_of(&value))
    }

    /// Allocates the array's memory on `stream`'s device. Its contents do not change.
    pub(super) fn allocate_on(&self, stream: &Stream, site: CallSite) -> Result<()> {
        self.with(Access::Overwrite, Cause::Explicit, "uninit", site, |request| {
            transfer::allocate(request, stream)
        })
    }

    /// Returns an error unless `stream` is one of the device array's device.
    pub(super) fn expect_home(
        &self,
        home: &Device,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<()> {
        if stream.device_ref() == home {
            return Ok(());
        }
        let other = stream.device_ref().name();
        Err(transfer::wrong_device(self.storage, home, operation, other).at(site))
    }

    fn element(&self, index: &[usize], operation: &str, site: CallSite) -> Result<Layout<Ix0>> {
        let offset = self.layout.element(index).ok_or_else(|| Error::Shape {
            call: site.into(),
            operation: format!("{operation} of {}", self.storage.named()),
            expected: format!("an index below its shape {:?}", self.layout.shape()),
            seen: format!("{index:?}"),
            instead: fitting::no_element(index, self.layout.shape()).into(),
        })?;
        Ok(Layout::new(Ix0(), &[], offset))
    }

    pub(super) fn assign<E: Dimension>(
        &self,
        source: Part<'_, '_, T, E>,
        target: Target<'_>,
        site: CallSite,
    ) -> Result<()> {
        self.stored_view().expect_whole_numbers("assign", site)?;
        let (to, from) = (self.layout.shape(), source.layout.shape());
        if to != from {
            let describe = |shape: &[usize], storage: &Storage| {
                format!("{shape:?}, the shape of {}", storage.named())
            };
            return Err(Error::Shape {
                call: site.into(),
                operation: String::from("assign"),
                expected: describe(to, self.storage) + ",",
                seen: describe(from, source.storage),
                instead: fitting::to_broadcast(from, to).into(),
            });
        }
        if source.layout.is_broadcast() {
            return self.assign_repeated(source, target, site);
        }
        transfer::assign(self.stored_view(), source.stored_view(), target, site)
    }

    /// As [`assign`](Self::assign), from a source that broadcasts to the shape, as ndarray's does.
    pub(super) fn assign_broadcast<E: Dimension>(
        &self,
        source: Part<'_, '_, T, E>,
        target: Target<'_>,
        site: CallSite,
    ) -> Result<()> {
        if self.layout.shape() != source.layout.shape()
            && let Some(layout) = source.layout.broadcast(self.layout.dim())
        {
            let source = Part { layout: &layout, storage: source.storage, element: PhantomData };
            return self.assign(source, target, site);
        }
        self.assign(source, target, site)
    }

    /// Assigns the elements of a broadcast source along a repeated axis: to its first index, then
    /// from the indices that have them to as many more. So 1,000 repetitions take 11 copies, of
    /// which one reads the source. If a later one is refused, the error counts the bytes of those
    /// before.
    fn assign_repeated<E: Dimension>(
        &self,
        source: Part<'_, '_, T, E>,
        target: Target<'_>,
        site: CallSite,
    ) -> Result<()> {
        let Some(axis) = source.layout.repeated_axis() else { return Ok(()) };
        let len = self.layout.shape()[axis];
        let (first, once) = (self.layout.along(axis, 0, 1), source.layout.along(axis, 0, 1));
        let to = Part { layout: &first, ..*self };
        to.assign(Part { layout: &once, ..source }, target, site)?;
        let index_bytes = first.len() as u64 * u64::from(element_bytes::<T>());
        let mut assigned = 1;
        while assigned < len {
            let more = assigned.min(len - assigned);
            let from = self.layout.along(axis, 0, more);
            let part = self.layout.along(axis, assigned, more);
            let to = Part { layout: &part, ..*self };
            let outcome = to.assign(Part { layout: &from, ..*self }, target, site);
            outcome.map_err(|error| error.after_writing(assigned as u64 * index_bytes))?;
            assigned += more;
        }
        Ok(())
    }

    pub(super) fn copy_from_slice(&self, elements: &[T], site: CallSite) -> Result<()> {
        if elements.len() != self.layout.len() {
            return Err(Error::Shape {
                call: site.into(),
                operation: format!("copy_from_slice to {}", self.storage.named()),
                expected: format!("{} elements", self.layout.len()),
                seen: format!("{}", elements.len()),
                instead: match elements.get(..self.layout.len()) {
                    Some(_) => format!("pass a part: `&elements[..{}]`", self.layout.len()),
                    None => String::from("pass more, or write to a part (`slice_mut`)"),
                }
                .into(),
            });
        }
        let mut host = self.host_mut(Access::Overwrite, site)?;
        match host.as_slice_mut() {
            Some(slice) => slice.copy_from_slice(elements),
            None => host.iter_mut().zip(elements).for_each(|(to, from)| *to = *from),
        }
        Ok(())
    }

    pub(super) fn no_sections(&self, section: usize) -> Error {
        Error::Shape {
            call: CalledAt::UNKNOWN,
            operation: format!("split of {}", self.storage.named()),
            expected: String::from("an axis, and sections of at least 1 index"),
            seen: format!("{section} of {:?}", self.layout.shape()),
            instead: "split an array that has axes, into sections of at least 1 index".into(),
        }
    }

    // Asynchronous copies.

    pub(super) fn prefetch(&self, stream: &Stream, site: CallSite) -> Result<()> {
        self.with(Access::Read, Cause::Prefetch, "prefetch", site, |request| {
            let (request, depends) = (request.ahead_of_use(), &mut Dependencies::new());
            transfer::acquire_on(&request, stream, depends).map(drop)
        })
    }

    pub(super) fn prefetch_host(
        &self,
        stream: Option<&Stream>,
        operation: &str,
        site: CallSite,
    ) -> Result<()> {
        self.with(Access::Read, Cause::Prefetch, operation, site, |request| {
            transfer::prefetch_host(request, stream)
        })
    }

    pub(super) fn snapshot_on(
        &self,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<Pending<ndarray::Array<T, D>>> {
        let stream = Some(stream);
        self.start_snapshot(SnapshotCall { stream, waits: CallerWaits::Later, operation, site })
    }

    /// Whether a device may copy the elements to `to` itself, if one of the two is pinned.
    pub(super) fn is_copied_directly(&self, to: &Part<'_, '_, T, D>) -> bool {
        !self.layout.is_broadcast()
            && to.layout.is_aligned_with(self.layout)
            && self.stored_view().has_fields()
            && to.stored_view().has_fields()
    }

    /// Overwrites `to`, of the same shape, with the present contents.
    pub(super) fn snapshot_into(
        &self,
        stream: &Stream,
        to: &Part<'_, '_, T, D>,
        site: CallSite,
    ) -> Result<()> {
        let operation = "snapshot_into";
        self.expect_shape(to.layout.shape(), operation, site)?;
        let is_direct = self.is_copied_directly(to);
        let read_at = if is_direct {
            let call = CopyCall { operation, site };
            transfer::snapshot_to_pinned(to.stored_view(), self.stored_view(), stream, call)?
        } else {
            ReadAt::Elsewhere
        };
        match read_at {
            ReadAt::Device => {}
            ReadAt::Host => {
                let elements = self.host(site)?;
                to.host_mut(Access::Overwrite, site)?.assign(&elements);
            }
            ReadAt::Elsewhere => {
                // First all that can fail, so that an error leaves the contents as they are.
                let elements = self.copy_now(Some(stream), operation, site)?;
                to.host_mut(Access::Overwrite, site)?.assign(&elements);
            }
        }
        Ok(())
    }

    /// The elements as an array of the host, for which this waits.
    pub(super) fn copy_to_host(
        &self,
        stream: &Stream,
        site: CallSite,
    ) -> Result<ndarray::Array<T, D>> {
        self.copy_now(Some(stream), "copy_to_host", site)
    }

    /// As [`copy_to_host`](Self::copy_to_host), under a name for messages. If work that should have
    /// written the elements failed, and they are valid elsewhere, they are copied again from there.
    fn copy_now(
        &self,
        stream: Option<&Stream>,
        operation: &str,
        site: CallSite,
    ) -> Result<ndarray::Array<T, D>> {
        let call = SnapshotCall { stream, waits: CallerWaits::AtOnce, operation, site };
        let distinct = self.layout.distinct();
        let part = Part { layout: &distinct, ..*self };
        loop {
            let copy = self.start_snapshot(call)?;
            let has_arrived =
                part.with(Access::Read, Cause::Explicit, operation, site, |request| {
                    transfer::wait_for_arrival(request, copy.queued())
                });
            if has_arrived? {
                return copy.wait_at(site);
            }
        }
    }

    fn start_snapshot(&self, call: SnapshotCall<'_>) -> Result<Pending<ndarray::Array<T, D>>> {
        let distinct = self.layout.distinct();
        let copied = distinct.packed();
        let len_bytes = copied.len() as u64 * u64::from(element_bytes::<T>());
        let buffer = HostBuffer::zeroed::<T>(copied.len())
            .ok_or_else(|| self.host_full(len_bytes, call.site))?;
        let view = Part { layout: &distinct, ..*self }.stored_view();
        let snapshot = transfer::snapshot(view, copied.strided(), buffer, call)?;
        Ok(Pending::new(snapshot, self.storage.named(), &copied, self.layout.dim()))
    }

    pub(super) fn residency(&self) -> Residency {
        let memory_order = self.storage.memory_order();
        let selection = self.stored_view().selection();
        let state = self.storage.lock();
        let validities = state.validities_of(memory_order, &selection);
        let devices = state
            .devices()
            .map(|(location, device)| (device.clone(), validities[location.index()]))
            .collect();
        Residency::new(validities[state.host_location().index()], devices)
    }
}

impl<T: Element, D: Dimension> Part<'_, '_, T, D> {
    /// The stream for methods without a stream argument.
    pub(super) fn current_stream(site: CallSite) -> Result<Stream> {
        Stream::current().at(site)
    }
}

/// The bytes of one element.
pub(super) fn bytes_of<T: Element>(value: &T) -> Bytes {
    Bytes::from_slice(bytemuck::bytes_of(value))
}

/// The names of the places where contents are newest, for a message.
fn describe_newest(state: &ArrayState, content: Content) -> Vec<String> {
    let locations = match content {
        Content::Undefined(Undefined::Never) => "nowhere, since it was never written",
        Content::Undefined(Undefined::Lost(_)) => "nowhere, since a failure lost them",
        Content::Constant { .. } => "a constant that is not in memory there yet",
        Content::Stored(holders) => {
            let describe = |location| match location {
                Location::HOST => "on the host".to_owned(),
                device => format!("on {}", *state.device_copy(device).device),
            };
            return holders.locations().iter().map(describe).collect();
        }
    };
    vec![locations.to_owned()]
}
