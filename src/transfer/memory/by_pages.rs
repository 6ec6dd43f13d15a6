//! Which copies have memory by pages, and which as a whole.

use crate::device::Device;
use crate::storage::{ArrayState, pages_of};
use crate::transfer::access::request::Request;
use resident_backend::DeviceKind;
use resident_core::layout::{PageTable, Selection};

/// An array of fewer pages of the device has memory as a whole.
const PAGES_MIN: u64 = 16;

/// So does one of fewer bytes on [`Device::cpu`], unless the program limits its memory: addresses
/// and pages come from the system and return to it with each array, whole copies from the pool.
const CPU_BYTES_MIN: u64 = 2 << 20;

/// So does one whose first access leaves out less than this part of its pages: one in so many.
const PART_LEFT_OUT_MIN: usize = 8;

/// An array that takes this part of limited memory, one in so many, or more has memory by pages
/// whatever its first access: later ones may use parts of it beside others.
const PART_OF_LIMIT_MIN: u64 = 8;

impl Request<'_> {
    /// The pages of a new copy, if it is to have memory for those that are accessed.
    pub(super) fn page_table(&self, state: &ArrayState, device: &Device) -> Option<PageTable> {
        let len_bytes = self.storage.memory_order().len_bytes();
        let unit_bytes = device.properties().page_bytes?.max(1);
        if state.is_explicit() || len_bytes.div_ceil(unit_bytes) < PAGES_MIN {
            return None;
        }
        if takes_much_of(device, len_bytes, unit_bytes) {
            return Some(PageTable::new(len_bytes, unit_bytes));
        }
        let is_small = || len_bytes < CPU_BYTES_MIN && is_unlimited_cpu(device);
        if matches!(self.selection, Selection::Whole) || is_small() {
            return None;
        }
        let table = PageTable::new(len_bytes, unit_bytes);
        self.leaves_out_pages(&table).then_some(table)
    }

    /// Whether the access leaves out enough pages for memory by pages to pay.
    fn leaves_out_pages(&self, table: &PageTable) -> bool {
        let pages = pages_of(table, self.storage.memory_order(), self.selection);
        let accessed: usize = pages.iter().map(ExactSizeIterator::len).sum();
        (table.page_count() - accessed) * PART_LEFT_OUT_MIN >= table.page_count()
    }

    /// Whether the array's copy on the device has memory as a whole, and the accessed part would
    /// have it by pages: so the copy keeps more memory than the access needs.
    pub(crate) fn keeps_too_much(&self, device: &Device) -> bool {
        let state = self.storage.lock();
        let Some(location) = state.find_location(device) else { return false };
        let copy = state.device_copy(location);
        let table = || self.page_table(&state, device);
        location != state.host_location()
            && copy.reserved().is_none()
            && copy.has_memory()
            && table().is_some_and(|table| self.leaves_out_pages(&table))
    }
}

/// Whether so many bytes are much of a device's memory, which the program has limited. A GPU's last
/// page is as long as the others, so that whole arrays of broken pages would need more memory.
fn takes_much_of(device: &Device, len_bytes: u64, unit_bytes: u64) -> bool {
    let is_exact = device.kind() == DeviceKind::Cpu || len_bytes.is_multiple_of(unit_bytes);
    is_exact && device.bytes_max().is_some_and(|max| len_bytes >= max / PART_OF_LIMIT_MIN)
}

/// Whether this is [`Device::cpu`], and its memory has no limit.
fn is_unlimited_cpu(device: &Device) -> bool {
    let is_cpu = device.kind() == DeviceKind::Cpu && device.emulation().is_none();
    is_cpu && device.memory_limit().is_none()
}
