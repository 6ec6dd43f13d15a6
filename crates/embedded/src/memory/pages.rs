//! Which pages of a reservation have memory.

use std::ops::Range;

use crate::race_check::written::ByteSet;
use resident_backend::Footprint;

/// The pages of a reservation.
#[derive(Debug)]
pub(super) struct Pages {
    len_bytes: u64,
    page_bytes: u64,
    /// The pages that work may use.
    pub(super) committed: ByteSet,
    /// The pages whose commit is under way, or whose decommit is queued.
    pub(super) changing: ByteSet,
}

impl Pages {
    pub(super) fn new(len_bytes: u64, page_bytes: u64) -> Self {
        let (committed, changing) = Default::default();
        Self { len_bytes, page_bytes, committed, changing }
    }

    pub(super) fn are_all_committed(&self) -> bool {
        self.committed.contains(0..self.len_bytes)
    }

    /// The start of the first page without memory that a footprint touches.
    /// None in a footprint that leaves the reservation.
    pub(super) fn first_uncommitted(&self, footprint: &Footprint) -> Option<u64> {
        footprint.end_bytes().filter(|end| *end <= self.len_bytes)?;
        let mut first = None;
        footprint.for_each_extent(self.page_bytes, &mut |extent| {
            if first.is_none() {
                let end = extent.end.next_multiple_of(self.page_bytes);
                let start = extent.start / self.page_bytes * self.page_bytes;
                first = self.committed.first_missing_in(start..end.min(self.len_bytes));
            }
        });
        first.map(|missing| missing.start)
    }

    /// Refuses a commit of pages that have memory.
    pub(super) fn expect_uncommitted(&self, bytes: &Range<u64>) -> Result<(), String> {
        self.expect_pages(bytes)?;
        if self.changing.overlaps(bytes) {
            return Err("a decommit of some of these pages is queued".to_owned());
        }
        if self.committed.overlaps(bytes) {
            return Err("some of these pages have memory".to_owned());
        }
        Ok(())
    }

    /// Refuses a decommit of pages without memory.
    pub(super) fn expect_committed(&self, bytes: &Range<u64>) -> Result<(), String> {
        self.expect_pages(bytes)?;
        if self.changing.overlaps(bytes) || !self.committed.contains(bytes.clone()) {
            return Err("some of these pages have no memory".to_owned());
        }
        Ok(())
    }

    fn expect_pages(&self, bytes: &Range<u64>) -> Result<(), String> {
        let is_bound = |offset: u64| offset.is_multiple_of(self.page_bytes);
        let ends_well = is_bound(bytes.end) || bytes.end == self.len_bytes;
        let is_in = bytes.start < bytes.end && bytes.end <= self.len_bytes;
        if is_in && ends_well && is_bound(bytes.start) {
            return Ok(());
        }
        Err(format!(
            "{bytes:?} are no whole pages of {} bytes in a reservation of {}",
            self.page_bytes, self.len_bytes
        ))
    }
}
