//! Copying one array's contents to another, each part where it is newest.

use std::sync::Arc;

use smallvec::SmallVec;

use super::constant::newest_device;
use super::{
    Acquired, Request, acquire_host, acquire_on, fill, mark, mark_host_written, run_deferred,
};
use crate::access::Access;
use crate::audit::{Cause, Direction};
use crate::backend::{Address, CopyWork, Dependencies, FailureKind, Memory, Work, host_copy};
use crate::call_site::CallSite;
use crate::coherence::{ConstantId, Content, Holders, Location, Region};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::layout::{CopyBox, Selection, Strided, ViewBox};
use crate::ordering::UseEnd;
use crate::storage::{ArrayState, StaleOrigin, Storage};
use crate::sync::ShortGuard;

/// Where the destination is to be newest afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// Where nothing has to be moved between host and device.
    WhereNewest,
    /// On a device's copy of the source if there is one, else on the host: for clones.
    WhereItLives,
    /// On that stream's device.
    On(&'a Stream),
}

/// One end: an array and a view of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) view: Strided<'a>,
}

/// A box of both ends with one content, and the copy between them.
struct Passage {
    source: Selection,
    destination: Selection,
    parts: SmallVec<[CopyBox; 1]>,
}

/// Passages that are copied at once.
struct Haul {
    /// Who copies: a stream, or the host.
    stage: Option<Stream>,
    /// Another device's copy that is read; none where the contents are on the stage's own, or have
    /// yet to come there.
    from: Option<Location>,
    passage: Passage,
}

/// Copies `source` to `destination`, which have one shape.
pub(crate) fn assign(
    destination: End<'_>,
    source: End<'_>,
    target: Target<'_>,
    site: CallSite,
) -> Result<()> {
    if source.storage.memory_order().is_empty() {
        return Ok(());
    }
    let contents = newest(source, "assign", site, true)?;
    transplant(destination, source, &contents, target, "assign", site)
}

/// Copies what `source` has to `destination`, each part where it lives; parts without contents stay
/// so.
pub(crate) fn clone_into(destination: End<'_>, source: End<'_>, site: CallSite) -> Result<()> {
    let contents = newest(source, "try_clone", site, false)?;
    transplant(destination, source, &contents, Target::WhereItLives, "try_clone", site)
}

fn request<'a>(
    storage: &'a Storage,
    selection: &'a Selection,
    operation: &'a str,
    site: CallSite,
) -> Request<'a> {
    Request { storage, selection, cause: Cause::Explicit, operation, site }
}

/// What the source holds, part by part. Undefined parts are an error if all is needed, and never
/// where they were lost.
fn newest(
    source: End<'_>,
    operation: &str,
    site: CallSite,
    all: bool,
) -> Result<Vec<(Region, Content)>> {
    let memory_order = source.storage.memory_order();
    let selection = memory_order.select(&source.view);
    let mut state = source.storage.lock();
    state.reconcile(memory_order);
    let mut contents = Vec::new();
    selection.for_each(memory_order, |region| {
        state.coherence.visit_contents(region, |part, content| contents.push((*part, content)))
    });
    let is_refused = |content: &Content| match content {
        Content::Undefined(crate::coherence::Undefined::Never) => all,
        Content::Undefined(crate::coherence::Undefined::Lost(_)) => true,
        _ => false,
    };
    if contents.iter().any(|(_, content)| is_refused(content)) {
        request(source.storage, &selection, operation, site).plan(
            &state,
            Location::HOST,
            Access::Read,
        )?;
    }
    Ok(contents)
}

