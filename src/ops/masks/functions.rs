//! Comparisons, and logic on masks.

use super::Relation;
use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::{Arithmetic, Ordered};
use crate::ops::masks;
use crate::ops::operation::operations;
use crate::ops::right::Right;

operations! {
    |call| [T: Arithmetic](a: &impl AnyView<T>, b: impl Right<T>, out: &mut impl AnyViewMut<u8>)

    /// `out = a == b`, element by element: a mask of 1 where that holds, and 0 elsewhere, as
    /// NumPy's `equal`. `b` is an array or view, which broadcasts as `a` does, or a number. NaN is
    /// equal to nothing.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, mut mask) = (SmartArray::from([1.0, 2.0, 3.0]), SmartArray::uninit(3));
    /// ops::equal(&a, 2.0, &mut mask)?;
    /// assert_eq!(mask.to_vec()?, [0, 1, 0]);
    /// ops::less(&a, &SmartArray::from([3.0, 2.0, 4.0]), &mut mask)?;
    /// assert_eq!(mask.to_vec()?, [1, 0, 1]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `a` or `b` does not broadcast to the shape of `out`, and
    /// what launches return: see [the module](crate::ops#errors).
    equal, equal_on => masks::compare(call, Relation::Equal, a, &b, out);

    /// `out = a != b`, element by element: a mask of 1 where that holds, and 0 elsewhere:
    /// see [`equal`]. NaN differs from everything.
    ///
    /// # Errors
    ///
    /// As [`equal`].
    not_equal, not_equal_on => masks::compare(call, Relation::NotEqual, a, &b, out);
}

operations! {
    |call| [T: Ordered](a: &impl AnyView<T>, b: impl Right<T>, out: &mut impl AnyViewMut<u8>)

    /// `out = a < b`, element by element: a mask of 1 where that holds, and 0 elsewhere:
    /// see [`equal`]. Nothing is less or more than NaN.
    ///
    /// # Errors
    ///
    /// As [`equal`].
    less, less_on => masks::compare(call, Relation::Less, a, &b, out);

    /// `out = a <= b`, element by element: a mask of 1 where that holds, and 0 elsewhere:
    /// see [`equal`].
    ///
    /// # Errors
    ///
    /// As [`equal`].
    less_equal, less_equal_on => masks::compare(call, Relation::LessEqual, a, &b, out);

    /// `out = a > b`, element by element: a mask of 1 where that holds, and 0 elsewhere:
    /// see [`equal`].
    ///
    /// # Errors
    ///
    /// As [`equal`].
    greater, greater_on => masks::compare(call, Relation::Greater, a, &b, out);

    /// `out = a >= b`, element by element: a mask of 1 where that holds, and 0 elsewhere:
    /// see [`equal`].
    ///
    /// # Errors
    ///
    /// As [`equal`].
    greater_equal, greater_equal_on => masks::compare(call, Relation::GreaterEqual, a, &b, out);
}

operations! {
    |call| [](a: &impl AnyView<u8>, b: &impl AnyView<u8>, out: &mut impl AnyViewMut<u8>)

    /// `out = a && b`, element by element, of masks: each element but 0 is true.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, b) = (SmartArray::from([0_u8, 1, 2]), SmartArray::from([1_u8, 0, 255]));
    /// let mut both = SmartArray::uninit(3);
    /// ops::logical_and(&a, &b, &mut both)?;
    /// assert_eq!(both.to_vec()?, [0, 0, 1]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`equal`].
    logical_and, logical_and_on => masks::compare(call, Relation::And, a, &b, out);

    /// `out = a || b`, element by element, of masks: each element but 0 is true.
    ///
    /// # Errors
    ///
    /// As [`equal`].
    logical_or, logical_or_on => masks::compare(call, Relation::Or, a, &b, out);

    /// `out = a != b`, element by element, of masks: each element but 0 is true.
    ///
    /// # Errors
    ///
    /// As [`equal`].
    logical_xor, logical_xor_on => masks::compare(call, Relation::Xor, a, &b, out);
}

operations! {
    |call| [](a: &impl AnyView<u8>, out: &mut impl AnyViewMut<u8>)

    /// `out = !a`, element by element, of a mask: 1 where `a` is 0, and 0 elsewhere.
    ///
    /// # Errors
    ///
    /// As [`equal`].
    logical_not, logical_not_on => masks::not(call, a, out);
}
