//! The arrays of one launch: acquires them, keeps them pinned while the launch is queued, and marks
//! them. A whole array that the stream alone uses takes two short locks, and its state is not
//! looked at: see `storage/sole_use.rs`.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::acquire::{acquire_on, whole_on_device};
use super::acquired::Acquired;
use super::request::{Request, StoredView};
use crate::audit::{self, Cause, Flow};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::{ArrayState, PartId, PartUseEnd, StateGuard, Storage, UseKind};
use crate::traffic::LaunchedCopies;
use crate::transfer::copy::report::run_deferred;
use crate::transfer::copy::small_upload::upload_small;
use resident_backend::call_site::CallSite;
use resident_backend::{Address, Dependencies, Position, StreamId};
use resident_core::Access;
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// The arrays of a launch, in the order of its parameters. Those that are not marked when this
/// value drops are only unpinned. Launches with up to 16 arrays allocate nothing.
#[derive(Debug, Default)]
pub(crate) struct LaunchedArrays<'a> {
    list: SmallVec<[LaunchedArray<'a>; 16]>,
    /// Those that are parts of arrays, in order. `None` costs less to drop than an empty list.
    parts: Option<SmallVec<[LaunchedPart<'a>; 4]>>,
    /// The elements of those parts that their arrays do not know.
    selections: Option<Selections>,
}

/// Selections have more than 150 bytes, and few launches need any.
type Selections = SmallVec<[Selection; 2]>;

/// The elements of a launched array that is a part of one.
#[derive(Clone, Copy, Debug)]
struct LaunchedPart<'a> {
    view: StoredView<'a>,
    elements: Elements,
}

#[derive(Clone, Copy, Debug)]
enum Elements {
    /// A part that the array knows. All its elements are pinned.
    Known(PartId),
    /// Those of the selection with this index.
    Selected(usize),
}

/// An array of a launch, acquired.
#[derive(Clone, Copy, Debug)]
struct LaunchedArray<'a> {
    storage: &'a Storage,
    access: Access,
    is_whole: bool,
    /// The summary of its state that acquiring it found. If there is one, the fields below have
    /// their defaults.
    summary: Summary,
    is_pinned: bool,
    /// Whether the launch comes after a use on another stream.
    follows_other: bool,
}

/// A summary of an array's state (`storage/sole_use.rs`).
#[derive(Clone, Copy, Debug)]
enum Summary {
    None,
    Whole,
    Part(PartId),
}

/// What marking the arrays of a launch has found.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) copies: LaunchedCopies,
    /// Whether another stream is expected to wait for the launch.
    pub(crate) needs_event: bool,
    /// Whether the launch comes after a use on another stream.
    pub(crate) follows_other: bool,
    /// Whether there are watchers to tell.
    pub(crate) is_watched: bool,
}

impl Marked {
    #[inline]
    fn add(&mut self, copies: LaunchedCopies) {
        self.copies.launcher += copies.launcher;
        self.copies.before += copies.before;
    }

    #[inline]
    fn note_watched(&mut self, state: &mut ArrayState, access: Access) {
        if state.is_watched() {
            self.is_watched = true;
            state.note_use(UseKind::of(access), &Selection::Whole);
        }
    }
}

impl<'a> LaunchedArrays<'a> {
    /// Acquires a whole array that needs no copy and no wait, and returns the address of its copy.
    /// If the array needs either, does nothing and returns `None`. `epoch` is the current epoch of
    /// failures.
    #[inline(always)]
    pub(crate) fn acquire_whole(
        &mut self,
        storage: &'a Storage,
        stream: &Stream,
        epoch: u64,
        access: Access,
        depends: &mut Dependencies,
    ) -> Option<Address> {
        let order = storage.memory_order();
        let (address, summary) = match storage.state.acquire(order, stream, epoch, access, depends)
        {
            Ok(address) => (address, Summary::Whole),
            Err(state) => (acquire_ready(storage, state, stream, access, depends)?, Summary::None),
        };
        let array = LaunchedArray::whole(storage, access);
        self.list.push(LaunchedArray { summary, ..array });
        Some(address)
    }

