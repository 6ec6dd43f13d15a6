//! Copies from pageable memory of the host to a device.

use std::sync::Arc;

use smallvec::SmallVec;

use super::job::{Boxes, CopyJob, Pipeline, Purpose, ReadFrom};
use crate::device::Stream;
use crate::error::Result;
use crate::transfer::access::request::{Regions, Request};
use resident_backend::host_copy::PendingCopy;
use resident_backend::{HostMemory, Maker, host_copy};
use resident_core::coherence::Location;

/// An upload that the copy thread pool packs into staging memory.
struct StagedUpload {
    /// Dropped before `staging`, so that the packing has ended then.
    packing: SmallVec<[PendingCopy; 1]>,
    staging: Arc<dyn HostMemory>,
    /// The copies from staging memory to the device.
    parts: Boxes,
}

impl Request<'_> {
    /// Copies chunks of pageable memory, in order. After this returns, no work reads that memory,
    /// so that the caller may write it: if the stream is idle and runs on this process's threads,
    /// this thread copies the first chunk; else it packs the memory into staging memory. The copy
    /// thread pool packs the later chunks while this thread queues the first.
    ///
    /// The host memory stays as it is meanwhile, for the reasons that `stage` gives.
    pub(super) fn upload(
        &self,
        stream: &Stream,
        from: Location,
        to: Location,
        chunks: SmallVec<[Regions; 1]>,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let mut staged: SmallVec<[(Regions, StagedUpload); 4]> = SmallVec::new();
        let mut run = |regions: &Regions, from, maker| {
            let purpose = Purpose::Use;
            let job = CopyJob { request: self, stream, from, to, regions, maker, purpose };
            job.run(self.storage.lock(), pipeline)
        };
        for regions in chunks {
            let may_copy = staged.is_empty() && stream.is_idle_on_host();
            if !may_copy || !run(&regions, ReadFrom::Copy(from), Maker::Caller)? {
                let upload = self.stage(stream, &regions)?;
                staged.push((regions, upload));
            }
        }
        for (regions, StagedUpload { packing, staging, parts }) in staged {
            drop(packing);
            run(&regions, ReadFrom::Staging(staging, parts), Maker::Stream)?;
        }
        Ok(())
    }

    /// Starts to pack regions of the host memory into staging memory.
    fn stage(&self, stream: &Stream, regions: &Regions) -> Result<StagedUpload> {
        let memory_order = self.storage.memory_order();
        let staging = self.staging(stream, self.bytes_of(regions))?;
        // For a device behind a PCIe link several threads copy, because the link is faster than one
        // thread. The embedded device has neither a link nor pinned memory.
        let has_link = staging.is_pinned_for(stream.device_ref().kind());
        let (mut packing, mut parts) = (SmallVec::new(), SmallVec::new());
        let mut packed_bytes = 0;
        for region in regions {
            let part = memory_order.footprint(region).copy_from_packed(packed_bytes);
            let (from, to, packed) =
                (self.storage.host_base(), staging.base(), part.clone().reversed());
            if has_link {
                // SAFETY: `host_base` is the start of `memory_order.len_bytes()` initialised bytes,
                // and the copies of `Footprint::copy_from_packed` stay within the host memory and
                // the staging memory, which `StagedUpload` keeps until the packing has dropped. The
                // region is valid on the host and `Missing` has waited for queued work that
                // wrote it. Queued work never writes valid elements, and the caller's borrow of the
                // part, which outlives the call, excludes writes by the host. So nothing writes the
                // bytes that are read.
                packing.push(unsafe { host_copy::start_copy(from, to, &packed) });
            } else {
                // SAFETY: as above.
                unsafe { host_copy::copy_box(from, to, &packed) };
            }
            packed_bytes += memory_order.region_bytes(region);
            parts.push(part);
        }
        Ok(StagedUpload { packing, staging, parts })
    }
}