/// Whatever can be refused comes before anything is written; of the copies that are queued only one
/// is, as a rule, so that all is copied or nothing.
fn transplant(
    destination: End<'_>,
    source: End<'_>,
    contents: &[(Region, Content)],
    target: Target<'_>,
    operation: &str,
    site: CallSite,
) -> Result<()> {
    if source.storage.memory_order().is_empty() {
        return Ok(());
    }
    let (hauls, constants) = sorted(destination, source, contents, target, (operation, site));
    let to = |passage| Passage::to(passage, destination, operation, site);
    let from = |passage| Passage::from(passage, source, operation, site);
    // What is prepared stays so until all is queued.
    let mut prepared: SmallVec<[Acquired<'_>; 2]> = SmallVec::new();
    for Haul { stage, from: neighbour, passage } in &hauls {
        prepare(&to(passage), &from(passage), stage.as_ref(), *neighbour, &mut prepared)?;
    }
    if let (Target::On(stream), [(passage, _), ..]) = (target, constants.as_slice()) {
        prepared.push(acquire_on(
            &to(passage),
            stream,
            Access::Overwrite,
            &mut Dependencies::new(),
        )?);
    }
    let mut on_devices =
        hauls.iter().filter_map(|haul| Some((&haul.passage, haul.stage.as_ref()?)));
    let outcome = on_devices.try_for_each(|(passage, stream)| {
        carry_on_device(&to(passage), &from(passage), stream, &passage.parts)
    });
    run_deferred();
    outcome?;
    for Haul { passage, .. } in hauls.iter().filter(|haul| haul.stage.is_none()) {
        carry_on_host(&to(passage), source.storage, &passage.parts);
    }
    for (passage, value) in &constants {
        carry_constant(&to(passage), source.storage, *value, target);
    }
    Ok(())
}

/// Memory at the destination, the source at the stage, and on the host whatever has to be waited
/// for: from here on there is only to copy.
fn prepare<'a>(
    to: &Request<'a>,
    from: &Request<'a>,
    stage: Option<&Stream>,
    neighbour: Option<Location>,
    prepared: &mut SmallVec<[Acquired<'a>; 2]>,
) -> Result<()> {
    let Some(stream) = stage else {
        acquire_host(from, Access::Read)?;
        return acquire_host(to, Access::Overwrite);
    };
    prepared.push(acquire_on(to, stream, Access::Overwrite, &mut Dependencies::new())?);
    if neighbour.is_none() {
        prepared.push(acquire_on(from, stream, Access::Read, &mut Dependencies::new())?);
    }
    Ok(())
}

/// The passages of stored contents, those that are copied at once together, and those of constants.
fn sorted(
    destination: End<'_>,
    source: End<'_>,
    contents: &[(Region, Content)],
    target: Target<'_>,
    (operation, site): (&str, CallSite),
) -> (SmallVec<[Haul; 1]>, Vec<(Passage, ConstantId)>) {
    let mut hauls: SmallVec<[Haul; 1]> = SmallVec::new();
    let mut constants = Vec::new();
    for (region, content) in contents {
        for ranges in source.view.boxes_of(source.storage.memory_order(), region) {
            let passage = passage(destination, source, &ranges);
            match content {
                Content::Undefined(_) => {}
                Content::Constant { value, .. } => constants.push((passage, *value)),
                Content::Stored(holders) => {
                    let stage = stage(
                        &passage.to(destination, operation, site),
                        source.storage,
                        *holders,
                        target,
                    );
                    let from =
                        stage.as_ref().and_then(|stream| nearest(source.storage, *holders, stream));
                    put_with_its_like(&mut hauls, Haul { stage, from, passage });
                }
            }
        }
    }
    (hauls, constants)
}

fn put_with_its_like(hauls: &mut SmallVec<[Haul; 1]>, haul: Haul) {
    match hauls.iter_mut().find(|known| known.stage == haul.stage && known.from == haul.from) {
        Some(known) => known.passage.take(haul.passage),
        None => hauls.push(haul),
    }
}

impl Passage {
    fn to<'a>(&'a self, destination: End<'a>, operation: &'a str, site: CallSite) -> Request<'a> {
        request(destination.storage, &self.destination, operation, site)
    }

    fn from<'a>(&'a self, source: End<'a>, operation: &'a str, site: CallSite) -> Request<'a> {
        request(source.storage, &self.source, operation, site)
    }

    fn take(&mut self, other: Self) {
        join(&mut self.source, other.source);
        join(&mut self.destination, other.destination);
        self.parts.extend(other.parts);
    }
}

/// Adds disjoint boxes to boxes. A passage over a whole array is alone.
fn join(selection: &mut Selection, other: Selection) {
    if let (Selection::Boxes(boxes), Selection::Boxes(more)) = (selection, other) {
        boxes.extend(more);
    }
}

fn passage(destination: End<'_>, source: End<'_>, part: &ViewBox) -> Passage {
    let element_bytes = source.storage.memory_order().element_bytes() as u64;
    let (from, to, parts) = source.view.copies_to(&destination.view, part, element_bytes);
    Passage {
        source: source.storage.memory_order().select(&from.strided()),
        destination: destination.storage.memory_order().select(&to.strided()),
        parts,
    }
}

/// Makes the destination the constant; on a stream's device, which has room for it by now, fills
/// early. Where that is refused, the next use fills.
fn carry_constant(to: &Request<'_>, source: &Storage, value: ConstantId, target: Target<'_>) {
    let bytes = source.lock().constant_value(value, source.memory_order().element_bytes());
    fill(to, bytes);
    if let Target::On(stream) = target {
        let _ = acquire_on(to, stream, Access::Read, &mut Dependencies::new());
    }
}

/// The stream that does the copy; `None` for the host.
fn stage(
    to: &Request<'_>,
    source: &Storage,
    holders: Holders,
    target: Target<'_>,
) -> Option<Stream> {
    let device_holder = {
        let state = source.lock();
        holders
            .locations()
            .iter()
            .find(|location| *location != Location::HOST)
            .map(|location| state.device_copy(location).device.clone())
    };
    match target {
        Target::On(stream) => Some(stream.clone()),
        Target::WhereItLives => device_holder.map(|device| device.stream()),
        Target::WhereNewest => {
            let home = {
                let state = to.storage.lock();
                newest_device(to, &state).map(|location| state.device_copy(location).device.clone())
            };
            match (home, device_holder) {
                (Some(home), Some(holder))
                    if home.backend().can_access_peer(&**holder.backend()) =>
                {
                    Some(home.stream())
                }
                (None, Some(holder)) if !holders.contains(Location::HOST) => Some(holder.stream()),
                _ if holders.contains(Location::HOST) => None,
                (_, holder) => holder.map(|holder| holder.stream()),
            }
        }
    }
}

