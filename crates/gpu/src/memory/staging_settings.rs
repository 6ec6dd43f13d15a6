//! How copies with pageable memory are staged, as environment variables say: how much memory a
//! process pins for them, and into which chunks large copies are split.

use std::env::{self, VarError};

/// The limit on the staging memory that a process pins, or an eighth of the machine's memory.
const LIMIT_VARIABLE: &str = "RESIDENT_PINNED_MAX";

/// The largest number of bytes that are staged as one operation.
const CHUNK_VARIABLE: &str = "RESIDENT_CHUNK_BYTES";

/// The largest number of these operations in flight.
const IN_FLIGHT_VARIABLE: &str = "RESIDENT_CHUNKS_MAX";

/// Large enough that the cost of a driver call is negligible, small enough that the chunks in
/// flight stay in the host's caches.
const CHUNK_BYTES: u64 = 4 << 20;

/// Half of them are packed, by several threads, while the device copies the other half.
const CHUNKS_IN_FLIGHT: usize = 8;

const CHUNK_BYTES_RANGE: [u64; 2] = [64 << 10, 1 << 30];
const CHUNKS_IN_FLIGHT_RANGE: [u64; 2] = [1, 1024];

/// See the variables above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StagingSettings {
    /// For all devices together.
    pub limit_bytes: u64,
    pub chunk_bytes_max: u64,
    pub chunks_in_flight_max: usize,
}

impl StagingSettings {
    /// The settings of this process. The error says which variable has a value that cannot be used.
    pub(crate) fn read() -> Result<Self, String> {
        let limit = env::var(LIMIT_VARIABLE).ok().and_then(|text| parse_bytes(&text));
        let limit_or_default =
            || limit.unwrap_or_else(|| machine_bytes().map_or(1 << 30, |bytes| bytes / 8));
        let set = |variable, range| number_in(variable, env::var(variable), range);
        let chunk_bytes = set(CHUNK_VARIABLE, CHUNK_BYTES_RANGE)?;
        let in_flight = set(IN_FLIGHT_VARIABLE, CHUNKS_IN_FLIGHT_RANGE)?;
        Ok(Self {
            limit_bytes: limit_or_default(),
            chunk_bytes_max: chunk_bytes.unwrap_or(CHUNK_BYTES),
            chunks_in_flight_max: in_flight.map_or(CHUNKS_IN_FLIGHT, |count| count as usize),
        })
    }
}

/// The number that a variable has, if it is set. The error names the range of allowed values.
fn number_in(
    variable: &str,
    value: Result<String, VarError>,
    [least, most]: [u64; 2],
) -> Result<Option<u64>, String> {
    let text = match value {
        Err(VarError::NotPresent) => return Ok(None),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
        Ok(text) => text,
    };
    match parse_bytes(&text).filter(|number| (least..=most).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(format!(
            "{variable}={text}: expected a number from {least} to {most}, as in 8388608 or 8M; set \
             it so, or unset it"
        )),
    }
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
    use super::{number_in, parse_bytes};

    #[test]
    fn a_number_outside_its_range_is_an_error_that_names_the_variable() {
        let number = |text: &str| number_in("SOME_VARIABLE", Ok(text.to_owned()), [4, 4096]);
        assert_eq!((number("4"), number("4k")), (Ok(Some(4)), Ok(Some(4096))));
        for text in ["3", "5k", "many", ""] {
            let message = number(text).expect_err("not in range");
            assert!(message.contains(&format!("SOME_VARIABLE={text}:")), "{message}");
            assert!(message.contains("from 4 to 4096"), "{message}");
        }
    }

    #[test]
    fn bytes_are_parsed_with_their_unit() {
        assert_eq!(
            ["4096", "64k", " 2 G ", "3M"].map(parse_bytes),
            [Some(4096), Some(64 << 10), Some(2 << 30), Some(3 << 20)]
        );
        assert_eq!(["", "lots", "-1", "99999999999G"].map(parse_bytes), [None; 4]);
    }
}
