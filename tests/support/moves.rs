//! Copies in a form for assertions:
//! `[(uploads, bytes), (downloads, bytes), (copies between devices, bytes)]`; and where contents
//! are valid.

use resident::{Device, Residency, Traffic, Validity};

/// No copies.
pub const NOTHING: [(u64, u64); 3] = [(0, 0); 3];

/// The copies and bytes in each direction.
pub fn moves(traffic: Traffic) -> [(u64, u64); 3] {
    [traffic.to_device, traffic.to_host, traffic.between_devices]
        .map(|flow| (flow.count, flow.bytes))
}

/// What is valid on the host and on a device.
pub fn validity(residency: &Residency, device: &Device) -> [Validity; 2] {
    [residency.host(), residency.on(device)]
}
