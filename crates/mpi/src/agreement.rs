//! Whether all processes do the same.
//!
//! Each collective operation begins with this: the processes exchange hashes of what they are about
//! to do, and if these differ, the texts. So processes that call different operations, or with
//! other types or shapes, get errors that say both, where MPI would mix up their elements or wait
//! forever. All of them come to the same decision, as all compare the same hashes. It is a barrier
//! too.

use crate::call::Request;
use crate::error::{Error, Result};
use crate::flight::Flight;
use crate::header::hash;
use crate::world::{Awaited, World};

/// The length of a text that is exchanged; longer ones are cut.
const TEXT_BYTES: usize = 512;

/// `Ok` if all processes call this with one `text`, which says what they are about to do.
///
/// # Errors
///
/// - `Error::Mismatch`, in all processes, with the text of the first process that has another.
/// - `Error::TimedOut` if some process does not call it.
pub(crate) fn agree(world: &World, operation: &'static str, text: String) -> Result<()> {
    let hashes = all_gather(world, operation, hash(text.bytes()).to_ne_bytes().into())?;
    let (own, _) = hashes.split_at(size_of::<u64>());
    if hashes.chunks_exact(own.len()).all(|other| other == own) {
        return Ok(());
    }
    let mut padded = text.clone().into_bytes();
    padded.resize(TEXT_BYTES, 0);
    let texts = all_gather(world, operation, padded.clone())?;
    Err(difference(world, operation, text, &hashes, &texts))
}

/// The bytes of each process, in the order of ranks. All give as many.
fn all_gather(world: &World, operation: &'static str, own: Vec<u8>) -> Result<Vec<u8>> {
    let all = vec![0; own.len() * world.size()];
    let flight = Flight::new((own, all), Request::null());
    let start = world.start(&flight, |session, (own, all), request| {
        let own = (own.as_ptr(), own.len());
        // SAFETY: both are memory that the flight owns: they live, where they are, until it has
        // landed, and nothing accesses them before (`Flight::start`). `all` is as long as is asked
        // for.
        unsafe { session.all_gather(own, all.as_mut_ptr(), request) }
    });
    // If it fails here only, the others would take the next operation for it.
    start
        .and_then(|()| world.land(&*flight, &Awaited::all(operation), world.deadline()))
        .map_err(|error| world.break_with(error))?;
    let mut memory = flight.memory().expect("it has landed");
    Ok(std::mem::take(&mut memory.1))
}

/// The error of a process: another process, with another hash, and its text.
fn difference(
    world: &World,
    operation: &'static str,
    expected: String,
    hashes: &[u8],
    texts: &[u8],
) -> Error {
    let mut hashes = hashes.chunks_exact(size_of::<u64>());
    let own = hashes.clone().nth(world.rank());
    let rank = hashes.position(|hash| Some(hash) != own).unwrap_or(0);
    let text = &texts[rank * TEXT_BYTES..][..TEXT_BYTES];
    let found = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
    Error::Mismatch { operation, rank, axis: None, side: None, expected, found }
}
