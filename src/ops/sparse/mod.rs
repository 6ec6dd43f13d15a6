//! Products of sparse matrices in compressed rows (CSR).

pub(super) mod functions;
mod host;

use ndarray::IxDyn;

use self::host::{Rows, line};
use super::arithmetic::{Index, Number, Word};
use super::cache;
use super::call::{self, Call};
use super::indexed;
use super::outcome;
use super::source;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut, SmartArray};
use crate::error::{Result, fitting};
use crate::launch::{In, InOut, Kernel, Out};
use resident_backend::GpuSource;

/// In Rust: the body gives what is wrong first to the place of an outcome.
type OutcomeKernel<I> = Kernel<(u64, u64, In<I, IxDyn>, In<I, IxDyn>)>;
/// In CUDA C: threads write what is wrong first.
type CheckKernel<I> = Kernel<(u64, In<I, IxDyn>, In<I, IxDyn>, InOut<u64, IxDyn>)>;
type ProductKernel<I, T> =
    Kernel<(In<I, IxDyn>, In<I, IxDyn>, In<T, IxDyn>, In<T, IxDyn>, Out<T, IxDyn>)>;

/// The threads of a GPU that multiply a row: `ROW_LANES` in the kernel.
const LANES: usize = 8;

/// A matrix: where its rows start, the columns of its entries, and their values.
pub(super) struct Matrix<'a, I, T> {
    starts: Operand<'a, I>,
    columns: Operand<'a, I>,
    values: Operand<'a, T>,
}

impl<'a, I: Index, T: Number> Matrix<'a, I, T> {
    pub(super) fn of(
        starts: &'a impl AnyView<I>,
        columns: &'a impl AnyView<I>,
        values: &'a impl AnyView<T>,
    ) -> Self {
        let (starts, columns) = (Operand::of(starts), Operand::of(columns));
        Self { starts, columns, values: Operand::of(values) }
    }

    /// Checks the shapes, then on the device all indices, for which it waits.
    fn expect_valid(&self, call: &Call<'_>, rows: usize, width: usize) -> Result<()> {
        let why = format!("where each of {rows} rows starts and the last ends");
        call.expect_shape("row_starts", &self.starts, &[rows + 1], &why)?;
        let entries = self.expect_lines(call, rows as u64)?;
        let bad = self.first_bad(call, width as u64)?;
        if bad == u64::MAX {
            return Ok(());
        }
        let place = bad & !(1 << 63);
        if bad == place {
            let expected =
                format!("`columns` below {width}, as many as the right operand has rows,");
            let seen = indexed::element_at(call, &self.columns, place)?.to_u64();
            let instead = fitting::out_of_range(seen, width);
            let seen = format!("{seen}, the column at {place} of {}", self.columns);
            return Err(call.shape(expected, seen, instead));
        }
        let expected =
            format!("`row_starts` that ascend from 0 to {entries}, the number of values,");
        let seen = indexed::element_at(call, &self.starts, place)?.to_u64();
        let seen = format!("{seen}, the start at {place} of {}", self.starts);
        let instead = "each start is that before, plus the number of values of that row";
        Err(call.shape(expected, seen, instead))
    }

    /// Refuses `columns` and `values` that are not as many, naming the one that is not as many as
    /// the last row ends with. Returns how many they are.
    fn expect_lines(&self, call: &Call<'_>, rows: u64) -> Result<usize> {
        let (columns, values) = (self.columns.axes().shape(), self.values.axes().shape());
        if let (&[entries], &[others]) = (columns, values)
            && entries == others
        {
            return Ok(entries);
        }
        let end = indexed::element_at(call, &self.starts, rows)?.to_u64();
        let is_right = |shape: &[usize]| *shape == [end as usize];
        let (name, other, seen) = if is_right(values) || !is_right(columns) {
            ("columns", "values", self.columns.to_string())
        } else {
            ("values", "columns", self.values.to_string())
        };
        let also = if is_right(values) || is_right(columns) {
            format!(", and `{other}` has {end}")
        } else {
            String::new()
        };
        let expected =
            format!("`{name}` of {end} elements, since `row_starts` ends with {end}{also},");
        Err(call.shape(expected, seen, "pass a column and a value for each entry"))
    }

    /// What is wrong first, as the kernel says it: `u64::MAX` if nothing is.
    fn first_bad(&self, call: &Call<'_>, width: u64) -> Result<u64> {
        let Self { starts, columns, .. } = self;
        let grid = call::cover(columns.axes().len().max(starts.axes().len()));
        if call.runs_rust() {
            let kernel = outcome_kernel::<I>();
            let launch = |place| call.launch(kernel, grid, (width, place, starts, columns));
            if let Some(bad) = outcome::of(call, launch)? {
                return Ok(bad);
            }
        }
        let mut bad = SmartArray::<u64, IxDyn>::full_at(IxDyn(&[1]), u64::MAX, call.site);
        let to = &mut OperandMut::of(&mut bad);
        call.launch(check_kernel::<I>(), grid, (width, starts, columns, to))?;
        bad.get_at(0, call.site)
    }
}

