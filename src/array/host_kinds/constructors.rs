//! The constructors that all kinds of host memory share: each is written once, in a macro. A type
//! has `allocated`, which gives memory to an array without any, and `with_zeros`, which gives it
//! memory of zeros.

/// `$memory` says what memory it is. The attributes document the errors of its allocation.
macro_rules! constructors {
    ($type:ident, $options:ty, $memory:literal, $(#[$error:meta])+) => {
        #[doc = concat!("An array of zeros in ", $memory, ".")]
        ///
        /// # Errors
        ///
        /// - [`NoDevice`](crate::Error::NoDevice) if there is no current device.
        $(#[$error])+
        ///
        /// # Panics
        ///
        /// Like ndarray's constructors, if the shape overflows an `isize`, in elements or in bytes.
        #[track_caller]
        pub fn zeros(shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
            let site = call_site();
            Self::with_zeros(SmartArray::uninit_at(shape, site), Default::default(), site)
        }

        #[doc = concat!("A copy of an array or view of the host in ", $memory, ", in its axis")]
        /// order if it has no gaps, else row-major.
        ///
        /// ```
        #[doc = concat!("use resident::{Device, ", stringify!($type), ", ndarray::array};")]
        ///
        /// let _here = Device::cpu().enter();
        #[doc = concat!("let table = ", stringify!($type), "::from_array(array![[1], [2]])?;")]
        /// assert_eq!(table.into_array()?, array![[1], [2]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`zeros`](Self::zeros).
        #[track_caller]
        pub fn from_array<S: Data<Elem = T>>(array: ArrayBase<S, D>) -> Result<Self> {
            Self::copied(&array, Default::default(), call_site())
        }

        fn copied(from: &ArrayRef<T, D>, options: $options, site: CallSite) -> Result<Self> {
            let layout = Layout::new(from.raw_dim(), from.strides(), 0);
            let mut made = Self::allocated(SmartArray::uninit_in(&layout, site)?, options, site)?;
            made.host_overwrite()?.assign(from);
            Ok(made)
        }
    };
}

/// Constructors with options of the driver's allocation.
macro_rules! constructors_with_options {
    ($type:ident) => {
        /// As [`zeros`](Self::zeros), with options of the driver's allocation.
        ///
        /// ```
        #[doc = concat!("use resident::{Device, ", stringify!($type), ", PinnedOptions};")]
        ///
        /// let _here = Device::cpu().enter();
        /// let options = PinnedOptions::new().write_combined(true);      // the host only writes it
        #[doc = concat!(
            "let mut samples = ", stringify!($type), "::<f32, _>::zeros_with(1000, options)?;"
        )]
        /// samples.host_overwrite()?.fill(0.5);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`zeros`](Self::zeros).
        ///
        /// # Panics
        ///
        /// As [`zeros`](Self::zeros).
        #[track_caller]
        pub fn zeros_with(
            shape: impl ShapeBuilder<Dim = D>,
            options: PinnedOptions,
        ) -> Result<Self> {
            let site = call_site();
            Self::with_zeros(SmartArray::uninit_at(shape, site), options, site)
        }

        /// As [`from_array`](Self::from_array), with options of the driver's allocation.
        ///
        /// # Errors
        ///
        /// As [`zeros`](Self::zeros).
        #[track_caller]
        pub fn from_array_with<S: Data<Elem = T>>(
            array: ArrayBase<S, D>,
            options: PinnedOptions,
        ) -> Result<Self> {
            Self::copied(&array, options, call_site())
        }
    };
}

pub(super) use {constructors, constructors_with_options};
