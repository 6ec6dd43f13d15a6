//! The `cu*` functions, by chapter of CUDA's manual.

mod contexts;
mod copies;
mod devices;
mod events;
mod fills;
mod graphs;
mod managed;
mod mappings;
mod memory;
mod modules;
mod pools;
mod streams;
mod unsupported;

/// Defines functions that are exported under CUDA's names.
macro_rules! driver_functions {
    ($($functions:tt)*) => {
        resident_stand_in_gpu::exported_functions! { crate::interface::run; $($functions)* }
    };
}

use driver_functions;
