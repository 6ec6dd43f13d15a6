//! What can be done with an array or a part of one: the work behind the methods of `SmartArray`,
//! `SmartView` and `SmartViewMut`.

use std::marker::PhantomData;

use ndarray::Dimension;

use super::guard::{DeviceMut, DeviceRef, HandedOut};
use super::host_guard::{HostMut, HostRef};
use super::layout::Layout;
use super::pending::Pending;
use crate::access::Access;
use crate::audit::{Cause, Residency};
use crate::backend::{Address, Bytes, Dependencies};
use crate::call_site::CallSite;
use crate::coherence::Location;
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::{Error, Result, Text};
use crate::layout::{Selection, Strided};
use crate::ordering::UseEnd;
use crate::storage::{HostBuffer, Storage};
use crate::transfer::{self, End, Request, Target};

/// A part of an array, borrowed for `'a`: shared or exclusively, as the caller's own borrow is.
/// Methods that write want the exclusive one; only `SmartArray`'s and `SmartViewMut`'s `&mut self`
/// methods call them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a, 'l, D> {
    /// Borrowed for as long as guards may live.
    pub(super) storage: &'a Storage,
    pub(super) layout: &'l Layout<D>,
}

/// The line of the user's that is being served.
pub(super) type Line = CallSite;

impl<'a, 'l, D: Dimension> Part<'a, 'l, D> {
    #[inline]
    fn with<R>(
        &self,
        cause: Cause,
        operation: &str,
        site: Line,
        serve: impl FnOnce(&Request<'_>) -> R,
    ) -> R {
        self.layout.with_selection(self.storage.memory_order(), |selection| {
            serve(&Request { storage: self.storage, selection, cause, operation, site })
        })
    }

    #[inline]
    fn is_whole(&self) -> bool {
        self.layout.len() as u64 == self.storage.memory_order().len()
    }

    pub(super) fn selection(&self) -> Selection {
        self.layout.selection(self.storage.memory_order())
    }

    pub(super) fn end(&self) -> End<'l>
    where
        'a: 'l,
    {
        End { storage: self.storage, view: self.layout.strided() }
    }

    // The host's side. The guards' lifetime is the caller's choice, since a view's guards outlive
    // its own borrow; it is bounded by the array's.

    #[inline]
    pub(super) fn host<'g, T: Element>(&self, site: Line) -> Result<HostRef<'g, T, D>>
    where
        'a: 'g,
    {
        if self.storage.ready_on_host().is_none() {
            self.bring_to_host(Access::Read, "host", site)?;
        }
        let base = self.storage.host_base();
        // SAFETY: the part is valid on the host now (`ready_on_host`, or `acquire_host` returned).
        // While the caller's shared borrow of it lasts no `&mut` method can make it stale, and no
        // copy writes elements that are valid at its destination: nobody writes it for 'g.
        Ok(HostRef { view: unsafe { self.layout.view(base) } })
    }

    #[cold]
    fn bring_to_host(&self, access: Access, operation: &str, site: Line) -> Result<()> {
        self.with(Cause::Host, operation, site, |request| transfer::acquire_host(request, access))
    }

    pub(super) fn host_mut<'g, T: Element>(
        &self,
        access: Access,
        site: Line,
    ) -> Result<HostMut<'g, T, D>>
    where
        'a: 'g,
    {
        if !(self.is_whole() && transfer::write_whole_on_host(self.storage, access, site)) {
            self.write_on_host(access, site)?;
        }
        let base = self.storage.host_base();
        // SAFETY: `acquire_host` waited for everything queued that touches the part on the host,
        // and the memory was zeroed or written when it was made. The caller's exclusive borrow
        // keeps every other access out for 'g; what is queued meanwhile writes no element that is
        // valid on the host, and reads elements there only through accesses that the borrow
        // excludes.
        Ok(HostMut { view: unsafe { self.layout.view_mut(base) } })
    }

    #[cold]
    fn write_on_host(&self, access: Access, site: Line) -> Result<()> {
        let operation = if access == Access::Overwrite { "host_overwrite" } else { "host_mut" };
        self.with(Cause::Host, operation, site, |request| transfer::write_on_host(request, access))
    }

    /// The user wrote the host's copy through a pointer.
    pub(super) fn host_changed(&self, site: Line) -> Result<()> {
        self.with(Cause::Host, "host_changed", site, |request| {
            self.expect_newest(Some(Location::HOST), "the host")?;
            transfer::write_on_host(request, Access::ReadWrite)
        })
    }

