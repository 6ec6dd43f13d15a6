//! Reductions as methods of arrays and views, which bring one number to the host.

use ndarray::{Dimension, Ix1};

use super::arithmetic::Number;
use super::best::{self, Best};
use super::call::Call;
use super::dot;
use super::reduce::{self, Reduction};
use crate::array::{
    AnyView, DeviceArray, DeviceView, DeviceViewMut, SmartArray, SmartView, SmartViewMut,
};
use crate::device::{Device, Stream};
use crate::error::{AtCall, Result};
use resident_backend::call_site::{CallSite, call_site};

/// The number that an operation leaves in a result of one element.
fn number<T: Number>(
    name: &'static str,
    stream: Result<Stream>,
    site: CallSite,
    operation: impl FnOnce(&Call<'_>, &mut SmartArray<T, Ix1>) -> Result<()>,
) -> Result<T> {
    let stream = stream?;
    let mut out = SmartArray::uninit_at(1, site);
    operation(&Call { name, stream: &stream, site }, &mut out)?;
    out.get_at(0, site)
}

/// The current stream, for arrays that move to its device by themselves.
fn current<A>(_array: &A, site: CallSite) -> Result<Stream> {
    Stream::current().at(site)
}

/// The current stream of the device that alone has the elements.
fn own(device: &Device) -> Result<Stream> {
    Ok(device.current_stream())
}

macro_rules! methods {
    ($type:ty, $stream:expr, $where:literal) => {
        /// # One number of all elements
        ///
        #[doc = concat!("Numbers of all elements, computed on ", $where, ": [`ops`](crate::ops).")]
        /// Each call waits for the result, and brings it alone to the host.
        impl<T: Number, D: Dimension> $type {
            /// The sum of all elements; 0 if there are none: [`ops::sum`](crate::ops::sum).
            ///
            /// # Errors
            ///
            /// What launches return: see [the module](crate::ops#errors).
            #[track_caller]
            pub fn sum(&self) -> Result<T> {
                let site = call_site();
                number("sum", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, T>(call, Reduction::Sum, self, out)
                })
            }

            /// The product of all elements; 1 if there are none:
            /// [`ops::product`](crate::ops::product).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum).
            #[track_caller]
            pub fn product(&self) -> Result<T> {
                let site = call_site();
                number("product", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, T>(call, Reduction::Product, self, out)
                })
            }

            /// The number of elements that are not 0:
            /// [`ops::count_nonzero`](crate::ops::count_nonzero).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum).
            #[track_caller]
            pub fn count_nonzero(&self) -> Result<u64> {
                let site = call_site();
                number("count_nonzero", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, u64>(call, Reduction::CountNonzero, self, out)
                })
            }

            /// Whether any element is not 0: [`ops::any`](crate::ops::any).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum).
            #[track_caller]
            pub fn any(&self) -> Result<bool> {
                let site = call_site();
                let any = number("any", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, u8>(call, Reduction::Any, self, out)
                });
                Ok(any? != 0)
            }

            /// Whether no element is 0: [`ops::all`](crate::ops::all).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum).
            #[track_caller]
            pub fn all(&self) -> Result<bool> {
                let site = call_site();
                let all = number("all", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, u8>(call, Reduction::All, self, out)
                });
                Ok(all? != 0)
            }

            /// The smallest element: [`ops::min`](crate::ops::min).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum), and [`Shape`](crate::Error::Shape) if there are no elements.
            #[track_caller]
            pub fn min(&self) -> Result<T> {
                let site = call_site();
                number("min", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, T>(call, Reduction::Min, self, out)
                })
            }

            /// The largest element: [`ops::max`](crate::ops::max).
            ///
            /// # Errors
            ///
            /// As [`min`](Self::min).
            #[track_caller]
            pub fn max(&self) -> Result<T> {
                let site = call_site();
                number("max", ($stream)(self, site), site, |call, out| {
                    reduce::whole::<T, T>(call, Reduction::Max, self, out)
                })
            }

            /// The mean of all elements: [`ops::mean`](crate::ops::mean).
            ///
            /// # Errors
            ///
            /// As [`min`](Self::min).
            #[track_caller]
            pub fn mean(&self) -> Result<T::Real> {
                let site = call_site();
                number("mean", ($stream)(self, site), site, |call, out| {
                    reduce::mean(call, self, out)
                })
            }

            /// The Euclidean norm: [`ops::norm_l2`](crate::ops::norm_l2).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum).
            #[track_caller]
            pub fn norm_l2(&self) -> Result<T::Real> {
                let site = call_site();
                number("norm_l2", ($stream)(self, site), site, |call, out| {
                    reduce::norm(call, self, out)
                })
            }

            /// The sum of the products with the elements of another array of this shape:
            /// [`ops::dot`](crate::ops::dot).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum), and [`Shape`](crate::Error::Shape) if the shapes differ.
            #[track_caller]
            pub fn dot(&self, other: &impl AnyView<T>) -> Result<T> {
                let site = call_site();
                number("dot", ($stream)(self, site), site, |call, out| {
                    dot::dot(call, self, other, out)
                })
            }

            /// The place of the smallest element, counted in row-major order:
            /// [`ops::argmin`](crate::ops::argmin).
            ///
            /// # Errors
            ///
            /// As [`min`](Self::min).
            #[track_caller]
            pub fn argmin(&self) -> Result<u64> {
                let site = call_site();
                number("argmin", ($stream)(self, site), site, |call, out| {
                    best::whole(call, Best::Min, self, out)
                })
            }

            /// The place of the largest element, counted in row-major order:
            /// [`ops::argmax`](crate::ops::argmax).
            ///
            /// # Errors
            ///
            /// As [`min`](Self::min).
            #[track_caller]
            pub fn argmax(&self) -> Result<u64> {
                let site = call_site();
                number("argmax", ($stream)(self, site), site, |call, out| {
                    best::whole(call, Best::Max, self, out)
                })
            }
        }
    };
}

methods!(SmartArray<T, D>, current, "the current stream");
methods!(SmartView<'_, T, D>, current, "the current stream");
methods!(SmartViewMut<'_, T, D>, current, "the current stream");
methods!(
    DeviceArray<T, D>,
    |array: &Self, _| own(&array.device()),
    "their device's current stream"
);
methods!(
    DeviceView<'_, T, D>,
    |view: &Self, _| own(&view.device()),
    "their device's current stream"
);
methods!(
    DeviceViewMut<'_, T, D>,
    |view: &Self, _| own(&view.device()),
    "their device's current stream"
);
