//! Arrays of `resident` across processes, through MPI.
#![deny(missing_docs)]

mod error;

pub use error::{Error, Result, Side};
