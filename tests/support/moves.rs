//! Copies in a form for assertions:
//! `[(uploads, bytes), (downloads, bytes), (copies between devices, bytes)]`.

use resident::Traffic;

/// No copies.
pub const NOTHING: [(u64, u64); 3] = [(0, 0); 3];

/// The copies and bytes in each direction.
pub fn moves(traffic: Traffic) -> [(u64, u64); 3] {
    [traffic.to_device, traffic.to_host, traffic.between_devices]
        .map(|flow| (flow.count, flow.bytes))
}
