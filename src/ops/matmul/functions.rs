//! Matrix products.

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Scalar;
use crate::ops::operation::operations;

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, b: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// The matrix product `out = a b`, of tables of n x k and k x m elements into one of n x m. One
    /// operand may have one axis: a line on the left is a row, one on the right a column, and `out`
    /// then has one axis too, as in NumPy's `matmul`. Any layouts are welcome.
    ///
    /// On the embedded device the crate `matrixmultiply` multiplies floats and complex numbers, on
    /// all cores. On a GPU a kernel with tiles in shared memory does, which adds the products of an
    /// element one after the other. Integers wrap around.
    ///
    /// With feature `cublas`, and where the library of that name is found, cuBLAS multiplies `f32`
    /// and `f64` on NVIDIA GPUs, in their own precision (not TF32), if the rows or the columns of
    /// each table lie unbroken in memory. All calls on a GPU share one handle. The kernel above
    /// multiplies all other elements, complex numbers too.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::arr2, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from(arr2(&[[1.0, 2.0], [3.0, 4.0]]));
    /// let mut c = SmartArray::<f64, _>::uninit((2, 2));
    /// ops::matmul(&a, &a.t(), &mut c)?;
    /// assert_eq!(c.to_vec()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if the shapes do not fit, and what launches return: see
    /// [the module](crate::ops#errors).
    matmul, matmul_on => super::matmul(call, a, b, out);
}
