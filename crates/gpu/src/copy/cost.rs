//! The choice between the ways to copy boxes between the host and a device. This module only
//! computes; it calls no driver.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::shape;
use resident_backend::{CopyBox, Footprint, environment};

type Parts = SmallVec<[CopyBox; 1]>;

/// The driver calls of a packed copy beside the copies of its parts: to allocate the block, to copy
/// it over the link, and to free it.
const CALLS_OF_BLOCK: u64 = 3;

/// A packed copy must be this many times as fast as the others, since its costs are estimates.
const GAIN_MIN: u64 = 2;

/// Longer copies are not packed, because the pool keeps the block's memory.
const BLOCK_BYTES_MAX: u64 = 64 << 20;

/// A way to copy boxes between the host and a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// One driver call for each shape, over the link.
    Direct,
    /// One call for the whole range, from the first byte to the last. The host unpacks it.
    ReadBetween,
    /// One call for a block of device memory that has the parts one after another. Copies on the
    /// device pack or unpack it.
    Packed,
}

/// The ways that a copy may take beside the direct one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    pub read_between: bool,
    pub pack: bool,
}

/// What a copy costs beside its bytes, in bytes that the link transfers in the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Of one driver call: about 6 µs at 25 GB/s. The environment variable
    /// `RESIDENT_COPY_CALL_BYTES` overrides it.
    call_bytes: u64,
    /// Of one row of a copy of several rows over the link, at least: about 10 ns at 25 GB/s. The
    /// environment variable `RESIDENT_COPY_ROW_BYTES` overrides it.
    row_bytes: u64,
    /// Of one short row of a copy on the device: about 1.3 ns at 25 GB/s. The environment variable
    /// `RESIDENT_COPY_DEVICE_ROW_BYTES` overrides it.
    device_row_bytes: u64,
}

impl Costs {
    const DEFAULT: Self = Self { call_bytes: 150_000, row_bytes: 256, device_row_bytes: 32 };

    /// The costs, with the environment's values. Devices have refused a variable that is wrong.
    pub(crate) fn current() -> Self {
        static CURRENT: OnceLock<Costs> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::read().unwrap_or(Self::DEFAULT))
    }

    /// The error says which variable has a value that cannot be used.
    pub(crate) fn read() -> Result<Self, String> {
        let number = |variable, default| {
            let value = environment::number(variable, 0..=u64::from(u32::MAX))?;
            Ok::<u64, String>(value.unwrap_or(default))
        };
        let Self { call_bytes, row_bytes, device_row_bytes } = Self::DEFAULT;
        Ok(Self {
            call_bytes: number("RESIDENT_COPY_CALL_BYTES", call_bytes)?,
            row_bytes: number("RESIDENT_COPY_ROW_BYTES", row_bytes)?,
            device_row_bytes: number("RESIDENT_COPY_DEVICE_ROW_BYTES", device_row_bytes)?,
        })
    }

    /// The fastest of the ways that are allowed.
    pub(crate) fn fastest(&self, parts: &[CopyBox], pitch_bytes_max: u64, allowed: Allowed) -> Way {
        let may_pack = allowed.pack && parts.iter().any(|part| !part.axes.is_empty());
        if !may_pack && !allowed.read_between {
            return Way::Direct;
        }
        let mut calls = 0;
        parts.iter().for_each(|part| shape::for_each(part, pitch_bytes_max, &mut |_| calls += 1));
        self.fastest_of_calls(parts, calls, allowed)
    }

    /// As [`fastest`](Self::fastest), of parts that take this many calls.
    fn fastest_of_calls(&self, parts: &[CopyBox], calls: u64, allowed: Allowed) -> Way {
        let direct = self.of_calls(calls).saturating_add(self.of_rows_over_link(parts));
        let (start, end) = source_range(parts);
        let between = (end - start).saturating_add(self.call_bytes);
        let (way, cost) = if allowed.read_between && between < direct {
            (Way::ReadBetween, between)
        } else {
            (Way::Direct, direct)
        };
        let packed = allowed.pack.then(|| self.of_packed(parts, calls)).flatten();
        let is_packed = packed.is_some_and(|packed| packed.saturating_mul(GAIN_MIN) <= cost);
        if is_packed { Way::Packed } else { way }
    }

    fn of_calls(&self, calls: u64) -> u64 {
        calls.saturating_mul(self.call_bytes)
    }

    /// The parts' bytes, or more if their rows are short.
    fn of_rows_over_link(&self, parts: &[CopyBox]) -> u64 {
        let of_part = |part: &CopyBox| {
            let least = if part.axes.is_empty() { 0 } else { self.row_bytes };
            rows(part).saturating_mul(part.run_bytes.max(least))
        };
        parts.iter().map(of_part).fold(0, u64::saturating_add)
    }

    /// The cost of a copy by way of a block; `None` if the block would be too long or empty. A
    /// device copies the bytes of a short row as fast as one byte, so only the rows count there.
    /// Long rows cost as much over the link as without the block, which then never pays.
    fn of_packed(&self, parts: &[CopyBox], calls: u64) -> Option<u64> {
        let len_bytes = parts.iter().map(CopyBox::len_bytes).fold(0, u64::saturating_add);
        let rows = parts.iter().map(rows).fold(0, u64::saturating_add);
        let over_link =
            len_bytes.saturating_add(self.of_calls(calls.saturating_add(CALLS_OF_BLOCK)));
        let cost = over_link.saturating_add(rows.saturating_mul(self.device_row_bytes));
        (1..=BLOCK_BYTES_MAX).contains(&len_bytes).then_some(cost)
    }
}

