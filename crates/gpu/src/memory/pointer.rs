//! What the driver knows of an address.

use std::ffi::c_int;

use crate::driver::{Driver, status};

// Attributes of addresses. CUDA and HIP have the same numbers.
const MEMORY_TYPE: c_int = 2;
pub(super) const BUFFER_ID: c_int = 7;

/// Whether the host's memory at this address is registered or allocated by the driver. A context is
/// current.
pub(super) fn is_pinned_host(driver: &Driver, address: u64) -> bool {
    let kind = attribute(driver, address, MEMORY_TYPE);
    kind == Some(driver.vendor.host_memory_type(driver.version()))
}

/// The attribute of an address with this number, of 32 or 64 bits; `None` if the driver did not
/// allocate the memory. A context is current.
pub(crate) fn attribute(driver: &Driver, address: u64, number: c_int) -> Option<u64> {
    let ask = driver.pointer_attribute.as_ref()?;
    let mut value = 0_u64;
    // SAFETY: the driver writes 32 or 64 bits to `value`, and does not dereference the address.
    let outcome = unsafe { (ask.function)((&raw mut value).cast(), number, address) };
    (outcome == status::SUCCESS).then_some(value)
}
