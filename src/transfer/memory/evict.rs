//! Frees an array's copy on a device, or pages of it: on request, or because the device is full
//! (`room` decides when).

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::release;
use crate::audit::{self, Cause, MemoryChange, MemoryNotice};
use crate::device::Device;
use crate::error::Result;
use crate::storage::{ArrayState, DeviceCopy, PageRuns, StateGuard, Storage};
use crate::transfer::access::request::{Queued, Regions, Request, ends_of, users_of_other_kinds};
use crate::transfer::copy::job::{CopyJob, Pipeline, Purpose, ReadFrom, prepare_downloads};
use crate::transfer::copy::missing::acquire_host;
use crate::transfer::copy::report::{record_memory, run_deferred};
use resident_backend::Maker;
use resident_backend::call_site::CallSite;
use resident_backend::{PageRange, sync};
use resident_core::Access;
use resident_core::coherence::{Content, Location, Region};
use resident_core::layout::{MemoryOrder, Selection};
use resident_core::ordering::{Mark, UseEnd};

/// Frees the array's memory on a device, after its uses. Contents that are valid only there are
/// first copied to the host. The caller borrows the array exclusively.
pub(crate) fn release_on(request: &Request<'_>, device: &Device) -> Result<()> {
    let freed_bytes = give_up(request, device)?;
    if freed_bytes > 0 {
        audit::note_memory(MemoryNotice::Free, request.storage, device, freed_bytes, request.site);
    }
    run_deferred();
    Ok(())
}

/// As [`release_on`]. Returns the bytes of memory that there were.
fn give_up(request: &Request<'_>, device: &Device) -> Result<u64> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(0);
    }
    loop {
        let mut state = storage.lock();
        state.reconcile(storage.memory_order());
        let Some(location) = state.find_location(device) else { return Ok(0) };
        if location == state.host_location() {
            // The device accesses the host memory, which stays.
            return Ok(0);
        }
        let only_there = regions_not_on_host(storage, &state, location, &Selection::Whole);
        if !only_there.is_empty() {
            drop(state);
            acquire_host(&request.of(&Selection::Boxes(only_there)))?;
            continue;
        }
        // Copies of these elements to the host may still fail. No guard makes any.
        let whole = request.of(&Selection::Whole);
        let mut marks = whole.conflicts(&state, state.host_location(), Access::Overwrite);
        marks.retain(|mark| mark.end != UseEnd::OPEN);
        if marks.is_empty() {
            let bytes = state.device_copy(location).memory_bytes(storage.memory_order());
            remove_copy(storage, &mut state, location, request.site);
            return Ok(bytes);
        }
        state.retire_host_uses(storage.memory_order(), &Selection::Whole);
        let pending = ends_of(&state, &marks);
        drop(state);
        request.wait_for(pending)?;
    }
}

/// Makes room in an array that has copies on as many devices as it can: gives up one on a device
/// that the program has dropped, whose contents then are on the host. `false` if there is none.
pub(in crate::transfer) fn give_up_copy(request: &Request<'_>) -> Result<bool> {
    let storage = request.storage;
    let found = dropped_device(storage).or_else(|| {
        // Queued work keeps its device open.
        wait_for_devices(request);
        dropped_device(storage)
    });
    let Some(device) = found else { return Ok(false) };
    let freed_bytes = give_up(&request.of(&Selection::Whole).reading(), &device)?;
    if freed_bytes > 0 {
        record_memory(storage, &device, MemoryChange::Eviction, freed_bytes, request.site);
    }
    Ok(true)
}

/// Waits for the work of the devices that have copies. A failure there is no failure of this call.
fn wait_for_devices(request: &Request<'_>) {
    let devices: Vec<Device> =
        request.storage.lock().devices().map(|(_, device)| device.clone()).collect();
    for device in devices {
        let _over = device.wait_for_all(request.site);
    }
    sync::run_deferred_drops();
}

/// A device that the program has dropped, and whose copy nothing uses: one without contents that
/// the host lacks, if there is one.
fn dropped_device(storage: &Storage) -> Option<Device> {
    let mut state = storage.lock();
    state.reconcile(storage.memory_order());
    let dropped: Vec<Location> = state
        .devices()
        .filter(|(location, device)| *location != state.host_location() && device.is_abandoned())
        .map(|(location, _)| location)
        .collect();
    let unused: Vec<Location> =
        dropped.into_iter().filter(|location| !state.is_in_use(*location)).collect();
    let is_needed = |location: &Location| {
        !regions_not_on_host(storage, &state, *location, &Selection::Whole).is_empty()
    };
    let location = unused.into_iter().min_by_key(is_needed)?;
    Some(state.device_copy(location).device.clone())
}

