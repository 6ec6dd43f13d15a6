//! Programs written twice: once with this library, once with only cudarc. The benchmark rows with
//! the same names measure these programs, and the suite `driver_calls` counts their driver calls.

pub mod conjugate_gradient;
pub mod exposures;
pub mod photograph;
pub mod photos;

/// What a program by hand copies when host code looks at, or changes, a row or a column of an array
/// on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copies {
    /// The row or the column, as a careful programmer writes it.
    Parts,
    /// The whole array down, and up again if it changed, as in a first version written in a hurry.
    WholeArrays,
}

/// The names of three programs for the same work, in the order in which they are measured.
pub const NAMES: [&str; 3] =
    ["`SmartArray`", "cudarc, parts copied by hand", "cudarc, whole arrays copied"];
