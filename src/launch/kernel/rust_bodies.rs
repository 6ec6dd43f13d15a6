//! Bodies in Rust.

use super::Kernel;
use crate::launch::each::{self, Indexed, Walk};
use crate::launch::host_body::{Author, host_body};
use crate::launch::signature::Signature;
use resident_backend::KernelCode;
use resident_backend::grid::Grid;
use std::sync::Arc;

impl<S: Signature> Kernel<S> {
    /// Sets the body in Rust, for the embedded device ([`Device::cpu`](crate::Device::cpu)) and for
    /// [`call`](Self::call). The body runs once for a whole launch, with a slice for each flat
    /// parameter and an ndarray view for each sized parameter.
    ///
    /// The body runs on one thread of the device. To use all cores, set
    /// [`host_each`](Self::host_each) instead, or use threads of your own in the body, such as
    /// rayon's: see [threads that wait](crate::guide::threads_that_wait). If the compiler says
    /// "type annotations needed" (E0282), write the signature at [`new`](Self::new).
    ///
    /// If a body panics, the contents that the launch should have written are lost: reading them is
    /// [`Lost`](crate::Error::Lost) until they are overwritten. Inside a body, calls of this
    /// library that would have to wait return [`InsideKernel`](crate::Error::InsideKernel).
    ///
    /// ```
    /// use resident::ndarray::{Array2, Axis, Ix1, Ix2};
    /// use resident::{Device, Grid, In, Kernel, Out, SmartArray};
    ///
    /// // The host body gets an `ArrayView2` and an `ArrayViewMut1`.
    /// let row_sums = Kernel::<(In<f32, Ix2>, Out<f32, Ix1>)>::new("row_sums")
    ///     .host(|_grid, (table, mut sums)| sums.assign(&table.sum_axis(Axis(1))));
    ///
    /// let _here = Device::cpu().enter();
    /// let table = SmartArray::from(Array2::<f32>::ones((3, 5)));
    /// let mut sums = SmartArray::<f32, _>::uninit(3);
    /// row_sums.launch(Grid::cover(3), (&table, &mut sums))?;
    /// assert_eq!(sums.host()?.to_vec(), [5.0, 5.0, 5.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn host(self, run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static) -> Self {
        self.with_host(Author::Program, run)
    }

    /// Sets a body in Rust that is called once for each element of the outputs, on all cores. It
    /// runs where a [`host`](Self::host) body would, [`call`](Self::call) and
    /// [`compare`](Self::compare) included. A kernel has one body in Rust: `host` and `host_each`
    /// replace what was set before.
    ///
    /// A call gets the index of its element, and the arguments. Of an `InOut` or `Out` it gets the
    /// element with that index, as `&mut T`, so that no two calls can write the same memory. `In`
    /// and scalars are as in `host`: the whole slice or view, and the value.
    ///
    /// | outputs | index |
    /// |---|---|
    /// | flat: `Out<T>` | `usize`, the element's number in memory order |
    /// | sized: `Out<T, Ix1>` | `usize` |
    /// | `Out<T, Ix2>`, .. to `Ix6` | `(usize, usize)`, ..: ndarray's pattern |
    /// | `Out<T, IxDyn>` | `IxDyn` |
    ///
    /// ```
    /// use resident::{Device, Error, Grid, In, InOut, Kernel, Out, SmartArray};
    /// use resident::ndarray::{Array2, Ix2};
    ///
    /// let axpy = Kernel::<(f32, In<f32>, InOut<f32>)>::new("axpy")
    ///     .require("both have one length", |_grid, (_, x, y)| x.len() == y.len())
    ///     .host_each(|i, (a, x, y)| *y += a * x[i]);
    /// let slope = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("slope")
    ///     .require("both have one shape", |_grid, (src, dst)| src.shape() == dst.shape())
    ///     .host_each(|(i, j), (src, dst)| *dst = src[[i, j]] - src[[i, j.saturating_sub(1)]]);
    ///
    /// let _here = Device::cpu().enter();
    /// let x = SmartArray::<f32, _>::ones(100_000);
    /// let mut y = SmartArray::<f32, _>::zeros(100_000);
    /// axpy.launch(Grid::cover(y.len()), (2.0, &x, &mut y))?;
    /// assert_eq!(y.get(99_999)?, 2.0);
    ///
    /// let table = SmartArray::from(Array2::from_shape_fn((300, 400), |(i, j)| (i * j) as f32));
    /// let mut slopes = SmartArray::<f32, _>::uninit((300, 400));
    /// slope.launch((300, 400), (&table, &mut slopes))?;
    /// assert_eq!(slopes.get((7, 20))?, 7.0);
    ///
    /// let two = Kernel::<(Out<f32>, Out<f32>)>::new("two")
    ///     .host_each(|_, (x, y)| (*x, *y) = (1.0, 2.0));
    /// let refused = two.launch(100_000, (&mut y, &mut SmartArray::uninit(5)));
    /// assert!(matches!(refused, Err(Error::Requirement { .. })));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// The outputs have one shape; a launch with others is
    /// [`Requirement`](crate::Error::Requirement), on every device, before anything is copied. They
    /// are all flat or all sized, and there is at least one; the compiler refuses other signatures.
    /// An element of an `Out` has an unspecified value before the call writes it: see
    /// [`Out`](crate::Out).
    ///
    /// The body's thread calls the first elements. If these take more than 20 µs, the other
    /// elements are divided into tasks for all cores, of the same number of neighbours in memory.
    /// So a launch with little work wakes no thread. The order of calls varies, on seeded devices
    /// too. The grid has no influence, except that an empty one (`Grid::cover(0)`) calls nothing.
    /// Nothing is allocated for each element, except by ndarray for views and indices of `IxDyn`
    /// with more than four axes. A body whose result is not one value for each element, such as a
    /// sum, is one for `host`.
    ///
    /// Panics are as in `host`; after the first, few other elements are still called. Calls of this
    /// library that would have to wait return [`InsideKernel`](crate::Error::InsideKernel), in
    /// [`call`](Self::call) too. If the compiler says "type annotations needed" (E0282), write the
    /// signature at [`new`](Self::new).
    #[must_use]
    pub fn host_each(
        self,
        run: impl for<'e> Fn(each::Index<S::Each>, <S::Each as Walk>::Elements<'e>)
        + Send
        + Sync
        + 'static,
    ) -> Self
    where
        S::Each: Walk<Outputs: Indexed>,
    {
        let kernel = self.host(move |_grid, arguments| {
            each::run::<S::Each, _>(S::each_views(arguments), &run);
        });
        kernel.with(|inner| inner.is_each = true)
    }

    /// Sets a body of this library, which writes every element of its outputs.
    pub(crate) fn own_host(
        self,
        run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static,
    ) -> Self {
        self.with_host(Author::Library, run)
    }

    fn with_host(
        self,
        author: Author,
        run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static,
    ) -> Self {
        self.with(|inner| {
            let body = host_body::<S>(Arc::clone(&inner.shown), author, run);
            inner.host = Some(KernelCode::Host(body));
            inner.is_each = false;
        })
    }
}
