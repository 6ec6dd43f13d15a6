//! What becomes of a tensor, calculated with integers of 128 bits.

use std::ops::Range;

use resident::TensorElement;
use resident::dlpark::DlpackFlags;
use resident::dlpark::ffi::{DLDataType, DLDeviceType};

use super::describe::Fields;

/// How a tensor is passed to the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub is_legacy: bool,
    pub is_read_only: bool,
    /// The number of axes that the array's type has.
    pub ndim: Option<usize>,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Refused,
    /// There are no elements.
    Empty,
    Taken(Elements),
}

/// Elements without gaps.
#[derive(Debug)]
pub(super) struct Elements {
    /// The addresses of all bytes.
    pub bytes: Range<i128>,
    /// The address of the element with index 0, 0, ...
    pub first: i128,
    /// In elements; 0 of axes of one index.
    pub strides: Vec<i128>,
    pub shape: Vec<i128>,
}

pub(super) fn verdict<T: TensorElement>(fields: &Fields, call: Call) -> Verdict {
    judged::<T>(fields, call).unwrap_or(Verdict::Refused)
}

/// `None` if the tensor is to be refused.
fn judged<T: TensorElement>(fields: &Fields, call: Call) -> Option<Verdict> {
    let tensor = &fields.tensor;
    let ndim = usize::try_from(tensor.ndim).ok()?;
    let is_newer = !call.is_legacy && fields.version.minor >= 2;
    let is_described = ndim == 0 || (fields.has_shape && (fields.has_strides || !is_newer));
    let is_of_version = call.is_legacy || fields.version.major == 1;
    let is_writable = call.is_legacy || !fields.flags.contains(DlpackFlags::READ_ONLY);
    let is_here = tensor.device.device_type == DLDeviceType::CPU && tensor.device.device_id == 0;
    let is_element = |dtype: DLDataType| {
        let of = |dtype: DLDataType| (dtype.code.0, dtype.bits, dtype.lanes);
        of(tensor.dtype) == of(dtype)
    };
    let is_bool = is_element(DLDataType::BOOL) && T::DTYPE.matches(DLDataType::U8);
    let is_right = is_described
        && is_of_version
        && (is_writable || call.is_read_only)
        && is_here
        && (is_element(T::DTYPE) || is_bool)
        && call.ndim.is_none_or(|expected| expected == ndim);
    if !is_right {
        return None;
    }
    let shape: Vec<i128> = fields.shape[..ndim].iter().map(|len| i128::from(*len)).collect();
    let element_bytes = size_of::<T>() as i128;
    expect_countable(&shape, element_bytes)?;
    if shape.contains(&0) {
        return Some(Verdict::Empty);
    }
    let strides = strides_of(fields, &shape);
    let (above, below) = extent(&shape, &strides)?;
    let first = Some(tensor.data.addr() as i128).filter(|data| *data != 0)?
        + i128::from(tensor.byte_offset);
    let start = first - below * element_bytes;
    let end = first + (above + 1) * element_bytes;
    let is_aligned = start % align_of::<T>() as i128 == 0;
    let is_addressable = start > 0 && first.max(end) <= i128::from(u64::MAX);
    (is_aligned && is_addressable).then_some(Verdict::Taken(Elements {
        bytes: start..end,
        first,
        strides,
        shape,
    }))
}

/// Elements are counted in 64 bits: their bytes as ndarray counts them, without axes of length 0;
/// and their bits.
fn expect_countable(shape: &[i128], element_bytes: i128) -> Option<()> {
    let mut counted = element_bytes;
    for len in shape {
        if *len < 0 {
            return None;
        }
        // Below 2 to the 63rd before, and so below 2 to the 126th.
        counted *= (*len).max(1);
        if counted > i128::from(i64::MAX) {
            return None;
        }
    }
    let is_empty = shape.contains(&0);
    (is_empty || 8 * counted <= i128::from(u64::MAX)).then_some(())
}

/// The strides, row-major if there are none; 0 of axes of one index, which have no meaning.
fn strides_of(fields: &Fields, shape: &[i128]) -> Vec<i128> {
    let mut strides: Vec<i128> = if fields.has_strides {
        fields.strides[..shape.len()].iter().map(|stride| i128::from(*stride)).collect()
    } else {
        (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
    };
    let singles = strides.iter_mut().zip(shape).filter(|(_, len)| **len == 1);
    singles.for_each(|(stride, _)| *stride = 0);
    strides
}

/// How far elements lie above and below the first one, if there are neither gaps nor repetitions.
fn extent(shape: &[i128], strides: &[i128]) -> Option<(i128, i128)> {
    let mut axes: Vec<(i128, i128)> = shape.iter().copied().zip(strides.iter().copied()).collect();
    axes.retain(|(len, _)| *len > 1);
    axes.sort_by_key(|(_, stride)| stride.abs());
    let (mut expected, mut above, mut below) = (1, 0, 0);
    for (len, stride) in axes {
        if stride.abs() != expected {
            return None;
        }
        expected *= len;
        above += (len - 1) * stride.max(0);
        below += (len - 1) * (-stride).max(0);
    }
    Some((above, below))
}
