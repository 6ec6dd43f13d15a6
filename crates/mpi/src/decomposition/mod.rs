//! Which process has which cells of a global array, and the faces that neighbours exchange. Pure:
//! no MPI call, so that tests can look at all processes at once.

mod blocks;
mod faces;
mod parts;
mod processes;

pub(crate) use blocks::Blocks;
pub(crate) use faces::{Cells, Face, Reach, len, shape};
pub(crate) use processes::balanced;

#[cfg(test)]
mod tests;
