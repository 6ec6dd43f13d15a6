//! Freeing device memory after its last uses, without waiting for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handles::{DeferredFree, Device, Stream};
use resident_backend::sync;
use resident_backend::{Address, PageRange, Position};
use resident_core::ordering::UseEnd;

impl Device {
    /// Frees memory after these uses. If the backend refuses, the free is tried again before the
    /// next allocation, `memory` or `synchronize`.
    pub(crate) fn free_after(&self, address: Address, uses: Vec<(Stream, UseEnd)>) {
        let deferred_free = DeferredFree { address, uses };
        if !self.try_free(&deferred_free) {
            self.0.deferred_frees.lock().push(deferred_free);
        }
    }

    /// Frees memory that only this stream used, after the work queued there so far.
    #[cfg(feature = "cuda")]
    pub(crate) fn free_after_stream(&self, stream: &Stream, address: Address) {
        self.free_after(address, vec![(stream.clone(), UseEnd::at(stream.raw().tail()))]);
    }

    pub(crate) fn retry_deferred_frees(&self) {
        let deferred_frees = std::mem::take(&mut *self.0.deferred_frees.lock());
        let refused: Vec<DeferredFree> = deferred_frees
            .into_iter()
            .filter(|deferred_free| !self.try_free(deferred_free))
            .collect();
        self.0.deferred_frees.lock().extend(refused);
    }

    fn try_free(&self, deferred_free: &DeferredFree) -> bool {
        let stream = self.stream_after(&deferred_free.uses);
        stream.is_some_and(|stream| stream.raw().free(deferred_free.address).is_ok())
    }

    /// Frees the memory of runs of pages after these uses. Returns where, and the number of runs:
    /// those before the first one that the backend refuses. `None` if it frees none.
    pub(crate) fn decommit_after(
        &self,
        runs: &[PageRange],
        uses: &[(Stream, UseEnd)],
    ) -> Option<(Stream, Position, usize)> {
        let stream = self.stream_after(uses)?;
        let freed = runs.iter().map_while(|pages| stream.raw().decommit(pages).ok());
        let (last, position) = freed.enumerate().last()?;
        Some((stream, position, last + 1))
    }

    /// A stream that now waits for all these uses; `None` if the backend refuses.
    fn stream_after(&self, uses: &[(Stream, UseEnd)]) -> Option<Stream> {
        let stream = self.stream_to_free_on(uses);
        let is_after = uses.iter().all(|(user, end)| stream.order_after(user, *end).is_ok());
        is_after.then_some(stream)
    }

    /// A stream of one of the uses, if its later work is already ordered after all of them.
    /// Otherwise the stream for frees. On any other stream, work that is queued after the free,
    /// such as the next upload, would also wait for all uses.
    fn stream_to_free_on(&self, uses: &[(Stream, UseEnd)]) -> Stream {
        let is_last =
            |stream: &&Stream| uses.iter().all(|(user, end)| stream.is_ordered_after(user, *end));
        let own =
            || uses.iter().map(|(stream, _)| stream).filter(|stream| stream.device_ref() == self);
        match own().find(is_last) {
            Some(stream) => stream.clone(),
            None if uses.is_empty() => self.stream(),
            None => self
                .stream_for_frees()
                .or_else(|| own().next().cloned())
                .unwrap_or_else(|| self.stream()),
        }
    }

    /// The stream that runs only frees, and what copies contents to the host before its memory is
    /// freed; `None` if the backend cannot make one.
    pub(crate) fn stream_for_frees(&self) -> Option<Stream> {
        let core = match self.0.free_stream.get() {
            Some(core) => core,
            None => {
                let made = self.new_core().ok()?;
                // If another thread has made the stream meanwhile, this unused one is dropped.
                if let Err(second) = self.0.free_stream.set(made) {
                    sync::defer_drop(second);
                }
                self.0.free_stream.get()?
            }
        };
        self.0.frees_since_reap.fetch_add(1, Ordering::Relaxed);
        Some(Stream::of(self.clone(), Arc::clone(core)))
    }

    /// Completes finished frees of the stream for frees from time to time, since no caller waits
    /// for that stream. Callers hold no lock.
    pub(crate) fn reap_frees(&self) {
        const FREES_PER_REAP: u32 = 32;
        if self.0.frees_since_reap.load(Ordering::Relaxed) < FREES_PER_REAP {
            return;
        }
        self.0.frees_since_reap.store(0, Ordering::Relaxed);
        self.0.backend.reap();
    }
}
