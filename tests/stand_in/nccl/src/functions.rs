//! NCCL's functions.

use std::ffi::{c_char, c_int};

use crate::collective::{Collective, Kind as CollectiveKind};
use crate::communicator::{self, Communicator, UniqueId};
use crate::elements::{Element, Reduction};
use crate::group::{self, Kind, Operation};
use crate::link::Link;
use crate::request::Request;
use crate::status::{Outcome, Status};
use resident_stand_in_client::library_functions;

/// 2.30.0, as NCCL counts.
const VERSION: c_int = 23_000;

library_functions! {
    Status;

    ncclGetVersion(place: *mut c_int) {
        set(place, VERSION)
    }

    ncclGetUniqueId(place: *mut UniqueId) {
        set(place, communicator::unique_id()?)
    }

    ncclCommInitRank(place: *mut u64, ranks: c_int, id: UniqueId, rank: c_int) {
        check(place)?;
        set(place, communicator::join(id, rank, ranks)?)
    }

    ncclCommInitAll(places: *mut u64, count: c_int, devices: *const c_int) {
        check(places)?;
        let devices = (0..count.max(0)).map(|index| device(devices, index)).collect::<Vec<_>>();
        let numbers = communicator::join_all(&devices)?;
        numbers
            .into_iter()
            .enumerate()
            .try_for_each(|(rank, number)| set(places.wrapping_add(rank), number))
    }

    ncclCommFinalize(number: u64) {
        communicator::find(number).map(drop)
    }

    ncclCommDestroy(number: u64) {
        communicator::remove(number).map(drop)
    }

    ncclCommAbort(number: u64) {
        let communicator = communicator::remove(number)?;
        communicator.link.ask(Request::Abort);
        Ok(())
    }

    ncclCommGetAsyncError(number: u64, place: *mut u32) {
        let communicator = communicator::find(number)?;
        set(place, communicator.link.error().map_or(0, |status| status.0))
    }

    ncclCommCount(number: u64, place: *mut c_int) {
        set(place, count(communicator::find(number)?.link.ranks)?)
    }

    ncclCommCuDevice(number: u64, place: *mut c_int) {
        set(place, communicator::find(number)?.device)
    }

    ncclCommUserRank(number: u64, place: *mut c_int) {
        set(place, count(communicator::find(number)?.link.rank)?)
    }

    ncclGroupStart() {
        group::start();
        Ok(())
    }

    ncclGroupEnd() {
        group::end()
    }

    ncclSend(from: u64, count: usize, element: u32, peer: c_int, number: u64, stream: u64) {
        group::add(message(number, stream, (element, count, from), peer, true))
    }

    ncclRecv(to: u64, count: usize, element: u32, peer: c_int, number: u64, stream: u64) {
        group::add(message(number, stream, (element, count, to), peer, false))
    }

    ncclAllReduce(
        from: u64,
        to: u64,
        count: usize,
        element: u32,
        reduction: u32,
        number: u64,
        stream: u64,
    ) {
        group::add(collective(number, stream, [from, to], (element, count), |_| {
            Reduction::of(reduction).map(CollectiveKind::AllReduce)
        }))
    }

    ncclBroadcast(
        from: u64,
        to: u64,
        count: usize,
        element: u32,
        root: c_int,
        number: u64,
        stream: u64,
    ) {
        group::add(collective(number, stream, [from, to], (element, count), |communicator| {
            Ok(CollectiveKind::Broadcast { root: rank(communicator, root)? })
        }))
    }

    ncclBcast(buffer: u64, count: usize, element: u32, root: c_int, number: u64, stream: u64) {
        group::add(collective(number, stream, [buffer; 2], (element, count), |communicator| {
            Ok(CollectiveKind::Broadcast { root: rank(communicator, root)? })
        }))
    }

    ncclReduce(
        from: u64,
        to: u64,
        count: usize,
        element: u32,
        reduction: u32,
        root: c_int,
        number: u64,
        stream: u64,
    ) {
        group::add(collective(number, stream, [from, to], (element, count), |communicator| {
            let (reduction, root) = (Reduction::of(reduction)?, rank(communicator, root)?);
            Ok(CollectiveKind::Reduce { reduction, root })
        }))
    }

    ncclAllGather(from: u64, to: u64, count: usize, element: u32, number: u64, stream: u64) {
        group::add(collective(number, stream, [from, to], (element, count), |_| {
            Ok(CollectiveKind::AllGather)
        }))
    }

    ncclReduceScatter(
        from: u64,
        to: u64,
        count: usize,
        element: u32,
        reduction: u32,
        number: u64,
        stream: u64,
    ) {
        group::add(collective(number, stream, [from, to], (element, count), |_| {
            Reduction::of(reduction).map(CollectiveKind::ReduceScatter)
        }))
    }
}

