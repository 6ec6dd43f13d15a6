//! Sums of products.

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Scalar;
use crate::ops::operation::operations;

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, b: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// The sum of the products of corresponding elements, into the one element of `out`, for
    /// operands of one shape: NumPy's `vdot` of real numbers.
    ///
    /// Complex numbers are not conjugated, as in ndarray's and NumPy's `dot`. For the inner
    /// product, which conjugates, take a [`Reduction`](crate::ops::Reduction) of `conj(x) * y`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, b) = (SmartArray::from([1.0, 2.0]), SmartArray::from([3.0, 4.0]));
    /// let mut product = SmartArray::<f64, _>::uninit(1);
    /// ops::dot(&a, &b, &mut product)?;
    /// assert_eq!(product.get(0)?, 11.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](crate::ops::sum), and [`Shape`](crate::Error::Shape) if `a` and `b` have
    /// different shapes.
    dot, dot_on => super::dot(call, a, b, out);
}
