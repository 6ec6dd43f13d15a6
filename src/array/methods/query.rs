//! What arrays and their parts tell of themselves, written once. No answer ever moves data.

/// Methods that ask.
macro_rules! query_methods {
    () => {
        /// Elements along each axis.
        #[must_use]
        pub fn shape(&self) -> &[usize] {
            self.part().layout.shape()
        }

        /// Elements from one to the next along each axis, on the host and on every device: all
        /// copies of an array have one layout.
        #[must_use]
        pub fn strides(&self) -> &[isize] {
            self.part().layout.strides()
        }

        /// Elements along each axis, as ndarray's dimension: what ndarray's constructors take for a
        /// shape.
        #[must_use]
        pub fn raw_dim(&self) -> D {
            self.part().layout.dim().clone()
        }

        /// Elements along each axis, as the tuple that ndarray's `dim` gives: `(rows, columns)`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::s};
        ///
        /// let table = SmartArray::<f32, _>::zeros((3, 4));
        /// let (rows, columns) = table.dim();
        /// assert_eq!((rows, columns, table.ndim(), table.slice(s![0, ..]).ndim()), (3, 4, 2, 1));
        /// ```
        #[must_use]
        pub fn dim(&self) -> D::Pattern {
            self.raw_dim().into_pattern()
        }

        /// How many axes there are.
        #[must_use]
        pub fn ndim(&self) -> usize {
            self.shape().len()
        }

        /// Elements, over all axes.
        #[must_use]
        pub fn len(&self) -> usize {
            self.part().layout.len()
        }

        /// Bytes of all elements: what a copy of all of this part moves.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::s};
        ///
        /// let table = SmartArray::<f32, _>::zeros((3, 4));
        /// assert_eq!((table.len_bytes(), table.slice(s![.., 1]).len_bytes()), (48, 12));
        /// ```
        #[must_use]
        pub fn len_bytes(&self) -> usize {
            self.len() * size_of::<T>()
        }

        /// Whether there are no elements.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The array's name, by which errors, reports and events speak of it: what
        /// [`named`](crate::SmartArray::named) gave it, else its type, its shape and the line that
        /// made it.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::s};
        ///
        /// let photo = SmartArray::<u8, _>::zeros((3, 4)).named("photo");
        /// assert_eq!(&*photo.slice(s![0, ..]).name(), "photo");                 // a part is called after its array
        /// assert!(SmartArray::<u8, _>::zeros((3, 4)).name().starts_with("u8[3, 4] made at "));
        /// ```
        #[must_use]
        pub fn name(&self) -> Arc<str> {
            self.part().storage.name()
        }

        /// Where this part can be read at the moment of asking. Moves nothing, waits for nothing.
        ///
        /// ```
        /// use resident::{Device, SmartArray, Validity, ndarray::s};
        ///
        /// let device = Device::cpu();
        /// let _here = device.enter();
        /// let mut array = SmartArray::from(vec![0_u16; 100]);
        /// drop(array.slice_mut(s![..30]).gpu_mut()?);                           // a kernel would write the first 30 on the device
        /// assert_eq!(array.residency().host(), Validity::Partial { valid_bytes: 140 });
        /// assert_eq!(array.residency().on(&device), Validity::Partial { valid_bytes: 60 });
        /// assert_eq!(array.slice(s![..30]).residency().on(&device), Validity::Valid);
        /// # Ok::<(), resident::Error>(())
        /// ```
        #[must_use]
        pub fn residency(&self) -> Residency {
            self.part().residency()
        }

        /// What the whole array has moved since it was made: copies and bytes. Moves nothing.
        ///
        /// ```
        /// use resident::{Device, SmartArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let array = SmartArray::from(vec![0_u64; 100]);
        /// drop(array.gpu()?);
        /// drop(array.gpu()?);                                                   // is there already
        /// assert_eq!((array.traffic().to_device.count, array.traffic().to_device.bytes), (1, 800));
        /// # Ok::<(), resident::Error>(())
        /// ```
        #[must_use]
        pub fn traffic(&self) -> Traffic {
            self.part().storage.lock().traffic()
        }

        /// Whether elements lie row by row without gaps, the last axis fastest. Axes of length 1 do
        /// not count, as in NumPy's relaxed strides.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::{ShapeBuilder, s}};
        ///
        /// let (rows, columns) = (SmartArray::<f32, _>::zeros((3, 4)), SmartArray::<f32, _>::zeros((3, 4).f()));
        /// assert!(rows.is_c_contiguous() && !rows.is_f_contiguous());
        /// assert!(columns.is_f_contiguous() && !columns.is_c_contiguous());
        /// assert!(rows.slice(s![1.., ..]).is_c_contiguous());                   // whole rows
        /// assert!(!rows.slice(s![.., 1..]).is_c_contiguous());                  // gaps between them
        /// ```
        #[must_use]
        pub fn is_c_contiguous(&self) -> bool {
            self.part().layout.is_c_contiguous()
        }

        /// Whether elements lie column by column without gaps, the first axis fastest: see
        /// [`is_c_contiguous`](Self::is_c_contiguous).
        #[must_use]
        pub fn is_f_contiguous(&self) -> bool {
            self.part().layout.is_f_contiguous()
        }
    };
}

pub(super) use query_methods;
