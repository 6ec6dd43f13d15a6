//! Copying one array's contents to another, each part where it is newest.

use smallvec::SmallVec;

use super::constant::fill;
use super::element::newest_device;
use super::newest::stream_where_newest;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{HostWrite, StateGuard, Storage, UseKind};
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::acquired::Acquired;
use crate::transfer::access::mark::mark_host_written;
use crate::transfer::access::request::{Request, StoredView};
use crate::transfer::copy::between_arrays::ArrayCopy;
use crate::transfer::copy::job::Boxes;
use crate::transfer::copy::missing::{acquire_host, acquire_host_to_write};
use crate::transfer::copy::plan::can_access;
use crate::transfer::copy::report::report_after;
use resident_backend::call_site::CallSite;
use resident_backend::{Bytes, Dependencies, host_copy};
use resident_core::Access;
use resident_core::coherence::{ConstantId, Content, Holders, Location, Region, Undefined};
use resident_core::layout::{Selection, ViewBox};

/// Determines where the destination is newest after an assignment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// At a location for which no copy between host and device is needed.
    WhereNewest,
    /// On a device where the source is valid, if there is one, else on the host. Used for clones.
    WhereItLives,
    /// On the device of this stream.
    On(&'a Stream),
}

/// One assignment.
#[derive(Clone, Copy)]
struct Assignment<'a> {
    destination: StoredView<'a>,
    source: StoredView<'a>,
    target: Target<'a>,
    /// Whether elements that were never written are an error.
    needs_all: bool,
    operation: &'a str,
    site: CallSite,
}

/// The same elements of source and destination, and the copies between them.
struct CopyPair {
    source: Selection,
    destination: Selection,
    boxes: Boxes,
}

/// Pairs that are copied together.
struct Group {
    /// The stream that runs the copies; `None` if the host copies.
    stream: Option<Stream>,
    /// The location of the device from which to copy. `None` if the contents are on the stream's
    /// device, or must first be copied to it.
    peer: Option<Location>,
    pair: CopyPair,
}

/// Copies `source` to `destination`, which has the same shape.
pub(crate) fn assign(
    destination: StoredView<'_>,
    source: StoredView<'_>,
    target: Target<'_>,
    site: CallSite,
) -> Result<()> {
    let operation = "assign";
    Assignment { destination, source, target, needs_all: true, operation, site }.run()
}

/// Copies the contents of `source` to `destination`, each part where it is newest. Parts that have
/// no contents in the source have none in the destination either.
pub(crate) fn clone_into(
    destination: StoredView<'_>,
    source: StoredView<'_>,
    site: CallSite,
) -> Result<()> {
    let (target, operation) = (Target::WhereItLives, "try_clone");
    Assignment { destination, source, target, needs_all: false, operation, site }.run()
}

