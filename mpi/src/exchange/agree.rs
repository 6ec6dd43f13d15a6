//! Whether neighbours describe the same exchange, asked once when it is made.

use std::rc::Rc;

use super::fields::Elements;
use super::tags::Tags;
use crate::call::{Channel, Peer};
use crate::decomposition::Blocks;
use crate::error::{Error, Result, Side};
use crate::header::{self, Header};
use crate::local::Decomposition;
use crate::transfer::Transfer;
use crate::world::{Awaited, World};

const OPERATION: &str = "Decomposition::exchange";

/// A neighbour across a face, with which headers travel both ways, whether or not the face has
/// cells: the neighbour may think that it has.
struct Neighbour {
    rank: usize,
    axis: usize,
    side: Side,
    received: Rc<Transfer<Header>>,
}

/// Compares the description of an exchange with those of all neighbours. Neighbours across corners
/// have a neighbour in common with this process.
pub(super) fn with_neighbours<E: Elements<N>, const N: usize>(
    on: &Decomposition<N>,
    tags: &Tags,
) -> Result<()> {
    let (world, expected) = (&on.mpi().0, description::<E, N>(on));
    let neighbours = post(world, on.blocks(), tags, expected)?;
    let deadline = world.deadline();
    let mut outcome = Ok(());
    for Neighbour { rank, axis, side, received } in neighbours {
        let awaited = Awaited::face(OPERATION, rank, axis, side);
        let found = header::wait(world, &received, &awaited, deadline);
        let one = found.and_then(|found| compare(&expected, &found, &awaited));
        // All are waited for, so that none is in flight; the first error says most.
        outcome = outcome.and(one);
    }
    outcome
}

/// Sends the description to all neighbours, and begins to receive theirs.
fn post<const N: usize>(
    world: &World,
    blocks: &Blocks<N>,
    tags: &Tags,
    description: Header,
) -> Result<Vec<Neighbour>> {
    let places = (0..N).flat_map(|axis| [(axis, Side::Low), (axis, Side::High)]);
    let mut neighbours = Vec::new();
    for (axis, side) in places {
        let Some(rank) = blocks.neighbour(world.rank(), axis, side) else { continue };
        let peer = |side| -> Result<Peer> {
            world.peer(OPERATION, rank, tags.header(axis, side), Channel::Faces)
        };
        header::send(world, description, peer(side)?)?;
        let received = header::receive(world, peer(side.opposite())?)?;
        neighbours.push(Neighbour { rank, axis, side, received });
    }
    Ok(neighbours)
}

/// What all processes must describe alike.
fn description<E: Elements<N>, const N: usize>(on: &Decomposition<N>) -> Header {
    let blocks = on.blocks();
    let text = format!(
        "halos {:?} of {}, {}, periodic {:?}, {:?} processes, in an array",
        blocks.halos(),
        E::description(),
        on.reach(),
        blocks.periodic(),
        blocks.processes(),
    );
    Header::new(&text, 0, &blocks.shape())
}

fn compare(expected: &Header, found: &Header, from: &Awaited) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Mismatch {
        operation: OPERATION,
        rank: from.rank.unwrap_or(0),
        axis: from.axis,
        side: from.side,
        expected: expected.to_string(),
        found: found.to_string(),
    })
}