    /// Acquires an array or a part of one, with the copies and waits that it needs. Adds to
    /// `depends` the work that wrote the elements to read and may still fail. `call` returns the
    /// kernel's name in messages, and the launch's line.
    pub(crate) fn acquire<'c>(
        &mut self,
        view: StoredView<'a>,
        selection: Selection,
        stream: &Stream,
        access: Access,
        depends: &mut Dependencies,
        call: impl Fn() -> (&'c str, CallSite),
    ) -> Result<Address> {
        let storage = view.storage;
        let (is_whole, cause) = (matches!(selection, Selection::Whole), Cause::Launch);
        let (operation, site) = call();
        let request = &Request::new(storage, &selection, access, cause, operation, site);
        if is_whole
            && access != Access::Overwrite
            && let Some(state) = upload_small(request, stream)?
            && let Some(address) = acquire_ready(storage, state, stream, access, depends)
        {
            self.list.push(LaunchedArray::whole(storage, access));
            if audit::has_subscribers() {
                run_deferred();
            }
            return Ok(address);
        }
        let acquired = acquire_on(request, stream, depends)?;
        let Acquired { address, follows_other, .. } = acquired;
        let (array, is_pinned) = (LaunchedArray::whole(storage, access), acquired.into_pin());
        self.list.push(LaunchedArray { is_whole, is_pinned, follows_other, ..array });
        if !is_whole {
            let selections = self.selections.get_or_insert_default();
            let elements = Elements::Selected(selections.len());
            selections.push(selection);
            self.parts.get_or_insert_default().push(LaunchedPart { view, elements });
        }
        Ok(address)
    }

    /// Acquires a part of an array that needs no copy, if launches used it before: with the waits
    /// that it needs, as [`acquire`](Self::acquire). Otherwise does nothing and returns `None`.
    pub(crate) fn acquire_known<'c>(
        &mut self,
        view: StoredView<'a>,
        stream: &Stream,
        access: Access,
        depends: &mut Dependencies,
        call: impl Fn() -> (&'c str, CallSite),
    ) -> Result<Option<Address>> {
        let (storage, part) = (view.storage, view.part_use(access));
        let mut state = match storage.state.acquire_part(storage.memory_order(), stream, &part) {
            Ok((address, id)) => {
                let array = LaunchedArray::whole(storage, access);
                self.push_known(view, id, LaunchedArray { summary: Summary::Part(id), ..array });
                return Ok(Some(address));
            }
            Err(state) => state,
        };
        if state.has_new_failures() {
            return Ok(None);
        }
        let Some(known) = state.find_known(&part, stream) else {
            return Ok(None);
        };
        let uses = state.conflicts_of_known(&known, access, stream, depends);
        let follows_other = uses.follow_other();
        if follows_other {
            if known.location == state.host_location() {
                return Ok(None);
            }
            let waited = state.make_wait(stream, &uses.of_others());
            waited.map_err(|error| {
                let ((operation, site), selection) = (call(), view.selection());
                let (storage, cause) = (view.storage, Cause::Launch);
                Request::new(storage, &selection, access, cause, operation, site).call_error(
                    stream.device_ref(),
                    "ordering uses of",
                    &error,
                )
            })?;
            state.retire_device_uses(known.location);
        }
        state.pin();
        drop(state);
        let array = LaunchedArray::whole(storage, access);
        self.push_known(view, known.id, LaunchedArray { follows_other, ..array });
        Ok(Some(known.address))
    }

    #[inline]
    fn push_known(&mut self, view: StoredView<'a>, id: PartId, array: LaunchedArray<'a>) {
        self.list.push(LaunchedArray { is_whole: false, ..array });
        let part = LaunchedPart { view, elements: Elements::Known(id) };
        self.parts.get_or_insert_default().push(part);
    }

    /// Marks the arrays as used by the launch at `position`. `call` returns the kernel's name in
    /// messages, and the launch's line, which are rarely needed.
    #[inline(always)]
    pub(crate) fn mark<'c>(
        &mut self,
        stream: &Stream,
        position: Position,
        call: impl Fn() -> (&'c str, CallSite),
    ) -> Marked {
        self.mark_each(stream, std::iter::repeat(position), call)
    }

    /// As [`mark`](Self::mark), with a position for each array, in their order.
    #[inline(always)]
    pub(crate) fn mark_each<'c>(
        &mut self,
        stream: &Stream,
        positions: impl IntoIterator<Item = Position>,
        call: impl Fn() -> (&'c str, CallSite),
    ) -> Marked {
        let (mut marked, mut next_part) = (Marked::default(), 0);
        if self.list.is_empty() {
            return marked;
        }
        // Of two widths: as a pair in one register they would take more instructions.
        let (mut summarised, mut summarised_bytes) = (0_u32, 0_u64);
        let (number, id) = (stream.device_ref().number_of_use(), stream.id());
        for (array, position) in self.list.iter_mut().zip(positions) {
            if let Summary::Part(part) = array.summary {
                let end = PartUseEnd { stream, position, number };
                if array.mark_summarised_part(part, end, &mut marked) {
                    next_part += 1;
                    continue;
                }
            }
            let state = match array.mark_summarised(id, position, number) {
                Ok(true) => continue,
                Ok(false) => {
                    summarised_bytes += array.storage.memory_order().len_bytes();
                    summarised += 1;
                    continue;
                }
                Err(state) => state,
            };
            let end = PartUseEnd { stream, position, number };
            let part = if array.is_whole {
                None
            } else {
                next_part += 1;
                self.parts.as_ref().and_then(|parts| parts.get(next_part - 1))
            };
            let is_marked = match part {
                None => array.mark_uses(state, end, &mut marked),
                Some(part) => array.mark_known(state, part, end, &mut marked),
            };
            if !is_marked {
                let ((storage, access), (operation, site)) =
                    ((array.storage, array.access), call());
                let selected = selected(self.selections.as_ref(), part);
                let (selection, cause) = (selection_of(selected, part), Cause::Launch);
                let request = Request::new(storage, &selection, access, cause, operation, site);
                array.mark(&request, part, selected, end, &mut marked);
            }
            marked.follows_other |= array.follows_other;
        }
        let count = 2 * u64::from(summarised);
        marked.copies.launcher += Flow { count, bytes: 2 * summarised_bytes };
        // All are unpinned.
        self.list.clear();
        marked
    }
}

