//! Arrays of `resident` across processes, through MPI.
#![deny(missing_docs)]

#[cfg(test)]
mod decomposition;
mod error;

pub use error::{Error, Result, Side};
