//! Reads and writes of elements whose places are given.

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Arithmetic;
use crate::ops::indexed;
use crate::ops::operation::operations;

operations! {
    |call| [T: Arithmetic](
        a: &impl AnyView<T>,
        index: &impl AnyView<u64>,
        out: &mut impl AnyViewMut<T>,
    )

    /// `out[i] = a[index[i]]`: NumPy's `take`. Indices count the elements of `a` in row-major
    /// order, whatever its number of axes; `out` has the shape of `index`.
    ///
    /// The device checks all indices before it reads any element. The call waits for that; the
    /// answer of CUDA C is 8 bytes that are copied to the host.
    ///
    /// ```
    /// use resident::{Device, Error, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let a = SmartArray::from([10.0, 20.0, 30.0]);
    /// let mut b = SmartArray::<f64, _>::uninit(2);
    /// ops::gather(&a, &SmartArray::from([2, 0]), &mut b)?;
    /// assert_eq!(b.to_vec()?, [30.0, 10.0]);
    /// let refused = ops::gather(&a, &SmartArray::from([2, 3]), &mut b);
    /// assert!(matches!(refused, Err(Error::Shape { .. })));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `out` has not the shape of `index`, or if an index is
    /// beyond the end of `a`: it names the first, and nothing is written. Also what launches
    /// return: see [the module](crate::ops#errors).
    gather, gather_on => indexed::gather(call, a, index, out);

    /// `out[index[i]] = a[i]`: NumPy's `put`. Indices count the elements of `out` in row-major
    /// order, whatever its number of axes; `a` broadcasts to the shape of `index`. Other elements
    /// of `out` stay as they are.
    ///
    /// If several indices are equal, the last of them in row-major order wins, on every device. For
    /// this a GPU uses 8 bytes for each element of `out` during the call.
    ///
    /// The device checks all indices before it writes any element. The call waits for that; the
    /// answer of CUDA C is 8 bytes that are copied to the host.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let (a, index) = (SmartArray::from([1, 2, 3]), SmartArray::from([3, 0, 3]));
    /// let mut b = SmartArray::<i32, _>::zeros(4);
    /// ops::scatter(&a, &index, &mut b)?;
    /// assert_eq!(b.to_vec()?, [2, 0, 0, 3]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `a` does not broadcast to the shape of `index`, or if an
    /// index is beyond the end of `out`: it names the first, and nothing is written. Also what
    /// launches return: see [the module](crate::ops#errors).
    scatter, scatter_on => indexed::scatter(call, a, index, out);
}