/// The other device's copy that a stream reads contents from; none where they are on its own
/// device, or have yet to come there.
fn nearest(source: &Storage, holders: Holders, stream: &Stream) -> Option<Location> {
    let state = source.lock();
    if state.find_location(stream.device_ref()).is_some_and(|own| holders.contains(own)) {
        return None;
    }
    let can_access_peer = |location: &Location| {
        stream
            .device_ref()
            .backend()
            .can_access_peer(&**state.device_copy(*location).device.backend())
    };
    holders.locations().iter().filter(|location| *location != Location::HOST).find(can_access_peer)
}

fn carry_on_host(to: &Request<'_>, source: &Storage, parts: &SmallVec<[CopyBox; 1]>) {
    mark_host_written(to, Access::Overwrite);
    for part in parts {
        // SAFETY: both arrays have host memory of their space's size and the part lies within both
        // by construction of `Strided::copies_to`. The source is valid on the host and read by shared
        // borrow; the destination is borrowed exclusively and nothing queued touches it, as
        // `prepare` saw to: what was queued since by this very call copies other parts. Both can be
        // one array only through disjoint parts.
        unsafe { host_copy::copy_box(source.host_base(), to.storage.host_base(), part) };
    }
}

fn carry_on_device(
    to: &Request<'_>,
    from: &Request<'_>,
    stream: &Stream,
    parts: &SmallVec<[CopyBox; 1]>,
) -> Result<()> {
    let target = acquire_on(to, stream, Access::Overwrite, &mut Dependencies::new())?;
    let mut own = None;
    let (mut state, location, depends, is_neighbour) = match neighbour(from, stream)? {
        Some((state, location, depends)) => (state, location, depends, true),
        None => {
            let mut depends = Dependencies::new();
            let acquired = own.insert(acquire_on(from, stream, Access::Read, &mut depends)?);
            (from.storage.lock(), acquired.location, depends, false)
        }
    };
    let position = {
        let source = state.device_copy(location).device.clone();
        let work = CopyWork {
            may_read_between: false,
            loss: FailureKind::Contents,
            source: Memory::Device(state.device_copy(location).address.unwrap_or(Address(0))),
            destination: Memory::Device(target.address),
            source_device: is_neighbour.then(|| Arc::clone(source.backend()) as _),
            parts: parts.clone(),
            depends,
            label: to.storage.label("assignment to", to.site),
        };
        let position = stream
            .queue()
            .submit(Work::Copy(Box::new(work)))
            .map_err(|refusal| to.refused(stream.device_ref(), "copying to", &refusal))?;
        from.mark_use(&mut state, location, Access::Read, stream, UseEnd::at(position));
        if is_neighbour {
            source.visited_by(stream.core(), position);
        }
        drop(state);
        position
    };
    if is_neighbour {
        // A copy from device to device belongs to the array that it is written to.
        let source = from.storage.lock().device_copy(location).device.clone();
        let bytes = to.selection.len_bytes(to.storage.memory_order());
        // It overwrites: whether the destination was stale before is of no matter.
        to.count(
            &mut to.storage.lock(),
            Direction::BetweenDevices,
            bytes,
            &source,
            stream,
            StaleOrigin::Unreported,
        );
    }
    mark(to, stream, target, Access::Overwrite, UseEnd::at(position));
    if to.storage.lock().has_several_streams() || from.storage.lock().has_several_streams() {
        stream.record_in_time();
    }
    Ok(())
}

/// The device that the contents are copied from directly, if `stream`'s own does not hold them, and
/// the work there that may still fail. One look, with the lock held until the copy is queued:
/// between two a failure could be taken in, or the copy give way to others.
fn neighbour<'a>(
    from: &Request<'a>,
    stream: &Stream,
) -> Result<Option<(ShortGuard<'a, ArrayState>, Location, Dependencies)>> {
    let mut state = from.storage.lock();
    state.reconcile(from.storage.memory_order());
    if state.find_location(stream.device_ref()).is_some_and(|own| from.is_valid(&state, own)) {
        return Ok(None);
    }
    let can_access_peer =
        |device: &Device| stream.device_ref().backend().can_access_peer(&**device.backend());
    let found = state
        .devices()
        .find(|(location, device)| from.is_valid(&state, *location) && can_access_peer(device))
        .map(|(location, _)| location);
    let Some(location) = found else { return Ok(None) };
    let depends = read_selection_behind(from, &state, stream, location)?;
    Ok(Some((state, location, depends)))
}

fn read_selection_behind(
    from: &Request<'_>,
    state: &ArrayState,
    stream: &Stream,
    location: Location,
) -> Result<Dependencies> {
    let mut regions: SmallVec<[Region; 1]> = SmallVec::new();
    from.selection.for_each(from.storage.memory_order(), |region| regions.push(*region));
    from.wait_for_writers(state, stream, location, &regions)
}
