//! The access of one call to one array, and the queries that the access needs.

use smallvec::SmallVec;

use crate::audit::Cause;
use crate::device::{Device, Stream};
use crate::error::{Error, Result};
use crate::storage::{ArrayState, PartUse, Storage};
use resident_backend::call_site::CallSite;
use resident_backend::{Address, Dependencies, Position};
use resident_core::Access;
use resident_core::coherence::{Location, Region};
use resident_core::layout::{OwnView, Selection, Strided};
use resident_core::ordering::{Mark, StreamKey, UseEnd, Uses};

/// An access that a call needs: its elements, and the name and site of the call for messages and
/// reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) selection: &'a Selection,
    /// What the call does with the elements.
    pub(crate) access: Access,
    /// For reports, and for what a thread denies.
    pub(crate) cause: Cause,
    /// The call's name in messages: `host`, `kernel "blur"`.
    pub(crate) operation: &'a str,
    pub(crate) site: CallSite,
    /// Whether the contents are copied ahead of their use. If so, an event is recorded directly
    /// after the copies, so that later waits for them do not include later work.
    pub(crate) is_ahead_of_use: bool,
}

/// An array and a view of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredView<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) view: Strided<'a>,
    /// The size of the view's elements, which may be fields of the array's elements, or the same
    /// bytes as elements of any other size (`reinterpret`).
    pub(crate) element_bytes: u32,
}

impl<'a> StoredView<'a> {
    /// Whether the view covers the array.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        let distinct_bytes = self.view.distinct_len() * u64::from(self.element_bytes);
        distinct_bytes == self.storage.memory_order().len_bytes()
    }

    pub(crate) fn selection(&self) -> Selection {
        self.storage.memory_order().select(&self.view, self.element_bytes)
    }

    /// What a launch does with the view, which is a part of an array.
    #[inline]
    pub(crate) fn part_use(&self, access: Access) -> PartUse<'a> {
        PartUse { view: self.view, element_bytes: self.element_bytes, access }
    }

    /// Calls `serve` with a reference to the selection, which takes more than 150 bytes and so is
    /// not returned by value.
    #[inline]
    pub(crate) fn with_selection<R>(&self, serve: impl FnOnce(&Selection) -> R) -> R {
        if self.is_whole() { serve(&Selection::Whole) } else { serve(&self.selection()) }
    }

    /// Whether each element is one of the array's elements or a field of one. Copies of such views
    /// take each part from where it is newest; others take all from one place.
    #[inline]
    pub(crate) fn has_fields(&self) -> bool {
        self.storage.memory_order().has_fields(&self.view, self.element_bytes)
    }

    /// Whether the view has no part of a number without the rest of it. The selection of another
    /// view has bytes that the view has not, so such a view must not be written.
    #[inline]
    pub(crate) fn has_whole_numbers(&self) -> bool {
        let memory_order = self.storage.memory_order();
        let own_bytes = || self.view.distinct_len() * u64::from(self.element_bytes);
        let unit_bytes = memory_order.unit_bytes();
        unit_bytes <= 1
            || self.element_bytes == unit_bytes
            || self.element_bytes.is_multiple_of(unit_bytes)
            || self.selection().len_bytes(memory_order) == own_bytes()
    }

    /// Returns an error if the view has a part of a number without the rest of it.
    #[inline]
    pub(crate) fn expect_whole_numbers(&self, operation: &str, site: CallSite) -> Result<()> {
        if self.has_whole_numbers() { Ok(()) } else { Err(self.cut_numbers(operation, site)) }
    }

    #[cold]
    fn cut_numbers(&self, operation: &str, site: CallSite) -> Error {
        let (storage, element) = (self.storage, self.storage.element_name());
        Error::Shape {
            call: site.into(),
            operation: format!("{operation} of a part of {}", storage.named()),
            expected: format!("whole elements of the array, which are of type {element},"),
            seen: format!(
                "shape {:?} and strides {:?} from element {}, of {} bytes each",
                self.view.shape, self.view.strides, self.view.offset, self.element_bytes
            ),
            instead: format!(
                "write a part that begins and ends between elements of type {element}; a part of \
                 an element can be read"
            )
            .into(),
        }
    }

    /// The constants that fill the view with elements of these bytes: views of the same elements or
    /// of parts of them, and the bytes of one. There are several if the array's elements are
    /// smaller.
    pub(crate) fn constants<'v>(&self, value: &'v [u8]) -> SmallVec<[(OwnView, &'v [u8]); 1]> {
        let unit_bytes = self.storage.memory_order().unit_bytes() as usize;
        // A shorter value than a unit has no units.
        let units = value.chunks_exact(unit_bytes);
        let Some(first) = units.clone().next() else {
            return SmallVec::from_iter([(self.view.part_of_each(1, 0), value)]);
        };
        let count = units.len();
        if units.clone().all(|unit| unit == first) {
            let all = self.view.in_bytes(count as u32);
            return SmallVec::from_iter([(all, first)]);
        }
        let part = |(index, unit)| (self.view.part_of_each(count, index), unit);
        units.enumerate().map(part).collect()
    }

    /// The request of a call that copies contents, for this view, whose selection the caller has
    /// made.
    pub(crate) fn request<'r>(
        &self,
        selection: &'r Selection,
        access: Access,
        operation: &'r str,
        site: CallSite,
    ) -> Request<'r>
    where
        'a: 'r,
    {
        Request::new(self.storage, selection, access, Cause::Explicit, operation, site)
    }

    /// Whether parts of an element may be in different places.
    pub(in crate::transfer) fn is_divided(&self) -> bool {
        self.storage.memory_order().is_divided()
    }

    /// Calls `serve` with this view and another one of its shape and element size, both in bytes if
    /// that is asked for, and with axes that are split where the memory order needs it.
    pub(in crate::transfer) fn with_units<R>(
        &self,
        other: Strided<'_>,
        in_bytes: bool,
        serve: impl FnOnce(StoredView<'_>, Strided<'_>) -> R,
    ) -> R {
        let bytes = |view: &Strided<'_>| view.in_bytes(self.element_bytes);
        let in_bytes = in_bytes.then(|| (bytes(&self.view), bytes(&other)));
        let (own, other) = match &in_bytes {
            Some((own, other)) => {
                (StoredView { view: own.strided(), element_bytes: 1, ..*self }, other.strided())
            }
            None => (*self, other),
        };
        match own.view.split_with(&other, own.element_bytes, own.storage.memory_order()) {
            Some((view, other)) => {
                serve(StoredView { view: view.strided(), ..own }, other.strided())
            }
            None => serve(own, other),
        }
    }
}

