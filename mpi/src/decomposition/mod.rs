//! Which process has which cells of a global array, and the faces that neighbours exchange. Pure:
//! no MPI call, so that tests can look at all processes at once.

mod blocks;
mod cells;
mod faces;
mod overlap;
mod parts;
mod processes;

pub use cells::Cells;

pub(crate) use blocks::Blocks;
pub(crate) use faces::{Face, Reach};
pub(crate) use processes::balanced;

#[cfg(test)]
mod tests;
