//! Where the smallest and the largest elements are.

use ndarray::Axis;

use super::Best;
use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Number;
use crate::ops::best;
use crate::ops::operation::operations;

operations! {
    |call| [T: Number](a: &impl AnyView<T>, out: &mut impl AnyViewMut<u64>)

    /// The place of the smallest element, counted in row-major order, into the one element of
    /// `out`. Of several, the first; of floats with a NaN, that of the first NaN: as NumPy's
    /// `argmin`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::arr2, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut place = SmartArray::<u64, _>::uninit(1);
    /// ops::argmin(&SmartArray::from(arr2(&[[3, 1], [1, 2]])), &mut place)?;
    /// assert_eq!(place.get(0)?, 1);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`min`](crate::ops::min).
    argmin, argmin_on => best::whole(call, Best::Min, a, out);

    /// The place of the largest element: see [`argmin`].
    ///
    /// # Errors
    ///
    /// As [`min`](crate::ops::min).
    argmax, argmax_on => best::whole(call, Best::Max, a, out);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, axis: Axis, out: &mut impl AnyViewMut<u64>)

    /// The places of the smallest elements along an axis, as indices of the axis: see [`argmin`]
    /// and [`sum_axis`](crate::ops::sum_axis).
    ///
    /// # Errors
    ///
    /// As [`min_axis`](crate::ops::min_axis).
    argmin_axis, argmin_axis_on => best::along(call, Best::Min, a, axis, out);

    /// The places of the largest elements along an axis: see [`argmin_axis`].
    ///
    /// # Errors
    ///
    /// As [`min_axis`](crate::ops::min_axis).
    argmax_axis, argmax_axis_on => best::along(call, Best::Max, a, axis, out);
}
