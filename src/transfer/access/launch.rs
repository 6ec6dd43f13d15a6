//! The arrays of one launch: acquires them, keeps them pinned while the launch is queued, and marks
//! them. A whole array that the stream alone uses takes two short locks, and its state is not
//! looked at: see `storage/sole_use.rs`.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::acquire::{acquire_on, whole_on_device};
use super::acquired::Acquired;
use super::request::{Conflicts, Request, StoredView};
use crate::audit::{self, Cause, Flow};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::{ArrayState, KnownAcquire, PartId, PartUseEnd, StateGuard, Storage, UseKind};
use crate::traffic::LaunchedCopies;
use crate::transfer::copy::report::run_deferred;
use crate::transfer::copy::small_upload::upload_small;
use resident_backend::call_site::CallSite;
use resident_backend::{Address, BackendError, Dependencies, Position, StreamId};
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
}

/// The elements of a launched array that is a part of one.
#[derive(Debug)]
struct LaunchedPart<'a> {
    view: StoredView<'a>,
    elements: Elements,
}

#[derive(Debug)]
enum Elements {
    /// A part that the array knows. All its elements are pinned.
    Known(PartId),
    Selected(Selection),
}

/// An array of a launch, acquired.
#[derive(Clone, Copy, Debug)]
struct LaunchedArray<'a> {
    storage: &'a Storage,
    access: Access,
    is_whole: bool,
    /// Whether acquiring it found a summary of its state. If so, the fields below have their
    /// defaults.
    is_summarised: bool,
    is_pinned: bool,
    /// Whether the launch comes after a use on another stream.
    follows_other: bool,
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
        let (address, is_summarised) =
            match storage.state.acquire(order, stream, epoch, access, depends) {
                Ok(address) => (address, true),
                Err(state) => (acquire_ready(storage, state, stream, access, depends)?, false),
            };
        let array = LaunchedArray::whole(storage, access);
        self.list.push(LaunchedArray { is_summarised, ..array });
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
            let elements = Elements::Selected(selection);
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
        let mut state = view.storage.lock();
        if state.has_new_failures() {
            return Ok(None);
        }
        let Some(known) = state.find_known(&view.part_use(access), stream, depends) else {
            return Ok(None);
        };
        let mut follows_other = false;
        if !known.is_ready {
            if known.location == state.host_location() {
                return Ok(None);
            }
            let waited = wait_for_uses_of(&known, &mut state, stream, access, depends);
            follows_other = waited.map_err(|error| {
                let ((operation, site), selection) = (call(), view.selection());
                let (storage, cause) = (view.storage, Cause::Launch);
                Request::new(storage, &selection, access, cause, operation, site).call_error(
                    stream.device_ref(),
                    "ordering uses of",
                    &error,
                )
            })?;
        }
        state.pin();
        drop(state);
        let array = LaunchedArray::whole(view.storage, access);
        self.list.push(LaunchedArray { is_whole: false, follows_other, ..array });
        let elements = Elements::Known(known.id);
        self.parts.get_or_insert_default().push(LaunchedPart { view, elements });
        Ok(Some(known.address))
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
                let (selection, cause) = (LaunchedPart::selection(part), Cause::Launch);
                let request = Request::new(storage, &selection, access, cause, operation, site);
                array.mark(&request, part, end, &mut marked);
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
                LaunchedPart::unpin(part, &mut array.storage.lock());
            }
        }
    }
}

impl LaunchedPart<'_> {
    /// The elements of a part, or those of a whole array.
    fn selection(part: Option<&Self>) -> Cow<'_, Selection> {
        match part {
            None => Cow::Owned(Selection::Whole),
            Some(Self { elements: Elements::Selected(selection), .. }) => Cow::Borrowed(selection),
            Some(Self { view, elements: Elements::Known(_) }) => Cow::Owned(view.selection()),
        }
    }

    /// Unpins the elements of a part, or a whole array.
    fn unpin(part: Option<&Self>, state: &mut ArrayState) {
        match part {
            Some(Self { elements: Elements::Selected(selection), .. }) => {
                state.unpin_elements(selection);
            }
            _ => state.unpin(),
        }
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
        Self { storage, access, is_whole, is_summarised: false, is_pinned, follows_other: false }
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
        if !self.is_summarised {
            return Err(self.storage.lock());
        }
        let (storage, order) = (self.storage, self.storage.memory_order());
        let published = &storage.published;
        let is_explicit =
            storage.state.mark(order, published, stream, self.access, position, number)?;
        self.is_pinned = false;
        Ok(is_explicit)
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
        true
    }

    /// Marks any elements, whatever changes. If they are a whole array, summarises its state. If
    /// they are a part that was used before, remembers it.
    #[inline(never)]
    fn mark(
        &mut self,
        request: &Request<'_>,
        part: Option<&LaunchedPart<'_>>,
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
            LaunchedPart::unpin(part, &mut state);
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

/// Makes `stream` wait for the uses of a part on other streams. Returns whether there are any, even
/// completed ones.
#[inline(never)]
fn wait_for_uses_of(
    known: &KnownAcquire,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> std::result::Result<bool, BackendError> {
    let mut conflicts = Conflicts::of(access, known.key);
    state.visit_conflicts_of_known(known, access, |mark| conflicts.add(state, mark, depends));
    state.make_wait(stream, &conflicts.marks)?;
    if conflicts.follow_other {
        state.retire_device_uses(known.location);
    }
    Ok(conflicts.follow_other)
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
