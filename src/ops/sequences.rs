//! Arrays of evenly spaced numbers.

use ndarray::{Array1, Ix1};

use super::arithmetic::{Float, Number};
use crate::array::SmartArray;

/// # Evenly spaced numbers
///
/// The elements are made in host memory, and no device is used. The first use on a device uploads
/// them.
impl<T: Number> SmartArray<T, Ix1> {
    /// The numbers from `start` on, `step` apart, before `end`: ndarray's `range`, also for
    /// integers. Element `i` is `start + step * i`. The length is `(end - start) / step`, rounded
    /// up; for floats the quotient is rounded first, so that `end` may be the last element.
    ///
    /// ```
    /// use resident::SmartArray;
    ///
    /// assert_eq!(SmartArray::range(0.0_f32, 1.0, 0.25).to_vec()?, [0.0, 0.25, 0.5, 0.75]);
    /// assert_eq!(SmartArray::range(5, 0, -2).to_vec()?, [5, 3, 1]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As ndarray's `range`, if the length is no number of elements: if `step` leads away from
    /// `end`, is 0, or is so small that no memory has room.
    #[track_caller]
    #[must_use]
    pub fn range(start: T, end: T, step: T) -> Self {
        let len = if T::IS_FLOAT { len_of_floats } else { len_of_integers }(start, end, step);
        let Some(len) = len else { panic!("a range whose step does not lead from start to end") };
        spaced(start, step, len)
    }

    /// `n` numbers from `start` to `end`, which is the last: ndarray's `linspace`. Element `i` is
    /// `start + step * i`, where `step` is `(end - start) / (n - 1)`, so that the last may differ
    /// from `end` in the last bits. One number is `start`.
    ///
    /// ```
    /// let quarters = resident::SmartArray::linspace(0.0, 1.0, 5);
    /// assert_eq!(quarters.to_vec()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn linspace(start: T, end: T, n: usize) -> Self
    where
        T: Float,
    {
        let steps = T::from_u64(n.saturating_sub(1) as u64);
        let step = if n > 1 { end.minus(start).over(steps) } else { T::ZERO };
        spaced(start, step, n)
    }
}

#[track_caller]
fn spaced<T: Number>(start: T, step: T, len: usize) -> SmartArray<T, Ix1> {
    let elements = (0..len as u64).map(|index| start.plus(step.times(T::from_u64(index))));
    SmartArray::from(Array1::from_iter(elements))
}

/// The number of elements; `None` if there is no such number.
fn len_of_floats<T: Number>(start: T, end: T, step: T) -> Option<usize> {
    let steps = end.minus(start).over(step).to::<f64>().ceil();
    (0.0..=isize::MAX as f64).contains(&steps).then_some(steps as usize)
}

fn len_of_integers<T: Number>(start: T, end: T, step: T) -> Option<usize> {
    let is_signed = T::ZERO.minus(T::from_u8(1)) < T::ZERO;
    let wide = |x: T| if is_signed { x.to::<i64>().into() } else { i128::from(x.to::<u64>()) };
    let (distance, step) = (wide(end) - wide(start), wide(step));
    let steps = distance.checked_div(step)? + i128::from(distance % step != 0);
    let is_away = distance != 0 && (distance < 0) != (step < 0);
    isize::try_from(steps).ok().filter(|_| !is_away).map(|steps| steps as usize)
}