fn rows(part: &CopyBox) -> u64 {
    part.axes.iter().map(|(count, ..)| *count).fold(1, u64::saturating_mul)
}

/// The offsets of the first byte of the source and of that after the last.
fn source_range(parts: &[CopyBox]) -> (u64, u64) {
    let start = parts.iter().map(|part| part.source_offset_bytes).min().unwrap_or(0);
    let end = parts.iter().filter_map(CopyBox::source_end_bytes).max().unwrap_or(0);
    (start, end.max(start))
}

/// The two steps of a download through `len_bytes` bytes of staging memory.
#[derive(Debug)]
pub(crate) struct DownloadPlan {
    /// The copies from the device to staging memory.
    pub to_staging: Parts,
    /// The copies from staging memory to the destination.
    pub from_staging: Parts,
    pub len_bytes: u64,
}

impl DownloadPlan {
    /// The plan of a way that the parts take.
    pub(crate) fn of_way(way: Way, parts: &[CopyBox]) -> Self {
        match way {
            Way::ReadBetween => Self::covering(parts),
            Way::Direct | Way::Packed => Self::packed(parts),
        }
    }

    /// One run that covers all parts.
    fn covering(parts: &[CopyBox]) -> Self {
        let (start, end) = source_range(parts);
        let len_bytes = end - start;
        let run = Footprint::run(start, len_bytes).copy_from_packed(0).reversed();
        let from_run = |part: &CopyBox| CopyBox {
            source_offset_bytes: part.source_offset_bytes - start,
            ..part.clone()
        };
        let from_staging = parts.iter().map(from_run).collect();
        Self { to_staging: SmallVec::from_iter([run]), from_staging, len_bytes }
    }

