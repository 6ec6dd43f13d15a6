//! What the driver knows of an address.

use std::ffi::c_int;

use crate::driver::{Driver, status};

/// An attribute of an address. CUDA and HIP have the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PointerAttribute {
    MemoryType = 2,
    BufferId = 7,
    DeviceOrdinal = 9,
}

/// The number of the GPU to which memory at this address belongs; `None` if the driver did not
/// allocate it. A context is current.
pub(crate) fn gpu_of(driver: &Driver, address: u64) -> Option<usize> {
    let ordinal = attribute(driver, address, PointerAttribute::DeviceOrdinal)?;
    // The driver writes 32 bits, -1 for none.
    usize::try_from(ordinal as u32 as i32).ok()
}

/// Whether the host's memory at this address is registered or allocated by the driver. A context is
/// current.
pub(super) fn is_pinned_host(driver: &Driver, address: u64) -> bool {
    let kind = attribute(driver, address, PointerAttribute::MemoryType);
    kind == Some(driver.vendor.host_memory_type(driver.version()))
}

/// An attribute of an address, of 32 or 64 bits. A context is current.
pub(super) fn attribute(driver: &Driver, address: u64, attribute: PointerAttribute) -> Option<u64> {
    let ask = driver.pointer_attribute.as_ref()?;
    let mut value = 0_u64;
    // SAFETY: the driver writes 32 or 64 bits to `value`, and does not dereference the address.
    let outcome = unsafe { (ask.function)((&raw mut value).cast(), attribute as c_int, address) };
    (outcome == status::SUCCESS).then_some(value)
}
