//! Conversions from Rust's and ndarray's collections.
//!
//! There is no `From<ShapeError>` for this crate's error. With a second conversion, Rust could not
//! infer the error of closures that end in `Ok(())`, as in `parts.iter().try_for_each(..)?`.

use ndarray::{Array, Array1, ArrayView, Dimension, Ix1};

use super::smart::SmartArray;
use crate::element::Element;
use resident_backend::call_site::call_site;

/// Adopts an array: keeps its allocation, which [`into_array`](SmartArray::into_array) returns. An
/// array with gaps between its elements is copied once, without the gaps; any order and direction
/// of the axes is adopted as it is. The host has the newest contents.
///
/// ```
/// use resident::{SmartArray, ndarray::Array2};
///
/// let array = Array2::<f32>::ones((3, 4)).reversed_axes();
/// let memory = array.as_ptr();
/// let smart = SmartArray::from(array);
/// assert_eq!((smart.shape(), smart.strides()), (&[4, 3][..], &[1, 4][..]));
/// assert_eq!(smart.host()?.as_ptr(), memory);
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element, D: Dimension> From<Array<T, D>> for SmartArray<T, D> {
    #[track_caller]
    fn from(array: Array<T, D>) -> Self {
        Self::adopted(array, call_site())
    }
}

/// Adopts a vector without copying it.
///
/// ```
/// let vector = vec![1_u32, 2, 3];
/// let memory = vector.as_ptr();
/// assert_eq!(resident::SmartArray::from(vector).host()?.as_ptr(), memory);
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element> From<Vec<T>> for SmartArray<T, Ix1> {
    #[track_caller]
    fn from(vector: Vec<T>) -> Self {
        Self::adopted(Array1::from_vec(vector), call_site())
    }
}

/// Copies a slice.
///
/// ```
/// let samples = [1_u32, 2, 3, 4];
/// assert_eq!(resident::SmartArray::from(&samples[1..]).host()?.to_vec(), [2, 3, 4]);
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element> From<&[T]> for SmartArray<T, Ix1> {
    #[track_caller]
    fn from(slice: &[T]) -> Self {
        Self::adopted(Array1::from_vec(slice.to_vec()), call_site())
    }
}

/// Makes an array of one axis. For more axes use ndarray:
/// `SmartArray::from(ndarray::array![[1, 2], [3, 4]])`.
///
/// ```
/// let weights = resident::SmartArray::from([0.25_f32, 0.5, 0.25]);
/// assert_eq!(weights.host()?.sum(), 1.0);
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element, const N: usize> From<[T; N]> for SmartArray<T, Ix1> {
    #[track_caller]
    fn from(elements: [T; N]) -> Self {
        Self::adopted(Array1::from_vec(Vec::from(elements)), call_site())
    }
}

/// Copies an ndarray view, in its axis order if it has no gaps.
///
/// ```
/// use resident::{SmartArray, ndarray::{Array2, s}};
///
/// let picture = Array2::<u8>::ones((100, 100));
/// let tile = SmartArray::from(picture.slice(s![10..20, ..;2]));
/// assert_eq!(tile.shape(), [10, 50]);
/// assert!(tile.host()?.iter().all(|x| *x == 1));
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element, D: Dimension> From<ArrayView<'_, T, D>> for SmartArray<T, D> {
    #[track_caller]
    fn from(view: ArrayView<'_, T, D>) -> Self {
        Self::adopted(view.to_owned(), call_site())
    }
}

/// Collects into an array of one axis.
///
/// ```
/// let squares: resident::SmartArray<u32, _> = (1..=4).map(|x| x * x).collect();
/// assert_eq!(squares.host()?.to_vec(), [1, 4, 9, 16]);
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element> FromIterator<T> for SmartArray<T, Ix1> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self::adopted(Array1::from_iter(elements), call_site())
    }
}

/// An empty array, as `std::mem::take` leaves it. An array without axes has one element instead,
/// whose bytes are zero. Uses no device.
///
/// ```
/// use resident::{SmartArray, ndarray::Ix2};
///
/// let mut field = SmartArray::<f32, Ix2>::ones((3, 4));
/// let taken = std::mem::take(&mut field);
/// assert_eq!((taken.len(), field.shape()), (12, &[0, 0][..]));
/// ```
impl<T: Element, D: Dimension> Default for SmartArray<T, D> {
    #[track_caller]
    fn default() -> Self {
        Self::zeros(D::default())
    }
}
