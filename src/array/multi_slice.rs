//! Several disjoint parts at once.

use ndarray::{Dimension, SliceArg, SliceInfoElem};

use super::rearrange::in_range;
use super::view::{Coherent, DeviceViewMut, SmartViewMut, View};
use crate::element::Element;
use crate::storage::Storage;
use resident_core::layout::Selection;

/// A tuple of one to six of ndarray's `s![..]`, for
/// [`SmartArray::multi_slice_mut`](crate::SmartArray::multi_slice_mut). The counterpart of
/// `ndarray::MultiSliceArg`. Sealed.
pub trait MultiSlice<'a, T: Element, D: Dimension>: sealed::Sealed {
    /// A tuple with a view for each slice.
    type Output;
    /// The same for a device array.
    type DeviceOutput;

    #[doc(hidden)]
    #[track_caller]
    fn views(&self, whole: SmartViewMut<'a, T, D>) -> Self::Output;

    #[doc(hidden)]
    #[track_caller]
    fn device_views(&self, whole: DeviceViewMut<'a, T, D>) -> Self::DeviceOutput;
}

mod sealed {
    pub trait Sealed {}
}

/// Panics if two parts share an element, as ndarray's `multi_slice_mut` does.
#[track_caller]
fn assert_disjoint(storage: &Storage, selections: &[Selection], infos: &[&[SliceInfoElem]]) {
    // Every part of an array without elements is the whole array.
    if storage.memory_order().is_empty() {
        return;
    }
    for (number, selection) in selections.iter().enumerate() {
        for (other_number, other) in selections.iter().enumerate().skip(number + 1) {
            assert!(
                !selection.overlaps(other),
                "resident: slices {} and {} of multi_slice_mut share elements of {}",
                slice_text(infos[number]),
                slice_text(infos[other_number]),
                storage.named()
            );
        }
    }
}

/// The slice as it is written between the brackets of `s![..]`.
fn slice_text(info: &[SliceInfoElem]) -> String {
    let axes: Vec<String> = info.iter().map(ToString::to_string).collect();
    format!("[{}]", axes.join(", "))
}

macro_rules! multi_slice {
    ($($info:ident $index:tt),+) => {
        impl<$($info),+> sealed::Sealed for ($($info,)+) {}

        impl<'a, T: Element, D: Dimension, $($info: SliceArg<D>),+> MultiSlice<'a, T, D>
            for ($($info,)+)
        {
            type Output = ($(SmartViewMut<'a, T, $info::OutDim>,)+);
            type DeviceOutput = ($(DeviceViewMut<'a, T, $info::OutDim>,)+);

            #[track_caller]
            fn views(&self, whole: SmartViewMut<'a, T, D>) -> Self::Output {
                let (storage, home, layout) = whole.into_parts();
                let layouts = ($(in_range(storage, layout.slice(&self.$index)),)+);
                let selections = [$(layouts.$index.stored_in::<T>(storage).selection()),+];
                assert_disjoint(storage, &selections, &[$(self.$index.as_ref()),+]);
                ($(View::new(storage, home, layouts.$index),)+)
            }

            #[track_caller]
            fn device_views(&self, whole: DeviceViewMut<'a, T, D>) -> Self::DeviceOutput {
                let home = whole.home();
                let views = self.views(whole.with_home(Coherent));
                ($(views.$index.with_home(home),)+)
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