/// Where an array's copy on a device is.
#[derive(Clone, Copy, Debug)]
pub(in crate::transfer) struct CopyPlace {
    pub(in crate::transfer) location: Location,
    pub(in crate::transfer) address: Address,
}

/// Uses for which an access waits; usually there are few.
pub(in crate::transfer) type Marks = SmallVec<[Mark; 4]>;

/// The uses for which an access of a device's copy must wait.
#[derive(Debug)]
pub(super) struct Conflicts {
    access: Access,
    /// The key of the stream of the access.
    own: StreamKey,
    /// The last use on each other stream. Completed uses are left out.
    pub(super) marks: Marks,
    /// Whether any is on another stream, even a completed one.
    pub(super) follow_other: bool,
}

impl Conflicts {
    pub(super) fn of(access: Access, own: StreamKey) -> Self {
        Self { access, own, marks: Marks::new(), follow_other: false }
    }

    /// Adds a use. Adds the work of the use to `depends` if it wrote elements to be read and may
    /// still fail.
    #[inline]
    pub(super) fn add(&mut self, state: &ArrayState, mark: Mark, depends: &mut Dependencies) {
        let is_other = mark.stream != self.own;
        self.follow_other |= is_other;
        if state.is_retired(mark) {
            return;
        }
        if self.access != Access::Overwrite {
            add_dependency(state, mark, depends);
        }
        if is_other {
            add_mark(&mut self.marks, mark);
        }
    }
}

/// Regions of one source.
pub(in crate::transfer) type Regions = SmallVec<[Region; 1]>;

/// Queued work for which a call waits.
pub(crate) type Queued = SmallVec<[(Stream, Position); 1]>;

impl<'a> Request<'a> {
    #[inline]
    pub(crate) fn new(
        storage: &'a Storage,
        selection: &'a Selection,
        access: Access,
        cause: Cause,
        operation: &'a str,
        site: CallSite,
    ) -> Self {
        Self { storage, selection, access, cause, operation, site, is_ahead_of_use: false }
    }

    #[inline]
    pub(crate) fn ahead_of_use(self) -> Self {
        Self { is_ahead_of_use: true, ..self }
    }

    /// The same request for other elements.
    pub(in crate::transfer) fn of<'b>(&self, selection: &'b Selection) -> Request<'b>
    where
        'a: 'b,
    {
        Request { selection, ..*self }
    }

    /// The same request, to read the elements.
    pub(in crate::transfer) fn reading(&self) -> Self {
        Self { access: Access::Read, ..*self }
    }
}