impl Assignment<'_> {
    fn run(&self) -> Result<()> {
        let (source, destination) = (self.source, self.destination);
        if source.storage.memory_order().is_empty() {
            return Ok(());
        }
        if !source.has_fields() || !destination.has_fields() {
            return report_after(|| self.copy_from_one_place());
        }
        // With parts of elements in different places, both are copied byte by byte.
        let in_bytes = source.is_divided() && destination.is_divided();
        let unit_bytes = if in_bytes { 1 } else { destination.element_bytes };
        source.with_units(destination.view, in_bytes, |source, to| {
            let destination = StoredView { view: to, element_bytes: unit_bytes, ..destination };
            // A subscriber that panics must not leave the assignment half done.
            report_after(|| Assignment { source, destination, ..*self }.copy_all())
        })
    }

    /// All checks, allocations and copies of stale elements precede the first write. Usually only
    /// one copy is queued, so that either everything is copied or nothing. If a later one of
    /// several is refused, the error counts the bytes of those before.
    fn copy_all(&self) -> Result<()> {
        let contents = self.contents()?;
        if self.cuts_elements(&contents) {
            return self.copy_from_one_place();
        }
        let (groups, constants) = self.groups(&contents);
        self.copy(&groups, &constants)
    }

    /// Whether the contents of a part of an element are in another place than the rest.
    fn cuts_elements(&self, contents: &[(Region, Content)]) -> bool {
        let StoredView { storage, element_bytes, .. } = self.source;
        let memory_order = storage.memory_order();
        let is_cut = |(region, _): &(Region, Content)| {
            region.span(region.axes() - 1).len() != u64::from(element_bytes)
        };
        element_bytes > memory_order.unit_bytes() && contents.iter().any(is_cut)
    }

    /// Copies all elements after they were made valid in one place.
    fn copy_from_one_place(&self) -> Result<()> {
        let Self { source, destination, .. } = self;
        let stream = match self.target {
            Target::On(stream) => Some(stream.clone()),
            Target::WhereNewest | Target::WhereItLives => stream_where_newest(source, None),
        };
        let element_bytes = u64::from(source.element_bytes);
        let boxes = source.view.copies_of_all_to(&destination.view, element_bytes);
        let (source, destination) = (source.selection(), destination.selection());
        if destination.is_empty() {
            return Ok(());
        }
        let pair = CopyPair { source, destination, boxes };
        self.copy(&[Group { stream, peer: None, pair }], &[])
    }

    fn copy(&self, groups: &[Group], constants: &[(CopyPair, Bytes)]) -> Result<()> {
        // The acquired sources and destinations are kept until all copies are queued.
        let mut acquired: SmallVec<[Acquired<'_>; 2]> = SmallVec::new();
        for group in groups {
            self.acquire(group, &mut acquired)?;
        }
        if let (Target::On(stream), [(pair, _), ..]) = (self.target, constants) {
            let to = self.to(pair);
            acquired.push(acquire_on(&to, stream, &mut Dependencies::new())?);
        }
        let mut written_bytes = 0;
        let outcome = groups.iter().try_for_each(|group| {
            self.copy_on_device(group).map_err(|error| error.after_writing(written_bytes))?;
            if group.stream.is_some() {
                let memory_order = self.destination.storage.memory_order();
                written_bytes += group.pair.destination.len_bytes(memory_order);
            }
            Ok(())
        });
        let mut writes: SmallVec<[HostWrite; 1]> = SmallVec::new();
        if outcome.is_ok() {
            writes.extend(groups.iter().filter_map(|group| self.copy_on_host(group)));
            constants.iter().for_each(|(pair, value)| self.assign_constant(pair, value));
        }
        drop(acquired);
        // The host's elements are written, and the accesses are over.
        drop(writes);
        outcome
    }

    fn to<'a>(&'a self, pair: &'a CopyPair) -> Request<'a> {
        let (to, access) = (&pair.destination, Access::Overwrite);
        self.destination.request(to, access, self.operation, self.site).ahead_of_use()
    }

    fn from<'a>(&'a self, selection: &'a Selection) -> Request<'a> {
        self.source.request(selection, Access::Read, self.operation, self.site).ahead_of_use()
    }

    /// The contents of the source, part by part. Returns an error if contents were lost, or if some
    /// were never written although the call needs all.
    fn contents(&self) -> Result<Vec<(Region, Content)>> {
        let storage = self.source.storage;
        let memory_order = storage.memory_order();
        let selection = self.source.selection();
        let mut state = storage.lock();
        state.reconcile(memory_order);
        let mut contents = Vec::new();
        selection.for_each_region(memory_order, |region| {
            state.coherence.visit_contents(region, |part, content| match content {
                Content::Constant { .. } => {
                    let parts = memory_order.unbroken(part).into_iter();
                    contents.extend(parts.map(|part| (part, content)));
                }
                _ => contents.push((*part, content)),
            });
        });
        let is_error = |content: &Content| match content {
            Content::Undefined(Undefined::Never) => self.needs_all,
            Content::Undefined(Undefined::Lost(_)) => true,
            _ => false,
        };
        if contents.iter().any(|(_, content)| is_error(content)) {
            self.from(&selection).plan(&state, Location::HOST)?;
        }
        Ok(contents)
    }

    /// The stored contents in groups, and the constants.
    fn groups(
        &self,
        contents: &[(Region, Content)],
    ) -> (SmallVec<[Group; 1]>, Vec<(CopyPair, Bytes)>) {
        let mut groups: SmallVec<[Group; 1]> = SmallVec::new();
        let mut constants = Vec::new();
        let StoredView { storage, view, element_bytes } = self.source;
        for (region, content) in contents {
            for part in view.boxes_of(element_bytes, storage.memory_order(), region) {
                let pair = self.pair(&part);
                match content {
                    Content::Undefined(_) => {}
                    Content::Constant { value, .. } => {
                        constants.push((pair, self.constant(*value, region)));
                    }
                    Content::Stored(holders) => {
                        let stream = self.copying_stream(&pair, *holders);
                        let peer = stream.as_ref().and_then(|s| peer_of(storage, *holders, s));
                        add_to_groups(&mut groups, Group { stream, peer, pair });
                    }
                }
            }
        }
        (groups, constants)
    }

    fn pair(&self, part: &ViewBox) -> CopyPair {
        let (source, destination) = (&self.source, &self.destination);
        let element_bytes = u64::from(source.element_bytes);
        let (from, to, boxes) = source.view.copies_to(&destination.view, part, element_bytes);
        CopyPair {
            source: StoredView { view: from.strided(), ..*source }.selection(),
            destination: StoredView { view: to.strided(), ..*destination }.selection(),
            boxes,
        }
    }

    /// The bytes of a constant in a region of the source.
    fn constant(&self, value: ConstantId, region: &Region) -> Bytes {
        let source = self.source.storage;
        source.lock().constant_value(value, source.memory_order(), region)
    }

    /// The stream that runs the copy; `None` if the host copies.
    fn copying_stream(&self, pair: &CopyPair, holders: Holders) -> Option<Stream> {
        let is_device = |location: &Location| *location != Location::HOST;
        let (holder, host) = {
            let state = self.source.storage.lock();
            let location = holders.locations().iter().find(is_device);
            let holder = location.map(|location| state.device_copy(location).device.clone());
            (holder, state.host_location())
        };
        match self.target {
            Target::On(stream) => Some(stream.clone()),
            Target::WhereItLives => holder.map(|holder| holder.current_stream()),
            Target::WhereNewest => {
                let home = {
                    let state = self.destination.storage.lock();
                    newest_device(&self.to(pair), &state)
                        .map(|location| state.device_copy(location).device.clone())
                };
                match (home, holder) {
                    (Some(home), Some(holder)) if can_access(&home, &holder) => {
                        Some(home.current_stream())
                    }
                    _ if holders.contains(host) => None,
                    (_, holder) => holder.map(|holder| holder.current_stream()),
                }
            }
        }
    }

    /// Acquires the destination, and the source at the location from which the copies read it. For
    /// copies by the host this waits for other uses, so that only the copies remain to be done.
    fn acquire<'a>(
        &'a self,
        Group { stream, peer, pair }: &'a Group,
        acquired: &mut SmallVec<[Acquired<'a>; 2]>,
    ) -> Result<()> {
        let (to, from) = (self.to(pair), self.from(&pair.source));
        let Some(stream) = stream else {
            acquire_host(&from)?;
            acquired.push(acquire_host_to_write(&to)?);
            return Ok(());
        };
        from.expect_written_elsewhere(stream.device_ref())?;
        acquired.push(acquire_on(&to, stream, &mut Dependencies::new())?);
        if peer.is_none() || self.writes_host_memory(stream) {
            acquired.push(acquire_on(&from, stream, &mut Dependencies::new())?);
        }
        Ok(())
    }

    /// Whether the acquired destination on `stream`'s device is host memory. Drivers copy from a
    /// peer only to a device's own memory.
    fn writes_host_memory(&self, stream: &Stream) -> bool {
        let state = self.destination.storage.lock();
        state.find_location(stream.device_ref()) == Some(state.host_location())
    }

    fn copy_on_host(&self, Group { stream, pair, .. }: &Group) -> Option<HostWrite> {
        if stream.is_some() {
            return None;
        }
        let to = self.to(pair);
        let write = mark_host_written(&to);
        for part in &pair.boxes {
            let (from, to) = (self.source.storage.host_base(), to.storage.host_base());
            // SAFETY: each array has host memory of its memory order's length, and the copies of
            // `Strided::copies_to` stay within them. The source is valid on the host, and its
            // shared borrow excludes writers. The destination is borrowed exclusively, and
            // `acquire` waited for queued work that uses it; work that this call has queued since
            // then copies other parts. If source and destination belong to one array, they are
            // disjoint.
            unsafe { host_copy::copy_box(from, to, part) };
        }
        Some(write)
    }

    fn copy_on_device(&self, Group { stream, pair, .. }: &Group) -> Result<()> {
        let Some(stream) = stream else { return Ok(()) };
        let (to, from) = (&self.to(pair), &self.from(&pair.source));
        let target = acquire_on(to, stream, &mut Dependencies::new())?;
        let mut own = None;
        let peer = if self.writes_host_memory(stream) { None } else { ready_peer(from, stream)? };
        let (state, location, depends) = match peer {
            Some(peer) => peer,
            None => {
                let mut depends = Dependencies::new();
                let acquired = own.insert(acquire_on(from, stream, &mut depends)?);
                (from.storage.lock(), acquired.location, depends)
            }
        };
        let copy = ArrayCopy {
            stream,
            operation: "assignment to",
            boxes: pair.boxes.clone(),
            depends,
            acquired: (to, target),
            locked: (from, state, location),
        };
        copy.run()?;
        let is_written_for = to.storage.lock().takes_expected_wait(stream, UseKind::Write);
        let is_read_for = from.storage.lock().takes_expected_wait(stream, UseKind::Read);
        if is_written_for || is_read_for {
            stream.ensure_event_at_tail();
        }
        Ok(())
    }

    /// Makes the destination the constant. If the call names a stream, its device already has
    /// memory for the destination, which is filled immediately. If the backend refuses, the next
    /// use fills it.
    fn assign_constant(&self, pair: &CopyPair, value: &Bytes) {
        let to = self.to(pair);
        fill(&to, value.clone());
        if let Target::On(stream) = self.target {
            let _ = acquire_on(&to.reading(), stream, &mut Dependencies::new());
        }
    }
}

