//! Conversions from Rust's and ndarray's collections, and from owners that are read in place.
//!
//! There is no `From<ShapeError>` for this crate's error. With a second conversion, Rust could not
//! infer the error of closures that end in `Ok(())`, as in `parts.iter().try_for_each(..)?`.

use ndarray::{Array, Array1, ArrayView, Dimension, Ix1, ShapeBuilder};

use super::adopt::memory_order;
use super::layout::Layout;
use super::smart::SmartArray;
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use crate::storage::{HostBuffer, Origin};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::sync;

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

/// # Read memory in place
impl<T: Element> SmartArray<T, Ix1> {
    /// An array over the elements of an owner, which it reads in place: nothing is copied. The
    /// host has the newest contents. Uses no device. [`page_lock`](Self::page_lock) pins the
    /// memory.
    ///
    /// | owner | how |
    /// |---|---|
    /// | `Arc<[T]>`, `Vec<T>`, `Box<[T]>` | itself |
    /// | `bytes::Bytes`, `memmap2::Mmap` | itself, as an array of `u8`, which [`reinterpret`](Self::reinterpret) shows as other numbers; or in a type that casts the bytes, below |
    /// | a tensor of safetensors | the `Bytes` of it, in such a type: the example `interop` |
    ///
    /// # When the array is written
    ///
    /// The library never writes the owner's elements:
    ///
    /// - A write on a device writes the device's copy. The owner is still read for what is valid on
    ///   the host.
    /// - The first write on the host, and the first copy of newer elements from a device to the
    ///   host, copies all elements to memory of the array, which is the host's copy from then on.
    ///   It is not pinned.
    /// - [`into_array`](Self::into_array) returns a copy.
    ///
    /// The owner is dropped with the array, or by [`release_host`](Self::release_host); later, if
    /// queued work still reads it. It is not dropped when the host's copy replaces it, since guards
    /// of other parts may still read it.
    ///
    /// To get results into memory of the program, copy them: `memory.assign(&*array.host()?)`, or
    /// straight from a device by
    /// [`DeviceArray::copy_to_host_into`](crate::DeviceArray::copy_to_host_into).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use resident::SmartArray;
    ///
    /// let table: Arc<[f32]> = Arc::from([1.0, 2.0, 3.0]);
    /// let mut array = SmartArray::from_owner(Arc::clone(&table));
    /// assert_eq!(array.host()?.as_ptr(), table.as_ptr());
    /// array.host_mut()?[0] = 5.0;                              // copies the elements first
    /// assert_eq!((array.get(0)?, table[0]), (5.0, 1.0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// A mapped file of numbers, by a type that casts the file's bytes:
    ///
    /// ```no_run
    /// use resident::{SmartArray, bytemuck};
    ///
    /// struct Samples(Box<[u8]>);                               // or `memmap2::Mmap`
    ///
    /// impl AsRef<[f32]> for Samples {
    ///     fn as_ref(&self) -> &[f32] { bytemuck::cast_slice(&self.0) }
    /// }
    ///
    /// let samples = Samples(std::fs::read("samples")?.into());
    /// println!("{}", SmartArray::from_owner(samples).sum()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The caller of `Mmap::map` promises that no program writes the file meanwhile, which is why
    /// that function is `unsafe`.
    #[track_caller]
    pub fn from_owner(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Self {
        let (buffer, len) = HostBuffer::from_owner(owner);
        Self::over_owner(Layout::of_shape::<T>(len), buffer, call_site())
    }
}

impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// As [`from_owner`](SmartArray::from_owner), in this shape: `(3, 4)`, or column-major with
    /// `.f()`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use resident::{Error, SmartArray};
    ///
    /// let table: Arc<[u32]> = (0..6).collect();
    /// let array = SmartArray::from_owner_shaped(Arc::clone(&table), (2, 3))?;
    /// assert_eq!(array.get((1, 0))?, 3);
    /// assert!(matches!(SmartArray::from_owner_shaped(table, (2, 4)), Err(Error::Shape { .. })));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if the owner has another number of elements.
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros), if the shape is too large.
    #[track_caller]
    pub fn from_owner_shaped(
        owner: impl AsRef<[T]> + Send + Sync + 'static,
        shape: impl ShapeBuilder<Dim = D>,
    ) -> Result<Self> {
        let (site, layout) = (call_site(), Layout::of_shape::<T>(shape));
        let (buffer, len) = HostBuffer::from_owner(owner);
        if len != layout.len() {
            drop(buffer);
            sync::run_deferred_drops();
            return Err(Error::Shape {
                operation: "from_owner_shaped".to_owned(),
                expected: format!("{} elements for shape {:?}", layout.len(), layout.shape()),
                seen: format!("an owner of {len}"),
                instead: "pass a shape of as many elements as the owner has".into(),
                call: CalledAt::UNKNOWN,
            })
            .at(site);
        }
        Ok(Self::over_owner(layout, buffer, site))
    }

    fn over_owner(layout: Layout<D>, buffer: HostBuffer, site: CallSite) -> Self {
        let (memory_order, _) = memory_order::<T>(layout.shape(), layout.strides())
            .unwrap_or_else(|| unreachable!("a new array has no gaps: {:?}", layout.strided()));
        Self::over(layout, memory_order, Origin::Host(buffer), site)
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
