//! The host memory that this library pinned, so that copies of memory that is lent for a call need
//! no staging if it is pinned. The driver would tell too, by several calls per copy.

use std::collections::BTreeMap;

use resident_backend::DeviceKind;
use resident_backend::sync::{BackendGuard, BackendLock};

/// The end of each range, by its start: what the driver of one kind of device pinned.
type Ranges = BTreeMap<usize, usize>;

/// By kind of device. No other lock is taken under one of these.
static RANGES: [BackendLock<Ranges>; DeviceKind::COUNT] =
    [const { BackendLock::new(BTreeMap::new()) }; DeviceKind::COUNT];

/// A range of pinned memory, listed until this value drops.
#[derive(Debug)]
pub(super) struct PinnedRange {
    kind: DeviceKind,
    start: usize,
}

impl PinnedRange {
    pub(super) fn new(kind: DeviceKind, start: *mut u8, len_bytes: usize) -> Self {
        let start = start.addr();
        ranges(kind).insert(start, start + len_bytes);
        Self { kind, start }
    }
}

impl Drop for PinnedRange {
    fn drop(&mut self) {
        ranges(self.kind).remove(&self.start);
    }
}

/// Whether all of these bytes lie in one range that this kind of device pinned.
pub(crate) fn covers(kind: DeviceKind, start: *const u8, len_bytes: usize) -> bool {
    let ranges = ranges(kind);
    let before = ranges.range(..=start.addr()).next_back();
    before.is_some_and(|(_, end)| start.addr() + len_bytes <= *end)
}

fn ranges(kind: DeviceKind) -> BackendGuard<'static, Ranges> {
    RANGES[kind as usize].lock()
}

#[cfg(test)]
mod tests {
    use super::PinnedRange;
    use resident_backend::DeviceKind;

    #[test]
    fn parts_of_a_range_are_covered_while_it_is_listed() {
        let covers = |start, len| super::covers(DeviceKind::Cuda, start, len);
        let mut memory = [0_u8; 64];
        let start = memory.as_mut_ptr();
        let range = PinnedRange::new(DeviceKind::Cuda, start.wrapping_add(8), 40);
        assert!(covers(start.wrapping_add(8), 40) && covers(start.wrapping_add(20), 28));
        assert!(!covers(start, 16) && !covers(start.wrapping_add(20), 29));
        assert!(!super::covers(DeviceKind::Hip, start.wrapping_add(8), 40), "another driver's");
        drop(range);
        assert!(!covers(start.wrapping_add(8), 40));
    }
}
