//! How often indices occur.

use crate::array::{AnyView, AnyViewMut};
use crate::ops::arithmetic::Index;
use crate::ops::compaction;
use crate::ops::operation::operations;

operations! {
    |call| [I: Index, C: Index](index: &impl AnyView<I>, counts: &mut impl AnyViewMut<C>)

    /// `counts[i]` becomes the number of indices that are `i`: NumPy's `bincount`. What was in the
    /// line `counts` is overwritten; counts beyond its type wrap around.
    ///
    /// The device looks for the largest index first. The call waits for that and brings it to the
    /// host.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ops};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut counts = SmartArray::<u32, _>::uninit(4);
    /// ops::bincount(&SmartArray::from([3_u64, 1, 3]), &mut counts)?;
    /// assert_eq!(counts.to_vec()?, [0, 1, 0, 2]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if `counts` is no line, or if an index is beyond its end:
    /// nothing is written then. Also what launches return: see [the module](crate::ops#errors).
    bincount, bincount_on => compaction::bincount(call, index, counts);
}