/// What a full device may evict: an array's copy, or pages of one.
pub(super) struct Candidate {
    pub(super) array: Weak<Storage>,
    rank: Rank,
    /// Runs of pages with one last use, of a copy that has memory by pages.
    pages: Option<PageRuns>,
}

/// The order in which a full device evicts: first what was used least recently; of what was used at
/// the same time, first what the host has too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    last_use: u64,
    is_newest: bool,
}

impl Candidate {
    /// Adds what a device could evict of an array.
    pub(super) fn add_all(array: &Arc<Storage>, device: &Device, all: &mut Vec<Self>) {
        let state = array.lock();
        let Some(location) = evictable(&state, device) else { return };
        let copy = state.device_copy(location);
        let rank = |last_use, selection: &Selection| {
            let is_newest = !regions_not_on_host(array, &state, location, selection).is_empty();
            Rank { last_use, is_newest }
        };
        let Some(reserved) = copy.reserved() else {
            let rank = rank(copy.last_use, &Selection::Whole);
            return all.push(Self { array: Arc::downgrade(array), rank, pages: None });
        };
        let mut by_rank = BTreeMap::<Rank, PageRuns>::new();
        for (pages, last_use) in copy.page_runs() {
            let elements = array.memory_order().regions_of_bytes(reserved.bytes_of(&pages));
            let rank = rank(last_use, &Selection::Boxes(elements));
            by_rank.entry(rank).or_default().push(pages);
        }
        let candidate =
            |(rank, runs)| Self { array: Arc::downgrade(array), rank, pages: Some(runs) };
        all.extend(by_rank.into_iter().map(candidate));
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    /// The first part that was not used since, and the rest. The part is a whole copy, or pages
    /// that something uses, or so many unused pages as have these bytes: all of them if the whole
    /// array was last used at one time. `except` are the elements for which a call needs room.
    pub(super) fn next_part(
        self,
        array: &Storage,
        device: &Device,
        except: Option<&Selection>,
        lacking_bytes: u64,
    ) -> Option<(Self, Option<Self>)> {
        let mut state = array.lock();
        let location = evictable(&state, device)?;
        let copy = state.device_copy(location);
        let Rank { last_use, .. } = self.rank;
        let Some(reserved) = copy.reserved() else {
            let is_same = self.pages.is_none() && copy.last_use == last_use && except.is_none();
            return is_same.then_some((self, None));
        };
        let (runs, pages_max) = (self.pages.as_ref()?, reserved.pages_for(lacking_bytes));
        let order = array.memory_order();
        let first = state.first_pages(order, location, runs, last_use, except, pages_max)?;
        let with = |runs| Self { pages: Some(runs), array: self.array.clone(), ..self };
        Some((with(first.pages), (!first.rest.is_empty()).then(|| with(first.rest))))
    }

    /// The elements in the memory.
    fn elements(&self, storage: &Storage, device: &Device) -> Option<Selection> {
        let Some(runs) = &self.pages else { return Some(Selection::Whole) };
        let state = storage.lock();
        let reserved = state.device_copy(state.find_location(device)?).reserved()?;
        Some(Selection::Boxes(reserved.elements_of(storage.memory_order(), runs)))
    }
}

/// What became of a part of an array's copy on a device that is full.
pub(super) enum Eviction {
    /// There is no memory that could be freed, now or later.
    Nothing,
    Freed {
        len_bytes: u64,
    },
    /// The part is in use, or its contents could not be copied to the host.
    Kept {
        len_bytes: u64,
        /// The number of uses of the array that have begun.
        uses: u64,
    },
    /// Contents are on their way to the host. If that fails, the copy is needed.
    Arriving(Queued),
}

/// Frees a part of an array's copy on a device if nothing uses it. What only the device has is
/// copied to the host before, behind the work that wrote it; nothing waits for that copy. If it
/// fails, these contents are lost. The copies of explicit arrays stay.
///
/// The caller has no borrow of the array, so the state is looked at anew, under its lock, for each
/// part that is copied.
pub(super) fn evict(
    storage: &Storage,
    device: &Device,
    part: &Candidate,
    except: Option<&Selection>,
    site: CallSite,
) -> Eviction {
    let Some(elements) = part.elements(storage, device) else { return Eviction::Nothing };
    let request = &Request::new(storage, &elements, Access::Read, Cause::Evict, "eviction", site);
    let mut write_back = WriteBack::of(part, except);
    let outcome = loop {
        match write_back.next(request, device) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(outcome) => break outcome,
        }
    };
    // What is recorded here is reported once the caller has its memory.
    write_back.copies.close(request);
    if let Eviction::Freed { len_bytes } = outcome {
        record_memory(storage, device, MemoryChange::Eviction, len_bytes, site);
    }
    outcome
}

