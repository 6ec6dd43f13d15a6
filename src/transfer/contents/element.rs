//! Reading and writing one element where its newest contents are.

use std::sync::Arc;

use smallvec::SmallVec;

use super::constant::{Fill, queue_fill};
use super::copy_out::{CallerWaits, CopyOut, DeviceParts, wait_for_arrival};
use crate::audit;
use crate::device::Stream;
use crate::error::{Error, Result};
use crate::storage::{ArrayState, HostBuffer, HostWrite, Storage, notify_watchers};
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::error::host_full;
use crate::transfer::access::mark::{mark, mark_host_written};
use crate::transfer::access::request::Request;
use crate::transfer::copy::changed_bytes::before_host_write;
use crate::transfer::copy::missing::{acquire_host, acquire_host_to_write};
use crate::transfer::copy::report::run_deferred;
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_backend::{Address, Bytes, Dependencies, FailureKind, HostMemory, failure, host_copy};
use resident_core::coherence::{Content, Location, PlannedCopy, Region, Source};
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// Writes the single element of the request on `stream`'s device, if a stream is given; else at the
/// location of its newest contents, or on the host if it has none.
pub(crate) fn write_element(
    request: &Request<'_>,
    stream: Option<&Stream>,
    value: Bytes,
) -> Result<()> {
    if let Some(stream) = stream {
        return write_element_on(request, stream, value);
    }
    if let Some(_write) = overwrite_on_host(request) {
        write_on_host(request, &value);
        return Ok(());
    }
    let Some(stream) = newest_device_stream(request) else {
        let _acquired = acquire_host_to_write(request)?;
        let _write = mark_host_written(request);
        write_on_host(request, &value);
        return Ok(());
    };
    write_element_on(request, &stream, value)
}

/// Writes the element on `stream`'s device.
fn write_element_on(request: &Request<'_>, stream: &Stream, value: Bytes) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let acquired = acquire_on(request, stream, &mut Dependencies::new())?;
    let fill = Fill { value, loss: FailureKind::Contents, operation: "set of" };
    let position = queue_fill(request, stream, &acquired, fill)?;
    mark(request, stream, acquired, UseEnd::at(position));
    request.record_access(Some(stream.device_ref()));
    notify_watchers();
    Ok(())
}

/// Marks the write of the element on the host, if it needs no wait: the usual case.
fn overwrite_on_host(request: &Request<'_>) -> Option<HostWrite> {
    let Selection::Boxes(boxes) = request.selection else { return None };
    let [region] = boxes.as_slice() else { return None };
    let storage = request.storage;
    let mut state = storage.lock();
    storage.published.forget_readers();
    let is_written = state.overwrite_on_host(storage.memory_order(), region, request.site);
    storage.publish(&state);
    is_written.then(|| {
        before_host_write(storage, request.selection, &state);
        request.record_access(None);
        state.begin_host_write(request.selection)
    })
}

fn newest_device_stream(request: &Request<'_>) -> Option<Stream> {
    let state = request.storage.lock();
    let location = newest_device(request, &state)?;
    Some(state.device_copy(location).device.current_stream())
}

/// A device where the first part of the selection is valid that is stored but not valid on the
/// host.
pub(super) fn newest_device(request: &Request<'_>, state: &ArrayState) -> Option<Location> {
    let (mut found, host) = (None, state.host_location());
    request.selection.for_each_region(request.storage.memory_order(), |region| {
        state.coherence.visit_contents(region, |_, content| {
            if let (None, Content::Stored(holders)) = (found, content)
                && !holders.contains(host)
            {
                found = holders.locations().iter().next();
            }
        });
    });
    found
}

fn write_on_host(request: &Request<'_>, value: &[u8]) {
    let memory_order = request.storage.memory_order();
    request.selection.for_each_region(memory_order, |region| {
        let footprint = memory_order.footprint(region);
        // SAFETY: the array has host memory of `memory_order.len_bytes()` bytes, and no queued work
        // uses these elements: `acquire_host` gave it and waited for the work, or
        // `overwrite_on_host` found it so. The caller's exclusive borrow of the part excludes every
        // other access.
        unsafe { host_copy::fill(request.storage.host_base(), &footprint, value) };
    });
}

/// Reads the element at an offset in elements, if the whole array is newest on one device, where
/// work of one stream wrote it: the usual case after a launch. No copy of the array changes.
/// Returns whether it did; the caller calls [`read_element`] otherwise, which also tells why an
/// element cannot be read.
///
/// The copy leaves no mark, since this waits for it: the caller's borrow excludes writers until
/// then, and the pin keeps the memory.
pub(crate) fn read_newest(
    storage: &Storage,
    offset: usize,
    value: &mut [u8],
    site: CallSite,
) -> bool {
    if audit::has_listeners() {
        return false;
    }
    let Some(copy) = storage.state.pin_newest(storage.memory_order()) else { return false };
    if copy.stream.is_other_entered() {
        return false;
    }
    let len_bytes = value.len() as u64;
    let from = Address(copy.address.0.wrapping_add(offset as u64 * len_bytes));
    let label = || storage.label("get of", site);
    sync::assert_none_held();
    // A failure of the work that wrote the element has raised the epoch by now.
    let is_read = copy.stream.raw().read(from, value, &label) && failure::epoch() == copy.epoch;
    if is_read {
        copy.count_read(len_bytes);
    }
    is_read
}

