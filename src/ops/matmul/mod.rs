//! Matrix products.

pub(super) mod functions;
mod host;

use ndarray::{Ix2, IxDyn};
use smallvec::SmallVec;

use super::arithmetic::Scalar;
use super::cache;
use super::call::{self, Call};
use super::elementwise;
use super::source;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut, SmartArray};
use crate::error::{Error, Result};
#[cfg(feature = "cublas")]
use crate::interop;
use crate::launch::{In, Kernel, Out};
use resident_backend::grid::Grid;

type MatmulKernel<T> = Kernel<(In<T, IxDyn>, In<T, IxDyn>, Out<T, IxDyn>)>;

/// The rows and columns of a block's tile, and the rows of its threads: those in the kernel.
const TILE: usize = 32;
const BLOCK: (u32, u32) = (32, 8);

/// `out = a b`.
pub(super) fn matmul<T: Scalar>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    b: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut b, mut out) = (Operand::of(a), Operand::of(b), OperandMut::of(out));
    as_tables(call, &mut a, &mut b, &mut out)?;
    call.expect_end(&a)?;
    call.expect_end(&b)?;
    let shape = out.axes().shape();
    if shape.contains(&0) {
        return Ok(());
    }
    if a.axes().len() == 0 {
        let zero = SmartArray::<T, IxDyn>::full_at(IxDyn(&[1]), T::ZERO, call.site);
        return elementwise::copy(call, &zero, &mut out);
    }
    #[cfg(feature = "cublas")]
    if interop::product(call.stream, &a, &b, &mut out, call.site)? {
        return Ok(());
    }
    let shape = out.axes().shape();
    let tiles = shape[0].div_ceil(TILE) * shape[1].div_ceil(TILE);
    let Ok(blocks) = u32::try_from(tiles) else {
        let expected = format!("`c` of fewer than 2³² tiles of {TILE} x {TILE} elements");
        return Err(call.shape(expected, out, "multiply parts of the rows of `a` (`slice`)"));
    };
    let products = a.axes().len().saturating_mul(shape[1]);
    let grid = Grid::new(blocks, BLOCK);
    if products <= call::BRIEF_LEN_MAX as usize {
        call.launch(kernel::<T>(), grid, (&a, &b, &mut out))
    } else {
        call.launch_long(kernel::<T>(), grid, (&a, &b, &mut out))
    }
}

/// Checks the shapes. A line on the left is a row, and one on the right a column.
fn as_tables<T: Scalar>(
    call: &Call<'_>,
    a: &mut Operand<'_, T>,
    b: &mut Operand<'_, T>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    let expected: SmallVec<[usize; 2]> = match (a.axes().shape(), b.axes().shape()) {
        (&[rows, left], &[right, columns]) if left == right => [rows, columns].into(),
        (&[rows, left], &[right]) if left == right => SmallVec::from_slice(&[rows]),
        (&[left], &[right, columns]) if left == right => SmallVec::from_slice(&[columns]),
        _ => return Err(no_product(call, a, b)),
    };
    call.expect_result("c", out, &expected, "the rows of `a` by the columns of `b`")?;
    if a.axes().shape().len() == 1 {
        a.axes_mut().insert(0);
        out.axes_mut().insert(0);
    }
    if b.axes().shape().len() == 1 {
        b.axes_mut().insert(1);
        out.axes_mut().insert(1);
    }
    Ok(())
}

/// Operands of which one has not as many rows as the other has columns, or that are no tables.
#[cold]
fn no_product<T: Scalar>(call: &Call<'_>, a: &Operand<'_, T>, b: &Operand<'_, T>) -> Error {
    let (of_a, of_b) = (a.axes().shape(), b.axes().shape());
    let instead = match (of_a, of_b) {
        ([_] | [_, _], [_, columns]) if of_a.last() == Some(columns) => "pass `b.t()`",
        ([columns, _], [rows] | [rows, _]) if columns == rows => "pass `a.t()`",
        ([_, _], [_] | [_, _]) | ([_], [_, _]) => "pass a part of the longer one (`slice`)",
        _ => {
            let expected = String::from("two tables, or a table and a line,");
            let instead = "`ops::dot` multiplies lines, and `index_axis` takes tables of more axes";
            return call.shape(expected, format!("{a} and {b}"), instead);
        }
    };
    let (inner, rows) = (of_a[of_a.len() - 1], of_b[0]);
    let expected = format!("`b` of {inner} rows, since `a`, {a}, has {inner} columns,");
    call.shape(expected, format!("{rows} rows of {b}"), instead)
}

fn kernel<T: Scalar>() -> &'static MatmulKernel<T> {
    cache::kernel("ops::matmul", 2, || {
        let kernel = MatmulKernel::<T>::new("ops::matmul").own_host(|_, (a, b, c)| {
            let tables = (
                a.into_dimensionality::<Ix2>(),
                b.into_dimensionality::<Ix2>(),
                c.into_dimensionality::<Ix2>(),
            );
            let (Ok(a), Ok(b), Ok(c)) = tables else { unreachable!("two axes") };
            host::product(a, b, c);
        });
        let declarations = source::declarations(2, T::C, T::C);
        // SAFETY: `as_tables` checked the shapes; each thread writes elements of its own.
        unsafe {
            kernel.cuda(source::of_file(&[include_str!("kernel.cu")], "matmul", &declarations))
        }
    })
}
