//! Copies and fills: turns boxes of bytes into driver calls.
//!
//! | file | contents |
//! |---|---|
//! | `memcpy` | queues copies: one driver call for each shape |
//! | `shape` | splits a box into lines, planes and volumes; arithmetic only |
//! | `batch` | many lines in one driver call |
//! | `fill` | queues fills |
//! | `lines` | copies and fills as lines, for graphs; arithmetic only |
//! | `cost` | the fastest way to copy boxes over the link; arithmetic only |
//! | `packing` | copies of short rows by way of a block of device memory |
//! | `from_staging` | the host's part of a download: from staging memory to its destination |

pub(crate) mod batch;
pub(crate) mod cost;
pub(crate) mod fill;
pub(crate) mod from_staging;
pub(crate) mod lines;
pub(crate) mod memcpy;
pub(crate) mod packing;
pub(crate) mod shape;
