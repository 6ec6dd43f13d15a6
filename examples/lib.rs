//! The parts of the examples that tests and benchmarks use too: kernels, and steps that launch
//! them.
//!
//! Each example is a program beside this file: start with `first_array.rs`.

#![allow(clippy::new_without_default, reason = "a program makes its kernels once, by name")]

/// Kernels of `conjugate_gradient`.
pub mod conjugate_gradient {
    pub mod kernels;
}

/// Kernels of `heat`, and the exact heat after any number of steps.
pub mod heat {
    pub mod kernels;
    pub mod waves;
}

/// Kernels, steps and pictures of `live`.
pub mod live {
    pub mod kernels;
    pub mod picture;
    pub mod simulation;
}

/// The edge detector of `pipeline`, which `photos` runs over many pictures.
pub mod pipeline {
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
}