/// Reads the single element of the request where it is newest. No copy of the array changes. `None`
/// if its fields are in different places.
pub(crate) fn read_element(request: &Request<'_>) -> Result<Option<Bytes>> {
    let storage = request.storage;
    let memory_order = storage.memory_order();
    if request.is_empty() {
        return Ok(Some(Bytes::new()));
    }
    let mut state = storage.lock();
    state.reconcile(memory_order);
    let host = state.host_location();
    if request.is_valid(&state, host) {
        drop(state);
        return read_on_host(request).map(Some);
    }
    let copies = request.plan(&state, host)?;
    let [PlannedCopy { source, region, .. }] = copies.as_slice() else { return Ok(None) };
    if request.selection.len_bytes(memory_order) != memory_order.region_bytes(region) {
        return Ok(None);
    }
    match source {
        Source::Location(location) => {
            drop(state);
            read_on_device(request, *location, region)
        }
        Source::Constant(value) => Ok(Some(state.constant_value(*value, memory_order, region))),
    }
}

fn read_on_host(request: &Request<'_>) -> Result<Bytes> {
    acquire_host(request)?;
    let memory_order = request.storage.memory_order();
    let len_bytes = request.selection.len_bytes(memory_order) as usize;
    let mut value = Bytes::from_elem(0, len_bytes);
    request.selection.for_each_region(memory_order, |region| {
        let copy = memory_order.footprint(region).copy_from_packed(0).reversed();
        // SAFETY: the element lies within the host memory and is valid there. `acquire_host` has
        // waited for its writers, and the caller's borrow excludes other writers. `value` has room
        // for one element.
        unsafe { host_copy::copy_box(request.storage.host_base(), value.as_mut_ptr(), &copy) };
    });
    Ok(value)
}

fn read_on_device(
    request: &Request<'_>,
    location: Location,
    region: &Region,
) -> Result<Option<Bytes>> {
    let storage = request.storage;
    let len_bytes = storage.memory_order().region_bytes(region) as usize;
    let room =
        HostBuffer::zeroed::<u8>(len_bytes).ok_or_else(|| host_full(storage).at(request.site))?;
    let room = Arc::new(room);
    let _inquiry = failure::Inquiry::begin();
    let mut copies = CopyOut::new(room.clone(), CallerWaits::AtOnce, "get of");
    let copy = storage.memory_order().footprint(region).copy_from_packed(0).reversed();
    let parts = DeviceParts::new(location, *region, SmallVec::from_iter([copy]));
    let outcome = copies.copy_from_device(request, None, parts);
    outcome.map_err(Error::with_contents_unchanged)?;
    let queued = copies.into_queued();
    run_deferred();
    if !wait_for_arrival(request, &queued)? {
        return read_element(request);
    }
    let mut value = Bytes::from_elem(0, len_bytes);
    // SAFETY: `room` has `len_bytes` initialised bytes. The only copy that writes them has
    // completed.
    unsafe { std::ptr::copy_nonoverlapping(room.base(), value.as_mut_ptr(), len_bytes) };
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{Request, overwrite_on_host};
    use crate::audit::Cause;
    use crate::device::Device;
    use crate::storage::{HostBuffer, Origin, Storage, undisturbed};
    use resident_backend::call_site::call_site;
    use resident_core::Access;
    use resident_core::coherence::{Location, Region, Span};
    use resident_core::layout::{MemoryOrder, Selection};

    /// The usual case takes the array's lock once.
    #[test]
    fn an_element_that_is_newest_on_the_host_is_written_at_once() {
        let (memory_order, _) = MemoryOrder::of(&[4], &[1], 4).expect("an order");
        let buffer = HostBuffer::zeroed::<u32>(4).expect("memory");
        let site = call_site();
        let storage = Storage::new::<u32>(memory_order, &[4], Origin::Host(buffer), site);
        let second = Region::new(&[Span::single(1)]);
        let selection = Selection::Boxes(SmallVec::from_iter([second]));
        let request =
            Request::new(&storage, &selection, Access::Overwrite, Cause::Explicit, "set", site);
        let is_overwritten = |request: &Request<'_>| {
            undisturbed(|| {
                storage.lock().reconcile(storage.memory_order());
                overwrite_on_host(request).is_some()
            })
        };
        assert!(is_overwritten(&request));
        let mut state = storage.lock();
        let location = state.assign_location(&Device::cpu()).expect("a location");
        state.coherence.apply_to_all(location, Access::Read);
        drop(state);
        assert!(is_overwritten(&request), "the host has it too");
        let mut state = storage.lock();
        assert!(state.coherence.is_only_at(Location::HOST, &second));
        state.coherence.apply_to_all(location, Access::Overwrite);
        drop(state);
        assert!(!is_overwritten(&request), "it is newest on the device");
        let whole = Request { selection: &Selection::Whole, ..request };
        assert!(!is_overwritten(&whole));
    }
}