/// Adds a group, or adds its pair to the group with the same source and destination.
fn add_to_groups(groups: &mut SmallVec<[Group; 1]>, group: Group) {
    let is_same = |known: &&mut Group| known.stream == group.stream && known.peer == group.peer;
    match groups.iter_mut().find(is_same) {
        Some(known) => {
            extend(&mut known.pair.source, group.pair.source);
            extend(&mut known.pair.destination, group.pair.destination);
            known.pair.boxes.extend(group.pair.boxes);
        }
        None => groups.push(group),
    }
}

/// Adds disjoint boxes to boxes. A selection of the whole array stays as it is, since it is the
/// only one.
fn extend(selection: &mut Selection, other: Selection) {
    if let (Selection::Boxes(boxes), Selection::Boxes(more)) = (selection, other) {
        boxes.extend(more);
    }
}

/// Another device that has valid contents and whose memory the stream's device can access. `None`
/// if the contents are valid on the stream's device itself.
fn peer_of(source: &Storage, holders: Holders, stream: &Stream) -> Option<Location> {
    let state = source.lock();
    if state.find_location(stream.device_ref()).is_some_and(|own| holders.contains(own)) {
        return None;
    }
    let can_access = |location: &Location| {
        *location != Location::HOST
            && *location != state.host_location()
            && can_access(stream.device_ref(), &state.device_copy(*location).device)
    };
    holders.locations().iter().find(can_access)
}

/// If the contents are not valid on the stream's device: the location of the device from which to
/// copy, and the work there that may still fail. Also returns the lock, which the caller keeps
/// until the copy is queued, so that meanwhile the source is neither invalidated by a failure nor
/// evicted.
fn ready_peer<'a>(
    from: &Request<'a>,
    stream: &Stream,
) -> Result<Option<(StateGuard<'a>, Location, Dependencies)>> {
    let memory_order = from.storage.memory_order();
    let mut state = from.storage.lock();
    state.reconcile(memory_order);
    if state.find_location(stream.device_ref()).is_some_and(|own| from.is_valid(&state, own)) {
        return Ok(None);
    }
    let found = state
        .devices()
        .find(|(location, device)| {
            *location != state.host_location()
                && from.is_valid(&state, *location)
                && can_access(stream.device_ref(), device)
        })
        .map(|(location, _)| location);
    let Some(location) = found else { return Ok(None) };
    let depends = from.wait_for_writers(&mut state, stream, location, &from.regions())?;
    Ok(Some((state, location, depends)))
}
