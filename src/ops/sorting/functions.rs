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
