//! Writing without copying: constants, and single elements.

use smallvec::SmallVec;

use super::{Request, acquire_host, acquire_on, mark, mark_host_written, run_deferred};
use crate::access::Access;
use crate::audit;
use crate::backend::{
    Address, Bytes, CopyWork, Dependencies, FailureKind, FillWork, HostMemory, Memory, Position,
    Work, host_copy,
};
use crate::coherence::{Content, Location};
use crate::device::{self, Stream};
use crate::error::Result;
use crate::ordering::UseEnd;
use crate::storage::{ArrayState, HostBuffer};

/// Makes the selection a constant: each location fills its own copy when it first needs it.
pub(crate) fn fill(request: &Request<'_>, value: Bytes) {
    let storage = request.storage;
    if request.is_empty() {
        return;
    }
    let mut state = storage.lock();
    let spoiled = request.stale_elsewhere_than_none(&state);
    become_constant(request, &mut state, value);
    request.poison(&mut state, spoiled);
    storage.publish(&state);
}

/// Makes the selection a constant, and fills the copy of `stream`'s device now. The fill is queued
/// first: if that is refused, nothing has changed.
pub(crate) fn fill_on(request: &Request<'_>, stream: &Stream, value: Bytes) -> Result<()> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(());
    }
    let acquired = acquire_on(request, stream, Access::Overwrite, &mut Dependencies::new())?;
    let position = queue_fill(
        request,
        stream,
        acquired.address,
        value.clone(),
        FailureKind::Constant,
        device::FILL,
    )?;
    let mut state = storage.lock();
    let spoiled = request.stale_elsewhere(&state, acquired.location);
    become_constant(request, &mut state, value);
    request.selection.for_each(storage.memory_order(), |region| {
        state.coherence.apply(acquired.location, region, Access::Read)
    });
    request.mark_use(
        &mut state,
        acquired.location,
        Access::Overwrite,
        stream,
        UseEnd::at(position),
    );
    request.poison(&mut state, spoiled);
    storage.publish(&state);
    drop(state);
    stream.record_in_time();
    Ok(())
}

fn become_constant(request: &Request<'_>, state: &mut ArrayState, value: Bytes) {
    let memory_order = request.storage.memory_order();
    request.storage.forget_readers();
    state.record_stale(memory_order, request.selection, None, request.site);
    state.drop_unused_constants(memory_order);
    let id = state.constant_id(value);
    request.selection.for_each(memory_order, |region| state.coherence.write_constant(region, id));
}

/// Queues a fill of the selection with a value.
fn queue_fill(
    request: &Request<'_>,
    stream: &Stream,
    address: Address,
    pattern: Bytes,
    loss: FailureKind,
    operation: &str,
) -> Result<Position> {
    let memory_order = request.storage.memory_order();
    let mut parts = SmallVec::new();
    request.selection.for_each(memory_order, |region| parts.push(memory_order.footprint(region)));
    let label = request.storage.label(operation, request.site);
    let work = FillWork { loss, address, parts, pattern, depends: Dependencies::new(), label };
    stream
        .queue()
        .submit(Work::Fill(Box::new(work)))
        .map_err(|refusal| request.refused(stream.device_ref(), "filling", &refusal))
}

/// Writes the selection's one element where its newest contents are, or on the host if they are
/// nowhere.
pub(crate) fn write_element(request: &Request<'_>, value: Bytes) -> Result<()> {
    let Some(stream) = home(request) else {
        acquire_host(request, Access::Overwrite)?;
        mark_host_written(request, Access::Overwrite);
        write_on_host(request, &value);
        return Ok(());
    };
    let acquired = acquire_on(request, &stream, Access::Overwrite, &mut Dependencies::new())?;
    let position =
        queue_fill(request, &stream, acquired.address, value, FailureKind::Contents, "set of")?;
    mark(request, &stream, acquired, Access::Overwrite, UseEnd::at(position));
    Ok(())
}

/// Where the selection is newest if that is a device: the stream to work on.
fn home(request: &Request<'_>) -> Option<Stream> {
    let state = request.storage.lock();
    let location = newest_device(request, &state)?;
    Some(state.device_copy(location).device.stream())
}

/// The device that holds the newest contents of the selection's first part, if the host does not.
pub(super) fn newest_device(request: &Request<'_>, state: &ArrayState) -> Option<Location> {
    let mut found = None;
    request.selection.for_each(request.storage.memory_order(), |region| {
        state.coherence.visit_contents(region, |_, content| {
            if let (None, Content::Stored(holders)) = (found, content)
                && !holders.contains(Location::HOST)
            {
                found = holders.locations().iter().next();
            }
        });
    });
    found
}

