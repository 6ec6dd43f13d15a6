//! Random programs over the public API, beside references. Test suites and fuzz targets run them.

pub mod arrays;
pub mod views;
