//! Random programs over the public API, beside references. Test suites and fuzz targets run them.

pub mod arrays;
#[cfg(feature = "dlpack")]
pub mod tensors;
pub mod views;