/// `y = A x`.
pub(super) fn matvec<I: Index, T: Number>(
    call: &Call<'_>,
    matrix: &Matrix<'_, I, T>,
    x: &impl AnyView<T>,
    y: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (x, mut y) = (Operand::of(x), OperandMut::of(y));
    let (rows, width) = (y.axes().len(), x.axes().len());
    call.expect_shape("x", &x, &[width], "one axis")?;
    call.expect_result("y", &y, &[rows], "one axis")?;
    matrix.expect_valid(call, rows, width)?;
    let Matrix { starts, columns, values } = matrix;
    let grid = call::cover(rows * LANES);
    call.launch_on_some(matvec_kernel::<I, T>(), grid, (starts, columns, values, &x, &mut y))
}

/// `C = A B`.
pub(super) fn matmul<I: Index, T: Number>(
    call: &Call<'_>,
    matrix: &Matrix<'_, I, T>,
    b: &impl AnyView<T>,
    c: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (b, mut c) = (Operand::of(b), OperandMut::of(c));
    let (&[width, columns], &[rows, _]) = (b.axes().shape(), c.axes().shape()) else {
        let expected = String::from("two tables `b` and `c`");
        let instead = "a line is multiplied by `ops::csr_matvec`, or becomes a table by \
                       `insert_axis(Axis(1))`";
        return Err(call.shape(expected, format!("{b} and {c}"), instead));
    };
    call.expect_result("c", &c, &[rows, columns], "with the columns of `b`")?;
    matrix.expect_valid(call, rows, width)?;
    let Matrix { starts, columns, values } = matrix;
    let grid = call::cover(c.axes().len());
    let arguments = (starts, columns, values, &b, &mut c);
    matmul_kernel::<I, T>().launch_from(call.stream, grid, &arguments, 0, call.site)
}

fn outcome_kernel<I: Index>() -> &'static OutcomeKernel<I> {
    cache::kernel("ops::csr outcome", 1, || {
        OutcomeKernel::<I>::new("ops::csr").own_host(|_, (width, place, starts, columns)| {
            outcome::give(place, host::first_bad(width, line(starts), line(columns)));
        })
    })
}

fn check_kernel<I: Index>() -> &'static CheckKernel<I> {
    cache::kernel("ops::csr check", 1, || {
        let kernel =
            CheckKernel::<I>::new("ops::csr").own_host(|_, (width, starts, columns, mut bad)| {
                bad.fill(host::first_bad(width, line(starts), line(columns)));
            });
        // SAFETY: threads write only the one element of `first_bad`, by an atomic operation.
        unsafe { kernel.cuda(source::<I, u64>("check")) }
    })
}

fn matvec_kernel<I: Index, T: Number>() -> &'static ProductKernel<I, T> {
    cache::kernel("ops::csr_matvec", 1, || {
        let kernel = ProductKernel::<I, T>::new("ops::csr_matvec").own_host(
            |_, (starts, columns, values, x, y)| {
                let Ok(y) = y.into_dimensionality() else { unreachable!("one axis") };
                Rows::of(starts, columns, values).matvec(line(x), y);
            },
        );
        // SAFETY: `expect_valid` has checked all indices, which the borrows keep as they are. One
        // thread writes each element.
        unsafe { kernel.cuda(source::<I, T>("matvec")) }
    })
}

fn matmul_kernel<I: Index, T: Number>() -> &'static ProductKernel<I, T> {
    cache::kernel("ops::csr_matmul", 2, || {
        let kernel = ProductKernel::<I, T>::new("ops::csr_matmul").own_host(
            |_, (starts, columns, values, b, c)| {
                let tables = (b.into_dimensionality(), c.into_dimensionality());
                let (Ok(b), Ok(c)) = tables else { unreachable!("two axes") };
                Rows::of(starts, columns, values).matmul(b, c);
            },
        );
        // SAFETY: as in `matvec_kernel`.
        unsafe { kernel.cuda(source::<I, T>("matmul")) }
    })
}

fn source<I: Index, T: Number>(entry: &'static str) -> GpuSource {
    let declarations = format!(
        "typedef {} I;\n{}",
        <I as Word>::C.name,
        source::declarations(1, T::C, T::C).replace("enum { RANK = 1 };\n", "")
    );
    source::of_file(&[include_str!("kernel.cu")], entry, &declarations)
}
