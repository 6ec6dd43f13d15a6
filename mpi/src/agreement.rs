//! Whether all processes do the same.
//!
//! Each collective operation begins with this: the processes exchange hashes of what they are about
//! to do, and texts if these differ. So processes that call different operations, or with
//! other types or shapes, get errors that say both, where MPI would mix up their elements or wait
//! forever. All of them come to the same decision, as all compare the same. It is a barrier
//! too.

use crate::call::{Reduce, Request};
use crate::description::hash;
use crate::error::{Error, Result};
use crate::transfer::Transfer;
use crate::world::{Awaited, World};

/// The length of a text that is exchanged; longer ones are cut.
const TEXT_BYTES: usize = 512;

/// What a process is about to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// In words, complete: type, shape, and all else that must be the same.
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// How many bytes MPI will move for each process.
    pub(crate) len_bytes: usize,
}

/// The operation of MPI that follows. It and the number of bytes are compared beside the hash of
/// the text, so that processes with texts of one hash do not write beyond each other's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Nothing, or what says itself that it fits.
    Other,
    Reduction,
    Broadcast,
}

/// `Ok` if all processes call this with one `text`, which says what they are about to do.
///
/// # Errors
///
/// As [`agree_on`].
pub(crate) fn agree(world: &World, operation: &'static str, text: String) -> Result<()> {
    agree_on(world, operation, Plan { text, kind: Kind::Other, len_bytes: 0 })
}

/// `Ok` if all processes call this with one plan.
///
/// # Errors
///
/// - `Error::Mismatch`, in all processes, with the text of the first process that has another.
/// - `Error::TimedOut` if some process does not call it.
pub(crate) fn agree_on(world: &World, operation: &'static str, plan: Plan) -> Result<()> {
    world.roll_call().begin_operation();
    let key = plan.key();
    if all_have(world, operation, key)? {
        return Ok(());
    }
    let own = key.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let keys = all_gather(world, operation, own.clone())?;
    let mut padded = plan.text.clone().into_bytes();
    padded.resize(TEXT_BYTES, 0);
    let texts = all_gather(world, operation, padded)?;
    let rank = keys.chunks_exact(own.len()).position(|other| other != own).unwrap_or(0);
    let text = &texts[rank * TEXT_BYTES..][..TEXT_BYTES];
    let found = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
    let (expected, axis, side) = (plan.text, None, None);
    Err(Error::Mismatch { operation, rank, axis, side, expected, found })
}

impl Plan {
    /// What is compared first, as long for all plans.
    fn key(&self) -> [u64; 3] {
        [hash(self.text.bytes()), self.kind as u64, self.len_bytes as u64]
    }
}

/// Whether all processes have this key: the least of each word is then the greatest. Takes as much
/// memory with any number of processes. If two keys differ, no process has both extremes, so that
/// all processes see it.
fn all_have(world: &World, operation: &'static str, key: [u64; 3]) -> Result<bool> {
    let [a, b, c] = key;
    // The least complement is that of the greatest word.
    let own = [a, b, c, !a, !b, !c];
    let transfer = Transfer::new((own, own), Request::null());
    let start = world.start(&transfer, |session, (own, least), request| {
        let (from, to) = (own.as_ptr(), least.as_mut_ptr());
        // SAFETY: as in `all_gather`. Both have as many elements as are asked for.
        unsafe { session.all_reduce(Reduce::Min, from, to, own.len(), request) }
    });
    complete(world, operation, &transfer, start)?;
    let (_, least) = *transfer.memory().expect("it is complete");
    Ok(least == own)
}

/// The bytes of each process, in the order of ranks. All give as many.
pub(crate) fn all_gather(world: &World, operation: &'static str, own: Vec<u8>) -> Result<Vec<u8>> {
    let all = vec![0; own.len() * world.size()];
    let transfer = Transfer::new((own, all), Request::null());
    let start = world.start(&transfer, |session, (own, all), request| {
        let (own, len_bytes) = (own.as_ptr(), own.len());
        // SAFETY: both are memory that the transfer owns: they live, where they are, until it is
        // complete, and nothing accesses them before (`Transfer::start`). `all` is as long as is
        // asked for.
        unsafe { session.all_gather(own, all.as_mut_ptr(), len_bytes, request) }
    });
    complete(world, operation, &transfer, start)?;
    let mut memory = transfer.memory().expect("it is complete");
    Ok(std::mem::take(&mut memory.1))
}

/// The bytes of the process `root`. All give as many.
pub(crate) fn broadcast(
    world: &World,
    operation: &'static str,
    own: Vec<u8>,
    root: usize,
) -> Result<Vec<u8>> {
    let transfer = Transfer::new(own, Request::null());
    let start = world.start(&transfer, |session, bytes, request| {
        let (memory, len_bytes) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the memory of a vector that the transfer owns: it lives, where it is, until it is
        // complete, and nothing accesses it before (`Transfer::start`).
        unsafe { session.broadcast(memory, len_bytes, root, request) }
    });
    complete(world, operation, &transfer, start)?;
    let mut memory = transfer.memory().expect("it is complete");
    Ok(std::mem::take(&mut *memory))
}

/// Waits for an operation that was started. If it fails here only, the others would take the next
/// operation for it.
fn complete<M: 'static>(
    world: &World,
    operation: &'static str,
    transfer: &Transfer<M>,
    start: Result<()>,
) -> Result<()> {
    start
        .and_then(|()| world.complete(transfer, &Awaited::all(operation), world.deadline()))
        .map(|_| ())
        .map_err(|error| world.break_with(error))
}
