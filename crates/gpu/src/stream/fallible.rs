//! Which work can fail although its device lives on.
//!
//! What fails on a GPU ends its context, with all work in flight on all of its streams. So work
//! need not name what it reads from on the same GPU: if that fails, so does the work itself, and
//! nothing runs later. What can fail alone is work that names unfinished work of another device,
//! which may die by itself; work that names such work; and work of a stream that other code has
//! too, which `nccl::abort` declares to have failed. Once any failure is recorded, all work counts
//! as such: some is recorded without an end of the context, as of steps of a chain that the driver
//! refused.
//!
//! Work that was queued on a stream before other code got it is not named. An abort may declare it
//! to have failed although it runs; then what other streams read from it is right, and is not lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use resident_backend::{Position, failure};

/// Which work of one stream can fail alone.
#[derive(Debug, Default)]
pub(super) struct Fallible {
    /// Whether other code has the stream too.
    is_shared: AtomicBool,
    /// The last position of work that names other work which may fail.
    upto: AtomicU64,
}

impl Fallible {
    #[cfg(feature = "cuda")]
    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Notes that work up to `position` may fail alone. Called under the stream lock, before any
    /// array has a mark of that work.
    pub(super) fn note(&self, position: Position) {
        self.upto.store(position.0, Ordering::Release);
    }

    /// As [`RawStream::fallible_upto`](resident_backend::RawStream::fallible_upto).
    #[inline]
    pub(super) fn upto(&self) -> Position {
        if self.is_shared() || failure::epoch() != 0 {
            return Position(u64::MAX);
        }
        Position(self.upto.load(Ordering::Acquire))
    }
}
