//! Makes elements a constant without a copy: only the value is stored, and the memory of each
//! location is filled when the elements are first needed there. Or discards them.

use smallvec::SmallVec;

use crate::device::{self, Stream};
use crate::error::Result;
use crate::storage::{ArrayState, UseKind, notify_watchers};
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::acquired::Acquired;
use crate::transfer::access::request::{Regions, Request};
use resident_backend::{Address, Bytes, Dependencies, FailureKind, FillWork, Position, host_copy};
use resident_core::Access;
use resident_core::coherence::{ConstantId, Location};
use resident_core::layout::MemoryOrder;
use resident_core::ordering::UseEnd;

/// Makes the elements a constant.
pub(crate) fn fill(request: &Request<'_>, value: Bytes) {
    if request.is_empty() {
        return;
    }
    let mut state = request.storage.lock();
    let stale = request.poisoned_copies(&state, None);
    become_constant(request, &mut state, value);
    request.poison(&mut state, stale);
    request.storage.publish(&state);
    request.record_access(None);
    drop(state);
    notify_watchers();
}

/// Makes the elements uninitialised: their contents are copied no more.
pub(crate) fn discard(request: &Request<'_>) {
    if request.is_empty() {
        return;
    }
    let (storage, memory_order) = (request.storage, request.storage.memory_order());
    let mut state = storage.lock();
    let stale = request.poisoned_copies(&state, None);
    storage.published.forget_readers();
    state.record_stale(memory_order, request.selection, None, request.site);
    let extents = memory_order.extents();
    request.selection.for_each_region(memory_order, |region| {
        state.coherence.discard(extents, region);
    });
    state.drop_unused_constants();
    state.note_use(UseKind::Write, request.selection);
    request.poison(&mut state, stale);
    storage.publish(&state);
    request.record_access(None);
    drop(state);
    notify_watchers();
}

/// Makes the elements a constant, and queues the fill of the copy on `stream`'s device at once. The
/// fill is queued first: on `Err` nothing has changed, or the error says how many bytes have.
pub(crate) fn fill_on(request: &Request<'_>, stream: &Stream, value: Bytes) -> Result<()> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(());
    }
    let acquired = acquire_on(request, stream, &mut Dependencies::new())?;
    let location = acquired.location;
    let fill = Fill { value: value.clone(), loss: FailureKind::Constant, operation: device::FILL };
    let position = queue_fill(request, stream, &acquired, fill)?;
    let mut state = storage.lock();
    let stale = request.poisoned_copies(&state, Some(location));
    become_constant(request, &mut state, value);
    request.selection.for_each_region(storage.memory_order(), |region| {
        state.coherence.apply(storage.memory_order().extents(), location, region, Access::Read);
    });
    request.record_use(&mut state, location, stream, UseEnd::at(position));
    request.poison(&mut state, stale);
    storage.publish(&state);
    request.record_access(Some(stream.device_ref()));
    drop(state);
    stream.ensure_event_at_tail();
    drop(acquired);
    notify_watchers();
    Ok(())
}

fn become_constant(request: &Request<'_>, state: &mut ArrayState, value: Bytes) {
    let memory_order = request.storage.memory_order();
    request.storage.published.forget_readers();
    state.record_stale(memory_order, request.selection, None, request.site);
    state.drop_unused_constants();
    let id = state.constant_id(memory_order.widened(request.selection, &value));
    let extents = memory_order.extents();
    request.selection.for_each_region(memory_order, |region| {
        state.coherence.write_constant(extents, region, id);
    });
    state.note_use(UseKind::Write, request.selection);
}

/// A fill of the elements of a request.
pub(in crate::transfer) struct Fill {
    pub(in crate::transfer) value: Bytes,
    pub(in crate::transfer) loss: FailureKind,
    /// The operation's name in messages.
    pub(in crate::transfer) operation: &'static str,
}

/// Queues a fill of the acquired elements on `stream`. The caller holds no lock.
pub(super) fn queue_fill(
    request: &Request<'_>,
    stream: &Stream,
    &Acquired { location, address, .. }: &Acquired<'_>,
    Fill { value, loss, operation }: Fill,
) -> Result<Position> {
    let memory_order = request.storage.memory_order();
    let mut parts = SmallVec::new();
    request
        .selection
        .for_each_region(memory_order, |region| parts.push(memory_order.footprint(region)));
    let label = request.storage.label(operation, request.site);
    let depends = Dependencies::new();
    let work = FillWork { loss, address, parts, pattern: value, depends, label };
    stream
        .raw()
        .fill(Box::new(work))
        .map_err(|error| request.write_error(stream, location, "filling", &error))
}

impl Request<'_> {
    /// Fills regions of a device's copy with their constant. A fill is not counted as a transfer.
    pub(in crate::transfer) fn fill_on_device(
        &self,
        stream: &Stream,
        location: Location,
        value: ConstantId,
        regions: &Regions,
    ) -> Result<()> {
        let memory_order = self.storage.memory_order();
        let mut state = self.storage.lock();
        for (regions, pattern) in by_pattern(&state, memory_order, value, regions) {
            let work = FillWork {
                loss: FailureKind::Constant,
                address: state.device_copy(location).base().unwrap_or(Address(0)),
                parts: regions.iter().map(|region| memory_order.footprint(region)).collect(),
                pattern,
                depends: Dependencies::new(),
                label: self.storage.label(device::FILL, self.site),
            };
            let position = self.submit_fill(&mut state, stream, location, &regions, work)?;
            self.record_copy(&mut state, stream, location, &regions, position);
        }
        Ok(())
    }

    /// Fills regions of the host memory with their constant, before it returns.
    pub(in crate::transfer) fn fill_on_host(&self, value: ConstantId, regions: &Regions) {
        let memory_order = self.storage.memory_order();
        let fills = by_pattern(&self.storage.lock(), memory_order, value, regions);
        for (regions, pattern) in fills {
            for footprint in regions.iter().map(|region| memory_order.footprint(region)) {
                // SAFETY: `host_base` is the start of `memory_order.len_bytes()` initialised bytes,
                // and the footprint lies within these bytes. The elements are not valid on the
                // host, so no view of them exists. `Missing` has waited for queued work that
                // uses them, and holds the claim on them.
                unsafe { host_copy::fill(self.storage.host_base(), &footprint, &pattern) };
            }
        }
        let mut state = self.storage.lock();
        let host = state.host_location();
        state.note_host_memory_write();
        for region in regions {
            state.coherence.apply(
                self.storage.memory_order().extents(),
                host,
                region,
                Access::Read,
            );
        }
    }
}

/// Regions of a constant, and the constant's bytes in them: regions with different fields of
/// records have different bytes.
fn by_pattern(
    state: &ArrayState,
    memory_order: &MemoryOrder,
    value: ConstantId,
    regions: &Regions,
) -> SmallVec<[(Regions, Bytes); 1]> {
    let mut lists: SmallVec<[(Regions, Bytes); 1]> = SmallVec::new();
    for region in regions.iter().flat_map(|region| memory_order.unbroken(region)) {
        let range = memory_order.element_range(&region);
        let is_same = |(known, _): &&mut (Regions, Bytes)| {
            known.first().is_some_and(|first| memory_order.element_range(first) == range)
        };
        match lists.iter_mut().find(is_same) {
            Some((known, _)) => known.push(region),
            None => {
                let pattern = state.constant_value(value, memory_order, &region);
                lists.push((Regions::from_iter([region]), pattern));
            }
        }
    }
    lists
}
