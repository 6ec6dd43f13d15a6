//! Device memory that nobody owns any more and that could not be given back yet.

use super::{Device, Stream};
use crate::backend::Address;
use crate::order::At;

/// Memory to be freed, and what has to be over before.
#[derive(Debug)]
pub(super) struct Orphan {
    address: Address,
    uses: Vec<(Stream, At)>,
}

impl Device {
    /// Frees memory behind the uses given. What the backend refuses is tried again before the next allocation, `memory` or `synchronize`.
    pub(crate) fn free_behind(&self, address: Address, uses: Vec<(Stream, At)>) {
        let orphan = Orphan { address, uses };
        if !self.try_free(&orphan) {
            self.0.orphans.lock().push(orphan);
        }
    }

    /// Frees memory that was used on one stream alone.
    pub(crate) fn free_later(&self, stream: &Stream, address: Address) {
        self.free_behind(address, vec![(stream.clone(), At::position(stream.queue().tail()))]);
    }

    pub(crate) fn settle_orphans(&self) {
        let orphans = std::mem::take(&mut *self.0.orphans.lock());
        let refused: Vec<Orphan> = orphans.into_iter().filter(|orphan| !self.try_free(orphan)).collect();
        self.0.orphans.lock().extend(refused);
    }

    fn try_free(&self, orphan: &Orphan) -> bool {
        let own = orphan.uses.iter().find(|(stream, _)| stream.device_ref() == self);
        let stream = own.map_or_else(|| self.stream(), |(stream, _)| stream.clone());
        orphan.uses.iter().all(|(user, at)| stream.order_after(user, *at).is_ok()) && stream.queue().free(orphan.address).is_ok()
    }
}
