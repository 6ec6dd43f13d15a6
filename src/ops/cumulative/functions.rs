//! Running sums and products of all elements, and along an axis.

use ndarray::Axis;

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Number;
use crate::ops::cumulative::{self, Running};
use crate::ops::operation::operations;

operations! {
    |call| [T: Number](a: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// The running sums of all elements in row-major order: NumPy's `cumsum`. `out` has the shape
    /// of `a`, or one axis of as many elements.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut sums = SmartArray::<i32, _>::uninit(4);
    /// ops::cumulative_sum(&SmartArray::from([1, 2, 3, 4]), &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 6, 10]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `out` has another shape, and what launches return: see
    /// [the module](crate::ops#errors).
    cumulative_sum, cumulative_sum_on => cumulative::whole(call, Running::Sum, a, out);

    /// As [`cumulative_sum`], but each sum is that of the elements before its own, so that the
    /// first is 0: CUB's `ExclusiveSum`. The sum of counts gives where each group starts.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut starts = SmartArray::<u32, _>::uninit(4);
    /// ops::exclusive_sum(&SmartArray::from([2, 0, 5, 1]), &mut starts)?;
    /// assert_eq!(starts.to_vec()?, [0, 2, 2, 7]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`cumulative_sum`].
    exclusive_sum, exclusive_sum_on => cumulative::whole(call, Running::SumBefore, a, out);

    /// The running products of all elements in row-major order: NumPy's `cumprod`. `out` has the
    /// shape of `a`, or one axis of as many elements. Products of integers wrap around.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut factorials = SmartArray::<u64, _>::uninit(4);
    /// ops::cumulative_product(&SmartArray::from([1, 2, 3, 4]), &mut factorials)?;
    /// assert_eq!(factorials.to_vec()?, [1, 2, 6, 24]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`cumulative_sum`].
    cumulative_product, cumulative_product_on => cumulative::whole(call, Running::Product, a, out);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<T>)

    /// The running sums along an axis. `out` has the shape of `a`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::{Axis, arr2}, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from(arr2(&[[1, 2], [3, 4]]));
    /// let mut sums = SmartArray::<i32, _>::uninit((2, 2));
    /// ops::cumulative_sum_axis(&a, Axis(0), &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [1, 2, 4, 6]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `a` has no such axis, or `out` another shape than `a`, and
    /// what launches return: see [the module](crate::ops#errors).
    cumulative_sum_axis, cumulative_sum_axis_on =>
        cumulative::along(call, Running::Sum, a, axis, out);

    /// As [`exclusive_sum`], along an axis. `out` has the shape of `a`.
    ///
    /// # Errors
    ///
    /// As [`cumulative_sum_axis`].
    exclusive_sum_axis, exclusive_sum_axis_on =>
        cumulative::along(call, Running::SumBefore, a, axis, out);
}
