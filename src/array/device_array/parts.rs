//! Methods of device arrays and views that coherent ones do not have, or have in another form.

/// For all device arrays and views.
macro_rules! home_methods {
    () => {
        /// [`len_bytes`](Self::len_bytes), by NumPy's and Numba's name.
        #[doc(hidden)]
        #[must_use]
        pub fn nbytes(&self) -> usize {
            self.len_bytes()
        }

        /// The device that has the elements.
        #[must_use]
        pub fn device(&self) -> Device {
            self.home().clone()
        }
    };
}

/// `$life` is the lifetime of the views: the borrow of `self`, or `'a` for a `DeviceView<'a>`.
macro_rules! explicit_methods {
    ($life:lifetime) => {
        /// In another shape of as many elements, read and laid out in this order. Never copies.
        /// The view is a shared one. [`DeviceViewMut::into_shape`] makes an exclusive one, as
        /// [`SmartViewMut::reshape`](crate::SmartViewMut::reshape) does.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the number of elements differs, or if the elements in
        /// this shape have no strides: [`to_contiguous_in`](Self::to_contiguous_in) makes a copy
        /// that has strides in this order.
        #[track_caller]
        pub fn reshape<S: IntoDimension>(
            &self,
            shape: S,
            order: Order,
        ) -> Result<DeviceView<$life, T, S::Dim>> {
            self.view().into_shape(shape, order)
        }

        /// All elements as one axis, read in this order. As Numba's and NumPy's `ravel`, but never
        /// a copy.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{Order, array}};
        ///
        /// let _here = Device::cpu().enter();
        /// let table = DeviceArray::from_host(&array![[1, 2, 3], [4, 5, 6]])?;
        /// assert_eq!(table.ravel(Order::C)?.copy_to_host()?, array![1, 2, 3, 4, 5, 6]);
        /// assert!(table.ravel(Order::F).is_err());          // column by column needs a copy
        /// let columns = table.to_contiguous_in(Order::F)?;
        /// assert_eq!(columns.ravel(Order::F)?.copy_to_host()?, array![1, 4, 2, 5, 3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the elements in this order have no strides:
        /// [`to_contiguous_in`](Self::to_contiguous_in) makes a copy that has strides in this
        /// order.
        #[track_caller]
        pub fn ravel(&self, order: Order) -> Result<DeviceView<$life, T, Ix1>> {
            self.reshape(self.len(), order)
        }

        /// Parts of `section` indices of the first axis, in order; the last part has the rest. As
        /// Numba's `split`.
        ///
        /// ```
        /// use resident::{Device, DeviceArray};
        ///
        /// let line = DeviceArray::<f32, _>::zeros_on(&Device::cpu().stream(), 10)?;
        /// let lens: Vec<_> = line.split(4)?.iter().map(|part| part.len()).collect();
        /// assert_eq!(lens, [4, 4, 2]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Shape`](crate::Error::Shape) if `section` is 0, or if there are no axes.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for the list.
        #[track_caller]
        pub fn split(&self, section: usize) -> Result<Vec<DeviceView<$life, T, D>>> {
            let refused = || self.part().no_sections(section);
            let is_possible = section > 0 && self.ndim() > 0;
            is_possible.then_some(()).ok_or_else(refused).at(call_site())?;
            let mut parts = Vec::new();
            let len = self.shape()[0].div_ceil(section);
            parts.try_reserve_exact(len).map_err(|_full| {
                let each_bytes = size_of::<DeviceView<'_, T, D>>() as u64;
                let requested = (len as u64).saturating_mul(each_bytes);
                crate::error::Error::host_full(&format!("the list of {len} parts"), requested)
                    .at(call_site())
            })?;
            parts.extend(self.axis_chunks_iter(Axis(0), section));
            Ok(parts)
        }
    };
}

pub(super) use {explicit_methods, home_methods};
