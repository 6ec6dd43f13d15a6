//! Methods of arrays and views whose results have a length that the device finds.

use std::ops::Deref;

use ndarray::{Dimension, Ix1};

use crate::array::{AnyView, DeviceArray, SmartArray, View};
use crate::error::Result;
use crate::ops::arithmetic::{Arithmetic, Number};
use crate::ops::call::{Call, stream_of};
use crate::ops::compaction;
use resident_backend::call_site::call_site;

macro_rules! methods {
    ($type:ty $(, $home:ident, $borrow:ident)?) => {
        /// # Elements that the device chooses
        ///
        /// Elements whose number the device finds: the calls wait for it, and the elements stay on
        /// the device.
        impl<T: Arithmetic, $($home, $borrow: Deref<Target = T>,)? D: Dimension> $type
        where
            Self: AnyView<T>,
        {
            /// The elements where `mask` is not 0, in row-major order: NumPy's `a[mask]`. `mask`
            /// has the shape of the array; [`ops::less`](crate::ops::less) and its kin make masks.
            ///
            /// # Errors
            ///
            /// [`Shape`](crate::Error::Shape) if `mask` has another shape, and what launches
            /// return: see [`ops`](crate::ops#errors).
            #[track_caller]
            pub fn compress(&self, mask: &impl AnyView<u8>) -> Result<SmartArray<T, Ix1>> {
                let site = call_site();
                let stream = &stream_of(self, site)?;
                compaction::compress(&Call { name: "compress", stream, site }, self, mask)
            }

            /// The different elements in ascending order: NumPy's `unique`. NaN comes once, and
            /// last; of 0.0 and -0.0 the first in row-major order stays.
            ///
            /// # Errors
            ///
            /// What launches return: see [`ops`](crate::ops#errors).
            #[track_caller]
            pub fn unique(&self) -> Result<SmartArray<T, Ix1>>
            where
                T: Number,
            {
                let site = call_site();
                let stream = &stream_of(self, site)?;
                compaction::unique(&Call { name: "unique", stream, site }, self)
            }
        }
    };
}

methods!(SmartArray<T, D>);
methods!(DeviceArray<T, D>);
methods!(View<'_, H, R, D>, H, R);
