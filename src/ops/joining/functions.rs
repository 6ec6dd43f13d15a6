//! Arrays side by side, in a new array.

use ndarray::{Axis, Dimension, RemoveAxis};
use resident_backend::call_site::call_site;

use super::{Join, join};
use crate::array::{AnyView, SmartArray, View};
use crate::device::Stream;
use crate::error::Result;
use crate::ops::arithmetic::Arithmetic;

/// The arrays one after the other along an axis, which they have: ndarray's `concatenate`. All
/// other axes have one length in all of them. The new array is row-major, and made where
/// the arrays are newest, as [those of operators](crate::ops#operators).
///
/// ```
/// use resident::{Device, SmartArray, ndarray::{Axis, arr2}, ops};
///
/// let _here = Device::cpu().enter();
/// let (a, b) = (SmartArray::from(arr2(&[[1, 2], [3, 4]])), SmartArray::from(arr2(&[[5, 6]])));
/// let c = ops::concatenate(Axis(0), &[a.view(), b.view()])?;
/// assert_eq!((c.shape(), c.to_vec()?), (&[3, 2][..], vec![1, 2, 3, 4, 5, 6]));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// [`Shape`](crate::Error::Shape) if there are no arrays, no such axis, or if an array does not fit
/// the first; it names the position of that array and both shapes. Also what launches return: see
/// [the module](crate::ops#errors).
#[track_caller]
pub fn concatenate<'a, H, T: Arithmetic, D: RemoveAxis>(
    axis: Axis,
    arrays: &[View<'a, H, &'a T, D>],
) -> Result<SmartArray<T, D>>
where
    View<'a, H, &'a T, D>: AnyView<T>,
{
    join(Join::Own(axis), None, arrays, call_site())
}

/// [`concatenate`], on a stream.
///
/// # Errors
///
/// As [`concatenate`].
#[track_caller]
pub fn concatenate_on<'a, H, T: Arithmetic, D: RemoveAxis>(
    stream: &Stream,
    axis: Axis,
    arrays: &[View<'a, H, &'a T, D>],
) -> Result<SmartArray<T, D>>
where
    View<'a, H, &'a T, D>: AnyView<T>,
{
    join(Join::Own(axis), Some(stream), arrays, call_site())
}

/// The arrays, which have one shape, side by side along a new axis: ndarray's `stack`. The length
/// of that axis is the number of arrays. The new array is row-major, and made where the arrays are
/// newest, as [those of operators](crate::ops#operators).
///
/// ```
/// use resident::{Device, SmartArray, ndarray::Axis, ops};
///
/// let _here = Device::cpu().enter();
/// let (x, y) = (SmartArray::from([1.0, 2.0, 3.0]), SmartArray::from([4.0, 5.0, 6.0]));
/// let points = ops::stack(Axis(1), &[x.view(), y.view()])?;
/// assert_eq!((points.shape(), points.get((2, 1))?), (&[3, 2][..], 6.0));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// As [`concatenate`].
#[track_caller]
pub fn stack<'a, H, T: Arithmetic, D: Dimension>(
    axis: Axis,
    arrays: &[View<'a, H, &'a T, D>],
) -> Result<SmartArray<T, D::Larger>>
where
    View<'a, H, &'a T, D>: AnyView<T>,
{
    join(Join::New(axis), None, arrays, call_site())
}

/// [`stack`], on a stream.
///
/// # Errors
///
/// As [`concatenate`].
#[track_caller]
pub fn stack_on<'a, H, T: Arithmetic, D: Dimension>(
    stream: &Stream,
    axis: Axis,
    arrays: &[View<'a, H, &'a T, D>],
) -> Result<SmartArray<T, D::Larger>>
where
    View<'a, H, &'a T, D>: AnyView<T>,
{
    join(Join::New(axis), Some(stream), arrays, call_site())
}
