//! Huge pages for large host memory. With them the first use of new memory causes one page fault
//! for each 2 MiB instead of one for each 4 KiB.

/// The length of a huge page. Memory that starts at a multiple of it has no small pages in front.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Shorter memory keeps small pages: part of a huge page would be wasted.
pub const HUGE_PAGES_BYTES_MIN: usize = 4 << 20;

/// Asks the system to back new memory by huge pages, if the memory is long enough. A system that
/// does not offer them ignores this.
#[cfg(target_os = "linux")]
pub fn advise(start: *mut u8, len_bytes: usize) {
    use rustix::mm::{Advice, madvise};

    if len_bytes < HUGE_PAGES_BYTES_MIN {
        return;
    }
    // Whole pages, outwards: an allocator's mapping starts with a header of a few bytes, and advice
    // for part of a mapping would split it.
    let page_bytes = rustix::param::page_size();
    let before_bytes = start.addr() % page_bytes;
    let whole_bytes = (before_bytes + len_bytes).next_multiple_of(page_bytes);
    let first_page = start.wrapping_sub(before_bytes);
    // SAFETY: this advice changes no contents and no mapping, only how the system backs them, so it
    // is also allowed for the bytes of others that share the first or the last page.
    let _without = unsafe { madvise(first_page.cast(), whole_bytes, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
pub fn advise(_start: *mut u8, _len_bytes: usize) {}

#[cfg(target_os = "linux")]
/// Whether the system has been asked for huge pages at this address; `None` if it offers none. For
/// tests.
pub fn is_advised(start: *const u8) -> Option<bool> {
    std::fs::metadata("/sys/kernel/mm/transparent_hugepage").ok()?;
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let mut is_here = false;
    for line in maps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let bound = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            is_here = (bound(from)..bound(to)).contains(&start.addr());
        } else if is_here && first == "VmFlags:" {
            return Some(line.split(' ').any(|flag| flag == "hg"));
        }
    }
    None
}
