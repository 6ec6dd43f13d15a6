//! Arrays of `resident` across processes, through MPI.
#![deny(missing_docs)]

mod audit;
mod call;
#[cfg(test)]
mod decomposition;
mod error;
mod flight;
mod header;
mod message;
mod part;
mod point_to_point;
mod progress;
mod world;

pub use audit::{Flow, Traffic};
pub use call::{Number, Reduce};
pub use error::{Error, Result, Side};
pub use part::{Part, PartMut};
pub use point_to_point::{Receiving, Sending};
pub use world::{Mpi, init};
