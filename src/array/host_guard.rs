//! Guards of accesses to the host's copy. State changes when a guard is created. Dropping one does
//! nothing, except that watches of the array may then read what was written.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use ndarray::iter::{Iter, IterMut};
use ndarray::{
    Array, ArrayBase, ArrayRef, ArrayView, ArrayViewMut, Data, Dimension, IntoNdProducer,
};

use super::adopt;
use super::layout::Layout;
use crate::element::Element;
use crate::storage::{HostWrite, Storage};
use resident_backend::HostMemory;

/// Shared access to the host's copy of a part, returned by
/// [`SmartArray::host`](crate::SmartArray::host). Dereferences to an `ndarray::ArrayRef`. The host
/// stays valid as long as the guard lives. Other threads and devices may read meanwhile.
///
/// The guard has all methods of an `ArrayRef`, compares with ndarray's arrays, and works by
/// reference in `for` loops and `Zip`s. For arithmetic use `host.view()`, as in
/// `&host.view() + 1.0`, since ndarray has operators for its own types only.
///
/// ```
/// use resident::{SmartArray, ndarray::{ArrayRef, Ix1, Zip, array}};
///
/// fn energy(signal: &ArrayRef<f32, Ix1>) -> f32 { signal.iter().map(|x| x * x).sum() }
///
/// let signal = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
/// let host = signal.host()?;
/// assert_eq!((host[1], host.view().len(), energy(&host)), (2.0, 3, 14.0));
/// assert_eq!(host, array![1.0, 2.0, 3.0]);
/// assert_eq!(&host.view() * 2.0, array![2.0, 4.0, 6.0]);
/// let mut sum = 0.0;
/// for x in &host {
///     sum += x;
/// }
/// let products = Zip::from(&host).and(&signal.host()?).map_collect(|x, y| x * y);
/// assert_eq!((sum, products), (6.0, array![1.0, 4.0, 9.0]));
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use = "read the contents through this guard; to download them ahead of their use, call \
              `prefetch_host` or `drop` the guard"]
pub struct HostRef<'a, T, D: Dimension> {
    view: ArrayView<'a, T, D>,
    storage: &'a Storage,
    /// Made when [`as_array`](Self::as_array) is first called. The memory belongs to the storage.
    array: OnceLock<Box<BesideArray<T, D>>>,
}

/// An array over memory that belongs to a storage. Its drop frees the array's own header only.
struct BesideArray<T, D: Dimension>(ManuallyDrop<Array<T, D>>);

impl<T, D: Dimension> Drop for BesideArray<T, D> {
    fn drop(&mut self) {
        // SAFETY: the value is not used after its drop.
        let array = unsafe { ManuallyDrop::take(&mut self.0) };
        std::mem::forget(array.into_raw_vec_and_offset().0);
    }
}

impl<T: Element, D: Dimension> HostRef<'_, T, D> {
    /// The same copy as an owned array, for functions that take `&Array`. Copies no elements. The
    /// first call allocates the array's header.
    ///
    /// `None` unless the guard covers a whole array: a part has no allocation of its own. `None`
    /// also for memory that a driver allocated or that [`with_pinned`](crate::with_pinned) lent.
    /// Functions that take an `ArrayView` or an `ArrayRef` accept all of these.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::{Array2, s}};
    ///
    /// fn trace(matrix: &Array2<f64>) -> f64 { matrix.diag().sum() }
    ///
    /// let matrix = SmartArray::from(Array2::<f64>::eye(4));
    /// assert_eq!(matrix.host()?.as_array().map(trace), Some(4.0));
    /// assert!(matrix.slice(s![..2, ..]).host()?.as_array().is_none());
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn as_array(&self) -> Option<&Array<T, D>> {
        if let Some(array) = self.array.get() {
            return Some(&array.0);
        }
        let array = self.owned_form()?;
        Some(&self.array.get_or_init(|| Box::new(BesideArray(array))).0)
    }

    fn owned_form(&self) -> Option<ManuallyDrop<Array<T, D>>> {
        let whole = Layout::new(self.view.raw_dim(), self.view.strides(), 0);
        let is_whole =
            whole.stored_in::<T>(self.storage).is_whole() && self.storage.has_elements::<T>();
        if whole.is_broadcast() || !is_whole {
            return None;
        }
        if self.view.is_empty() || size_of::<T>() == 0 {
            return Some(ManuallyDrop::new(adopt::array_without_bytes(self.view.raw_dim())));
        }
        let buffer = Arc::clone(self.storage.lock().host.as_ref()?);
        let distance = (self.view.as_ptr() as usize).wrapping_sub(buffer.base() as usize);
        let layout = whole.with_offset(distance / size_of::<T>());
        // SAFETY: the buffer's elements are of type `T`, since the view's are. The view covers the
        // whole array without repeated elements. While this guard lives, nothing writes these
        // elements and the storage keeps the buffer: both would need the `&mut` that the guard's
        // borrow excludes.
        unsafe { adopt::array_beside(&buffer, &layout) }
    }
}

