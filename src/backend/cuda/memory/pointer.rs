//! What the driver knows of an address.

use cudarc::driver::sys::{self, CUpointer_attribute, CUresult};

/// The number of the GPU to which memory at this address belongs; `None` if the driver did not
/// allocate it. A context is current.
pub(crate) fn gpu_of(address: u64) -> Option<usize> {
    let mut ordinal = -1_i32;
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: the driver writes an `int` to `ordinal`, and does not dereference the address.
    let outcome =
        unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address) };
    (outcome == CUresult::CUDA_SUCCESS).then(|| usize::try_from(ordinal).ok()).flatten()
}
