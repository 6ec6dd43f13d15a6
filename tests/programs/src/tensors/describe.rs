//! Tensors as other code describes them: fields of any value, behind pointers that are null or lead
//! to memory.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::Arbitrary;
use resident::dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackVersion,
    DLTensor,
};
use resident::dlpark::{DlpackFlags, ManagedTensorBase};

use super::MEMORY_BYTES;

/// There are so many lengths and strides behind each pointer, which no tensor claims to exceed.
pub(super) const NDIM_MAX: usize = 8;

/// A number of any size, limits and powers of two more often than others.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Small(i8),
    Limit(u8),
    AroundPower(u8, i8),
    Any(i64),
}

#[derive(Arbitrary, Debug)]
enum Strides {
    Rows,
    /// Without gaps: the axes in an order, some of them from the last index to the first.
    Ordered {
        order: [u8; NDIM_MAX],
        reversed: u8,
    },
    Given([Number; NDIM_MAX]),
}

/// What is unusual about a tensor.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Oddity {
    Ndim(i32),
    NoShape,
    NoStrides,
    NoData,
    ByteOffset(Number),
    /// Of one axis.
    Len(u8, Number),
    Stride(u8, Number),
    Code(u8),
    Bits(u8),
    Lanes(u16),
    Bool,
    DeviceType(u32),
    DeviceId(i32),
    Flags(u64),
    Version(u32, u32),
    NoDeleter,
}

/// A tensor, described by a program.
#[derive(Arbitrary, Debug)]
pub(super) struct Tensor {
    ndim: u8,
    lens: [u8; NDIM_MAX],
    strides: Strides,
    /// Where the element with index 0, 0, ... is, in elements, and in bytes before it.
    first: u8,
    data_bytes: u8,
    oddities: Vec<Oddity>,
}

/// The fields, as they are behind the pointers.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub tensor: DLTensor,
    pub shape: [i64; NDIM_MAX],
    pub strides: [i64; NDIM_MAX],
    pub has_shape: bool,
    pub has_strides: bool,
    pub flags: DlpackFlags,
    pub version: DLPackVersion,
    pub has_deleter: bool,
}

impl Number {
    fn value(self) -> i64 {
        match self {
            Self::Small(value) => value.into(),
            Self::Limit(number) => {
                let limits = [i64::MIN, i64::MIN + 1, i64::MIN / 16, i64::MAX / 16, i64::MAX];
                limits[usize::from(number) % limits.len()]
            }
            Self::AroundPower(shift, plus) => (1_i64 << (shift % 64)).wrapping_add(plus.into()),
            Self::Any(value) => value,
        }
    }
}

impl Tensor {
    /// The tensor's fields, for elements of this type in the memory from `start` on.
    pub(super) fn fields(&self, dtype: DLDataType, start: *mut u8) -> Fields {
        let ndim = usize::from(self.ndim) % 5;
        let mut shape = self.lens.map(|len| i64::from(len % 6));
        shape[ndim..].fill(1);
        let strides = self.strides.of(&shape[..ndim]);
        let element_bytes = usize::from(dtype.bits / 8);
        let data_bytes = usize::from(self.data_bytes % 32) * (MEMORY_BYTES / 32);
        let mut fields = Fields {
            tensor: DLTensor {
                data: start.wrapping_add(data_bytes).cast(),
                device: DLDevice::CPU,
                ndim: ndim as i32,
                dtype,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: (usize::from(self.first) * element_bytes) as u64,
            },
            shape,
            strides,
            has_shape: true,
            has_strides: true,
            flags: DlpackFlags::empty(),
            version: DLPackVersion::default(),
            has_deleter: true,
        };
        self.oddities.iter().take(3).for_each(|oddity| oddity.apply(&mut fields));
        fields
    }
}

impl Strides {
    fn of(&self, shape: &[i64]) -> [i64; NDIM_MAX] {
        let rows: [u8; NDIM_MAX] = std::array::from_fn(|axis| (NDIM_MAX - axis) as u8);
        let (order, reversed) = match self {
            Self::Rows => (&rows, 0),
            Self::Ordered { order, reversed } => (order, *reversed),
            Self::Given(strides) => return strides.map(Number::value),
        };
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        axes.sort_by_key(|axis| order[*axis]);
        let (mut strides, mut stride) = ([0; NDIM_MAX], 1);
        for axis in axes {
            strides[axis] = if reversed >> axis & 1 == 0 { stride } else { -stride };
            stride *= shape[axis].max(1);
        }
        strides
    }
}

