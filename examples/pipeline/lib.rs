//! The edge detector of `pipeline`, which `photos` runs over many pictures: what tests and
//! benchmarks use too.

#![allow(clippy::new_without_default, reason = "a program makes its kernels once, by name")]

pub mod arguments;
pub mod bodies;
pub mod brightness;
pub mod failure;
pub mod kernels;
pub mod orientation;
pub mod picture;
pub mod progress;
pub mod sheet;
pub mod steps;
