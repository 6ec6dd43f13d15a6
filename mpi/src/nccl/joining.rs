//! How the processes make their communicator together, if all of them can.

use super::Communicator;
#[cfg(not(feature = "nccl"))]
use super::absent::{ID_BYTES, Own, new_id};
#[cfg(feature = "nccl")]
use super::communicator::{ID_BYTES, Own, new_id};
use super::wish::{SAID_BYTES, Said, Wish, conclude};
use crate::agreement::{all_gather, broadcast};
use crate::error::Result;
use crate::watchdog::Watchdog;
use crate::world::World;

const OPERATION: &str = "init";

/// The communicator, or why NCCL is not used. All processes call it, whatever they wish.
///
/// # Errors
///
/// In all processes, if one of them wants NCCL always and it cannot be used.
pub(crate) fn join(world: &World, wish: Wish) -> Result<std::result::Result<Communicator, String>> {
    let found =
        if wish == Wish::Never { Err(String::from("chooses otherwise")) } else { Own::find() };
    let (own, gpu) = match found {
        Ok((own, gpu)) => (Some(own), Ok(gpu)),
        Err(reason) => (None, Err(reason)),
    };
    let all = said_by_all(world, &Said { wish, gpu: gpu.clone() })?;
    if let Err(reason) = conclude(&all)? {
        return Ok(Err(reason));
    }
    let id = id_of_all(world)?;
    let limit = Watchdog::start(OPERATION, world.timeout());
    let communicator = match (own, id) {
        (Some(own), Ok(id)) => own.join(id, [world.rank(), world.size()], world.timeout()),
        (_, Err(reason)) => Err(reason),
        (None, _) => unreachable!("all processes have a GPU, as they have said"),
    };
    drop(limit);
    // If it was not made in one of them, none uses it.
    let said = match &communicator {
        Ok(_) => Said { wish, gpu },
        Err(reason) => Said { wish, gpu: Err(format!("cannot join: {reason}")) },
    };
    let outcome = conclude(&said_by_all(world, &said)?)?;
    Ok(communicator.and_then(|communicator| outcome.map(|()| communicator)))
}

fn said_by_all(world: &World, said: &Said) -> Result<Vec<Said>> {
    let all = all_gather(world, OPERATION, said.to_bytes())?;
    Ok(all.chunks_exact(SAID_BYTES).map(Said::of_bytes).collect())
}

/// The id that rank 0 makes: a byte that says whether it could, and the id.
fn id_of_all(world: &World) -> Result<std::result::Result<[u8; ID_BYTES], String>> {
    let mut bytes = vec![0; 1 + ID_BYTES];
    let mut refused = Ok(());
    if world.rank() == 0 {
        match new_id() {
            Ok(id) => {
                bytes[0] = 1;
                bytes[1..].copy_from_slice(&id);
            }
            Err(reason) => refused = Err(reason),
        }
    }
    let bytes = broadcast(world, OPERATION, bytes, 0)?;
    let id = std::array::from_fn(|at| bytes[1 + at]);
    let made = if bytes[0] == 1 { Ok(id) } else { Err("rank 0 made no id".into()) };
    Ok(refused.and(made))
}