impl Oddity {
    fn apply(self, fields: &mut Fields) {
        let tensor = &mut fields.tensor;
        match self {
            Self::Ndim(ndim) => tensor.ndim = ndim.min(NDIM_MAX as i32),
            Self::NoShape => fields.has_shape = false,
            Self::NoStrides => fields.has_strides = false,
            Self::NoData => tensor.data = std::ptr::null_mut(),
            Self::ByteOffset(number) => tensor.byte_offset = number.value() as u64,
            Self::Len(axis, number) => {
                fields.shape[usize::from(axis) % NDIM_MAX] = number.value();
            }
            Self::Stride(axis, number) => {
                fields.strides[usize::from(axis) % NDIM_MAX] = number.value();
            }
            Self::Code(code) => tensor.dtype.code = DLDataTypeCode(code),
            Self::Bits(bits) => tensor.dtype.bits = bits,
            Self::Lanes(lanes) => tensor.dtype.lanes = lanes,
            Self::Bool => tensor.dtype = DLDataType::BOOL,
            Self::DeviceType(kind) => tensor.device.device_type = DLDeviceType(kind),
            Self::DeviceId(id) => tensor.device.device_id = id,
            Self::Flags(flags) => fields.flags = DlpackFlags::from_bits_retain(flags),
            Self::Version(major, minor) => fields.version = DLPackVersion { major, minor },
            Self::NoDeleter => fields.has_deleter = false,
        }
    }
}

/// A tensor in the memory of the code that made it, until its deleter is called.
pub(super) struct Described<M> {
    managed: M,
    fields: Fields,
    freed: Arc<AtomicUsize>,
}

/// The two forms of tensors.
pub(super) trait TensorForm: ManagedTensorBase + Sized + 'static {
    /// Sets what only one of the forms has.
    fn set(&mut self, _flags: DlpackFlags, _version: DLPackVersion) {}
}

impl TensorForm for resident::dlpark::ffi::DLManagedTensor {}

impl TensorForm for DLManagedTensorVersioned {
    fn set(&mut self, flags: DlpackFlags, version: DLPackVersion) {
        (self.flags, self.version) = (flags, version);
    }
}

impl<M: TensorForm> Described<M> {
    /// The tensor, on the heap. Its deleter, if it has one, frees it and counts that in `freed`;
    /// else the caller frees it, with `Box::from_raw`.
    pub(super) fn made(fields: Fields, freed: &Arc<AtomicUsize>) -> *mut Self {
        let has_deleter = fields.has_deleter;
        let managed = M::from_parts(fields.tensor, std::ptr::null_mut(), None);
        let described = Box::new(Self { managed, fields, freed: Arc::clone(freed) });
        let made = Box::into_raw(described);
        // SAFETY: the box was leaked, and nothing else has the pointer yet.
        let Self { managed, fields, .. } = unsafe { &mut *made };
        let deleter: Option<unsafe extern "C" fn(*mut M)> = Some(delete::<M>);
        let mut tensor = fields.tensor;
        if fields.has_shape {
            tensor.shape = fields.shape.as_mut_ptr();
        }
        if fields.has_strides {
            tensor.strides = fields.strides.as_mut_ptr();
        }
        *managed = M::from_parts(tensor, made.cast(), deleter.filter(|_| has_deleter));
        managed.set(fields.flags, fields.version);
        made
    }

    /// The tensor, as other code passes it on.
    pub(super) fn managed(made: *mut Self) -> *mut M {
        // SAFETY: the pointer is that of `made`, whose box is not freed yet.
        unsafe { &raw mut (*made).managed }
    }
}

/// # Safety
///
/// The tensor is one of `made`, and nothing uses it any more.
unsafe extern "C" fn delete<M: ManagedTensorBase>(tensor: *mut M) {
    // SAFETY: the caller passes a tensor that lives.
    let owner: *mut c_void = unsafe { (*tensor).manager_ctx() };
    // SAFETY: `made` leaked the box of this pointer, and this is the only call.
    let described = unsafe { Box::from_raw(owner.cast::<Described<M>>()) };
    described.freed.fetch_add(1, Ordering::SeqCst);
}