/// `ncclGetErrorString`.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "NCCL's name")]
extern "C" fn ncclGetErrorString(code: u32) -> *const c_char {
    Status::text(code).as_ptr()
}

/// `ncclGetLastError`: the stand-in has no texts beside those of the codes.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "NCCL's name")]
extern "C" fn ncclGetLastError(_communicator: u64) -> *const c_char {
    c"".as_ptr()
}

/// A message to the peer, or from it.
fn message(
    number: u64,
    stream: u64,
    (element, count, address): (u32, usize, u64),
    peer: c_int,
    is_sent: bool,
) -> Outcome<Operation> {
    let communicator = communicator::find(number)?;
    let peer = rank(&communicator, peer)?;
    let element = Element::of(element)?;
    let len_bytes = bytes(element, count, 1)?;
    check_buffer(address, len_bytes)?;
    let kind = if is_sent {
        let message = communicator.link.next_sent(peer);
        Kind::Send { message, element, from: address, len_bytes }
    } else {
        let message = communicator.link.next_received(peer);
        Kind::Receive { message, element, to: address, len_bytes }
    };
    Ok(Operation { communicator, stream, kind })
}

fn collective(
    number: u64,
    stream: u64,
    [from, to]: [u64; 2],
    (element, count): (u32, usize),
    kind: impl FnOnce(&Communicator) -> Outcome<CollectiveKind>,
) -> Outcome<Operation> {
    let communicator = communicator::find(number)?;
    let (kind, element) = (kind(&communicator)?, Element::of(element)?);
    let Link { rank, ranks, .. } = *communicator.link;
    bytes(element, count, ranks)?;
    let collective = Collective { kind, element, count };
    check_buffer(from, collective.read_bytes(rank, ranks).unwrap_or(0))?;
    check_buffer(to, collective.written_bytes(rank, ranks).unwrap_or(0))?;
    let number = communicator.link.next_collective();
    let kind = Kind::Collective { number, collective, from, to };
    Ok(Operation { communicator, stream, kind })
}

fn bytes(element: Element, count: usize, ranks: usize) -> Outcome<usize> {
    let all = count.checked_mul(element.len_bytes()).and_then(|bytes| bytes.checked_mul(ranks));
    all.ok_or(Status::INVALID_ARGUMENT)
}

fn check_buffer(address: u64, len_bytes: usize) -> Outcome {
    if address == 0 && len_bytes > 0 { Err(Status::INVALID_ARGUMENT) } else { Ok(()) }
}

/// A rank that the communicator has.
fn rank(communicator: &Communicator, number: c_int) -> Outcome<usize> {
    let rank = usize::try_from(number).map_err(|_| Status::INVALID_ARGUMENT)?;
    if rank < communicator.link.ranks { Ok(rank) } else { Err(Status::INVALID_ARGUMENT) }
}

fn count(number: usize) -> Outcome<c_int> {
    c_int::try_from(number).map_err(|_| Status::INTERNAL_ERROR)
}

/// The device at an index of a list, which without a list is the index.
fn device(devices: *const c_int, index: c_int) -> c_int {
    if devices.is_null() {
        return index;
    }
    // SAFETY: guaranteed by the caller (NCCL's manual): the list has as many devices as ranks.
    let place = unsafe { devices.offset(index as isize) };
    // SAFETY: as above.
    unsafe { place.read() }
}

fn check<T>(place: *mut T) -> Outcome {
    if place.is_null() { Err(Status::INVALID_ARGUMENT) } else { Ok(()) }
}

fn set<T>(place: *mut T, value: T) -> Outcome {
    check(place)?;
    // SAFETY: guaranteed by the caller (NCCL's manual).
    unsafe { place.write(value) };
    Ok(())
}
