//! Operations on corresponding elements.

use super::{Binary, Unary};
use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::{Arithmetic, Number, Ordered};
use crate::ops::elementwise;
use crate::ops::operation::operations;
use crate::ops::right::Right;

operations! {
    |call| [T: Arithmetic](a: &impl AnyView<T>, b: impl Right<T>, out: &mut impl AnyViewMut<T>)

    /// `out = a + b`, element by element. `b` is an array or view, which broadcasts as `a` does, or
    /// a number. Integers wrap around. As NumPy's `add` with `out`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, b) = (SmartArray::from([1.0, 2.0, 3.0]), SmartArray::<f64, _>::ones(3));
    /// let mut c = SmartArray::<f64, _>::uninit(3);
    /// ops::add(&a, &b, &mut c)?;
    /// assert_eq!(c.to_vec()?, [2.0, 3.0, 4.0]);
    /// ops::add(&a, 0.5, &mut c)?;
    /// assert_eq!(c.to_vec()?, [1.5, 2.5, 3.5]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `a` or `b` does not broadcast to the shape of `out`, and
    /// what launches return: see [the module](crate::ops#errors).
    add, add_on => elementwise::binary(call, Binary::Add, a, &b, out);

    /// `out = a - b`, element by element: see [`add`].
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, b) = (SmartArray::from([3_u8, 1]), SmartArray::from([1_u8, 3]));
    /// let mut c = SmartArray::<u8, _>::uninit(2);
    /// ops::sub(&a, &b, &mut c)?;
    /// assert_eq!(c.to_vec()?, [2, 254]);                // integers wrap around
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    sub, sub_on => elementwise::binary(call, Binary::Sub, a, &b, out);

    /// `out = a * b`, element by element: see [`add`].
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::arr2, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (table, row) = (SmartArray::from(arr2(&[[1, 2], [3, 4]])), SmartArray::from([10, 100]));
    /// let mut products = SmartArray::<i32, _>::uninit((2, 2));
    /// ops::mul(&table, &row, &mut products)?;           // the row is repeated, as in NumPy
    /// assert_eq!(products.to_vec()?, [10, 200, 30, 400]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    mul, mul_on => elementwise::binary(call, Binary::Mul, a, &b, out);

    /// `out = a / b`, element by element: see [`add`]. Quotients of integers are truncated, as in
    /// Rust. A quotient by 0 is 0, as NumPy's `floor_divide` gives it. For those of complex numbers
    /// see [`Arithmetic`].
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, b) = (SmartArray::from([-7, 7, 7]), SmartArray::from([2, 2, 0]));
    /// let mut c = SmartArray::<i32, _>::uninit(3);
    /// ops::div(&a, &b, &mut c)?;
    /// assert_eq!(c.to_vec()?, [-3, 3, 0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    div, div_on => elementwise::binary(call, Binary::Div, a, &b, out);
}

operations! {
    |call| [T: Arithmetic](alpha: T, x: &impl AnyView<T>, y: &mut impl AnyViewMut<T>)

    /// `y += alpha * x`, element by element: ndarray's `scaled_add`, the BLAS's `axpy`. The product
    /// and the sum are rounded apart.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (x, mut y) = (SmartArray::from([1.0_f32, 2.0]), SmartArray::<f32, _>::ones(2));
    /// ops::scaled_add(10.0, &x, &mut y)?;
    /// assert_eq!(y.to_vec()?, [11.0, 21.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    scaled_add, scaled_add_on => elementwise::scaled_add(call, alpha, x, y);
}

operations! {
    |call| [T: Number](function: Unary, a: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// `out = function(a)`, element by element.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops::{self, Unary}};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from([1.0_f32, 4.0, 9.0]);
    /// let mut roots = SmartArray::<f32, _>::uninit(3);
    /// ops::map(Unary::Sqrt, &a, &mut roots)?;
    /// assert_eq!(roots.to_vec()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`], and [`Requirement`](crate::Error::Requirement) if elements are integers and the
    /// function is for floats only, such as [`Unary::Exp`].
    map, map_on => elementwise::map(call, function, a, out);
}

operations! {
    |call| [T: Ordered](a: &impl AnyView<T>, low: T, high: T, out: &mut impl AnyViewMut<T>)

    /// `out = min(max(a, low), high)`, element by element, as NumPy's `clip`: if `low > high`, all
    /// elements become `high`; NaN stays NaN, and a bound that is NaN makes all elements NaN.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from([-5, 5, 500]);
    /// let mut b = SmartArray::<i32, _>::uninit(3);
    /// ops::clamp(&a, 0, 255, &mut b)?;
    /// assert_eq!(b.to_vec()?, [0, 5, 255]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    clamp, clamp_on => elementwise::clamp(call, a, low, high, out);
}

operations! {
    |call| [T: Arithmetic](
        mask: &impl AnyView<u8>,
        a: &impl AnyView<T>,
        b: &impl AnyView<T>,
        out: &mut impl AnyViewMut<T>,
    )

    /// `out = a` where the mask is not 0, and `out = b` elsewhere: NumPy's `where`. The mask has
    /// elements `u8`, since `bool` is not an [`Element`](crate::Element).
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (mask, a) = (SmartArray::from([1_u8, 0, 1]), SmartArray::from([1, 2, 3]));
    /// let (b, mut c) = (SmartArray::full(1, -1), SmartArray::<i32, _>::uninit(3));
    /// ops::select(&mask, &a, &b, &mut c)?;
    /// assert_eq!(c.to_vec()?, [1, -1, 3]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    select, select_on => elementwise::select(call, mask, a, b, out);
}

operations! {
    |call| [T: Arithmetic, U: Arithmetic](a: &impl AnyView<T>, out: &mut impl AnyViewMut<U>)

    /// `out = a as U`, element by element, with the values of Rust's `as`: floats are truncated
    /// towards zero, those outside the integers of the type become the nearest, and NaN becomes 0;
    /// integers wrap around; integers become the nearest float. Casts to `f16` and `bf16` give the
    /// nearest of the number itself, rounded once, also from `f64` and from integers. A cast of
    /// a complex number to a real type keeps the real part, as NumPy's `astype`.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from([-1.5_f32, 2.9, 300.0, f32::NAN]);
    /// let mut b = SmartArray::<u8, _>::uninit(4);
    /// ops::cast(&a, &mut b)?;
    /// assert_eq!(b.to_vec()?, [0, 2, 255, 0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    cast, cast_on => elementwise::cast(call, a, out);
}

operations! {
    |call| [T: Arithmetic](a: &impl AnyView<T>, out: &mut impl AnyViewMut<T>)

    /// `out = a`: a copy from any layout into any other, on the device, such as a transpose.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::arr2, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from(arr2(&[[1, 2, 3], [4, 5, 6]]));
    /// let mut b = SmartArray::<i32, _>::uninit((3, 2));
    /// ops::copy(&a.t(), &mut b)?;
    /// assert_eq!(b.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`].
    copy, copy_on => elementwise::copy(call, a, out);
}
