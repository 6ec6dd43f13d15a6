//! What work costs in modelled time, and the clocks that events read.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::lane::Lane;
use super::operation::Operation;
use crate::backend::{Capacity, CopyWork, Memory, Work};

/// What a launch, a fill or a copy inside one device costs in modelled time, whatever its size.
pub(super) const WORK_COST: Duration = Duration::from_micros(1);

/// Nanoseconds since the first call of this process, counted from 1, so that 0 means "no time yet".
pub(super) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX - 1) + 1
}

/// What `operation` costs on the modelled clock of a seeded lane.
pub(super) fn modelled_cost(lane: &Lane, operation: &Operation) -> Duration {
    match operation {
        Operation::Upkeep(_) => Duration::ZERO,
        Operation::Work(_) | Operation::Between { .. } => {
            link_cost(lane, operation).unwrap_or(WORK_COST)
        }
    }
}

/// What the link takes for `operation`, if it is a transfer and there is a link.
pub(super) fn link_cost(lane: &Lane, operation: &Operation) -> Option<Duration> {
    let here = lane.device().link;
    match operation {
        Operation::Work(Work::Copy(copy)) if crosses(copy) => {
            here.map(|link| link.transfer_time(copy_bytes(copy)))
        }
        Operation::Between { copy, source } => {
            let len_bytes = copy_bytes(copy);
            here.into_iter().chain(source.link).map(|link| link.transfer_time(len_bytes)).max()
        }
        _ => None,
    }
}

/// Bytes that a copy moves.
pub(super) fn copy_bytes(copy: &CopyWork) -> u64 {
    copy.parts.iter().fold(0, |bytes, part| bytes.saturating_add(part.len_bytes()))
}

/// Whether one end of a copy is host memory.
fn crosses(copy: &CopyWork) -> bool {
    matches!(copy.source, Memory::Host(_)) || matches!(copy.destination, Memory::Host(_))
}

/// What the machine says of its memory, where there is a `/proc/meminfo`.
pub(super) fn machine_memory() -> Option<Capacity> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(Capacity {
        total: meminfo_bytes(&text, "MemTotal:")?,
        free: meminfo_bytes(&text, "MemAvailable:")?,
    })
}

/// A line such as `MemTotal:  16384 kB`.
fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
