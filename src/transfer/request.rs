//! The access of one call to one array, and the queries that the access needs.

use smallvec::SmallVec;

use crate::access::Access;
use crate::audit::Cause;
use crate::backend::{Dependencies, Position};
use crate::call_site::CallSite;
use crate::coherence::{Location, Region};
use crate::device::Stream;
use crate::layout::{Selection, Strided};
use crate::ordering::Mark;
use crate::storage::{ArrayState, Storage};

/// An access that a call needs: its elements, and the name and site of the call for messages and
/// reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) selection: &'a Selection,
    /// For reports only.
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
}

/// Uses for which an access waits; usually there are few.
pub(super) type Marks = SmallVec<[Mark; 4]>;

/// Regions of one source.
pub(super) type Regions = SmallVec<[Region; 1]>;

/// Queued work for which a call waits.
pub(crate) type Queued = SmallVec<[(Stream, Position); 1]>;

impl<'a> Request<'a> {
    #[inline]
    pub(crate) fn new(
        storage: &'a Storage,
        selection: &'a Selection,
        cause: Cause,
        operation: &'a str,
        site: CallSite,
    ) -> Self {
        Self { storage, selection, cause, operation, site, is_ahead_of_use: false }
    }

    #[inline]
    pub(crate) fn ahead_of_use(self) -> Self {
        Self { is_ahead_of_use: true, ..self }
    }

    /// The same request for other elements.
    pub(super) fn of<'b>(&self, selection: &'b Selection) -> Request<'b>
    where
        'a: 'b,
    {
        Request { selection, ..*self }
    }
}

impl Request<'_> {
    /// Whether the request has no elements to access. Such requests never reach a device.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.storage.memory_order().is_empty() || self.selection.is_empty()
    }

    /// Whether all elements can be read at `location` without a copy.
    pub(super) fn is_valid(&self, state: &ArrayState, location: Location) -> bool {
        match (self.selection, state.coherence.uniform()) {
            (Selection::Whole, Some(content)) => content.is_valid(location),
            _ => {
                let mut is_valid = true;
                self.selection.for_each(self.storage.memory_order(), |region| {
                    is_valid = is_valid && state.coherence.is_valid(location, region);
                });
                is_valid
            }
        }
    }

    /// The uses at `location` for which an access must wait. Completed uses, and uses on `stream`
    /// itself, are left out.
    pub(super) fn conflicts(
        &self,
        state: &ArrayState,
        location: Location,
        access: Access,
        stream: Option<&Stream>,
    ) -> Marks {
        let mut marks = Marks::new();
        self.selection.each(|region| {
            collect_conflicts(state, location, region, access, stream, &mut marks);
        });
        marks
    }

    /// Whether an access on `stream` comes after a use on another stream, even a completed one.
    pub(super) fn follows_other(
        &self,
        state: &ArrayState,
        location: Location,
        access: Access,
        stream: &Stream,
    ) -> bool {
        let mut follows_other = false;
        self.selection.each(|region| {
            state.uses(location).visit_conflicts(region, access, |mark| {
                follows_other |= state.stream(mark.stream).is_some_and(|other| other != stream);
            });
        });
        follows_other
    }

    /// Adds work that wrote the elements at `location` and may still fail.
    pub(super) fn add_dependencies(
        &self,
        state: &ArrayState,
        location: Location,
        depends: &mut Dependencies,
    ) {
        self.selection.each(|region| add_writers(state, location, region, depends));
    }

    /// The number of bytes in these regions.
    pub(super) fn bytes_of(&self, regions: &[Region]) -> u64 {
        regions.iter().map(|region| self.storage.memory_order().region_bytes(region)).sum()
    }
}

/// Adds the uses at `location` for which an access of `region` (`None` for the whole array) must
/// wait. Completed uses, and uses on `stream` itself, are left out.
pub(super) fn collect_conflicts(
    state: &ArrayState,
    location: Location,
    region: Option<&Region>,
    access: Access,
    stream: Option<&Stream>,
    marks: &mut Marks,
) {
    state.uses(location).visit_conflicts(region, access, |mark| {
        let is_own = stream.is_some() && state.stream(mark.stream) == stream;
        if !is_own && !marks.contains(&mark) && !state.is_retired(mark) {
            marks.push(mark);
        }
    });
}

/// Adds work that wrote `region` (`None` for the whole array) at `location` and may still fail.
pub(super) fn add_writers(
    state: &ArrayState,
    location: Location,
    region: Option<&Region>,
    depends: &mut Dependencies,
) {
    state.uses(location).visit_writers(region, |mark| {
        if let (Some(stream), Some(position)) = (state.stream(mark.stream), mark.written_by())
            && !state.is_retired(mark)
            && !depends.contains(&(stream.id(), position))
        {
            depends.push((stream.id(), position));
        }
    });
}

/// The positions at which these uses end. The end of an open use is a position that is reserved
/// now.
pub(super) fn ends_of(state: &ArrayState, marks: &Marks) -> Queued {
    let end = |mark: &Mark| {
        let stream = state.stream(mark.stream)?;
        let position = mark.end.position();
        Some((stream.clone(), position.unwrap_or_else(|| stream.queue().reserve_position())))
    };
    marks.iter().filter_map(end).collect()
}