impl Request<'_> {
    /// Whether the request has no elements to access. Such requests never reach a device.
    #[inline]
    pub(in crate::transfer) fn is_empty(&self) -> bool {
        self.storage.memory_order().is_empty() || self.selection.is_empty()
    }

    /// Whether all elements can be read at `location` without a copy.
    pub(in crate::transfer) fn is_valid(&self, state: &ArrayState, location: Location) -> bool {
        match (self.selection, state.coherence.uniform()) {
            (Selection::Whole, Some(content)) => content.is_valid(location),
            _ => {
                let mut is_valid = true;
                self.selection.for_each_region(self.storage.memory_order(), |region| {
                    is_valid = is_valid && state.coherence.is_valid(location, region);
                });
                is_valid
            }
        }
    }

    /// The uses at `location` for which an access of the host must wait. Completed uses are left
    /// out. Several uses on one stream are kept: the host waits for each in turn, since it unpacks
    /// a download while later ones run.
    pub(in crate::transfer) fn conflicts(
        &self,
        state: &ArrayState,
        location: Location,
        access: Access,
    ) -> Marks {
        let is_wanted = |mark: Mark| !state.is_retired(mark);
        let mut marks = Marks::new();
        self.selection.visit_boxes_or_whole(|region| {
            state.uses(location).visit_conflicts(region, access, is_wanted, |mark| {
                // A use of several regions is visited several times in a row. Waiting twice is
                // harmless.
                let is_repeated = marks.iter().rev().take(4).any(|known| *known == mark);
                if !is_repeated && is_wanted(mark) {
                    marks.push(mark);
                }
            });
        });
        marks
    }

    /// As [`conflicts`](Self::conflicts), for an access on `stream`, without the uses on `stream`
    /// itself. Adds the work that wrote elements to be read and may still fail to `depends`. Also
    /// returns whether the access comes after a use on another stream, even a completed one.
    pub(super) fn conflicts_and_dependencies(
        &self,
        state: &ArrayState,
        location: Location,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> (Marks, bool) {
        let own = state.find_key(stream).unwrap_or(StreamKey::NONE);
        let mut conflicts = Conflicts::of(self.access, own);
        self.selection.visit_boxes_or_whole(|region| {
            let is_other = |mark: Mark| mark.stream != own;
            state.uses(location).visit_conflicts(region, self.access, is_other, |mark| {
                conflicts.add(state, mark, depends);
            });
        });
        (conflicts.marks, conflicts.follow_other)
    }

    /// The uses of `regions` at `location` for which a write on `stream` must wait.
    pub(in crate::transfer) fn conflicts_of_write(
        &self,
        state: &ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
    ) -> Marks {
        let mut marks = Marks::new();
        for region in regions {
            let access = Access::Overwrite;
            collect_conflicts(state, location, Some(region), access, stream, &mut marks);
        }
        marks
    }

    /// Makes `stream` wait for these uses.
    pub(in crate::transfer) fn make_wait(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        marks: &Marks,
    ) -> Result<()> {
        state
            .make_wait(stream, marks)
            .map_err(|error| self.call_error(stream.device_ref(), "ordering uses of", &error))
    }

    /// Makes `stream` wait for the writers of `regions` at `from`. Returns the writers that may
    /// still fail.
    pub(in crate::transfer) fn wait_for_writers(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
    ) -> Result<Dependencies> {
        let (mut marks, mut depends) = (Marks::new(), Dependencies::new());
        for region in regions {
            collect_conflicts(state, from, Some(region), Access::Read, stream, &mut marks);
            add_writers(state, from, Some(region), &mut depends);
        }
        self.make_wait(state, stream, &marks)?;
        Ok(depends)
    }

    /// The regions of the selection.
    pub(in crate::transfer) fn regions(&self) -> Regions {
        let mut regions = Regions::new();
        self.selection.for_each_region(self.storage.memory_order(), |region| regions.push(*region));
        regions
    }

    /// The number of bytes in these regions.
    pub(in crate::transfer) fn bytes_of(&self, regions: &[Region]) -> u64 {
        regions.iter().map(|region| self.storage.memory_order().region_bytes(region)).sum()
    }
}

/// Adds the uses at `location` for which an access of `region` (`None` for the whole array) on
/// `stream` must wait: the last on each other stream. Completed uses are left out.
pub(in crate::transfer) fn collect_conflicts(
    state: &ArrayState,
    location: Location,
    region: Option<&Region>,
    access: Access,
    stream: &Stream,
    marks: &mut Marks,
) {
    let own = state.find_key(stream);
    let is_wanted = |mark: Mark| Some(mark.stream) != own && !state.is_retired(mark);
    add_conflicts(state.uses(location), region, access, is_wanted, marks);
}

