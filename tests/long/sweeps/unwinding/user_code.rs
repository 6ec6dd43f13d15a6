//! User code that the library calls, and of which one call panics.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata};

/// The payload of a panic of user code.
pub(crate) struct Broken;

/// Counts calls of user code until one panics.
#[derive(Default)]
pub(crate) struct UserCode {
    /// The number of calls up to the one that panics; 0 if none does.
    left: AtomicUsize,
}

impl UserCode {
    /// Lets the `nth` call from now on panic.
    pub(crate) fn arm(&self, nth: usize) {
        self.left.store(nth, Ordering::SeqCst);
    }

    /// Returns whether a call has panicked.
    pub(crate) fn disarm(&self) -> bool {
        self.left.swap(0, Ordering::SeqCst) == 0
    }

    fn call(&self) {
        let less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1) {
            panic::panic_any(Broken);
        }
    }
}

/// Keeps the panics of user code out of the test's output.
pub(crate) fn silence_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Broken>() {
            usual(info);
        }
    }));
}

/// Is asked whether it wants each event, and gets all of the library's.
pub(crate) struct Subscriber(pub(crate) Arc<UserCode>);

impl tracing::Subscriber for Subscriber {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_wanted = metadata.target().starts_with("resident");
        if is_wanted {
            self.0.call();
        }
        is_wanted
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        self.0.call();
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        self.0.call();
    }

    fn enter(&self, _span: &Id) {
        self.0.call();
    }

    fn exit(&self, _span: &Id) {
        self.0.call();
    }

    fn try_close(&self, _span: Id) -> bool {
        self.0.call();
        true
    }
}

/// A captured value whose destructor is user code.
pub(crate) struct Captured(pub(crate) Arc<UserCode>);

impl Drop for Captured {
    fn drop(&mut self) {
        self.0.call();
    }
}

/// A waker all of whose functions are user code.
pub(crate) fn waker(user_code: &Arc<UserCode>) -> Waker {
    let data = Arc::into_raw(Arc::clone(user_code)).cast();
    // SAFETY: the functions keep the contract of a waker: `data` is a handle of the user code,
    // which `clone` duplicates and `drop` and `wake` release. Its counter is atomic.
    unsafe { Waker::new(data, &FUNCTIONS) }
}

static FUNCTIONS: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

unsafe fn clone(data: *const ()) -> RawWaker {
    let data: *const UserCode = data.cast();
    // SAFETY: `waker` made the pointer from an `Arc`, of which the waker has a handle.
    unsafe { (*data).call() };
    // SAFETY: as above.
    unsafe { Arc::increment_strong_count(data) };
    RawWaker::new(data.cast(), &FUNCTIONS)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: `waker` made the pointer from an `Arc`, whose handle this call takes over.
    unsafe { Arc::<UserCode>::from_raw(data.cast()) }.call();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: as in `clone`.
    unsafe { (*data.cast::<UserCode>()).call() };
}

unsafe fn release(data: *const ()) {
    // SAFETY: as in `wake`.
    unsafe { Arc::<UserCode>::from_raw(data.cast()) }.call();
}
