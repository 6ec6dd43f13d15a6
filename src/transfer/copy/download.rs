//! Copies from a device to the host.

use std::sync::Arc;

use smallvec::SmallVec;

use super::pipeline::Pipeline;
use super::plan::{Route, RoutedCopies};
use super::report::{Moved, stale_since};
use crate::audit::Direction;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::ArrayState;
use crate::transfer::access::request::{
    Marks, Regions, Request, collect_conflicts, users_of_other_kinds,
};
use resident_backend::{Address, CopyWork, HostMemory, Memory, OwnCopy, Position, Work, scope};
use resident_core::Access;
use resident_core::coherence::{Location, Region, Span};
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

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
        let mut state = self.storage.lock();
        let Some(host) = state.host.clone() else { return Ok(()) };
        let to = state.host_location();
        let asked = match queueing {
            Queueing::Ahead(asked) => asked,
            Queueing::Awaited => None,
        };
        let stream = self.download_stream(&state, from, regions, asked);
        let others = users_of_other_kinds(&state, stream.device_ref(), regions);
        // Open uses are those for which the caller has waited: the claim allows no new guard.
        let is_used = others.iter().any(|mark| mark.end != UseEnd::OPEN);
        if !state.holds(from, regions) || is_used {
            // The state has changed since the plan was made. The caller plans again.
            return Ok(());
        }
        let depends = self.wait_for_writers(&mut state, &stream, from, regions)?;
        let between = self.between(&state, &stream, from, regions);
        let marks = self.conflicts_of_write(&state, &stream, to, regions);
        self.make_wait(&mut state, &stream, &marks)?;
        let address = state.device_copy(from).address().unwrap_or(Address(0));
        let mut work = || {
            let destination = Memory::Host(Arc::clone(&host) as Arc<dyn HostMemory>);
            let parts = self.same_offsets(regions);
            Box::new(CopyWork {
                may_read_between: between.is_some(),
                depends: depends.clone(),
                ..self.copy_work("download of", Memory::Device(address), destination, parts)
            })
        };
        let (position, own) = self.submit_download(&stream, &mut work, queueing)?;
        let since = stale_since(&state, to, regions);
        let moved = Moved::at(position, Direction::ToHost, self.bytes_of(regions));
        pipeline.add_copy(moved, stream.device_ref(), &stream, since);
        self.record_read(&mut state, &stream, from, regions, position);
        if let Some(between) = between {
            self.record_read(&mut state, &stream, from, &Regions::from_iter([between]), position);
        }
        self.record_copy(&mut state, &stream, to, regions, position);
        drop(state);
        pipeline.push(stream, position);
        if let Some(own) = own {
            own.run();
        }
        Ok(())
    }

    /// Queues a download, or takes its position for this thread to make it. This thread has a claim
    /// on the elements, which it may keep meanwhile, because the copy waits for nothing. Inside a
    /// kernel body, calls that need a download are refused whether the stream is idle or not.
    fn submit_download(
        &self,
        stream: &Stream,
        work: &mut dyn FnMut() -> Box<CopyWork>,
        queueing: Queueing<'_>,
    ) -> Result<(Position, Option<OwnCopy>)> {
        let is_awaited = matches!(queueing, Queueing::Awaited) && !scope::is_in_body();
        if is_awaited && stream.queue().may_begin_copy() {
            let begun = stream.queue().begin_copy(work);
            if let Some(own) = begun.map_err(|error| self.copy_error(stream, &error))? {
                return Ok((own.position, Some(own)));
            }
        }
        Ok((self.submit(stream, Work::Copy(work()))?, None))
    }

    /// The box from the first to the last of the regions in memory, if one copy may read the whole
    /// box. This is so if all its elements have contents and no other stream writes any of them.
    /// Later writers wait for the recorded read.
    fn between(
        &self,
        state: &ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
    ) -> Option<Region> {
        let whole = self.storage.memory_order().whole();
        let is_alone = matches!(self.selection, Selection::Whole) || !state.has_pins();
        let is_used = stream.device_ref().backend().reads_between_parts();
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