/// Adds the uses with which an access of `region` conflicts and that are wanted.
pub(in crate::transfer) fn add_conflicts(
    uses: &Uses,
    region: Option<&Region>,
    access: Access,
    is_wanted: impl Fn(Mark) -> bool + Copy,
    marks: &mut Marks,
) {
    uses.visit_conflicts(region, access, is_wanted, |mark| {
        if is_wanted(mark) {
            add_mark(marks, mark);
        }
    });
}

/// Adds a use, unless a later one on the same stream is known, which ends after it.
fn add_mark(marks: &mut Marks, mark: Mark) {
    match marks.iter_mut().find(|known| known.stream == mark.stream) {
        Some(known) if known.end >= mark.end => {}
        Some(known) => *known = mark,
        None => marks.push(mark),
    }
}

/// Adds work that wrote `region` (`None` for the whole array) at `location` and may still fail.
pub(in crate::transfer) fn add_writers(
    state: &ArrayState,
    location: Location,
    region: Option<&Region>,
    depends: &mut Dependencies,
) {
    state.uses(location).visit_writers(region, |mark| {
        if !state.is_retired(mark) {
            add_dependency(state, mark, depends);
        }
    });
}

/// Adds the work that made this use, if its failure damages contents.
fn add_dependency(state: &ArrayState, mark: Mark, depends: &mut Dependencies) {
    if let (Some(stream), Some(position)) = (state.stream(mark.stream), mark.written_by())
        && !depends.contains(&(stream.id(), position))
    {
        depends.push((stream.id(), position));
    }
}

/// The open uses for which one call of the host has waited.
///
/// An open use with which an access conflicts is that of a guard that is over: dropped, or
/// forgotten, since a guard that lives borrows its elements. So all work that other code queued for
/// it is on its stream, and one wait for what the stream has by now is enough. Its mark may stay
/// open, so that a call which looks again would wait for ever.
#[derive(Debug, Default)]
pub(in crate::transfer) struct AwaitedGuards(Marks);

impl AwaitedGuards {
    /// As [`ends_of`], without open uses that an earlier call of this returned.
    pub(in crate::transfer) fn ends_of(&mut self, state: &ArrayState, marks: &Marks) -> Queued {
        let is_open = |mark: &&Mark| mark.end == UseEnd::OPEN;
        let new = marks.iter().filter(|mark| !is_open(mark) || !self.0.contains(mark));
        let new: Marks = new.copied().collect();
        self.0.extend(new.iter().filter(is_open).copied());
        ends_of(state, &new)
    }
}

/// The positions at which these uses end. The end of an open use is a position that is reserved
/// now.
pub(in crate::transfer) fn ends_of(state: &ArrayState, marks: &Marks) -> Queued {
    let end = |mark: &Mark| {
        let stream = state.stream(mark.stream)?;
        let position = mark.end.position();
        Some((stream.clone(), position.unwrap_or_else(|| stream.raw().reserve_position())))
    };
    marks.iter().filter_map(end).collect()
}

/// The uses of regions of the host memory by devices of another kind than `device`, open ones
/// included. The host waits for these uses, with no lock and no claim held, because no driver can
/// wait for the events of another driver.
pub(in crate::transfer) fn users_of_other_kinds(
    state: &ArrayState,
    device: &Device,
    regions: &[Region],
) -> Marks {
    let is_other = |user: &Device| user.kind() != device.kind();
    users_of_host(state, regions, Access::Overwrite, is_other)
}

/// The uses of regions of host memory for which work of `device`, whose copy this memory is, cannot
/// wait on the device: those of devices of another kind, and downloads of other devices to pageable
/// memory. An event is recorded behind the device's part of such a download, and the host unpacks
/// the bytes later.
pub(in crate::transfer) fn users_to_wait_for(
    state: &ArrayState,
    device: &Device,
    regions: &[Region],
) -> Marks {
    let mut marks = users_of_other_kinds(state, device, regions);
    if !state.is_host_pinned_for(device.kind()) {
        let is_other = |user: &Device| user.kind() == device.kind() && user != device;
        marks.extend(users_of_host(state, regions, Access::Read, is_other));
    }
    marks
}

/// The uses of regions of the host memory by some devices with which an access conflicts.
fn users_of_host(
    state: &ArrayState,
    regions: &[Region],
    access: Access,
    is_wanted: impl Fn(&Device) -> bool,
) -> Marks {
    let mut marks = Marks::new();
    let is_user = |mark: Mark| {
        let stream = state.stream(mark.stream);
        stream.is_some_and(|stream| is_wanted(stream.device_ref())) && !state.is_retired(mark)
    };
    for region in regions {
        let uses = state.uses(state.host_location());
        add_conflicts(uses, Some(region), access, is_user, &mut marks);
    }
    marks
}
