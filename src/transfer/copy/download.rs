//! Copies from a device to the host.

use smallvec::SmallVec;

use super::job::{CopyJob, ReadFrom};
use super::pipeline::Pipeline;
use super::plan::{Route, RoutedCopies};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::ArrayState;
use crate::transfer::access::request::{Marks, Regions, Request, collect_conflicts};
use resident_backend::{Maker, scope};
use resident_core::Access;
use resident_core::coherence::{Location, Region, Span};
use resident_core::layout::Selection;

/// How a download is queued.
#[derive(Clone, Copy, Debug)]
pub(in crate::transfer) enum Queueing<'a> {
    /// The caller waits for it, so this thread makes the copy if the stream is idle and runs on
    /// this process's threads.
    Awaited,
    /// The caller does not wait. The copy runs on this stream if it belongs to the device.
    Ahead(Option<&'a Stream>),
}

/// Pins the staging memory for downloads of these lengths to pageable memory, so that no memory has
/// to be pinned under the array's lock.
pub(in crate::transfer) fn prepare_downloads(
    device: &Device,
    lens_bytes: impl Iterator<Item = u64>,
) {
    let lens_bytes: SmallVec<[u64; 4]> = lens_bytes.collect();
    device.backend().prepare_downloads(&lens_bytes);
}

impl Request<'_> {
    /// Queues a copy from the device at `from` to the host memory, or makes it. Does not wait for
    /// other work.
    pub(super) fn download(
        &self,
        from: Location,
        copies: &RoutedCopies,
        queueing: Queueing<'_>,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let Route::Staged { chunk_bytes_max, .. } = copies.route else {
            return self.download_chunk(from, &copies.regions, queueing, pipeline);
        };
        let memory_order = self.storage.memory_order();
        let chunks = memory_order.split_regions(&copies.regions, chunk_bytes_max);
        let device = self.storage.lock().device_copy(from).device.clone();
        let lens_bytes = chunks.iter().flat_map(|regions| self.staged_bytes(&device, regions));
        prepare_downloads(&device, lens_bytes);
        for (number, regions) in chunks.iter().enumerate() {
            if number > 0 {
                // The host unpacks the chunk before this one while the device copies this one.
                pipeline.expect_more();
            }
            self.download_chunk(from, regions, queueing, pipeline)?;
        }
        Ok(())
    }

    /// The lengths of the staging memory of a download: with what lies between the parts if it may
    /// read that too, which shows only once the array is locked, and without.
    fn staged_bytes(&self, device: &Device, regions: &Regions) -> SmallVec<[u64; 2]> {
        let packed_bytes = self.bytes_of(regions);
        let parts = self.same_offsets(regions);
        let has_gaps = parts.len() > 1 || parts.iter().any(|part| !part.axes.is_empty());
        let with_gaps = has_gaps.then(|| device.backend().staged_bytes(&parts));
        let with_gaps = with_gaps.filter(|len_bytes| *len_bytes != packed_bytes);
        [packed_bytes].into_iter().chain(with_gaps).collect()
    }

    fn download_chunk(
        &self,
        from: Location,
        regions: &Regions,
        queueing: Queueing<'_>,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let state = self.storage.lock();
        // Inside a kernel body, calls that need a download are refused whether the stream is idle
        // or not.
        let (asked, maker) = match queueing {
            Queueing::Ahead(asked) => (asked, Maker::Stream),
            Queueing::Awaited if scope::is_in_body() => (None, Maker::Stream),
            Queueing::Awaited => (None, Maker::CallerOrStream),
        };
        let stream = &self.download_stream(&state, from, regions, asked);
        let (from, to) = (ReadFrom::Copy(from), state.host_location());
        let job = CopyJob { request: self, stream, from, to, regions, maker };
        job.run(state, pipeline).map(drop)
    }

    /// The box from the first to the last of the regions in memory, if one copy may read the whole
    /// box. This is so if all its elements have contents and no other stream writes any of them.
    /// Later writers wait for the recorded read.
    pub(super) fn between(
        &self,
        state: &ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
    ) -> Option<Region> {
        let whole = self.storage.memory_order().whole();
        let is_alone = matches!(self.selection, Selection::Whole) || !state.has_pins();
        let is_used = stream.device_ref().properties().reads_between_parts;
        if !is_used || !is_alone || whole.axes() == 0 {
            return None;
        }
        let spans = || regions.iter().map(|region| region.span(0));
        let start = spans().map(|span| span.start()).min()?;
        let end = spans().map(|span| span.end()).max()?;
        let between = whole.with_span(0, Span::new(start, end, 1));
        let has_no_writer = || {
            let mut writers = Marks::new();
            let access = Access::Read;
            collect_conflicts(state, from, Some(&between), access, stream, &mut writers);
            writers.is_empty()
        };
        let is_more = regions.as_slice() != [between];
        (is_more && state.holds(from, &[between]) && has_no_writer()).then_some(between)
    }

    /// The stream for a download: `asked` if it belongs to the device, or else the stream that this
    /// thread entered; else the stream of the last writer if it is still busy, on which no event is
    /// needed; else the default stream, so that the copy does not wait for unrelated work.
    pub(in crate::transfer) fn download_stream(
        &self,
        state: &ArrayState,
        from: Location,
        regions: &Regions,
        asked: Option<&Stream>,
    ) -> Stream {
        let device = &state.device_copy(from).device;
        let asked = asked.filter(|stream| stream.device_ref() == device).cloned();
        if let Some(asked) = asked.or_else(|| device.entered_stream()) {
            return asked;
        }
        let mut writer = None;
        for region in regions {
            state.uses(from).visit_writers(Some(region), |mark| {
                if !state.is_retired(mark) {
                    let stream = state.stream(mark.stream);
                    writer = stream.filter(|stream| stream.device_ref() == device).cloned();
                }
            });
        }
        writer.unwrap_or_else(|| device.stream())
    }
}