impl LaunchedArrays<'_> {
    /// Unpins arrays that will not be marked.
    #[cold]
    fn release_all(&self) {
        let mut parts = self.parts.iter().flatten();
        for array in &self.list {
            let part = if array.is_whole { None } else { parts.next() };
            if array.is_pinned {
                unpin(selected(self.selections.as_ref(), part), &mut array.storage.lock());
            }
        }
    }
}

/// The selection of an unknown part.
fn selected<'s>(
    selections: Option<&'s Selections>,
    part: Option<&LaunchedPart<'_>>,
) -> Option<&'s Selection> {
    match part?.elements {
        Elements::Selected(index) => selections?.get(index),
        Elements::Known(_) => None,
    }
}

/// The elements of a part, or those of a whole array.
fn selection_of<'s>(
    selected: Option<&'s Selection>,
    part: Option<&LaunchedPart<'_>>,
) -> Cow<'s, Selection> {
    match (selected, part) {
        (Some(selection), _) => Cow::Borrowed(selection),
        (None, Some(part)) => Cow::Owned(part.view.selection()),
        (None, None) => Cow::Owned(Selection::Whole),
    }
}

/// Unpins these elements of a part, or a whole array.
fn unpin(selected: Option<&Selection>, state: &mut ArrayState) {
    match selected {
        Some(selection) => state.unpin_elements(selection),
        None => state.unpin(),
    }
}

impl Drop for LaunchedArrays<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.list.is_empty() {
            self.release_all();
        }
    }
}

impl<'a> LaunchedArray<'a> {
    /// A whole array, pinned, that comes after no use on another stream.
    #[inline(always)]
    fn whole(storage: &'a Storage, access: Access) -> Self {
        let (is_whole, is_pinned) = (true, true);
        let (summary, follows_other) = (Summary::None, false);
        Self { storage, access, is_whole, summary, is_pinned, follows_other }
    }

