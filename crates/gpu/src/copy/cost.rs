//! The choice between two ways to download several boxes: one driver call for each, or one call for
//! the whole range, unpacked on the host. This module only computes; it calls no driver.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::shape;
use resident_backend::{CopyBox, Footprint, environment};

type Parts = SmallVec<[CopyBox; 1]>;

/// What a download costs beside its bytes, in bytes that the link transfers in the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Of one driver call: about 6 µs at 25 GB/s. The environment variable
    /// `RESIDENT_COPY_CALL_BYTES` overrides it.
    call_bytes: u64,
    /// Of one row of a copy of several rows, at least: about 10 ns at 25 GB/s. The environment
    /// variable `RESIDENT_COPY_ROW_BYTES` overrides it.
    row_bytes: u64,
}

impl Costs {
    const DEFAULT: Self = Self { call_bytes: 150_000, row_bytes: 256 };

    /// The costs, with the environment's values. Devices have refused a variable that is wrong.
    pub(crate) fn current() -> Self {
        static CURRENT: OnceLock<Costs> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::read().unwrap_or(Self::DEFAULT))
    }

    /// The error says which variable has a value that cannot be used.
    pub(crate) fn read() -> Result<Self, String> {
        let number = |variable| environment::number(variable, 0..=u64::from(u32::MAX));
        Ok(Self {
            call_bytes: number("RESIDENT_COPY_CALL_BYTES")?.unwrap_or(Self::DEFAULT.call_bytes),
            row_bytes: number("RESIDENT_COPY_ROW_BYTES")?.unwrap_or(Self::DEFAULT.row_bytes),
        })
    }

    /// The cost of a part without its driver calls: the part's bytes, or more if its rows are
    /// short.
    fn of_part(&self, part: &CopyBox) -> u64 {
        let rows: u64 = part.axes.iter().map(|(count, ..)| count).product();
        let row_bytes =
            if part.axes.is_empty() { part.run_bytes } else { part.run_bytes.max(self.row_bytes) };
        rows.saturating_mul(row_bytes)
    }
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
    /// The cheaper of two ways for a copy that may read the bytes between its parts: pack each part
    /// separately, in as many driver calls as the pitch limit needs; or download everything from
    /// the first byte to the last in one call, and unpack only the parts.
    pub(crate) fn cheapest(parts: &[CopyBox], pitch_bytes_max: u64, costs: Costs) -> Self {
        let mut calls = 0;
        parts.iter().for_each(|part| shape::for_each(part, pitch_bytes_max, &mut |_| calls += 1));
        Self::of_calls(parts, calls, costs)
    }

    fn of_calls(parts: &[CopyBox], calls: u64, costs: Costs) -> Self {
        let start = parts.iter().map(|part| part.source_offset_bytes).min().unwrap_or(0);
        let end = parts.iter().filter_map(CopyBox::source_end_bytes).max().unwrap_or(0);
        let covering_bytes = end.saturating_sub(start);
        let part_costs: u64 = parts.iter().map(|part| costs.of_part(part)).sum();
        let separate_cost = calls.saturating_mul(costs.call_bytes).saturating_add(part_costs);
        if covering_bytes.saturating_add(costs.call_bytes) < separate_cost {
            Self::covering(parts, start, covering_bytes)
        } else {
            Self::packed(parts)
        }
    }

    /// One run of `len_bytes` bytes from `start` that covers all parts.
    fn covering(parts: &[CopyBox], start: u64, len_bytes: u64) -> Self {
        let run = Footprint::run(start, len_bytes).copy_from_packed(0).reversed();
        let from_run = |part: &CopyBox| CopyBox {
            source_offset_bytes: part.source_offset_bytes - start,
            ..part.clone()
        };
        let from_staging = parts.iter().map(from_run).collect();
        Self { to_staging: SmallVec::from_iter([run]), from_staging, len_bytes }
    }

    /// All parts packed one after another.
    pub(crate) fn packed(parts: &[CopyBox]) -> Self {
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

    use super::{Costs, DownloadPlan};
    use resident_backend::CopyBox;

    const COSTS: Costs = Costs { call_bytes: 150_000, row_bytes: 256 };

    fn plan(parts: &[CopyBox], calls: u64) -> DownloadPlan {
        DownloadPlan::of_calls(parts, calls, COSTS)
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
        let plan = DownloadPlan::of_calls(&every_second, 1, cheap_rows);
        assert_eq!(plan.len_bytes, 4000, "it costs no more than its bytes");
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
