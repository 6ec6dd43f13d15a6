//! The limit on the staging memory that a process pins: `RESIDENT_PINNED_MAX`, or an eighth of the
//! machine's memory.

const VARIABLE: &str = "RESIDENT_PINNED_MAX";

/// The limit for all devices together, in bytes.
pub(super) fn limit_bytes() -> u64 {
    let set = std::env::var(VARIABLE).ok().and_then(|text| parse_bytes(&text));
    set.unwrap_or_else(|| machine_bytes().map_or(1 << 30, |bytes| bytes / 8))
}

/// A number of bytes, with k, M or G for powers of 1,024.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1 << 10),
        'm' | 'M' => (&text[..text.len() - 1], 1 << 20),
        'g' | 'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// The memory that this process may use, if the system reports it: the memory of the machine, or
/// the limit of the container.
fn machine_bytes() -> Option<u64> {
    const CONTAINER_LIMITS: [&str; 2] =
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // Without a limit the file contains "max", or a number larger than any machine's memory.
    let limits = CONTAINER_LIMITS
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.chain(installed_bytes()).min()
}

fn installed_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn bytes_are_parsed_with_their_unit() {
        assert_eq!(
            ["4096", "64k", " 2 G ", "3M"].map(parse_bytes),
            [Some(4096), Some(64 << 10), Some(2 << 30), Some(3 << 20)]
        );
        assert_eq!(["", "lots", "-1", "99999999999G"].map(parse_bytes), [None; 4]);
    }
}
