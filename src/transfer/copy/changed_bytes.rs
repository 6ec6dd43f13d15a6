//! Compares contents for captures that ask for it. Only whole arrays are compared: the caller of a
//! request for a part has borrowed no other elements.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::audit::{self, Cause, Direction};
use crate::device::Device;
use crate::storage::{ArrayState, Storage};
use crate::transfer::access::request::Request;
use resident_core::coherence::{Content, Location};
use resident_core::layout::Selection;

/// Keeps the contents of an array whose host copy the caller is about to write, if they are also on
/// a device: what is copied there later is compared with them. The caller has an exclusive borrow
/// of the selection.
#[inline]
pub(in crate::transfer) fn before_host_write(
    storage: &Storage,
    selection: &Selection,
    state: &ArrayState,
) {
    if audit::may_compare_contents() {
        keep(storage, selection, state);
    }
}

#[cold]
fn keep(storage: &Storage, selection: &Selection, state: &ArrayState) {
    let content = state.coherence.uniform().filter(|_| matches!(selection, Selection::Whole));
    match content {
        Some(Content::Stored(holders)) if holders.contains(state.host_location()) => {
            let is_device = |location: &Location| *location != state.host_location();
            let devices = holders.locations().iter().filter(is_device);
            let places: u64 = devices.map(place).sum();
            if places > 0 && audit::compares_contents() {
                audit::keep_contents(storage.number(), places, || host_bytes(storage).to_vec());
            }
        }
        // The kept contents are those of no device any more.
        _ => _ = audit::take_contents(storage.number()),
    }
}

/// Forgets the contents of an array whose host copy queued work is about to write.
#[inline]
pub(in crate::transfer) fn before_queued_write(storage: &Storage) {
    if audit::may_compare_contents() {
        let _kept = audit::take_contents(storage.number());
    }
}

/// The bit of a location in a set.
fn place(location: Location) -> u64 {
    1_u64.checked_shl(location.index() as u32).unwrap_or(0)
}

/// How many bytes of the elements have changed since the destination of a copy had them, if
/// contents of the array are kept.
#[inline]
pub(in crate::transfer) fn changed_bytes(
    request: &Request<'_>,
    state: &ArrayState,
    direction: Direction,
    device: &Device,
    bytes: u64,
) -> Option<u64> {
    if audit::may_compare_contents() {
        return compare(request, state, direction, device, bytes);
    }
    None
}

#[cold]
fn compare(
    request: &Request<'_>,
    state: &ArrayState,
    direction: Direction,
    device: &Device,
    bytes: u64,
) -> Option<u64> {
    let storage = request.storage;
    let (places, kept) = audit::take_contents(storage.number())?;
    let had_them = state.find_location(device).is_some_and(|to| places & place(to) > 0);
    let is_whole = bytes == storage.memory_order().len_bytes()
        && matches!(request.selection, Selection::Whole)
        && direction == Direction::ToDevice;
    (had_them && is_whole).then(|| {
        let element_bytes = (bytes / storage.memory_order().elements().max(1)).max(1) as usize;
        let pairs = kept.chunks(element_bytes).zip(host_bytes(storage).chunks(element_bytes));
        pairs.filter(|(kept, now)| kept != now).map(|(kept, _)| kept.len() as u64).sum()
    })
}

/// A hash of the bytes that an upload of a whole array copies, if the thread compares contents.
#[inline]
pub(super) fn contents_hash(
    request: &Request<'_>,
    direction: Direction,
    bytes: u64,
) -> Option<u64> {
    if audit::may_compare_contents() {
        return hash(request, direction, bytes);
    }
    None
}

#[cold]
fn hash(request: &Request<'_>, direction: Direction, bytes: u64) -> Option<u64> {
    let storage = request.storage;
    let is_whole = direction == Direction::ToDevice
        && request.cause != Cause::Explicit
        && bytes == storage.memory_order().len_bytes()
        && matches!(request.selection, Selection::Whole)
        && !storage.host_base().is_null();
    (is_whole && audit::compares_contents()).then(|| hash_of(host_bytes(storage)))
}

/// A hash of bytes that the program has lent for an upload, if the thread compares contents and
/// there are such bytes.
#[inline]
pub(in crate::transfer) fn lent_hash<'a>(bytes: impl FnOnce() -> Option<&'a [u8]>) -> Option<u64> {
    let compares = audit::may_compare_contents() && audit::compares_contents();
    if compares { bytes().map(hash_of) } else { None }
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The host memory of an array, all of which the caller has borrowed and which is valid there.
fn host_bytes(storage: &Storage) -> &[u8] {
    let len_bytes = storage.memory_order().len_bytes() as usize;
    // SAFETY: the array has host memory of `len_bytes` initialised bytes, since it is valid on the
    // host. The caller's borrow of the whole array excludes writes by the host, and copies never
    // write elements that are valid at their destination.
    unsafe { std::slice::from_raw_parts(storage.host_base(), len_bytes) }
}
