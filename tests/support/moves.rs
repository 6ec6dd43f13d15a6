//! What moved, in a form that reads well in an assertion: `[(copies up, bytes up), (copies down,
//! bytes down), (between devices ..)]`.

use resident::Traffic;

/// Nothing moved.
pub const NOTHING: [(u64, u64); 3] = [(0, 0); 3];

/// Copies and bytes up, down and between devices.
pub fn moves(traffic: Traffic) -> [(u64, u64); 3] {
    [traffic.to_device, traffic.to_host, traffic.between_devices]
        .map(|flow| (flow.count, flow.bytes))
}