fn write_on_host(request: &Request<'_>, value: &[u8]) {
    let memory_order = request.storage.memory_order();
    request.selection.for_each(memory_order, |region| {
        // SAFETY: `acquire_host` gave the array memory of `memory_order.len_bytes()` bytes and
        // waited for whatever was queued on these elements; the caller's exclusive borrow of the
        // part keeps everybody else out.
        unsafe {
            host_copy::fill(request.storage.host_base(), &memory_order.footprint(region), value)
        };
    });
}

/// Reads the selection's one element from where it is newest, and changes no residency.
pub(crate) fn read_element(request: &Request<'_>) -> Result<Bytes> {
    let storage = request.storage;
    let element_bytes = storage.memory_order().element_bytes();
    if request.is_empty() {
        return Ok(Bytes::from_elem(0, element_bytes));
    }
    let (location, region) = {
        let mut state = storage.lock();
        state.reconcile(storage.memory_order());
        if request.is_valid(&state, Location::HOST) {
            drop(state);
            return peek_on_host(request);
        }
        let pieces = request.plan(&state, Location::HOST, Access::Read)?;
        match pieces.first().map(|piece| (piece.source, piece.region)) {
            Some((crate::coherence::Source::Location(location), region)) => (location, region),
            Some((crate::coherence::Source::Constant(value), _)) => {
                return Ok(state.constant_value(value, element_bytes));
            }
            None => return Ok(Bytes::from_elem(0, element_bytes)),
        }
    };
    peek_on_device(request, location, &region)
}

fn peek_on_host(request: &Request<'_>) -> Result<Bytes> {
    acquire_host(request, Access::Read)?;
    let (storage, mut value) =
        (request.storage, Bytes::from_elem(0, request.storage.memory_order().element_bytes()));
    request.selection.for_each(storage.memory_order(), |region| {
        let part = storage.memory_order().footprint(region).copy_from_packed(0).reversed();
        // SAFETY: the element lies in the host memory and is valid there, `acquire_host` has waited
        // for its writers, and the caller's borrow keeps others from writing it; `value` has room
        // for one element.
        unsafe { host_copy::copy_box(storage.host_base(), value.as_mut_ptr(), &part) };
    });
    Ok(value)
}

fn peek_on_device(
    request: &Request<'_>,
    location: Location,
    region: &crate::coherence::Region,
) -> Result<Bytes> {
    let storage = request.storage;
    let element_bytes = storage.memory_order().element_bytes();
    let staging = std::sync::Arc::new(
        HostBuffer::zeroed::<u8>(element_bytes).ok_or_else(|| super::host_full(storage))?,
    );
    let regions = SmallVec::from_iter([*region]);
    let (stream, position) = {
        let mut state = storage.lock();
        if !state.holds(location, &regions) {
            drop(state);
            return read_element(request);
        }
        let stream = request.download_stream(&state, location, &regions, None);
        let depends = request.wait_for_writers(&state, &stream, location, &regions)?;
        let work = CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source: Memory::Device(state.device_copy(location).address.unwrap_or(Address(0))),
            destination: Memory::Host(staging.clone()),
            source_device: None,
            parts: SmallVec::from_iter([storage
                .memory_order()
                .footprint(region)
                .copy_from_packed(0)
                .reversed()]),
            depends,
            label: storage.label("get of", request.site),
        };
        let position = request.submit_read(
            &mut state,
            &stream,
            location,
            &regions,
            Work::Copy(Box::new(work)),
        )?;
        let since = request.since(&state, Location::HOST, &regions);
        request.count(
            &mut state,
            audit::Direction::ToHost,
            element_bytes as u64,
            stream.device_ref(),
            &stream,
            since,
        );
        (stream, position)
    };
    run_deferred();
    request.wait_for_host(SmallVec::from_iter([(stream.clone(), position)]))?;
    request.outcome_of(&stream, position)?;
    let mut value = Bytes::from_elem(0, element_bytes);
    // SAFETY: `staging` holds `element_bytes` initialised bytes; the one copy that writes them is
    // complete.
    unsafe { std::ptr::copy_nonoverlapping(staging.base(), value.as_mut_ptr(), element_bytes) };
    Ok(value)
}

impl Request<'_> {
    /// The failure of a copy to memory outside the array: by itself, or because what it was to read
    /// is lost.
    pub(crate) fn outcome_of(&self, stream: &Stream, position: Position) -> Result<()> {
        let Some(record) = crate::backend::failure::at(stream.id(), position) else {
            return Ok(());
        };
        if record.inherited {
            let mut state = self.storage.lock();
            state.reconcile(self.storage.memory_order());
            self.plan(&state, Location::HOST, Access::Read)?;
        }
        stream.core().tell(position);
        Err(device::late_error(stream.device_ref(), &record))
    }
}