impl<'a, T, D: Dimension> HostRef<'a, T, D> {
    #[inline]
    pub(super) fn new(view: ArrayView<'a, T, D>, storage: &'a Storage) -> Self {
        Self { view, storage, array: OnceLock::new() }
    }

    /// The same copy as an ndarray view that may outlive the guard, for functions that return
    /// references to elements. Copies nothing.
    ///
    /// ```
    /// use resident::{Result, SmartArray, ndarray::{ArrayView1, Ix2, s}};
    ///
    /// fn first_row(table: &SmartArray<f32, Ix2>) -> Result<ArrayView1<'_, f32>> {
    ///     Ok(table.slice(s![0, ..]).host()?.into_view())
    /// }
    ///
    /// assert_eq!(first_row(&SmartArray::<f32, _>::ones((3, 4)))?.sum(), 4.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn into_view(self) -> ArrayView<'a, T, D> {
        self.view
    }
}

impl<T, D: Dimension> Deref for HostRef<'_, T, D> {
    type Target = ArrayRef<T, D>;

    #[inline]
    fn deref(&self) -> &ArrayRef<T, D> {
        &self.view
    }
}

/// Exclusive access to the host's copy of a part, returned by
/// [`SmartArray::host_mut`](crate::SmartArray::host_mut) and
/// [`host_overwrite`](crate::SmartArray::host_overwrite). Dereferences to an `ndarray::ArrayRef`.
/// The host has the newest contents from the moment the guard is created.
///
/// The guard has all methods of an `ArrayRef`, compares with ndarray's arrays, and works by
/// reference in `for` loops and `Zip`s. For arithmetic use `host.view()` or `host.view_mut()`, as
/// in `host.view_mut().scaled_add(2.0, &x)` or `let mut all = host.view_mut(); all += 1.0`.
///
/// A loop over the guard itself (`for x in array.host_mut()?`) consumes it, as
/// [`into_view_mut`](Self::into_view_mut) does: a [`Watch`](crate::Watch) of the array shows what
/// the loop wrote after the next use of the part. One over `&mut host` shows it when `host` drops.
///
/// ```
/// use resident::{SmartArray, ndarray::{Zip, array}};
///
/// let mut array = SmartArray::<f32, _>::zeros((2, 3));
/// let mut host = array.host_mut()?;
/// host[[0, 1]] = 5.0;
/// host.row_mut(1).fill(2.0);
/// assert_eq!(host.sum(), 11.0);
/// for x in &mut host {
///     *x += 1.0;
/// }
/// let factors = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// Zip::from(&mut host).and(&factors).for_each(|x, y| *x *= y);
/// assert_eq!(host, array![[1.0, 12.0, 3.0], [12.0, 15.0, 18.0]]);
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use = "write the contents through this guard; to mark the host's copy as the newest only, \
              `drop` it"]
pub struct HostMut<'a, T, D: Dimension> {
    pub(super) view: ArrayViewMut<'a, T, D>,
    /// Not a borrow of the array, and this guard has no `Drop`: so the borrow ends with the last
    /// use of the guard.
    pub(super) write: HostWrite,
}

impl<'a, T, D: Dimension> HostMut<'a, T, D> {
    /// The same copy as an ndarray view that may outlive the guard. Copies nothing. A
    /// [`Watch`](crate::Watch) shows what is written through it after the next use of the part.
    ///
    /// ```
    /// use resident::{Result, SmartArray, ndarray::{ArrayViewMut2, Axis, Ix2}};
    ///
    /// type Half<'a> = ArrayViewMut2<'a, f32>;
    ///
    /// fn halves(table: &mut SmartArray<f32, Ix2>) -> Result<(Half<'_>, Half<'_>)> {
    ///     let middle = table.shape()[0] / 2;
    ///     Ok(table.host_mut()?.into_view_mut().split_at(Axis(0), middle))
    /// }
    ///
    /// let mut table = SmartArray::<f32, _>::zeros((4, 2));
    /// let (mut upper, mut lower) = halves(&mut table)?;
    /// upper.fill(1.0);
    /// lower.fill(2.0);
    /// assert_eq!(table.host()?.sum(), 12.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn into_view_mut(self) -> ArrayViewMut<'a, T, D> {
        self.write.leave_open();
        self.view
    }
}