/// The copies to the host that precede an eviction.
struct WriteBack<'w> {
    part: &'w Candidate,
    except: Option<&'w Selection>,
    copies: Pipeline,
    /// The number of uses of the array that had begun at the first look.
    uses: Option<u64>,
    /// Whether staging memory for the next copy was prepared, with no lock held.
    is_prepared: bool,
}

impl<'w> WriteBack<'w> {
    fn of(part: &'w Candidate, except: Option<&'w Selection>) -> Self {
        Self { part, except, copies: Pipeline::default(), uses: None, is_prepared: false }
    }

    /// Looks at the array, and queues the next copy, or frees the memory.
    fn next(&mut self, request: &Request<'_>, device: &Device) -> ControlFlow<Eviction> {
        let (storage, order) = (request.storage, request.storage.memory_order());
        let mut state = storage.lock();
        let Some(location) = evictable(&state, device) else {
            return ControlFlow::Break(Eviction::Nothing);
        };
        let Some(len_bytes) = self.len_bytes(order, state.device_copy(location)) else {
            return ControlFlow::Break(Eviction::Nothing);
        };
        state.reconcile(order);
        state.retire_host_uses(order, request.selection);
        let kept = Eviction::Kept { len_bytes, uses: state.uses_begun() };
        if self.is_used(order, &mut state, location) || self.copies.has_failed() {
            return ControlFlow::Break(kept);
        }
        if storage.is_temporary() {
            request.selection.for_each_region(order, |region| {
                state.coherence.discard(order.extents(), region);
            });
        }
        if self.copies.is_empty() {
            let mut arriving = request.conflicts(&state, state.host_location(), Access::Read);
            // No guard copies to the host, and the mark of a forgotten one stays.
            arriving.retain(|mark| mark.end != UseEnd::OPEN);
            if !arriving.is_empty() {
                return ControlFlow::Break(Eviction::Arriving(ends_of(&state, &arriving)));
            }
        }
        let only_there = regions_not_on_host(storage, &state, location, request.selection);
        if only_there.is_empty() {
            let freed_bytes = match &self.part.pages {
                None => {
                    remove_copy(storage, &mut state, location, request.site);
                    Some(len_bytes)
                }
                Some(runs) => remove_pages(request, &mut state, location, runs),
            };
            let freed = freed_bytes.map(|len_bytes| Eviction::Freed { len_bytes });
            return ControlFlow::Break(freed.unwrap_or(kept));
        }
        match self.copy(request, state, location, only_there) {
            Ok(true) => ControlFlow::Continue(()),
            // The copy was refused, or another device still uses the host memory.
            Ok(false) | Err(_) => ControlFlow::Break(kept),
        }
    }

    /// The bytes that are freed; `None` if the copy has memory of another kind meanwhile.
    fn len_bytes(&self, order: &MemoryOrder, copy: &DeviceCopy) -> Option<u64> {
        match (&self.part.pages, copy.reserved()) {
            (None, None) => Some(order.len_bytes()),
            (Some(runs), Some(reserved)) => Some(reserved.len_bytes_of(runs)),
            _ => None,
        }
    }

    /// Whether something uses the part, or has used it since the first look.
    fn is_used(&mut self, order: &MemoryOrder, state: &mut ArrayState, location: Location) -> bool {
        let Candidate { rank, pages, .. } = self.part;
        match pages {
            None => {
                let uses = state.uses_begun();
                state.is_in_use(location) || *self.uses.get_or_insert(uses) != uses
            }
            Some(runs) => {
                let (last_use, all) = (rank.last_use, usize::MAX);
                let first = state.first_pages(order, location, runs, last_use, self.except, all);
                first.is_none_or(|first| first.is_used || first.pages != *runs)
            }
        }
    }

    /// Queues a copy to the host of the first of these regions.
    fn copy(
        &mut self,
        request: &Request<'_>,
        mut state: StateGuard<'_>,
        location: Location,
        only_there: Regions,
    ) -> Result<bool> {
        let device = state.device_copy(location).device.clone();
        request.allocate_writable_host(&mut state)?;
        if !users_of_other_kinds(&state, &device, &only_there).is_empty() {
            return Ok(false);
        }
        // The copy fails if it finds elements that a launch left out. Then the others must stay.
        let waits = device.properties().knows_left_out;
        let regions =
            if waits { only_there } else { of_one_writer(request, &state, location, only_there) };
        let regions = first_operation(request, &state, &device, regions);
        if !std::mem::replace(&mut self.is_prepared, true) {
            drop(state);
            prepare_downloads(&device, request.staged_bytes(&device, &regions).into_iter());
            return Ok(true);
        }
        self.is_prepared = false;
        self.copies.inquiry();
        let stream = &device.stream_for_frees().unwrap_or_else(|| device.stream());
        let purpose = if waits { Purpose::AwaitedWriteBack } else { Purpose::WriteBack };
        let (from, to) = (ReadFrom::Copy(location), state.host_location());
        let (maker, regions) = (Maker::Stream, &regions);
        let job = CopyJob { request, stream, from, to, regions, maker, purpose };
        if !job.run(state, &mut self.copies)? {
            return Ok(false);
        }
        if waits {
            self.copies.wait(request)?;
        }
        Ok(true)
    }
}

