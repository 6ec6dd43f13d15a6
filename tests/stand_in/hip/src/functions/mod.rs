//! The `hip*` functions, by chapter of HIP's manual.

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
mod properties;
mod streams;
mod unsupported;

/// Defines functions that are exported under HIP's names.
macro_rules! hip_functions {
    ($($functions:tt)*) => {
        resident_stand_in_gpu::exported_functions! { crate::interface::run; $($functions)* }
    };
}

use hip_functions;
