//! The kernels that the stand-in launches, each with its name and host function.

use std::iter::Sum;
use std::ops::{Add, Mul};

use resident_stand_in_client::above_driver::Kernel;
use resident_stand_in_client::protocol::{Access, Length, Parameter};
use resident_stand_in_client::{Fault, Launch};

const INTEGER: Parameter = Parameter::Scalar { len_bytes: 4 };
const FLOAT: Parameter = INTEGER;
const DOUBLE_NUMBER: Parameter = Parameter::Scalar { len_bytes: 8 };
const READ: Parameter = pointer(Access::Read);
const WRITE: Parameter = pointer(Access::Write);
const BOTH: Parameter = pointer(Access::ReadWrite);

const fn pointer(access: Access) -> Parameter {
    Parameter::Pointer { access, length: Length::ToEnd }
}

/// A dot product writes one number; the memory after it is not accessed.
const NUMBER: Parameter = Parameter::Pointer { access: Access::Write, length: Length::Bytes(8) };
const FACTOR: Parameter = Parameter::Pointer { access: Access::Read, length: Length::Bytes(8) };

/// The parameters: n; x and its increment; y and its increment; the product.
pub(crate) const DOT: Kernel = Kernel {
    name: "cublas_ddot",
    parameters: &[INTEGER, READ, INTEGER, READ, INTEGER, NUMBER],
    body: dot,
};

/// The parameters: n; the factor; x and its increment; y and its increment.
pub(crate) const ADD: Kernel = Kernel {
    name: "cublas_daxpy",
    parameters: &[INTEGER, FACTOR, READ, INTEGER, BOTH, INTEGER],
    body: add,
};

/// The parameters: whether A and B are transposed; m, n, k; alpha; A and its leading dimension; B
/// and its leading dimension; beta; C and its leading dimension.
const fn parameters(number: Parameter, c: Parameter) -> [Parameter; 13] {
    [
        INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, number, READ, INTEGER, READ, INTEGER, number,
        c, INTEGER,
    ]
}

/// A product of matrices of one type of numbers.
pub(crate) struct Multiply {
    /// Reads C and writes it.
    pub(crate) into_both: Kernel,
    /// For beta 0 and a contiguous C. As BLAS specifies, C is then written but not read.
    pub(crate) into: Kernel,
}

/// The product's kernels, for this type of numbers, which are passed as such parameters.
const fn multiply_by<T: Float>(
    [both, into]: [&'static str; 2],
    [into_both, only_into]: [&'static [Parameter]; 2],
) -> Multiply {
    let body = multiply::<T>;
    Multiply {
        into_both: Kernel { name: both, parameters: into_both, body },
        into: Kernel { name: into, parameters: only_into, body },
    }
}

pub(crate) const SINGLE: Multiply = multiply_by::<f32>(
    ["cublas_sgemm", "cublas_sgemm_into"],
    [&parameters(FLOAT, BOTH), &parameters(FLOAT, WRITE)],
);

pub(crate) const DOUBLE: Multiply = multiply_by::<f64>(
    ["cublas_dgemm", "cublas_dgemm_into"],
    [&parameters(DOUBLE_NUMBER, BOTH), &parameters(DOUBLE_NUMBER, WRITE)],
);

pub(crate) const ALL: [&Kernel; 6] =
    [&DOT, &ADD, &SINGLE.into_both, &SINGLE.into, &DOUBLE.into_both, &DOUBLE.into];

fn size(launch: &Launch<'_>, index: usize) -> usize {
    usize::try_from(launch.scalar::<i32>(index)).unwrap_or(0)
}

fn read<'a, T: Copy>(launch: &'a Launch<'_>, index: usize) -> &'a [T] {
    // SAFETY: elements are numbers. The kernel is registered as reading the memory, and the driver
    // checks that no unordered work writes it.
    unsafe { launch.slice(index) }
}

#[expect(
    clippy::mut_from_ref,
    reason = "each kernel takes its output once, and accesses it through no other parameter"
)]
fn written<'a, T: Copy>(launch: &'a Launch<'_>, index: usize) -> &'a mut [T] {
    // SAFETY: as for `read`; BLAS requires that outputs do not overlap inputs.
    unsafe { launch.slice_mut(index) }
}

fn dot(launch: &Launch<'_>) -> Result<(), Fault> {
    let (x, y) = (read::<f64>(launch, 1), read::<f64>(launch, 3));
    let (step_x, step_y) = (size(launch, 2), size(launch, 4));
    written::<f64>(launch, 5)[0] =
        (0..size(launch, 0)).map(|index| x[index * step_x] * y[index * step_y]).sum();
    Ok(())
}

fn add(launch: &Launch<'_>) -> Result<(), Fault> {
    let (factor, x, y) =
        (read::<f64>(launch, 1)[0], read::<f64>(launch, 2), written::<f64>(launch, 4));
    let (step_x, step_y) = (size(launch, 3), size(launch, 5));
    (0..size(launch, 0)).for_each(|index| y[index * step_y] += factor * x[index * step_x]);
    Ok(())
}

/// Matrices are column-major, as in Fortran.
fn multiply<T: Float>(launch: &Launch<'_>) -> Result<(), Fault> {
    let [m, n, k] = [2, 3, 4].map(|index| size(launch, index));
    let (alpha, beta): (T, T) = (launch.scalar(5), launch.scalar(10));
    let (a, b, c) = (read::<T>(launch, 6), read::<T>(launch, 8), written::<T>(launch, 11));
    let [a_column, b_column, c_column] = [7, 9, 12].map(|index| size(launch, index));
    let at = |is_transposed: bool, row: usize, column: usize, distance: usize| {
        if is_transposed { row * distance + column } else { column * distance + row }
    };
    let (a_turned, b_turned) = (size(launch, 0) != 0, size(launch, 1) != 0);
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let product = |inner| {
            a[at(a_turned, row, inner, a_column)] * b[at(b_turned, inner, column, b_column)]
        };
        let sum: T = (0..k).map(product).sum();
        let place = &mut c[column * c_column + row];
        // As BLAS specifies, with beta 0 the old value is ignored, even if it is NaN.
        let kept = if beta == T::default() { T::default() } else { beta * *place };
        *place = alpha * sum + kept;
    }
    Ok(())
}

/// The numbers of BLAS.
pub(crate) trait Float:
    Copy + Default + PartialEq + Mul<Output = Self> + Add<Output = Self> + Sum
{
}

impl Float for f32 {}
impl Float for f64 {}
