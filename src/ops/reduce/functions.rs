//! Reductions of all elements, and along an axis.

use ndarray::Axis;

use super::Reduction;
use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::{Number, Scalar};
use crate::ops::operation::operations;
use crate::ops::reduce;

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// The sum of all elements, into the one element of `out`. The sum of nothing is 0.
    ///
    /// Integers wrap around. Floats are added in pairs, pairs of pairs and so on, from groups on
    /// that one of several accumulators adds up: see [the error bound](crate::ops#sums).
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::<f32, _>::ones((1000, 1000));
    /// let mut total = SmartArray::<f32, _>::uninit(1);
    /// ops::sum(&a, &mut total)?;                        // stays on the device
    /// assert_eq!(total.get(0)?, 1e6);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `out` has not one element, and what launches return: see
    /// [the module](crate::ops#errors).
    sum, sum_on => reduce::whole::<T, T>(call, Reduction::Sum, a, out);

    /// The product of all elements, into the one element of `out`: ndarray's `product`. The product
    /// of nothing is 1. Integers wrap around; floats are multiplied in the groups of [`sum`].
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut factorial = SmartArray::<u64, _>::uninit(1);
    /// ops::product(&SmartArray::from([1, 2, 3, 4, 5]), &mut factorial)?;
    /// assert_eq!(factorial.get(0)?, 120);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`].
    product, product_on => reduce::whole::<T, T>(call, Reduction::Product, a, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<T>)

    /// The sums along an axis, as ndarray's `sum_axis`: `out` has the shape of `a` without it.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::{Axis, arr2}, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from(arr2(&[[1, 2, 3], [4, 5, 6]]));
    /// let mut sums = SmartArray::<i32, _>::uninit(3);
    /// ops::sum_axis(&a, Axis(0), &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [5, 7, 9]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `a` has no such axis, or `out` another shape than `a`
    /// without it, and what launches return: see [the module](crate::ops#errors).
    sum_axis, sum_axis_on => reduce::along::<T, T>(call, Reduction::Sum, a, axis, out);

    /// The products along an axis: see [`product`] and [`sum_axis`].
    ///
    /// # Errors
    ///
    /// As [`sum_axis`].
    product_axis, product_axis_on => reduce::along::<T, T>(call, Reduction::Product, a, axis, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, out: &mut impl AnyViewMut<T::Real>)

    /// The mean of all elements, into the one element of `out`. As in NumPy, the mean of integers
    /// is an `f64`: [`Scalar::Real`].
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut mean = SmartArray::<f64, _>::uninit(1);
    /// ops::mean(&SmartArray::from([1_u8, 2]), &mut mean)?;
    /// assert_eq!(mean.get(0)?, 1.5);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`min`].
    mean, mean_on => reduce::mean(call, a, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<T::Real>)

    /// The means along an axis: see [`mean`] and [`sum_axis`].
    ///
    /// # Errors
    ///
    /// As [`min_axis`].
    mean_axis, mean_axis_on => reduce::mean_along(call, a, axis, out);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// The smallest element, into the one element of `out`. If there is a NaN, the result is NaN,
    /// as NumPy's `min`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut least = SmartArray::<i32, _>::uninit(1);
    /// ops::min(&SmartArray::from([3, -4, 5]), &mut least)?;
    /// assert_eq!(least.get(0)?, -4);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`], and [`Shape`](crate::Error::Shape) if there are no elements.
    min, min_on => reduce::whole::<T, T>(call, Reduction::Min, a, out);

    /// The largest element, into the one element of `out`. If there is a NaN, the result is NaN, as
    /// NumPy's `max`.
    ///
    /// # Errors
    ///
    /// As [`min`].
    max, max_on => reduce::whole::<T, T>(call, Reduction::Max, a, out);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<T>)

    /// The smallest elements along an axis: see [`min`] and [`sum_axis`].
    ///
    /// # Errors
    ///
    /// As [`sum_axis`], and [`Shape`](crate::Error::Shape) if the axis has no elements.
    min_axis, min_axis_on => reduce::along::<T, T>(call, Reduction::Min, a, axis, out);

    /// The largest elements along an axis: see [`max`] and [`sum_axis`].
    ///
    /// # Errors
    ///
    /// As [`min_axis`].
    max_axis, max_axis_on => reduce::along::<T, T>(call, Reduction::Max, a, axis, out);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, out: &mut impl AnyViewMut<T::Real>)

    /// The Euclidean norm of all elements, into the one element of `out`: the square root of the
    /// sum of the squares, in [`Scalar::Real`]. As NumPy's `linalg.norm`, it overflows if the sum
    /// of the squares does. The norm of nothing is 0.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut norm = SmartArray::<f32, _>::uninit(1);
    /// ops::norm_l2(&SmartArray::from([3.0_f32, 4.0]), &mut norm)?;
    /// assert_eq!(norm.get(0)?, 5.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`].
    norm_l2, norm_l2_on => reduce::norm(call, a, out);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<T::Real>)

    /// The Euclidean norms along an axis: see [`norm_l2`] and [`sum_axis`].
    ///
    /// # Errors
    ///
    /// As [`sum_axis`].
    norm_l2_axis, norm_l2_axis_on => reduce::norm_along(call, a, axis, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, out: &mut impl AnyViewMut<u64>)

    /// The number of elements that are not 0, into the one element of `out`. NaN is not 0, as in
    /// NumPy.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from([0.5, 0.0, 2.0]);
    /// assert_eq!((a.count_nonzero()?, a.any()?, a.all()?), (2, true, false));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`].
    count_nonzero, count_nonzero_on =>
        reduce::whole::<T, u64>(call, Reduction::CountNonzero, a, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<u64>)

    /// The numbers of elements along an axis that are not 0: see [`count_nonzero`].
    ///
    /// # Errors
    ///
    /// As [`sum_axis`].
    count_nonzero_axis, count_nonzero_axis_on =>
        reduce::along::<T, u64>(call, Reduction::CountNonzero, a, axis, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, out: &mut impl AnyViewMut<u8>)

    /// 1 if any element is not 0, and 0 else, into the one element of `out`: NumPy's `any`. Of
    /// nothing it is 0.
    ///
    /// # Errors
    ///
    /// As [`sum`].
    any, any_on => reduce::whole::<T, u8>(call, Reduction::Any, a, out);

    /// 1 if no element is 0, and 0 else, into the one element of `out`: NumPy's `all`. Of nothing
    /// it is 1.
    ///
    /// # Errors
    ///
    /// As [`sum`].
    all, all_on => reduce::whole::<T, u8>(call, Reduction::All, a, out);
}

operations! {
    |call| [T: Scalar](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<u8>)

    /// As [`any`], along an axis: `out` has the shape of `a` without it.
    ///
    /// # Errors
    ///
    /// As [`sum_axis`].
    any_axis, any_axis_on => reduce::along::<T, u8>(call, Reduction::Any, a, axis, out);

    /// As [`all`], along an axis: `out` has the shape of `a` without it.
    ///
    /// # Errors
    ///
    /// As [`sum_axis`].
    all_axis, all_axis_on => reduce::along::<T, u8>(call, Reduction::All, a, axis, out);
}
