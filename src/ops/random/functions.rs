//! Random numbers.

use crate::array::AnyViewMut;
use crate::ops::arithmetic::Float;
use crate::ops::operation::operations;
use crate::ops::random::{self, Distribution};

operations! {
    |call| [T: Float](seed: u64, a: &mut impl AnyViewMut<T>)

    /// Fills an array with numbers that are distributed evenly from 0 to 1, which none of them is:
    /// NumPy's `Generator.random`. They have 24 bits (`f32`) or 53 (`f64`).
    ///
    /// A number depends on the seed, on the type and on the element's place in row-major order
    /// alone, and is the same on all devices, in all layouts and in all runs: it is made of words
    /// of the generator Philox4x32-10, whose counter is the place. Another seed gives an
    /// independent sequence. What was in the array is not read.
    ///
    /// One seed gives arrays of `f32` and `f64` numbers that are **not** independent, since both
    /// are made of the same words: element `i` of `f64` has the leading digits of element `2 i + 1`
    /// of `f32`. Fill them with two seeds. Two arrays of one type and seed begin alike.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut a = SmartArray::<f32, _>::uninit((100, 100));
    /// ops::random_uniform(42, &mut a)?;
    /// let (mean, max) = (a.sum()? / 1e4, a.max()?);
    /// assert!((mean - 0.5).abs() < 0.01 && max < 1.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What launches return: see [the module](crate::ops#errors).
    random_uniform, random_uniform_on => random::fill(call, Distribution::Uniform, seed, a);

    /// Fills an array with numbers of the standard normal distribution: mean 0, standard deviation
    /// 1, as NumPy's `Generator.standard_normal`. They are computed as `f64` by Marsaglia's polar
    /// method, and rounded to the type of the array.
    ///
    /// Like those of [`random_uniform`], the numbers depend on seed and place alone, and are the
    /// same on all devices. Those of `f32` and `f64` of one seed are the same numbers, rounded; of
    /// one seed, uniform and normal numbers are independent.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut a = SmartArray::<f64, _>::uninit(10_000);
    /// ops::random_normal(42, &mut a)?;
    /// let (mean, length) = (a.sum()? / 1e4, a.dot(&a)? / 1e4);
    /// assert!(mean.abs() < 0.03 && (length - 1.0).abs() < 0.05);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What launches return: see [the module](crate::ops#errors).
    random_normal, random_normal_on => random::fill(call, Distribution::Normal, seed, a);
}
