//! Reductions as methods of arrays and views, which bring one number to the host.

use std::ops::Deref;

use ndarray::{Dimension, Ix1};

use super::arithmetic::{Number, Scalar};
use super::best::{self, Best};
use super::call::{Call, stream_of};
use super::dot;
use super::reduce::{self, Reduction};
use super::variance::variance;
use crate::array::{AnyView, DeviceArray, SmartArray, View};
use crate::error::Result;
use resident_backend::call_site::call_site;

/// The number that an operation leaves in a result of one element.
#[track_caller]
fn number<T: Scalar, R: Scalar>(
    name: &'static str,
    array: &impl AnyView<T>,
    operation: impl FnOnce(&Call<'_>, &mut SmartArray<R, Ix1>) -> Result<()>,
) -> Result<R> {
    let site = call_site();
    let stream = &stream_of(array, site)?;
    let mut out = SmartArray::uninit_at(1, site);
    operation(&Call { name, stream, site }, &mut out)?;
    out.get_at(0, site)
}

macro_rules! methods {
    ($type:ty $(, $home:ident, $borrow:ident)?) => {
        /// # One number of all elements
        ///
        /// Numbers of all elements, computed on the current stream, or on that of the device that
        /// alone has them: [`ops`](crate::ops). Each call waits for the result, and brings it alone
        /// to the host.
        impl<T: Scalar, $($home, $borrow: Deref<Target = T>,)? D: Dimension> $type
        where
            Self: AnyView<T>,
        {
            /// The sum of all elements; 0 if there are none: [`ops::sum`](crate::ops::sum).
            ///
            /// # Errors
            ///
            /// What launches return: see [the module](crate::ops#errors).
            #[track_caller]
            pub fn sum(&self) -> Result<T> {
                number("sum", self, |call, out| {
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
                number("product", self, |call, out| {
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
                number("count_nonzero", self, |call, out| {
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
                let any = number("any", self, |call, out| {
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
                let all = number("all", self, |call, out| {
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
            pub fn min(&self) -> Result<T>
            where
                T: Number,
            {
                number("min", self, |call, out| {
                    reduce::whole::<T, T>(call, Reduction::Min, self, out)
                })
            }

            /// The largest element: [`ops::max`](crate::ops::max).
            ///
            /// # Errors
            ///
            /// As [`min`](Self::min).
            #[track_caller]
            pub fn max(&self) -> Result<T>
            where
                T: Number,
            {
                number("max", self, |call, out| {
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
                number("mean", self, |call, out| {
                    reduce::mean(call, self, out)
                })
            }

            /// The variance of all elements, as ndarray's `var`: the sum of the squares of what
            /// differs from the mean, divided by the number of elements less `ddof` ("delta degrees
            /// of freedom"), which is 0 for a whole population and 1 for a sample. NaN if there are
            /// no elements.
            ///
            /// Three passes, the first for the mean, whose rounding the last corrects: the error is
            /// that of two [sums](crate::ops#sums), however far from 0 the elements are. Of
            /// integers, an `f64`. The same in each run.
            ///
            /// ```
            /// use resident::{Device, SmartArray};
            ///
            /// let _here = Device::cpu().enter();
            /// let a = SmartArray::from([1.0_f32, 2.0, 3.0, 4.0]);
            /// assert_eq!((a.var(0.0)?, a.var(1.0)?), (1.25, 5.0 / 3.0));
            /// # Ok::<(), resident::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum), and [`Requirement`](crate::Error::Requirement) if `ddof` is
            /// below 0 or above the number of elements.
            #[track_caller]
            pub fn var(&self, ddof: T::Real) -> Result<T::Real>
            where
                T: Number,
            {
                let site = call_site();
                let stream = &stream_of(self, site)?;
                variance(&Call { name: "var", stream, site }, self, ddof)
            }

            /// The standard deviation of all elements: the square root of the
            /// [`var`](Self::var)iance.
            ///
            /// # Errors
            ///
            /// As [`var`](Self::var).
            #[track_caller]
            pub fn std(&self, ddof: T::Real) -> Result<T::Real>
            where
                T: Number,
            {
                let site = call_site();
                let stream = &stream_of(self, site)?;
                let variance = variance(&Call { name: "std", stream, site }, self, ddof)?;
                Ok(T::root(variance))
            }

            /// The Euclidean norm: [`ops::norm_l2`](crate::ops::norm_l2).
            ///
            /// # Errors
            ///
            /// As [`sum`](Self::sum).
            #[track_caller]
            pub fn norm_l2(&self) -> Result<T::Real>
            where
                T: Number,
            {
                number("norm_l2", self, |call, out| {
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
                number("dot", self, |call, out| {
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
            pub fn argmin(&self) -> Result<u64>
            where
                T: Number,
            {
                number("argmin", self, |call, out| {
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
            pub fn argmax(&self) -> Result<u64>
            where
                T: Number,
            {
                number("argmax", self, |call, out| {
                    best::whole(call, Best::Max, self, out)
                })
            }
        }
    };
}

methods!(SmartArray<T, D>);
methods!(DeviceArray<T, D>);
methods!(View<'_, H, R, D>, H, R);
