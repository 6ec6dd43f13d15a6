//! The choice between two ways to download several boxes: one driver call for each, or one call for
//! the whole range, unpacked on the host. This module only computes; it calls no driver.

use smallvec::SmallVec;

use crate::backend::{CopyBox, Footprint};

/// The bytes that a link transfers in the time of one driver call: about 6 µs at 25 GB/s.
const CALL_BYTES: u64 = 150_000;

/// The bytes that a link transfers while a device moves to the next short row: about 2.5 ns.
const ROW_BYTES: u64 = 64;

type Parts = SmallVec<[CopyBox; 1]>;

/// The two steps of a download through `len_bytes` bytes of staging memory.
#[derive(Debug)]
pub(crate) struct DownloadPlan {
    /// The copies from the device to staging memory.
    pub(crate) to_staging: Parts,
    /// The copies from staging memory to the destination.
    pub(crate) from_staging: Parts,
    pub(crate) len_bytes: u64,
}

impl DownloadPlan {
    /// The cheaper of two ways: pack each part separately, which takes `calls` driver calls; or
    /// download everything from the first byte to the last in one call, if `may_read_between`
    /// allows that, and unpack only the parts.
    pub(crate) fn new(parts: &[CopyBox], calls: u64, may_read_between: bool) -> Self {
        let start = parts.iter().map(|part| part.source_offset_bytes).min().unwrap_or(0);
        let end = parts.iter().filter_map(CopyBox::source_end_bytes).max().unwrap_or(0);
        let covering_bytes = end.saturating_sub(start);
        let separate_cost =
            calls.saturating_mul(CALL_BYTES).saturating_add(parts.iter().map(cost_bytes).sum());
        if may_read_between && covering_bytes.saturating_add(CALL_BYTES) < separate_cost {
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

/// The cost of a part, in bytes, without its driver calls: the part's bytes, or more if its rows
/// are short.
fn cost_bytes(part: &CopyBox) -> u64 {
    let rows: u64 = part.axes.iter().map(|(count, ..)| count).product();
    let row_bytes =
        if part.axes.is_empty() { part.run_bytes } else { part.run_bytes.max(ROW_BYTES) };
    rows.saturating_mul(row_bytes)
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{CALL_BYTES, DownloadPlan};
    use crate::backend::CopyBox;

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
        assert_eq!(DownloadPlan::new(&near, 2, false).len_bytes, 12);
        let covering = DownloadPlan::new(&near, 2, true);
        assert_eq!(
            covering.to_staging.as_slice(),
            [CopyBox { run_bytes: 112, ..part(1000, 0, &[]) }]
        );
        assert_eq!(
            covering.from_staging.as_slice(),
            [part(0, 1000, &[]), part(100, 1100, &[(2, 8, 8)])]
        );
        assert_eq!(covering.len_bytes, 112);
        let far = [part(0, 0, &[]), part(CALL_BYTES + 4, 0, &[])];
        assert_eq!(DownloadPlan::new(&far, 2, true).len_bytes, 8);
        assert_eq!(DownloadPlan::new(&far, 3, true).to_staging.len(), 1);
        assert_eq!(DownloadPlan::new(&near[..1], 1, true).len_bytes, 4, "it takes one call anyway");
    }

    #[test]
    fn short_rows_are_read_with_the_bytes_between_them() {
        let len_bytes = |part: CopyBox, may_read_between| {
            DownloadPlan::new(&[part], 1, may_read_between).len_bytes
        };
        let every_second = part(0, 0, &[(1000, 8, 4)]);
        assert_eq!(len_bytes(every_second.clone(), true), 7996);
        assert_eq!(len_bytes(every_second, false), 4000);
        assert_eq!(len_bytes(part(0, 0, &[(1000, 2000, 4)]), true), 4000, "a face of a cube");
        let long = CopyBox { run_bytes: 1024, ..part(0, 0, &[(1000, 1100, 1024)]) };
        assert_eq!(len_bytes(long, true), 1_024_000, "long rows only cost their bytes");
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
