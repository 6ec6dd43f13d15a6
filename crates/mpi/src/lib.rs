//! Arrays of `resident` across processes, through MPI.
#![deny(missing_docs)]

mod agreement;
mod audit;
mod call;
mod collectives;
mod error;
mod flight;
mod header;
mod inbox;
mod message;
mod packed;
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