/// The parts of these regions that one kernel or copy wrote last that may still fail; all of them
/// if there is no such work. A copy fails if work fails that wrote what it reads. So each copies
/// what one such piece of work wrote, and its failure loses no contents of others.
fn of_one_writer(
    request: &Request<'_>,
    state: &ArrayState,
    location: Location,
    regions: Regions,
) -> Regions {
    let extents = request.storage.memory_order().extents();
    let (mut parts, mut writer) = (Regions::new(), None);
    state.uses(location).visit_written_regions(extents, |written, mark| {
        let Some(work) = mark.written_by().filter(|_| !state.is_retired(mark)) else { return };
        let work = (mark.stream, work);
        if writer.is_none_or(|writer| writer == work) {
            let known = parts.len();
            parts.extend(regions.iter().filter_map(|region| region.intersection(written)));
            writer = writer.or_else(|| (parts.len() > known).then_some(work));
        }
    });
    let len = |regions: &Regions| regions.iter().map(Region::len).sum::<u64>();
    if parts.is_empty() || len(&parts) == len(&regions) { regions } else { parts }
}

/// The first of these regions, as many as one operation should copy to the host.
fn first_operation(
    request: &Request<'_>,
    state: &ArrayState,
    device: &Device,
    regions: Regions,
) -> Regions {
    if state.is_host_pinned_for(device.kind()) {
        return regions;
    }
    let bytes_max = device.properties().chunk_bytes_max;
    let chunks = request.storage.memory_order().split_regions(&regions, bytes_max);
    chunks.into_iter().next().unwrap_or(regions)
}

/// The location of an array's copy on a device, if the copy may be evicted once nothing uses it.
fn evictable(state: &ArrayState, device: &Device) -> Option<Location> {
    let location = state.find_location(device)?;
    let may_go = location != state.host_location()
        && !state.is_explicit()
        && state.device_copy(location).has_memory();
    may_go.then_some(location)
}

/// The regions of a selection that are valid at a device's location and not on the host.
fn regions_not_on_host(
    storage: &Storage,
    state: &ArrayState,
    location: Location,
    selection: &Selection,
) -> Regions {
    let host = state.host_location();
    state.regions_where(storage.memory_order(), selection, |content| match content {
        Content::Stored(holders) => holders.contains(location) && !holders.contains(host),
        _ => false,
    })
}

fn remove_copy(storage: &Storage, state: &mut ArrayState, location: Location, site: CallSite) {
    release::free(storage, state, state.device_copy(location));
    state.remove_copy(storage.memory_order(), location, site);
    forget_fast_paths(storage);
}

/// The next reads find what was copied to the host by slow paths, which record them.
fn forget_fast_paths(storage: &Storage) {
    storage.published.forget_readers();
    storage.published.set_host_ready(false);
}

/// Frees the memory of runs of pages of a copy, which have the elements of the request, and returns
/// its bytes. `None` if the backend refuses the first: then nothing has changed. If it refuses a
/// later one, this and those after it stay.
fn remove_pages(
    request: &Request<'_>,
    state: &mut ArrayState,
    location: Location,
    runs: &[Range<usize>],
) -> Option<u64> {
    let (storage, order) = (request.storage, request.storage.memory_order());
    let copy = state.device_copy(location);
    let (reserved, device) = (copy.reserved()?, copy.device.clone());
    let ranges: SmallVec<[PageRange; 4]> = runs.iter().map(|run| reserved.range(run)).collect();
    let (stream, end, count) = release::free_pages(state, copy, &ranges, &request.regions())?;
    let runs = &runs[..count];
    let (regions, len_bytes) = (reserved.elements_of(order, runs), reserved.len_bytes_of(runs));
    storage.count_memory_freed(&device, len_bytes);
    let mark = Mark::lossless(state.assign_key(&stream), UseEnd::at(end));
    state.forget_pages(order, location, runs, &regions, mark, request.site);
    if !state.device_copy(location).has_memory() && !state.is_memory_claimed(location) {
        remove_copy(storage, state, location, request.site);
    }
    forget_fast_paths(storage);
    Some(len_bytes)
}
