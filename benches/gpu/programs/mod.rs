//! Programs written twice, with this library and with only cudarc. Rows with the same names measure
//! them, and the suite `driver_calls` counts their driver calls.

pub mod conjugate_gradient;
pub mod photos;
