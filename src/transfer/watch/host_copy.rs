//! Copies the parts of a state that are newest on the host, in chunks under the array's lock, so
//! that the host is kept from writing for one chunk at most.

use smallvec::SmallVec;

use crate::audit;
use crate::storage::ArrayState;
use crate::transfer::access::request::{Regions, Request};
use crate::transfer::copy::job::Boxes;
use resident_backend::{HostMemory, host_copy};
use resident_core::layout::split_copies;

/// The bytes that are copied while the array's lock is held.
const CHUNK_BYTES_MAX: u64 = 256 << 10;

/// How often a copy begins anew, because the host memory was written meanwhile, before the thread
/// leaves it to a later call.
const STARTS_MAX: u32 = 8;

/// How far the parts on the host are copied.
#[derive(Default)]
pub(super) struct HostCopy {
    /// The array's version of its host memory (`ArrayState::host_version`) when the copy began.
    version: u64,
    regions: Regions,
    /// The chunks to be copied, the next one last.
    left: SmallVec<[Boxes; 1]>,
    starts: u32,
}

/// How a step of a copy ended.
pub(super) enum Step {
    /// The memory has the regions as they are on the host now.
    Complete,
    /// There are more chunks.
    More,
    /// The host memory is written again and again.
    Overtaken,
}

impl HostCopy {
    /// Copies one chunk of these regions to `memory`. They are valid on the host, which has memory,
    /// no queued work that writes them there is pending, and no host guard of them exists.
    pub(super) fn step(
        &mut self,
        request: &Request<'_>,
        state: &ArrayState,
        regions: &Regions,
        memory: &dyn HostMemory,
    ) -> Step {
        // Work writes mapped memory without a version of its own.
        let of_work = if state.is_host_mapped() { state.changes() } else { 0 };
        let version = state.host_version() + of_work;
        if *regions != self.regions || version != self.version || self.starts == 0 {
            let left = split_copies(request.same_offsets(regions), CHUNK_BYTES_MAX);
            let left = left.into_iter().rev().collect();
            *self = Self { version, regions: regions.clone(), left, starts: self.starts + 1 };
            if self.starts > STARTS_MAX {
                return Step::Overtaken;
            }
            // This read is no record.
            audit::skip_use(request.storage);
        }
        for copy in self.left.pop().iter().flatten() {
            // SAFETY: both memories have the array's length, and the footprints of its regions stay
            // within them. The caller has checked under the array's lock, which it holds, that
            // nothing writes the regions in the host's memory: host guards begin under the lock
            // (`begin_host_write`), and so do downloads, which write no valid elements. Only this
            // turn has `memory`, and it queues copies to other parts of it later.
            unsafe { host_copy::copy_box(request.storage.host_base(), memory.base(), copy) };
        }
        if self.left.is_empty() { Step::Complete } else { Step::More }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::WatchCore;
    use super::{CHUNK_BYTES_MAX, HostCopy, Step};
    use crate::audit::Cause;
    use crate::storage::{HostBuffer, Origin, Storage};
    use crate::transfer::access::request::{Regions, Request};
    use resident_backend::call_site::call_site;
    use resident_core::Access;
    use resident_core::layout::{MemoryOrder, Selection};

    const LEN: usize = 2 * CHUNK_BYTES_MAX as usize;

    #[test]
    fn a_write_between_two_chunks_begins_the_copy_anew() {
        let (memory_order, _) = MemoryOrder::of(&[LEN], &[1], 1).expect("an order");
        let new_memory = || HostBuffer::zeroed::<u8>(LEN).expect("memory");
        let (site, origin) = (call_site(), Origin::Host(new_memory()));
        let storage = Arc::new(Storage::new::<u8>(memory_order, &[LEN], origin, site));
        let _watch = WatchCore::begin(&storage, 1, site);
        let request =
            Request::new(&storage, &Selection::Whole, Access::Read, Cause::Watch, "a watch", site);
        let regions = Regions::from_iter([storage.memory_order().whole()]);
        let (memory, mut copy) = (new_memory(), HostCopy::default());
        let mut has_more =
            || matches!(copy.step(&request, &storage.lock(), &regions, &memory), Step::More);
        assert!(has_more(), "the first chunk of two");
        let write = storage.lock().begin_host_write(&Selection::Whole);
        drop(write);
        assert!(has_more(), "the first chunk again");
        assert!(!has_more(), "the second");
    }
}
