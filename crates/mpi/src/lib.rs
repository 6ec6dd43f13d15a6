//! Arrays of `resident` across processes, through MPI.
#![deny(missing_docs)]

mod agreement;
mod audit;
mod call;
mod collectives;
mod decomposition;
mod error;
mod exchange;
mod file;
mod flight;
mod gather;
mod grid;
mod header;
mod inbox;
mod local;
mod message;
mod packed;
mod part;
mod point_to_point;
mod progress;
mod world;

pub use audit::{Flow, Traffic};
pub use call::{Number, Reduce};
pub use decomposition::Cells;
pub use error::{Error, Result, Side};
pub use exchange::{Elements, Exchange, Field, FieldMut, Fields, FieldsMut, Going};
pub use grid::GridBuilder;
pub use local::Decomposition;
pub use part::{Part, PartMut};
pub use point_to_point::{Receiving, Sending};
pub use world::{Mpi, init};
