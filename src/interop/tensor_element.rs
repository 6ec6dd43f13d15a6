//! Which elements tensors of other libraries have.

use dlpark::ffi::{DLDataType, DLDataTypeCode};
use half::{bf16, f16};
use num_complex::Complex;

use crate::element::Element;

/// An element for which DLPack has a type: integers, floats, the numbers of `half`, and the complex
/// numbers of `num_complex`. Implement it for a type of your own that has the same bytes as one of
/// these.
///
/// # Safety
///
/// [`DTYPE`](Self::DTYPE) has one lane, and as many bits as the type.
pub unsafe trait TensorElement: Element {
    /// The type in DLPack's terms.
    const DTYPE: DLDataType;
}

macro_rules! tensor_elements {
    ($($element:ty: $code:ident),+ $(,)?) => {
        $(
            // SAFETY: there is one lane, and the bits are those of the type's size.
            unsafe impl TensorElement for $element {
                const DTYPE: DLDataType =
                    DLDataType::scalar(DLDataTypeCode::$code, 8 * size_of::<$element>() as u8);
            }
        )+
    };
}

tensor_elements! {
    i8: INT, i16: INT, i32: INT, i64: INT,
    u8: UINT, u16: UINT, u32: UINT, u64: UINT,
    f16: FLOAT, f32: FLOAT, f64: FLOAT, bf16: BFLOAT,
    Complex<f32>: COMPLEX, Complex<f64>: COMPLEX,
}

/// Whether elements of this type are values of `T`. Those of `bool` are bytes, which come in as
/// `u8`.
pub(super) fn are_values_of<T: TensorElement>(dtype: DLDataType) -> bool {
    let is_byte = T::DTYPE.matches(DLDataType::U8);
    dtype.matches(T::DTYPE) || (is_byte && dtype.matches(DLDataType::BOOL))
}
