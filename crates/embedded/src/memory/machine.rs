//! The machine's memory, as its operating system reports it.

use resident_backend::Capacity;

/// The machine's memory, on systems with a `/proc/meminfo`.
pub(crate) fn machine_memory() -> Option<Capacity> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(Capacity {
        total: meminfo_bytes(&text, "MemTotal:")?,
        free: meminfo_bytes(&text, "MemAvailable:")?,
    })
}

/// The value of a line such as `MemTotal:  16384 kB`.
fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