    /// All parts packed one after another.
    fn packed(parts: &[CopyBox]) -> Self {
        let (mut to_staging, mut from_staging) = (Parts::new(), Parts::new());
        let mut len_bytes = 0;
        for part in parts {
            to_staging.push(part.source().copy_from_packed(len_bytes).reversed());
            from_staging.push(part.destination().copy_from_packed(len_bytes));
            len_bytes += part.len_bytes();
        }
        Self { to_staging, from_staging, len_bytes }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{Allowed, Costs, DownloadPlan, Way};
    use resident_backend::CopyBox;

    const COSTS: Costs = Costs { call_bytes: 150_000, row_bytes: 256, device_row_bytes: 32 };
    const READ_BETWEEN: Allowed = Allowed { read_between: true, pack: false };
    const PACK: Allowed = Allowed { read_between: false, pack: true };
    const EITHER: Allowed = Allowed { read_between: true, pack: true };

    fn plan_by(costs: Costs, parts: &[CopyBox], calls: u64) -> DownloadPlan {
        DownloadPlan::of_way(costs.fastest_of_calls(parts, calls, READ_BETWEEN), parts)
    }

    fn plan(parts: &[CopyBox], calls: u64) -> DownloadPlan {
        plan_by(COSTS, parts, calls)
    }

    fn part(source: u64, destination: u64, axes: &[(u64, u64, u64)]) -> CopyBox {
        CopyBox {
            run_bytes: 4,
            source_offset_bytes: source,
            destination_offset_bytes: destination,
            axes: SmallVec::from_slice(axes),
        }
    }

    #[test]
    fn the_bytes_between_parts_are_read_where_that_is_cheaper_than_a_call() {
        let near = [part(1000, 1000, &[]), part(1100, 1100, &[(2, 8, 8)])];
        assert_eq!(DownloadPlan::packed(&near).len_bytes, 12);
        let covering = plan(&near, 2);
        assert_eq!(
            covering.to_staging.as_slice(),
            [CopyBox { run_bytes: 112, ..part(1000, 0, &[]) }]
        );
        assert_eq!(
            covering.from_staging.as_slice(),
            [part(0, 1000, &[]), part(100, 1100, &[(2, 8, 8)])]
        );
        assert_eq!(covering.len_bytes, 112);
        let far = [part(0, 0, &[]), part(COSTS.call_bytes + 4, 0, &[])];
        assert_eq!(plan(&far, 2).len_bytes, 8);
        assert_eq!(plan(&far, 3).to_staging.len(), 1);
        assert_eq!(plan(&near[..1], 1).len_bytes, 4, "it takes one call anyway");
    }

    #[test]
    fn short_rows_are_read_with_the_bytes_between_them() {
        let len_bytes = |part: CopyBox| plan(&[part], 1).len_bytes;
        let every_second = part(0, 0, &[(1000, 8, 4)]);
        assert_eq!(len_bytes(every_second.clone()), 7996);
        assert_eq!(DownloadPlan::packed(&[every_second]).len_bytes, 4000);
        assert_eq!(len_bytes(part(0, 0, &[(1000, 2000, 4)])), 4000, "a face of a cube");
        let long = CopyBox { run_bytes: 1024, ..part(0, 0, &[(1000, 1100, 1024)]) };
        assert_eq!(len_bytes(long), 1_024_000, "long rows only cost their bytes");
    }

    #[test]
    fn rows_that_cost_less_are_not_read_with_the_bytes_between_them() {
        let every_second = [part(0, 0, &[(1000, 8, 4)])];
        let cheap_rows = Costs { row_bytes: 4, ..COSTS };
        let plan = plan_by(cheap_rows, &every_second, 1);
        assert_eq!(plan.len_bytes, 4000, "it costs no more than its bytes");
    }

    /// Rows of one part: their number, their bytes, and the bytes from one to the next.
    fn rows(count: u64, run_bytes: u64, stride: u64) -> CopyBox {
        CopyBox { run_bytes, ..part(0, 0, &[(count, stride, run_bytes)]) }
    }

    #[test]
    fn short_rows_are_packed_from_the_number_at_which_that_is_twice_as_fast() {
        // 7 calls more at twice the cost: 1,050,000 bytes, which each row has to save.
        let few_and_many =
            [(4, 5_706, 5_707), (2, 5_585, 5_586), (16, 6_562, 6_563), (64, 16_406, 16_407)];
        for (run_bytes, few, many) in few_and_many {
            let way = |count| COSTS.fastest_of_calls(&[rows(count, run_bytes, 1 << 16)], 1, PACK);
            assert_eq!((way(few), way(many)), (Way::Direct, Way::Packed), "{run_bytes} bytes");
        }
        for run_bytes in [96, 256, 4096] {
            let long = [rows(10_000, run_bytes, 1 << 16)];
            assert_eq!(COSTS.fastest_of_calls(&long, 1, PACK), Way::Direct, "{run_bytes} bytes");
        }
    }

    #[test]
    fn rows_are_packed_only_if_that_is_twice_as_fast_as_to_read_between_them() {
        let way = |stride| COSTS.fastest_of_calls(&[rows(100_000, 4, stride)], 1, EITHER);
        assert_eq!([8, 64].map(way), [Way::ReadBetween; 2]);
        assert_eq!([128, 4096].map(way), [Way::Packed; 2]);
        let planes = part(0, 0, &[(300, 1 << 20, 4 * 300), (300, 1 << 10, 4)]);
        assert_eq!(COSTS.fastest_of_calls(&[planes], 1, EITHER), Way::Packed);
    }

    #[test]
    fn nothing_is_packed_that_would_need_a_long_block_or_that_has_no_rows() {
        let long = [rows((16 << 20) + 1, 4, 4096)];
        assert_eq!(COSTS.fastest_of_calls(&long, 1, PACK), Way::Direct);
        assert_eq!(COSTS.fastest_of_calls(&[rows(16 << 20, 4, 4096)], 1, PACK), Way::Packed);
        let lines: Vec<CopyBox> =
            (0..100_000).map(|line| part(4096 * line, 4 * line, &[])).collect();
        assert_eq!(COSTS.fastest(&lines, 1 << 20, PACK), Way::Direct);
        let free_calls = Costs { call_bytes: 0, ..COSTS };
        assert_eq!(free_calls.fastest_of_calls(&lines, 100_000, PACK), Way::Direct);
        let slow_device = Costs { device_row_bytes: 256, ..COSTS };
        assert_eq!(slow_device.fastest_of_calls(&[rows(1 << 20, 4, 4096)], 1, PACK), Way::Direct);
    }

    #[test]
    fn parts_are_packed_one_after_another() {
        let parts = [part(100, 200, &[(3, 50, 60), (2, 8, 12)]), part(7, 9, &[])];
        let DownloadPlan { to_staging, from_staging, len_bytes } = DownloadPlan::packed(&parts);
        assert_eq!(len_bytes, 28);
        assert_eq!(
            to_staging.as_slice(),
            [part(100, 0, &[(3, 50, 8), (2, 8, 4)]), part(7, 24, &[])]
        );
        assert_eq!(
            from_staging.as_slice(),
            [part(0, 200, &[(3, 8, 60), (2, 4, 12)]), part(24, 9, &[])]
        );
    }
}
