//! Several parts at once, checked to be disjoint.

use ndarray::{Dimension, SliceArg};

use super::layout::Layout;
use super::view::SmartViewMut;
use crate::element::Element;
use crate::layout::{MemoryOrder, Selection};
use crate::storage::Storage;

/// A tuple of one to six of ndarray's `s![..]`, as `ndarray::MultiSliceArg`: what
/// [`SmartArray::multi_slice_mut`](crate::SmartArray::multi_slice_mut) takes, whose example shows
/// it. Sealed.
pub trait MultiSlice<'a, T: Element, D: Dimension>: sealed::Sealed {
    /// A tuple of as many views.
    type Output;

    #[doc(hidden)]
    #[track_caller]
    #[allow(private_interfaces)]
    fn views(&self, storage: &'a Storage, layout: &Layout<D>) -> Self::Output;
}

mod sealed {
    pub trait Sealed {}
}

/// As ndarray's `multi_slice_mut`: overlapping parts are a bug of the caller.
#[track_caller]
fn assert_disjoint(memory_order: &MemoryOrder, selections: &[Selection]) {
    // All parts of an array without elements are the whole of it, and share none.
    let elements = memory_order.len();
    if elements == 0 {
        return;
    }
    for (number, selection) in selections.iter().enumerate() {
        for (other_number, other) in selections.iter().enumerate().skip(number + 1) {
            assert!(
                !selection.overlaps(other),
                "resident: parts {number} and {other_number} of multi_slice_mut share elements"
            );
        }
    }
}

macro_rules! multi_slice {
    ($($info:ident $index:tt),+) => {
        impl<$($info),+> sealed::Sealed for ($($info,)+) {}

        impl<'a, T: Element, D: Dimension, $($info: SliceArg<D>),+> MultiSlice<'a, T, D> for ($($info,)+) {
            type Output = ($(SmartViewMut<'a, T, $info::OutDim>,)+);

            #[track_caller]
            #[allow(private_interfaces)]
            fn views(&self, storage: &'a Storage, layout: &Layout<D>) -> Self::Output {
                let layouts = ($(layout.slice(&self.$index),)+);
                assert_disjoint(storage.memory_order(), &[$(layouts.$index.selection(storage.memory_order())),+]);
                ($(SmartViewMut::new(storage, layouts.$index),)+)
            }
        }
    };
}

multi_slice!(I0 0);
multi_slice!(I0 0, I1 1);
multi_slice!(I0 0, I1 1, I2 2);
multi_slice!(I0 0, I1 1, I2 2, I3 3);
multi_slice!(I0 0, I1 1, I2 2, I3 3, I4 4);
multi_slice!(I0 0, I1 1, I2 2, I3 3, I4 4, I5 5);
