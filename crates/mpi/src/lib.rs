//! Arrays of `resident` across processes, through MPI.
#![deny(missing_docs)]

mod audit;
mod call;
mod decomposition;
mod error;
mod exchange;
mod flight;
mod gather;
mod grid;
mod header;
mod local;
mod message;
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
