//! What one process exchanges with its neighbours: which of its cells go where, and which of its
//! halo cells come from there.

use std::fmt;
use std::ops::Range;

use super::{Blocks, Cells};
use crate::error::Side;

/// Which neighbours take part in an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Those along one axis: 2 N.
    Faces,
    /// Those along several axes too: 3^N - 1.
    Corners,
}

/// The cells that a process exchanges with one neighbour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Face<const N: usize> {
    /// Where the neighbour is: -1, 0 or 1 along each axis.
    pub(crate) direction: [i8; N],
    /// The neighbour, which may be this process.
    pub(crate) rank: usize,
    /// The own cells that the neighbour gets.
    pub(crate) send: Cells<N>,
    /// The halo cells that the neighbour fills.
    pub(crate) receive: Cells<N>,
    /// The tag of what is sent: one for each direction of travel, since a process may be the
    /// neighbour on several sides.
    pub(crate) send_tag: usize,
    /// The tag of what is received, which travels in the opposite direction.
    pub(crate) receive_tag: usize,
}

/// For the description of an exchange.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faces => "faces only",
            Self::Corners => "with corners",
        })
    }
}

impl<const N: usize> Face<N> {
    /// The axis and the side that errors name: those of the first step towards the neighbour.
    pub(crate) fn place(&self) -> (usize, Side) {
        let axis = self.direction.iter().position(|step| *step != 0).unwrap_or(0);
        (axis, if self.direction[axis] < 0 { Side::Low } else { Side::High })
    }
}

impl<const N: usize> Blocks<N> {
    /// The faces of a process that have cells and a neighbour, in the order of their directions.
    /// Both neighbours of a face count its cells alike, so both have it or neither.
    pub(crate) fn faces(&self, rank: usize, reach: Reach) -> Vec<Face<N>> {
        directions(reach).filter_map(|direction| self.face(rank, direction)).collect()
    }

    fn face(&self, rank: usize, direction: [i8; N]) -> Option<Face<N>> {
        let neighbour = self.towards(rank, direction)?;
        let own = self.local_shape(rank);
        let cut = |of: fn(i8, usize, usize) -> Range<usize>| -> Cells<N> {
            let along = |axis: usize| of(direction[axis], own[axis], self.halos()[axis]);
            Cells::new(std::array::from_fn(along), self.halos())
        };
        let (send, receive) = (cut(sent), cut(received));
        (!send.is_empty()).then(|| Face {
            direction,
            rank: neighbour,
            send,
            receive,
            send_tag: tag(direction),
            receive_tag: tag(direction.map(|step| -step)),
        })
    }
}

/// The own cells along one axis that a neighbour in this direction gets.
fn sent(step: i8, own: usize, halo: usize) -> Range<usize> {
    match step {
        0 => halo..halo + own,
        1 => own..own + halo,
        _ => halo..halo + halo,
    }
}

/// The halo cells along one axis that a neighbour in this direction fills.
fn received(step: i8, own: usize, halo: usize) -> Range<usize> {
    match step {
        0 => halo..halo + own,
        1 => halo + own..halo + own + halo,
        _ => 0..halo,
    }
}

/// All directions to neighbours, in the order of their tags.
fn directions<const N: usize>(reach: Reach) -> impl Iterator<Item = [i8; N]> {
    let all = (0..3_usize.pow(N as u32))
        .map(|tag| std::array::from_fn(|axis| (tag / 3_usize.pow(axis as u32) % 3) as i8 - 1));
    all.filter(move |direction| {
        let steps = direction.iter().filter(|step| **step != 0).count();
        steps == 1 || steps > 1 && reach == Reach::Corners
    })
}

/// A number below 3^N for each direction.
fn tag<const N: usize>(direction: [i8; N]) -> usize {
    direction.iter().rev().fold(0, |tag, step| 3 * tag + (step + 1) as usize)
}
