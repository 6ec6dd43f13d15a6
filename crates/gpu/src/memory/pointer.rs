//! What the driver knows of an address.

use std::ffi::c_int;

use crate::driver::{Driver, status};
use resident_backend::DeviceKind;

// Attributes of addresses. CUDA and HIP have the same numbers.
const MEMORY_TYPE: c_int = 2;
pub(super) const BUFFER_ID: c_int = 7;
const DEVICE_ORDINAL: c_int = 9;
const RANGE_START: c_int = 11;
const RANGE_BYTES: c_int = 12;

/// Whether the host's memory at this address is registered or allocated by the driver. A context is
/// current.
pub(super) fn is_pinned_host(driver: &Driver, address: u64) -> bool {
    let kind = attribute(driver, address, MEMORY_TYPE);
    kind == Some(driver.vendor.host_memory_type(driver.version()))
}

/// The number of the device that has the memory at an address. A context is current.
pub(crate) fn device_ordinal(driver: &Driver, address: u64) -> Option<usize> {
    // The driver writes 32 bits, -1 for none.
    let ordinal = attribute(driver, address, DEVICE_ORDINAL)?;
    usize::try_from(ordinal as u32 as i32).ok()
}

/// Why this many bytes from an address on are no memory of the device with this number. A context
/// is current.
pub(crate) fn foreign_fault(
    driver: &Driver,
    address: u64,
    len_bytes: u64,
    ordinal: usize,
) -> Option<String> {
    driver.pointer_attribute.as_ref()?;
    let seen = match device_ordinal(driver, address) {
        None => Some(String::from("that the driver does not know")),
        Some(other) if other != ordinal => Some(format!("of device {other}")),
        Some(_) => end_of_range(driver, address)
            .filter(|end| end - address < len_bytes)
            .map(|end| format!("that has {} bytes", end - address)),
    };
    seen.map(|seen| format!("memory at {address:#x} {seen}"))
}

/// The end of the allocation around an address, if the driver writes its length in 64 bits.
fn end_of_range(driver: &Driver, address: u64) -> Option<u64> {
    if driver.vendor.kind != DeviceKind::Cuda {
        return None;
    }
    let start = attribute(driver, address, RANGE_START)?;
    start.checked_add(attribute(driver, address, RANGE_BYTES)?).filter(|end| *end >= address)
}

/// The attribute of an address with this number, of 32 or 64 bits; `None` if the driver did not
/// allocate the memory. A context is current.
pub(super) fn attribute(driver: &Driver, address: u64, number: c_int) -> Option<u64> {
    let ask = driver.pointer_attribute.as_ref()?;
    let mut value = 0_u64;
    // SAFETY: the driver writes 32 or 64 bits to `value`, and does not dereference the address.
    let outcome = unsafe { (ask.function)((&raw mut value).cast(), number, address) };
    (outcome == status::SUCCESS).then_some(value)
}
