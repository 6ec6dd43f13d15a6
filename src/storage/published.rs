//! The state of an array that fast paths read without its lock.
//!
//! All writes happen with the lock held. Two things are published: that the whole array can be read
//! on the host, and which streams are recorded as readers of which device copy. A flag is stored
//! with release ordering after the data that it announces, and loaded with acquire ordering before
//! this data is read.
//!
//! A published fact can become untrue only while the caller has a `&mut` borrow that excludes all
//! views of the array, so no fast path reads it meanwhile. Late failures are the exception: they
//! raise an epoch, which fast paths compare.
//!
//! The atomic types are imported from the parent module, so that the suite `published` can compile
//! this file with those of loom.

use super::atomics::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The whole array is valid on the host and no queued work writes it there.
const HOST_READY: u32 = 1;

/// The number of readers whose stream and address are published for `gpu_on`.
const READERS_MAX: usize = 2;

/// See the module's documentation.
pub(crate) struct Published {
    hot: AtomicU32,
    /// How often the program gave the array a name.
    times_named: AtomicU32,
    /// The host memory's start, or null. Written before `HOST_READY` is first set, and again when
    /// memory that is only read is replaced by a copy.
    host_base: AtomicPtr<u8>,
    known: [PublishedReader; READERS_MAX],
    /// The failure epoch at which the readers were published.
    known_epoch: AtomicU64,
}

/// A stream that is recorded as an open reader of the whole valid copy of its device, and the
/// address of that copy.
#[derive(Default)]
struct PublishedReader {
    /// The stream's number, 0 for none. Set last, with release.
    stream: AtomicU64,
    address: AtomicU64,
}

impl Published {
    pub(crate) fn new(host_base: *mut u8, is_host_ready: bool) -> Self {
        Self {
            hot: AtomicU32::new(if is_host_ready { HOST_READY } else { 0 }),
            times_named: AtomicU32::new(0),
            host_base: AtomicPtr::new(host_base),
            known: Default::default(),
            known_epoch: AtomicU64::new(0),
        }
    }

    /// The host memory's start, if the whole array can be read there without a copy or a wait.
    #[inline]
    pub(crate) fn ready_on_host(&self) -> Option<*mut u8> {
        // Acquire: all writes that made the host valid, including the first write of `host_base`,
        // happened before.
        // `host_base` is acquired too: memory that is only read may have been replaced since then.
        (self.hot.load(Ordering::Acquire) & HOST_READY != 0)
            .then(|| self.host_base.load(Ordering::Acquire))
    }

    /// The host memory's start; null if there is none yet.
    #[inline]
    pub(crate) fn host_base(&self) -> *mut u8 {
        self.host_base.load(Ordering::Acquire)
    }

    pub(crate) fn set_host_base(&self, base: *mut u8) {
        self.host_base.store(base, Ordering::Release);
    }

    #[inline]
    pub(crate) fn set_host_ready(&self, is_ready: bool) {
        let hot = if is_ready { HOST_READY } else { 0 };
        if self.hot.load(Ordering::Relaxed) != hot {
            self.hot.store(hot, Ordering::Release);
        }
    }

    pub(crate) fn times_named(&self) -> u32 {
        self.times_named.load(Ordering::Relaxed)
    }

    pub(crate) fn set_named(&self) {
        self.times_named.fetch_add(1, Ordering::Relaxed);
    }

    /// The device address of the whole array, if `stream` is published as its reader and no work
    /// has failed since.
    #[inline]
    pub(crate) fn reader_address(&self, stream: u64, epoch: u64) -> Option<u64> {
        let known =
            self.known.iter().find(|known| known.stream.load(Ordering::Acquire) == stream)?;
        (self.known_epoch.load(Ordering::Relaxed) == epoch)
            .then(|| known.address.load(Ordering::Relaxed))
    }

    /// Whether `stream` was published as a reader since the last write, so that guards may exist
    /// that the array's state does not know of.
    pub(crate) fn is_published(&self, stream: u64) -> bool {
        self.known.iter().any(|known| known.stream.load(Ordering::Relaxed) == stream)
    }

    /// Publishes a reader, if a slot is free. The array's state already reflects failures up to
    /// `epoch`.
    pub(crate) fn publish_reader(&self, epoch: u64, stream: u64, address: u64) {
        let is_first = self.known.iter().all(|known| known.stream.load(Ordering::Relaxed) == 0);
        if is_first {
            self.known_epoch.store(epoch, Ordering::Relaxed);
        } else if self.known_epoch.load(Ordering::Relaxed) != epoch {
            // The last failure may have damaged the copies of the published readers. The readers
            // cannot be removed while other threads read them, so the fast path is not used again
            // before `forget_readers`.
            return;
        }
        let free = self
            .known
            .iter()
            .find(|known| [0, stream].contains(&known.stream.load(Ordering::Relaxed)));
        if let Some(known) = free {
            known.address.store(address, Ordering::Relaxed);
            known.stream.store(stream, Ordering::Release);
        }
    }

    /// Forgets all readers, because the array is about to change.
    #[inline]
    pub(crate) fn forget_readers(&self) {
        for known in &self.known {
            if known.stream.load(Ordering::Relaxed) != 0 {
                known.stream.store(0, Ordering::Release);
            }
        }
    }
}