impl<T, D: Dimension> Deref for HostMut<'_, T, D> {
    type Target = ArrayRef<T, D>;

    #[inline]
    fn deref(&self) -> &ArrayRef<T, D> {
        &self.view
    }
}

impl<T, D: Dimension> DerefMut for HostMut<'_, T, D> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ArrayRef<T, D> {
        &mut self.view
    }
}

impl<'a, T, D: Dimension> IntoIterator for HostRef<'a, T, D> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T, D>;

    fn into_iter(self) -> Iter<'a, T, D> {
        self.view.into_iter()
    }
}

impl<'a, T, D: Dimension> IntoIterator for HostMut<'a, T, D> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T, D>;

    /// References to elements may outlive the iterator too, so its drop cannot end the write.
    fn into_iter(self) -> IterMut<'a, T, D> {
        self.into_view_mut().into_iter()
    }
}

impl<'g, T, D: Dimension> IntoIterator for &'g mut HostMut<'_, T, D> {
    type Item = &'g mut T;
    type IntoIter = IterMut<'g, T, D>;

    fn into_iter(self) -> IterMut<'g, T, D> {
        self.iter_mut()
    }
}

impl<'g, T, D: Dimension> IntoNdProducer for &'g mut HostMut<'_, T, D> {
    type Item = &'g mut T;
    type Dim = D;
    type Output = ArrayViewMut<'g, T, D>;

    fn into_producer(self) -> ArrayViewMut<'g, T, D> {
        self.view_mut()
    }
}

/// Compares `$left` with `$right`, arrays of `T` and `U`.
macro_rules! equal {
    ([$($data:tt)*], $left:ty, $right:ty) => {
        impl<T: PartialEq<U>, U, D: Dimension, $($data)*> PartialEq<$right> for $left {
            fn eq(&self, other: &$right) -> bool {
                // Each operand dereferences to an `ArrayRef`, in one or more steps.
                let (left, right): (&ArrayRef<T, D>, &ArrayRef<U, D>) = (self, other);
                left == right
            }
        }
    };
}

/// Implements iteration, formatting and comparison for a guard, as for an `ArrayRef`.
macro_rules! array_ref_impls {
    ($guard:ident) => {
        impl<'g, T, D: Dimension> IntoIterator for &'g $guard<'_, T, D> {
            type Item = &'g T;
            type IntoIter = Iter<'g, T, D>;

            fn into_iter(self) -> Iter<'g, T, D> {
                self.iter()
            }
        }

        impl<'g, T, D: Dimension> IntoNdProducer for &'g $guard<'_, T, D> {
            type Item = &'g T;
            type Dim = D;
            type Output = ArrayView<'g, T, D>;

            fn into_producer(self) -> ArrayView<'g, T, D> {
                self.view()
            }
        }

        impl<T: fmt::Debug, D: Dimension> fmt::Debug for $guard<'_, T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.view.fmt(f)
            }
        }

        impl<T: fmt::Display, D: Dimension> fmt::Display for $guard<'_, T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.view.fmt(f)
            }
        }

        impl<T: Eq, D: Dimension> Eq for $guard<'_, T, D> {}

        equal!([], $guard<'_, T, D>, HostRef<'_, U, D>);
        equal!([], $guard<'_, T, D>, HostMut<'_, U, D>);
        equal!([], $guard<'_, T, D>, ArrayRef<U, D>);
        equal!([], ArrayRef<T, D>, $guard<'_, U, D>);
        equal!([S: Data<Elem = U>], $guard<'_, T, D>, ArrayBase<S, D>);
        equal!([S: Data<Elem = T>], ArrayBase<S, D>, $guard<'_, U, D>);
        equal!([S: Data<Elem = U>], $guard<'_, T, D>, &ArrayBase<S, D>);
        equal!([S: Data<Elem = T>], &ArrayBase<S, D>, $guard<'_, U, D>);
    };
}

array_ref_impls!(HostRef);
array_ref_impls!(HostMut);