    /// Marks an array by its summary for a stream, and returns whether it is an explicit one. If it
    /// has no summary, returns the lock on its state.
    #[inline(always)]
    fn mark_summarised(
        &mut self,
        stream: StreamId,
        position: Position,
        number: u64,
    ) -> std::result::Result<bool, StateGuard<'a>> {
        if !matches!(self.summary, Summary::Whole) {
            return Err(self.storage.lock());
        }
        let (storage, order) = (self.storage, self.storage.memory_order());
        let published = &storage.published;
        let is_explicit =
            storage.state.mark(order, published, stream, self.access, position, number)?;
        self.is_pinned = false;
        Ok(is_explicit)
    }

    /// Marks a part of an array by its summary for the stream, if there still is one.
    #[inline]
    fn mark_summarised_part(
        &mut self,
        part: PartId,
        end: PartUseEnd<'_>,
        marked: &mut Marked,
    ) -> bool {
        let (storage, order) = (self.storage, self.storage.memory_order());
        let published = &storage.published;
        let Ok(bytes) = storage.state.mark_part(order, published, part, self.access, end) else {
            return false;
        };
        self.is_pinned = false;
        let count = if bytes == 0 { 0 } else { 2 };
        marked.copies.launcher += Flow { count, bytes: 2 * bytes };
        true
    }

    /// Marks a whole array of which only the uses change, and summarises its state for the next
    /// launch. If the contents change too, does nothing and returns `false`.
    #[inline(never)]
    fn mark_uses(
        &mut self,
        mut state: StateGuard<'_>,
        PartUseEnd { stream, position, number }: PartUseEnd<'_>,
        marked: &mut Marked,
    ) -> bool {
        let Some(location) = state.find_location(stream.device_ref()) else { return false };
        let Some(key) = state.record_whole(stream, location, self.access, position, number) else {
            return false;
        };
        self.unpin(&mut state);
        let memory_order = self.storage.memory_order();
        marked.add(state.count_argument(memory_order, memory_order.len_bytes()));
        if self.access.writes() {
            self.storage.published.forget_readers();
        }
        marked.needs_event |= state.takes_expected_wait(stream, UseKind::of(self.access));
        marked.note_watched(&mut state, self.access);
        state.summarise(stream, key, location);
        true
    }

    /// Marks a part of an array that the array knows, if only its uses change. Otherwise does
    /// nothing and returns `false`.
    #[inline]
    fn mark_known(
        &mut self,
        mut state: StateGuard<'_>,
        part: &LaunchedPart<'_>,
        end: PartUseEnd<'_>,
        marked: &mut Marked,
    ) -> bool {
        let Elements::Known(id) = part.elements else { return false };
        let memory_order = self.storage.memory_order();
        let Some(len_bytes) = state.record_known(memory_order, id, self.access, end) else {
            return false;
        };
        self.unpin(&mut state);
        marked.add(state.count_argument(memory_order, len_bytes));
        if self.access.writes() {
            self.storage.published.forget_readers();
        }
        marked.needs_event |= state.takes_expected_wait(end.stream, UseKind::of(self.access));
        if state.is_watched() {
            marked.is_watched = true;
            state.note_use(UseKind::of(self.access), &part.view.selection());
        }
        if let Some(location) = state.find_location(end.stream.device_ref()) {
            state.summarise_parts(end.stream, location);
        }
        true
    }

    /// Marks any elements, whatever changes. If they are a whole array, summarises its state. If
    /// they are a part that was used before, remembers it.
    #[inline(never)]
    fn mark(
        &mut self,
        request: &Request<'_>,
        part: Option<&LaunchedPart<'_>>,
        selected: Option<&Selection>,
        PartUseEnd { stream, position, number }: PartUseEnd<'_>,
        marked: &mut Marked,
    ) {
        let mut state = self.storage.lock();
        let location = state.find_location(stream.device_ref());
        let (Some(location), false) = (location, request.is_empty()) else { return };
        let memory_order = self.storage.memory_order();
        let len_bytes = request.selection.len_bytes(memory_order);
        marked.add(state.count_argument(memory_order, len_bytes));
        let again = part.and_then(|part| {
            let Selection::Boxes(boxes) = request.selection else { return None };
            let [region] = boxes.as_slice() else { return None };
            let is_again = state.may_remember(location, region);
            is_again.then(|| (part.view.part_use(self.access), region))
        });
        let end = UseEnd::at(position);
        request.record_numbered_use_and_effect(&mut state, stream, location, end, number);
        if let Some((part, region)) = again {
            state.remember_part(location, &part, region, len_bytes);
        }
        if std::mem::take(&mut self.is_pinned) {
            unpin(selected, &mut state);
        }
        marked.needs_event |= state.takes_expected_wait(stream, UseKind::of(self.access));
        marked.is_watched |= state.is_watched();
        if let (true, Some(key)) = (self.is_whole, state.find_key(stream)) {
            state.summarise(stream, key, location);
        }
    }

    #[inline]
    fn unpin(&mut self, state: &mut ArrayState) {
        if std::mem::take(&mut self.is_pinned) {
            state.unpin();
        }
    }
}

/// Before elements of a launch get memory on a device that has been full: notes a use of those of
/// the launch's arrays that have some there. They are acquired one by one, and so would give way to
/// it.
#[cold]
pub(crate) fn use_copies<'s>(
    needing: &Storage,
    selection: &Selection,
    arrays: impl Iterator<Item = (&'s Storage, Selection)>,
    device: &Device,
) {
    let has_memory = {
        let state = needing.lock();
        let copy = state.find_location(device).map(|location| state.device_copy(location));
        copy.is_some_and(|copy| copy.address_of(needing.memory_order(), selection).is_some())
    };
    if has_memory {
        return;
    }
    for (storage, selection) in arrays {
        let mut state = storage.lock();
        let location = state.find_location(device).filter(|location| {
            *location != state.host_location() && state.device_copy(*location).has_memory()
        });
        if let Some(location) = location {
            let number = state.number_of_other_use(location);
            state.set_last_use(storage.memory_order(), location, &selection, number);
        }
    }
}

/// Acquires a whole array that needs no copy and no wait, given the lock on its state.
#[inline(never)]
fn acquire_ready(
    storage: &Storage,
    mut state: StateGuard<'_>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<Address> {
    if storage.memory_order().is_empty() {
        return None;
    }
    let copy = whole_on_device(&mut state, stream, access, depends)?;
    state.pin();
    Some(copy.address)
}
