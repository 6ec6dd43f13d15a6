//! What fast paths read of an array without its lock, and how it is published.
//!
//! All writes happen with the lock held. Two things are published: that the whole array can be read
//! on the host, and which streams are recorded as readers of which device copy. A flag is stored
//! with release after what it stands for, and loaded with acquire before that is read.
//!
//! Published facts become untrue only under `&mut` of every view of the array, when no fast path
//! can read them. Late failures are the exception: they raise an epoch, which readers compare.
//!
//! The atomics come from outside, so that the `published` tests can run this file under loom.

use super::atomics::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The whole array is valid on the host and nothing queued writes it there.
const HOST_READY: u32 = 1;

/// Readers whose stream and address the fast path of `gpu_on` knows.
const READERS_MAX: usize = 2;

/// See the module's documentation.
pub(crate) struct Published {
    hot: AtomicU32,
    /// The host memory's start, once there is one. Written before `HOST_READY` is set for the first
    /// time, and never again.
    host_base: AtomicPtr<u8>,
    known: [PublishedReader; READERS_MAX],
    /// Late failures that were taken in when the known readers were entered.
    known_epoch: AtomicU64,
}

/// A stream that is entered as an open reader of the whole valid copy of its device, and where that
/// copy is.
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
            host_base: AtomicPtr::new(host_base),
            known: Default::default(),
            known_epoch: AtomicU64::new(0),
        }
    }

    /// The host memory's start, if the whole array can be read there right now.
    #[inline]
    pub(crate) fn ready_on_host(&self) -> Option<*mut u8> {
        // Acquire: what made the host valid happened before, the first write of `host_base`
        // included.
        (self.hot.load(Ordering::Acquire) & HOST_READY != 0)
            .then(|| self.host_base.load(Ordering::Relaxed))
    }

    /// The host memory's start; null before there is any.
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

    /// The device address of the whole array, if `stream` is entered as its reader already and
    /// nothing has failed since.
    #[inline]
    pub(crate) fn reader_address(&self, stream: u64, epoch: u64) -> Option<u64> {
        let known =
            self.known.iter().find(|known| known.stream.load(Ordering::Acquire) == stream)?;
        (self.known_epoch.load(Ordering::Relaxed) == epoch)
            .then(|| known.address.load(Ordering::Relaxed))
    }

    /// Enters a reader, where there is room. Failures up to `epoch` have been taken in.
    pub(crate) fn publish_reader(&self, epoch: u64, stream: u64, address: u64) {
        let is_first = self.known.iter().all(|known| known.stream.load(Ordering::Relaxed) == 0);
        if is_first {
            self.known_epoch.store(epoch, Ordering::Relaxed);
        } else if self.known_epoch.load(Ordering::Relaxed) != epoch {
            // What was entered before the last failure may be spoilt by it, and cannot be taken out
            // while others read: it is just not used.
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

    /// Forgets all readers: the array is about to change.
    #[inline]
    pub(crate) fn forget_readers(&self) {
        for known in &self.known {
            if known.stream.load(Ordering::Relaxed) != 0 {
                known.stream.store(0, Ordering::Release);
            }
        }
    }
}
