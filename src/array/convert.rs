//! Arrays made of what Rust and ndarray have. There is no `From<ShapeError>` for our error: with a
//! second one, closures that end in `Ok(())` and whose result goes through `?`, as in
//! `parts.iter().try_for_each(..)?`, would have to name their error.

use ndarray::{Array, Array1, ArrayView, Dimension, Ix1};

use super::smart::SmartArray;
use crate::call_site::call_site;
use crate::element::Element;

/// Adopts an array: its allocation is kept, and [`into_array`](SmartArray::into_array) gives it
/// back. That goes for any array without gaps, whatever the order and direction of its axes; one
/// with gaps is packed once. Moves nothing else, and the host is the newest side.
///
/// ```
/// use resident::{SmartArray, ndarray::Array2};
///
/// let array = Array2::<f32>::ones((3, 4)).reversed_axes();
/// let memory = array.as_ptr();
/// let smart = SmartArray::from(array);
/// assert_eq!((smart.shape(), smart.strides(), smart.host()?.as_ptr()), (&[4, 3][..], &[1, 4][..], memory));
/// # Ok::<(), resident::Error>(())
/// ```
impl<T: Element, D: Dimension> From<Array<T, D>> for SmartArray<T, D> {
    #[track_caller]
    fn from(array: Array<T, D>) -> Self {
        Self::adopted(array, call_site())
    }
}

/// Adopts a vector: nothing is copied.
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

/// An array of one axis. Rows of rows come by way of ndarray: `SmartArray::from(ndarray::array![[1,
/// 2], [3, 4]])`.
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

/// Copies a view of ndarray's, in its axis order where it has no gaps.
///
/// ```
/// use resident::{SmartArray, ndarray::{Array2, s}};
///
/// let picture = Array2::<u8>::ones((100, 100));
/// let tile = SmartArray::from(picture.slice(s![10..20, ..;2]));
/// assert_eq!((tile.shape(), tile.host()?.iter().filter(|x| **x == 1).count()), (&[10, 50][..], 500));
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

/// An array without elements, to be replaced: what `std::mem::take` leaves. Without axes it is one
/// element, of zero bytes. No device is asked.
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
