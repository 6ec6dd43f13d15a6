//! Device memory that nobody owns any more and that could not be given back yet.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Device, Stream};
use crate::backend::Address;
use crate::ordering::UseEnd;
use crate::sync;

/// Memory to be freed, and what has to be over before.
#[derive(Debug)]
pub(super) struct DeferredFree {
    address: Address,
    uses: Vec<(Stream, UseEnd)>,
}

impl Device {
    /// Frees memory behind the uses given. What the backend refuses is tried again before the next
    /// allocation, `memory` or `synchronize`.
    pub(crate) fn free_behind(&self, address: Address, uses: Vec<(Stream, UseEnd)>) {
        let deferred_free = DeferredFree { address, uses };
        if !self.try_free(&deferred_free) {
            self.0.deferred_frees.lock().push(deferred_free);
        }
    }

    /// Frees memory that was used on one stream alone.
    pub(crate) fn defer_free(&self, stream: &Stream, address: Address) {
        self.free_behind(address, vec![(stream.clone(), UseEnd::at(stream.queue().tail()))]);
    }

    pub(crate) fn run_deferred_frees(&self) {
        let deferred_frees = std::mem::take(&mut *self.0.deferred_frees.lock());
        let refused: Vec<DeferredFree> = deferred_frees
            .into_iter()
            .filter(|deferred_free| !self.try_free(deferred_free))
            .collect();
        self.0.deferred_frees.lock().extend(refused);
    }

    fn try_free(&self, deferred_free: &DeferredFree) -> bool {
        let stream = self.stream_to_free_on(&deferred_free.uses);
        deferred_free.uses.iter().all(|(user, at)| stream.order_after(user, *at).is_ok())
            && stream.queue().free(deferred_free.address).is_ok()
    }

    /// A user's stream on which all other uses come before what is queued next, if there is one.
    /// Any other stream of the user's would be held up by the free: what is queued behind it, the
    /// upload of the next picture, say, would wait for the other uses too.
    fn stream_to_free_on(&self, uses: &[(Stream, UseEnd)]) -> Stream {
        let is_last = |stream: &&Stream| uses.iter().all(|(user, at)| stream.is_behind(user, *at));
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

    /// A stream that nothing but frees is queued on; `None` if none can be had.
    fn stream_for_frees(&self) -> Option<Stream> {
        let core = match self.0.frees.get() {
            Some(core) => core,
            None => {
                let made = self.new_core().ok()?;
                // Somebody else may have been faster; a stream without work is dropped then.
                if let Err(second) = self.0.frees.set(made) {
                    sync::defer_drop(second);
                }
                self.0.frees.get()?
            }
        };
        self.0.frees_since_look.fetch_add(1, Ordering::Relaxed);
        Some(Stream::of(self.clone(), Some(Arc::clone(core))))
    }

    /// Clears up what was freed there and is over, now and then: nobody waits for that stream. No
    /// lock is held.
    pub(crate) fn reap_frees(&self) {
        const FREES_PER_LOOK: u32 = 32;
        if self.0.frees_since_look.load(Ordering::Relaxed) < FREES_PER_LOOK {
            return;
        }
        self.0.frees_since_look.store(0, Ordering::Relaxed);
        self.0.backend.reap();
    }
}
