//! Methods that query an array or a part. None of them copies elements.

/// Shape, strides and name, for device arrays too.
macro_rules! shape_methods {
    () => {
        /// The length of each axis.
        #[must_use]
        pub fn shape(&self) -> &[usize] {
            self.part().layout.shape()
        }

        /// The stride of each axis, in elements. All copies of an array have the same layout.
        #[must_use]
        pub fn strides(&self) -> &[isize] {
            self.part().layout.strides()
        }

        /// The shape as ndarray's dimension type, which ndarray's constructors take.
        #[must_use]
        pub fn raw_dim(&self) -> D {
            self.part().layout.dim().clone()
        }

        /// The shape as the tuple that ndarray's `dim` returns: `(rows, columns)`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::s};
        ///
        /// let table = SmartArray::<f32, _>::zeros((3, 4));
        /// let (rows, columns) = table.dim();
        /// assert_eq!((rows, columns, table.ndim()), (3, 4, 2));
        /// assert_eq!(table.slice(s![0, ..]).ndim(), 1);
        /// ```
        #[must_use]
        pub fn dim(&self) -> D::Pattern {
            self.raw_dim().into_pattern()
        }

        /// The number of axes.
        #[must_use]
        pub fn ndim(&self) -> usize {
            self.shape().len()
        }

        /// The number of elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.part().layout.len()
        }

        /// The number of bytes of all elements, which is the size of a full copy of this part.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::s};
        ///
        /// let table = SmartArray::<f32, _>::zeros((3, 4));
        /// assert_eq!((table.len_bytes(), table.slice(s![.., 1]).len_bytes()), (48, 12));
        /// ```
        #[must_use]
        pub fn len_bytes(&self) -> usize {
            self.len().saturating_mul(size_of::<T>())
        }

        /// Whether there are no elements.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The array's name in errors, reports and events: the name given to
        /// [`named`](crate::SmartArray::named), else its type, its shape and the line that made it.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::s};
        ///
        /// let photo = SmartArray::<u8, _>::zeros((3, 4)).named("photo");
        /// assert_eq!(&*photo.slice(s![0, ..]).name(), "photo");     // a part has its array's name
        /// let unnamed = SmartArray::<u8, _>::zeros((3, 4));
        /// assert!(unnamed.name().starts_with("u8[3, 4] made at "));
        /// ```
        #[must_use]
        pub fn name(&self) -> Arc<str> {
            self.part().storage.name()
        }

        /// Whether elements are contiguous in row-major order, the last axis fastest. Axes of
        /// length 1 are ignored, as with NumPy's relaxed strides.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::{ShapeBuilder, s}};
        ///
        /// let rows = SmartArray::<f32, _>::zeros((3, 4));
        /// let columns = SmartArray::<f32, _>::zeros((3, 4).f());
        /// assert!(rows.is_c_contiguous() && !rows.is_f_contiguous());
        /// assert!(columns.is_f_contiguous() && !columns.is_c_contiguous());
        /// assert!(rows.slice(s![1.., ..]).is_c_contiguous());       // whole rows
        /// assert!(!rows.slice(s![.., 1..]).is_c_contiguous());      // gaps between them
        /// ```
        #[must_use]
        pub fn is_c_contiguous(&self) -> bool {
            self.part().layout.is_c_contiguous()
        }

        /// Whether elements are contiguous in column-major order, the first axis fastest: see
        /// [`is_c_contiguous`](Self::is_c_contiguous).
        #[must_use]
        pub fn is_f_contiguous(&self) -> bool {
            self.part().layout.is_f_contiguous()
        }
    };
}

/// Residency.
macro_rules! state_methods {
    () => {
        /// A snapshot of where this part is valid. Copies nothing and does not wait.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity, ndarray::s};
        ///
        /// let device = Device::cpu();
        /// let _here = device.enter();
        /// let mut array = SmartArray::from(vec![0_u16; 100]);
        /// drop(array.slice_mut(s![..30]).gpu_mut()?);       // a kernel would write the first 30
        /// assert_eq!(array.residency().host(), Validity::Partial { valid_bytes: 140 });
        /// assert_eq!(array.residency().on(&device), Validity::Partial { valid_bytes: 60 });
        /// assert_eq!(array.slice(s![..30]).residency().on(&device), Validity::Valid);
        /// # Ok::<(), resident::Error>(())
        /// ```
        #[must_use]
        pub fn residency(&self) -> Residency {
            self.part().residency()
        }
    };
}

/// One element, of device arrays too.
macro_rules! get_method {
    () => {
        /// Reads one element where it is newest, and does not change residency. On a device the
        /// call downloads this element and waits for it: to read more than a few elements, use
        /// `host` or `copy_to_host` of a part.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::Array2};
        ///
        /// let _here = Device::cpu().enter();
        /// let table = Array2::from_shape_fn((3, 4), |(row, column)| (10 * row + column) as u32);
        /// let mut table = SmartArray::from(table);
        /// assert_eq!(table.get([2, 1])?, 21);               // from the host
        /// drop(table.gpu_mut()?);
        /// assert_eq!(table.get((2, 1))?, 21);               // from the device: four bytes
        /// assert_eq!(table.traffic().to_host.bytes, 4);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the index is out of bounds; else as
        /// [`SmartArray::host`](crate::SmartArray::host).
        #[doc(alias = "index")]
        #[track_caller]
        pub fn get(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
            self.part().get(index.into_dimension().slice(), call_site())
        }
    };
}

/// Traffic, for device arrays too.
macro_rules! traffic_methods {
    () => {
        /// The number and bytes of the copies made for the whole array since it was created. Moves
        /// nothing. A [`MappedArray`](crate::MappedArray) is never copied, and neither is a
        /// [`ManagedArray`](crate::ManagedArray): its driver moves pages, which is not counted.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let array = SmartArray::from(vec![0_u64; 100]);
        /// drop(array.gpu()?);
        /// drop(array.gpu()?);                                       // already valid there
        /// let uploads = array.traffic().to_device;
        /// assert_eq!((uploads.count, uploads.bytes), (1, 800));
        /// # Ok::<(), resident::Error>(())
        /// ```
        #[must_use]
        pub fn traffic(&self) -> Traffic {
            let storage = self.part().storage;
            storage.lock().traffic(storage.memory_order())
        }
    };
}

pub(in crate::array) use {get_method, shape_methods, state_methods, traffic_methods};
