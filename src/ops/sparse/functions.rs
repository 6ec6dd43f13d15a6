//! Products of sparse matrices.

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::{Index, Number};
use crate::ops::operation::operations;
use crate::ops::sparse::{self, Matrix};

operations! {
    |call| [I: Index, T: Number](
        row_starts: &impl AnyView<I>,
        columns: &impl AnyView<I>,
        values: &impl AnyView<T>,
        x: &impl AnyView<T>,
        y: &mut impl AnyViewMut<T>,
    )

    /// `y = A x`, where `A` is a sparse matrix in compressed rows (CSR), as SciPy's `csr_matrix`
    /// has it: the entries of row `r` are those from `row_starts[r]` to `row_starts[r + 1]`, each
    /// with its column in `columns` and its value in `values`. All arrays are lines: `y` has an
    /// element for each row, `row_starts` one more, and `x` one for each column of `A`.
    ///
    /// The device checks all indices before it multiplies. The call waits for that and brings 8
    /// bytes to the host. Entries of one row may have one column; they are added.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// // 1 2
    /// // 0 3
    /// let (row_starts, columns) = (SmartArray::from([0_u32, 2, 3]), SmartArray::from([0, 1, 1]));
    /// let values = SmartArray::from([1.0, 2.0, 3.0]);
    /// let mut y = SmartArray::<f64, _>::uninit(2);
    /// ops::csr_matvec(&row_starts, &columns, &values, &SmartArray::from([10.0, 1.0]), &mut y)?;
    /// assert_eq!(y.to_vec()?, [12.0, 3.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if the lengths do not belong together, if `row_starts` does
    /// not ascend from 0 to the number of entries, or if a column is not below the length of `x`:
    /// it names the first, and nothing is written. Also what launches return: see
    /// [the module](crate::ops#errors).
    csr_matvec, csr_matvec_on =>
        sparse::matvec(call, &Matrix::of(row_starts, columns, values), x, y);
}

operations! {
    |call| [I: Index, T: Number](
        row_starts: &impl AnyView<I>,
        columns: &impl AnyView<I>,
        values: &impl AnyView<T>,
        b: &impl AnyView<T>,
        c: &mut impl AnyViewMut<T>,
    )

    /// `C = A B`, where `A` is a sparse matrix as of [`csr_matvec`], and `b` and `c` are tables.
    ///
    /// ```
    /// use resident::ndarray::array;
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (row_starts, columns) = (SmartArray::from([0_u32, 2, 3]), SmartArray::from([0, 1, 1]));
    /// let values = SmartArray::from([1.0, 2.0, 3.0]);
    /// let b = SmartArray::from(array![[1.0, 0.0], [0.0, 1.0]]);
    /// let mut c = SmartArray::<f64, _>::uninit((2, 2));
    /// ops::csr_matmul(&row_starts, &columns, &values, &b, &mut c)?;
    /// assert_eq!(c.host()?.view(), array![[1.0, 2.0], [0.0, 3.0]]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`csr_matvec`].
    csr_matmul, csr_matmul_on =>
        sparse::matmul(call, &Matrix::of(row_starts, columns, values), b, c);
}
