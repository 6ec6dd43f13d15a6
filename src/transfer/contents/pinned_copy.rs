//! Copies between arrays on a device and coherent arrays whose host memory is pinned. A device
//! accesses that memory itself, after the call: each copy is a use of both arrays.

use super::lent::parts_of;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{StateGuard, Storage};
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::request::{
    Regions, Request, StoredView, ends_of, users_of_other_kinds,
};
use crate::transfer::copy::between_arrays::ArrayCopy;
use crate::transfer::copy::job::Boxes;
use crate::transfer::copy::missing::acquire_host;
use crate::transfer::copy::report::run_deferred;
use resident_backend::Dependencies;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_core::coherence::Location;

/// Overwrites a part on `stream`'s device with a part of a coherent array, of the same shape, whose
/// host memory is pinned for the device. Returns at once: later writes of the host wait for the
/// copy. Returns `false`, and copies nothing, if the memory is not pinned.
pub(crate) fn copy_from_pinned(
    to: StoredView<'_>,
    from: StoredView<'_>,
    stream: &Stream,
    site: CallSite,
) -> Result<bool> {
    let operation = "copy_from_pinned";
    let (selection, read) = (to.selection(), from.selection());
    let request = to.request(&selection, Access::Overwrite, operation, site);
    let source = from.request(&read, Access::Read, operation, site);
    if request.is_empty() || !is_pinned(from.storage, stream) {
        return Ok(false);
    }
    acquire_host(&source)?;
    let acquired = acquire_on(&request, stream, &mut Dependencies::new())?;
    let copy = ArrayCopy {
        stream,
        operation: "copy to",
        boxes: boxes(&request, to, from),
        depends: Dependencies::new(),
        acquired: (&request, acquired),
        locked: (&source, from.storage.lock(), Location::HOST),
    };
    let is_queued = copy.run()?;
    run_deferred();
    Ok(is_queued)
}

/// Where a copy of contents is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadAt {
    /// On a device, which copies them to pinned memory itself. The copy is queued.
    Device,
    /// On the host, which has them and copies them. Nothing is queued.
    Host,
    /// In several places, or the memory is not pinned. Nothing is queued.
    Elsewhere,
}

/// As [`copy_to_pinned`], from a part of a coherent array, where it is newest: no residency of that
/// part changes. The host is read if it has the contents and no use of them is pending, since then
/// nothing needs to be transferred; else a device that has all of them, on `stream` if it is one of
/// that device.
pub(crate) fn snapshot_to_pinned(
    to: StoredView<'_>,
    from: StoredView<'_>,
    asked: &Stream,
    call: CopyCall<'_>,
) -> Result<ReadAt> {
    let read = from.selection();
    let source = from.request(&read, Access::Read, call.operation, call.site);
    if source.is_empty() {
        return Ok(ReadAt::Elsewhere);
    }
    match source.holder(asked) {
        Holder::Host => Ok(ReadAt::Host),
        Holder::Device(stream) if copy_to_pinned(to, from, &stream, call)? => Ok(ReadAt::Device),
        Holder::Device(_) | Holder::Several => Ok(ReadAt::Elsewhere),
    }
}

/// Who has all elements of a request.
enum Holder {
    Host,
    /// The device of this stream.
    Device(Stream),
    Several,
}

impl Request<'_> {
    fn holder(&self, asked: &Stream) -> Holder {
        let mut state = self.storage.lock();
        state.reconcile(self.storage.memory_order());
        let host = state.host_location();
        let is_host_idle = || self.conflicts(&state, host, Access::Read).is_empty();
        if self.is_valid(&state, host) && is_host_idle() {
            return Holder::Host;
        }
        let locations = state.devices().map(|(location, _)| location);
        let mut others = locations.filter(|location| *location != host);
        match others.find(|location| self.is_valid(&state, *location)) {
            Some(location) => {
                let regions = self.regions();
                Holder::Device(self.download_stream(&state, location, &regions, Some(asked)))
            }
            None => Holder::Several,
        }
    }
}

/// A call that copies: its name in messages, and its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyCall<'c> {
    pub(crate) operation: &'c str,
    pub(crate) site: CallSite,
}

/// Overwrites a part of a coherent array, whose host memory is pinned for `stream`'s device, with a
/// part on that device, of the same shape. Returns at once: the host, which then has the newest
/// contents, waits for the copy at its next access. Returns `false`, and copies nothing, if the
/// memory is not pinned.
pub(crate) fn copy_to_pinned(
    to: StoredView<'_>,
    from: StoredView<'_>,
    stream: &Stream,
    CopyCall { operation, site }: CopyCall<'_>,
) -> Result<bool> {
    let (selection, read) = (to.selection(), from.selection());
    let request = to.request(&selection, Access::Overwrite, operation, site);
    let source = from.request(&read, Access::Read, operation, site);
    if request.is_empty() || !is_pinned(to.storage, stream) {
        return Ok(false);
    }
    source.expect_written(stream.device_ref())?;
    let mut depends = Dependencies::new();
    let acquired = acquire_on(&source, stream, &mut depends)?;
    let boxes = boxes(&request, to, from);
    let state = request.lock_for_write(stream, &request.regions())?;
    let copy = ArrayCopy {
        stream,
        operation: "copy to",
        boxes,
        depends,
        acquired: (&source, acquired),
        locked: (&request, state, Location::HOST),
    };
    let is_queued = copy.run()?;
    run_deferred();
    Ok(is_queued)
}

/// Whether the array's host memory is pinned for the stream's device, and its only copy there.
fn is_pinned(storage: &Storage, stream: &Stream) -> bool {
    let state = storage.lock();
    !state.is_host_mapped() && state.is_host_pinned_for(stream.device_ref().kind())
}

/// The copies between two views, in units of the destination's memory order.
fn boxes(request: &Request<'_>, to: StoredView<'_>, from: StoredView<'_>) -> Boxes {
    to.with_units(from.view, to.is_divided(), |to, from| {
        parts_of(request, &request.regions(), to.view, from)
    })
}

impl<'a> Request<'a> {
    /// The array's state once `stream` waits for all uses of the host's copy of these regions. For
    /// uses by devices of another kind the host waits.
    fn lock_for_write(&self, stream: &Stream, regions: &Regions) -> Result<StateGuard<'a>> {
        loop {
            let mut state = self.storage.lock();
            state.reconcile(self.storage.memory_order());
            // None is open: guards use no host memory that is not mapped.
            let users = users_of_other_kinds(&state, stream.device_ref(), regions);
            if users.is_empty() {
                let host = state.host_location();
                let marks = self.conflicts_of_write(&state, stream, host, regions);
                self.make_wait(&mut state, stream, &marks)?;
                return Ok(state);
            }
            let pending = ends_of(&state, &users);
            drop(state);
            self.wait_for(pending)?;
        }
    }
}
