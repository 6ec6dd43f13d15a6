//! The elements with which MPI computes.

use mpi_sys as ffi;
use resident::Element;

mod sealed {
    pub trait Sealed {
        /// MPI's name of the type.
        #[doc(hidden)]
        fn datatype() -> super::Datatype;
    }
}

/// A datatype of MPI.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Datatype(ffi::MPI_Datatype);

/// Elements that can be reduced: `f32`, `f64`, and integers of 8 to 64 bits. Sealed, since MPI has
/// names for these.
#[diagnostic::on_unimplemented(
    message = "MPI does not reduce elements of type `{Self}`",
    note = "`f32`, `f64`, `i8` to `i64` and `u8` to `u64` can be reduced"
)]
pub trait Number: Element + PartialEq + sealed::Sealed {}

/// See [`Number`].
pub(super) fn datatype_of<T: Number>() -> ffi::MPI_Datatype {
    T::datatype().0
}

macro_rules! numbers {
    ($($number:ty: $name:ident),+ $(,)?) => {$(
        impl sealed::Sealed for $number {
            fn datatype() -> Datatype {
                Datatype(constant!($name))
            }
        }

        impl Number for $number {}
    )+};
}

numbers!(
    f32: RSMPI_FLOAT,
    f64: RSMPI_DOUBLE,
    i8: RSMPI_INT8_T,
    i16: RSMPI_INT16_T,
    i32: RSMPI_INT32_T,
    i64: RSMPI_INT64_T,
    u8: RSMPI_UINT8_T,
    u16: RSMPI_UINT16_T,
    u32: RSMPI_UINT32_T,
    u64: RSMPI_UINT64_T,
);
