//! Programs written twice: once with this library, once with only cudarc. The benchmark rows with
//! the same names measure these programs, and the suite `driver_calls` counts their driver calls.

pub mod conjugate_gradient;
pub mod photos;
