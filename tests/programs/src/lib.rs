//! Random programs over the public API and over the core, beside references. Test suites and fuzz
//! targets run them.

pub mod arrays;
pub mod coherence;
mod list;
pub mod replay;
#[cfg(feature = "dlpack")]
pub mod tensors;
pub mod views;

pub use list::List;
