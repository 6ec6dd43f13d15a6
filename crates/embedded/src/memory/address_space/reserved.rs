//! Reservations: addresses whose pages get memory and lose it again.

use std::sync::Arc;

use super::{
    AddressSpace, AddressSpaceState, Allocation, Block, HostAccess, machine_memory, out_of_memory,
    unknown_address,
};
use crate::errors::{CODE_INVALID, driver_error};
use crate::memory::pages::Pages;
use resident_backend::{Address, BackendError, Footprint, PageRange};

/// The parts of an allocation that is a reservation.
struct Reservation<'a> {
    block: &'a Arc<Block>,
    counted_bytes: &'a mut u64,
    pages: &'a mut Pages,
}

impl AddressSpaceState {
    /// The reservation at an address, unless its free is queued.
    fn reservation(
        &mut self,
        call: &'static str,
        address: Address,
    ) -> Result<Reservation<'_>, BackendError> {
        let live = self.live.get_mut(&address.0).filter(|allocation| !allocation.is_draining);
        live.and_then(Allocation::reservation).ok_or_else(|| unknown_address(call, address))
    }
}

impl Allocation {
    fn reservation(&mut self) -> Option<Reservation<'_>> {
        let Self { block, counted_bytes, pages, .. } = self;
        Some(Reservation { block, counted_bytes, pages: pages.as_mut()? })
    }
}

impl AddressSpace {
    /// Reserves addresses for this number of bytes.
    pub(crate) fn reserve(&self, len_bytes: u64) -> Result<Address, BackendError> {
        let Some(page_bytes) = self.page_bytes else {
            return Err(invalid("reserve", "the device has no memory that is committed by pages"));
        };
        if len_bytes == 0 {
            return Err(invalid("reserve", "0 bytes requested"));
        }
        let Some(block) = Block::reserved(len_bytes) else {
            let free_bytes = machine_memory().map_or(0, |capacity| capacity.free);
            return Err(out_of_memory("reserve", len_bytes, free_bytes, 0));
        };
        self.forget_left_out(block.start(), &Footprint::run(0, len_bytes));
        let pages = Some(Pages::new(len_bytes, page_bytes));
        Ok(self.lock().insert_counted(Arc::new(block), 0, HostAccess::None, pages))
    }

    /// Commits memory to pages that have none. Does not wait.
    pub(crate) fn commit(&self, range: &PageRange) -> Result<(), BackendError> {
        let (block, evicted) = self.begin_commit(range)?;
        // Blocks must be deallocated with no lock held.
        drop(evicted);
        // SAFETY: the pages lie in the block, as `begin_commit` has checked, and have no memory, so
        // no work uses them. No other commit or decommit of them begins before this one ends.
        unsafe { block.commit(&range.bytes, self.poison) };
        let start = block.start().wrapping_add(range.bytes.start as usize);
        self.forget_left_out(start, &Footprint::run(0, range.len_bytes()));
        self.change_pages(range, |pages| {
            pages.committed.insert_range(range.bytes.clone());
            pages.changing.remove_range(range.bytes.clone());
        });
        Ok(())
    }

    /// Counts the pages as in use. Returns the block, and pooled blocks that have no room any more.
    fn begin_commit(
        &self,
        range: &PageRange,
    ) -> Result<(Arc<Block>, Vec<Arc<Block>>), BackendError> {
        let mut state = self.lock();
        let Reservation { pages, .. } = state.reservation("commit", range.reservation)?;
        let expected = pages.expect_uncommitted(&range.bytes);
        expected.map_err(|detail| invalid("commit", &detail))?;
        state.expect_room("commit", range.len_bytes())?;
        let reservation = state.reservation("commit", range.reservation)?;
        reservation.pages.changing.insert_range(range.bytes.clone());
        *reservation.counted_bytes += range.len_bytes();
        let block = Arc::clone(reservation.block);
        state.in_use_bytes += range.len_bytes();
        Ok((block, state.shrink_pool()))
    }

    /// Whether a refused commit may succeed once queued frees and decommits have run.
    pub(crate) fn may_commit_later(&self, range: &PageRange) -> bool {
        let is_changing = self
            .lock()
            .reservation("commit", range.reservation)
            .is_ok_and(|reservation| reservation.pages.changing.overlaps(&range.bytes));
        is_changing || self.may_find_room(range.len_bytes())
    }

    /// Counts pages as draining until [`decommit`](Self::decommit).
    pub(crate) fn begin_decommit(&self, range: &PageRange) -> Result<(), BackendError> {
        let mut state = self.lock();
        let reservation = state.reservation("decommit", range.reservation)?;
        let expected = reservation.pages.expect_committed(&range.bytes);
        expected.map_err(|detail| invalid("decommit", &detail))?;
        reservation.pages.changing.insert_range(range.bytes.clone());
        *reservation.counted_bytes -= range.len_bytes();
        state.in_use_bytes -= range.len_bytes();
        state.draining_bytes += range.len_bytes();
        Ok(())
    }

    /// Reverts `begin_decommit`, after the decommit could not be queued.
    pub(crate) fn undo_decommit(&self, range: &PageRange) {
        let mut state = self.lock();
        let Ok(reservation) = state.reservation("decommit", range.reservation) else { return };
        reservation.pages.changing.remove_range(range.bytes.clone());
        *reservation.counted_bytes += range.len_bytes();
        state.draining_bytes -= range.len_bytes();
        state.in_use_bytes += range.len_bytes();
    }

    /// Performs a decommit. The reservation may be freed already.
    pub(crate) fn decommit(&self, range: &PageRange) {
        let block =
            self.change_pages(range, |pages| pages.committed.remove_range(range.bytes.clone()));
        if let Some(block) = &block {
            // SAFETY: work that looks the pages up from now on finds no memory. Other work has
            // completed, since the modules that use the backend order it before (`backend`,
            // contract). No commit of the pages begins before this decommit ends.
            unsafe { block.decommit(&range.bytes) };
        }
        self.change_pages(range, |pages| pages.changing.remove_range(range.bytes.clone()));
        self.lock().draining_bytes -= range.len_bytes();
    }

    /// Changes the pages of a reservation, if it is not freed. Returns its block.
    fn change_pages(
        &self,
        range: &PageRange,
        change: impl FnOnce(&mut Pages),
    ) -> Option<Arc<Block>> {
        let mut state = self.lock();
        let reservation = state.live.get_mut(&range.reservation.0)?.reservation()?;
        change(reservation.pages);
        Some(Arc::clone(reservation.block))
    }
}

fn invalid(call: &'static str, detail: &str) -> BackendError {
    driver_error(CODE_INVALID, call, detail)
}