    /// Nothing newer than what `place` holds is elsewhere, and it holds all.
    fn expect_newest(&self, place: Option<Location>, changed: &str) -> Result<()> {
        let memory_order = self.storage.memory_order();
        let selection = self.selection();
        if memory_order.is_empty() || selection.is_empty() {
            return Ok(());
        }
        let mut state = self.storage.lock();
        state.reconcile(memory_order);
        // A device that never held the array is as little newest as one that holds an old copy.
        let mut is_newest = place.is_some();
        selection.for_each(memory_order, |region| {
            is_newest =
                is_newest && place.is_some_and(|place| state.coherence.is_valid(place, region))
        });
        if is_newest {
            return Ok(());
        }
        let mut holders = std::collections::BTreeSet::new();
        selection.for_each(memory_order, |region| {
            state.coherence.visit_contents(region, |_, content| {
                holders.extend(newest_in_words(&state, content));
            });
        });
        drop(state);
        let newest = holders.into_iter().collect::<Vec<_>>().join(" and ");
        Err(transfer::lost_update(self.storage, changed.to_owned(), newest))
    }

    // The device's side.

    #[inline]
    pub(super) fn gpu_on<'g, T: Element>(
        &self,
        stream: &Stream,
        site: Line,
    ) -> Result<DeviceRef<'g, T, D>>
    where
        'a: 'g,
    {
        let id = stream.id().0;
        let base = match self.storage.reader_address(id) {
            Some(base) => base,
            None => self.bring_to_device(stream, site)?,
        };
        Ok(DeviceRef {
            part: HandedOut::new::<T>(self.storage, self.layout, base, stream),
            element: PhantomData,
        })
    }

    #[cold]
    fn bring_to_device(&self, stream: &Stream, site: Line) -> Result<u64> {
        self.with(Cause::Gpu, "gpu", site, |request| {
            transfer::open_guard(request, stream, Access::Read).map(|(_, address)| address.0)
        })
    }

    pub(super) fn gpu_mut_on<'g, T: Element>(
        &self,
        access: Access,
        stream: &Stream,
        site: Line,
    ) -> Result<DeviceMut<'g, T, D>>
    where
        'a: 'g,
    {
        let open = if self.is_whole() {
            transfer::open_whole(self.storage, stream, access, site)
        } else {
            None
        };
        let (place, Address(base)) = match open {
            Some(open) => open,
            None => self.open_guard(access, stream, site)?,
        };
        Ok(DeviceMut {
            part: HandedOut::new::<T>(self.storage, self.layout, base, stream),
            place,
            site,
            element: PhantomData,
        })
    }

    #[cold]
    fn open_guard(
        &self,
        access: Access,
        stream: &Stream,
        site: Line,
    ) -> Result<(Location, Address)> {
        let operation = if access == Access::Overwrite { "gpu_overwrite" } else { "gpu_mut" };
        self.with(Cause::Gpu, operation, site, |request| {
            transfer::open_guard(request, stream, access)
        })
    }

    /// The user wrote the device's copy with work queued on `stream`.
    pub(super) fn gpu_changed_on(&self, stream: &Stream, site: Line) -> Result<()> {
        self.with(Cause::Gpu, "gpu_changed", site, |request| {
            if self.storage.memory_order().is_empty() || request.selection.is_empty() {
                return Ok(());
            }
            let location = self.storage.lock().find_location(stream.device_ref());
            let device = stream.device_ref().name();
            self.expect_newest(location, &device)?;
            let mut depends = Dependencies::new();
            let acquired = transfer::acquire_on(request, stream, Access::ReadWrite, &mut depends)?;
            let upto = UseEnd::at(stream.queue().reserve_position());
            transfer::mark_foreign(request, stream, acquired, Access::ReadWrite, upto, depends)
        })
    }

    // Work where the newest contents are.

    pub(super) fn fill<T: Element>(&self, value: T, site: Line) {
        self.with(Cause::Explicit, "fill", site, |request| {
            transfer::fill(request, Bytes::from_slice(bytemuck::bytes_of(&value)))
        });
    }

    pub(super) fn fill_on<T: Element>(&self, stream: &Stream, value: T, site: Line) -> Result<()> {
        self.with(Cause::Explicit, "fill_on", site, |request| {
            transfer::fill_on(request, stream, Bytes::from_slice(bytemuck::bytes_of(&value)))
        })
    }

    pub(super) fn get<T: Element>(&self, index: &[usize], site: Line) -> Result<T> {
        let bytes = self.at(index, transfer::read_element, "get", site)?;
        Ok(bytemuck::pod_read_unaligned(&bytes))
    }

    pub(super) fn set<T: Element>(&self, index: &[usize], value: T, site: Line) -> Result<()> {
        self.at(
            index,
            |request| {
                transfer::write_element(request, Bytes::from_slice(bytemuck::bytes_of(&value)))
            },
            "set",
            site,
        )
    }

    fn at<R>(
        &self,
        index: &[usize],
        serve: impl FnOnce(&Request<'_>) -> Result<R>,
        operation: &str,
        site: Line,
    ) -> Result<R> {
        let Some(offset) = self.layout.element(index) else {
            return Err(Error::Shape {
                operation: Text::new(format!("{operation} of {}", self.storage.named())),
                expected: Text::new(format!("an index within {:?}", self.layout.shape())),
                seen: Text::new(format!("{index:?}")),
            });
        };
        let element = Strided { shape: &[], strides: &[], offset };
        let selection = self.storage.memory_order().select(&element);
        serve(&Request {
            storage: self.storage,
            selection: &selection,
            cause: Cause::Explicit,
            operation,
            site,
        })
    }

    pub(super) fn assign<E: Dimension>(
        &self,
        source: Part<'_, '_, E>,
        target: Target<'_>,
        site: Line,
    ) -> Result<()> {
        if self.layout.shape() != source.layout.shape() {
            return Err(Error::Shape {
                operation: Text::new("assign"),
                expected: Text::new(format!(
                    "{:?}, the shape of {}",
                    self.layout.shape(),
                    self.storage.named()
                )),
                seen: Text::new(format!(
                    "{:?}, the shape of {}",
                    source.layout.shape(),
                    source.storage.named()
                )),
            });
        }
        transfer::assign(self.end(), source.end(), target, site)
    }

    // Early, asynchronous.

    pub(super) fn prefetch(&self, stream: &Stream, site: Line) -> Result<()> {
        self.with(Cause::Prefetch, "prefetch", site, |request| {
            transfer::acquire_on(request, stream, Access::Read, &mut Dependencies::new()).map(drop)
        })
    }

    pub(super) fn prefetch_host(
        &self,
        stream: Option<&Stream>,
        operation: &str,
        site: Line,
    ) -> Result<()> {
        self.with(Cause::Prefetch, operation, site, |request| {
            transfer::prefetch_host(request, stream)
        })
    }

    pub(super) fn snapshot_on<T: Element>(
        &self,
        stream: Option<&Stream>,
        operation: &str,
        site: Line,
    ) -> Result<Pending<ndarray::Array<T, D>>> {
        let buffer = HostBuffer::zeroed::<T>(self.layout.len())
            .ok_or_else(|| transfer::host_full(self.storage))?;
        let snapshot = transfer::snapshot(self.end(), stream, buffer, operation, site)?;
        Ok(Pending::new(snapshot, self.storage.named(), self.layout.clone()))
    }

    // Questions.

    pub(super) fn residency(&self) -> Residency {
        let memory_order = self.storage.memory_order();
        let selection = self.selection();
        let state = self.storage.lock();
        let validities = state.validities_of(memory_order, &selection);
        let devices = state
            .devices()
            .map(|(place, device)| (device.clone(), validities[place.index()]))
            .collect();
        Residency::new(validities[Location::HOST.index()], devices)
    }
}

impl<D: Dimension> Part<'_, '_, D> {
    /// `gpu` without a stream works on the current device's default one.
    pub(super) fn current_stream() -> Result<Stream> {
        Ok(Device::current()?.stream())
    }
}

fn newest_in_words(
    state: &crate::storage::ArrayState,
    content: crate::coherence::Content,
) -> Vec<String> {
    use crate::coherence::{Content, Undefined};
    match content {
        Content::Undefined(Undefined::Never) => {
            vec!["nowhere, since it was never written".to_owned()]
        }
        Content::Undefined(Undefined::Lost(_)) => {
            vec!["nowhere, since a failure took them".to_owned()]
        }
        Content::Constant { .. } => vec!["a constant that is not in memory there yet".to_owned()],
        Content::Stored(holders) => holders
            .locations()
            .iter()
            .map(|place| {
                if place == Location::HOST {
                    "on the host".to_owned()
                } else {
                    format!("on {}", state.device_copy(place).device)
                }
            })
            .collect(),
    }
}
