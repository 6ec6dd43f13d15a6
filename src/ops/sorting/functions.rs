//! Sorting.

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Number;
use crate::ops::operation::operations;
use crate::ops::sorting;

operations! {
    |call| [T: Number](a: &mut impl AnyViewMut<T>)

    /// Sorts the elements along the last axis, in ascending order and in place. NaN come last, as
    /// in NumPy, and equal elements, such as 0.0 and -0.0, keep their order. For another axis, sort
    /// a view whose axes are permuted.
    ///
    /// A GPU uses 24 bytes for each element meanwhile, besides a copy of the elements.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut a = SmartArray::from([3.0, f64::NAN, 1.0, 2.0]);
    /// ops::sort(&mut a)?;
    /// assert_eq!(a.to_vec()?[..3], [1.0, 2.0, 3.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What launches return: see [the module](crate::ops#errors).
    sort, sort_on => sorting::sort(call, a);
}

operations! {
    |call| [T: Number](a: &impl AnyView<T>, out: &mut impl AnyViewMut<u64>)

    /// The places of the elements along the last axis in the order in which [`sort`] puts them:
    /// `out[i, j]` is the place, in row `i`, of the element that comes at `j`. The order is stable:
    /// equal elements, and NaN, keep theirs. `out` has the shape of `a`. NumPy's
    /// `argsort(kind="stable")`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut places = SmartArray::<u64, _>::uninit(4);
    /// ops::argsort(&SmartArray::from([30, 10, 20, 10]), &mut places)?;
    /// assert_eq!(places.to_vec()?, [1, 3, 2, 0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `out` has not the shape of `a`. Also what launches return:
    /// see [the module](crate::ops#errors).
    argsort, argsort_on => sorting::argsort(call, a, out);
}

operations! {
    |call| [T: Number](
        sorted: &impl AnyView<T>,
        values: &impl AnyView<T>,
        index: &mut impl AnyViewMut<u64>,
    )

    /// Where each value belongs in a sorted line: `index[i]` is the number of elements of `sorted`
    /// that come before `values[i]`, which is the place of the first of several equal ones. `index`
    /// has the shape of `values`. NumPy's `searchsorted` with `side="left"`.
    ///
    /// `sorted` must be as [`sort`] leaves it, in ascending order and NaN last. If it is not, the
    /// indices are unspecified, and at most its length.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let bounds = SmartArray::from([0.0, 10.0, 20.0]);
    /// let values = SmartArray::from([-1.0, 10.0, 15.0, 99.0]);
    /// let mut index = SmartArray::<u64, _>::uninit(4);
    /// ops::searchsorted(&bounds, &values, &mut index)?;
    /// assert_eq!(index.to_vec()?, [0, 1, 2, 3]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `sorted` has not one axis, or `index` not the shape of
    /// `values`. Also what launches return: see [the module](crate::ops#errors).
    searchsorted, searchsorted_on => sorting::search(call, sorted, values, index);
}
