//! Programs that are written twice, with this library and with cudarc alone: measured by rows of
//! the same names, and their calls of the driver counted by `tests/driver_calls`.

pub mod conjugate_gradient;
pub mod photos;
