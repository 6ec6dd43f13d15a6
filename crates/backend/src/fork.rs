//! Forked children. A child has a copy of its parent's memory, and none of its threads: what waits
//! for one of those waits for ever. So objects with threads behind them have a mark of the process
//! that made them, and refuse calls in its children.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{BackendError, BackendErrorKind};

/// A mark of the process that makes it, which forked children know to be another's. Asking is two
/// loads where the system offers memory that is empty in a child; asking for the process's number
/// would be a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForkMark(u64);

impl ForkMark {
    /// A mark of no process.
    pub const NONE: Self = Self(0);

    /// A mark of this process.
    #[allow(clippy::new_without_default, reason = "it is of the process that calls")]
    #[must_use]
    pub fn new() -> Self {
        Self(process())
    }

    /// Whether this process made the mark.
    #[inline]
    #[must_use]
    pub fn is_own(self) -> bool {
        self.0 == process()
    }
}

/// The refusal of a call in a forked child: `what`, such as `device cpu:0`, is its parent's.
#[cold]
#[must_use]
pub fn refusal(call: &'static str, what: &str) -> BackendError {
    BackendError { kind: BackendErrorKind::Forked, call, detail: refusal_text(what) }
}

/// Says that this process is a forked child, what is impossible, and what to do.
#[must_use]
pub fn refusal_text(what: &str) -> String {
    format!(
        "this process is a forked child, without the threads behind {what}, which its parent \
         opened: nothing can be queued or waited for there. Open devices after the fork only, or \
         start another process by std::process::Command instead (in Python, by multiprocessing's \
         \"spawn\")"
    )
}

/// A number of this process that none of the processes has from which it was forked.
#[inline]
fn process() -> u64 {
    match MARK.load(Ordering::Acquire) {
        mark if mark.is_null() => first_mark(),
        // SAFETY: `first_mark` stores pointers to memory that is never unmapped.
        mark => match unsafe { &*mark }.load(Ordering::Relaxed) {
            0 => number_this_process(mark),
            number => number,
        },
    }
}

/// Where the number of this process is, or 0 in a child that has none yet; null at first.
static MARK: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// The number that was given last; a child goes on from that of its parent.
static LAST: AtomicU64 = AtomicU64::new(0);

#[cold]
fn number_this_process(mark: *const AtomicU64) -> u64 {
    // SAFETY: as in `process`.
    let mark = unsafe { &*mark };
    let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match mark.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => new,
        Err(of_another_thread) => of_another_thread,
    }
}

#[cold]
fn first_mark() -> u64 {
    let Some(new) = wiped_in_children() else { return std::process::id().into() };
    let null = std::ptr::null_mut();
    // If another thread was first, its memory is used, and this is never freed: once in a process.
    let stored = MARK.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire);
    number_this_process(stored.map_or_else(|of_another| of_another, |_| new))
}

/// Memory of zeros that is zero again in forked children, and is never unmapped; `None` if the
/// system has none.
#[cfg(target_os = "linux")]
fn wiped_in_children() -> Option<*mut AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    /// The system rounds it up to one page, of whatever length. Asking for that length instead
    /// would read the auxiliary vector, which fails under valgrind.
    const LEN_BYTES: usize = size_of::<AtomicU64>();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the system chooses the address of this new mapping, so it replaces none.
    let page =
        unsafe { mmap_anonymous(std::ptr::null_mut(), LEN_BYTES, access, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: the mapping was just made, and nothing else knows it.
    if unsafe { madvise(page, LEN_BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: as above.
        let _unmapped = unsafe { munmap(page, LEN_BYTES) };
        return None;
    }
    Some(page.cast())
}

#[cfg(not(target_os = "linux"))]
fn wiped_in_children() -> Option<*mut AtomicU64> {
    None
}

/// What each process makes for itself at first use, such as threads. It is never dropped.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    made: AtomicPtr<Made<T>>,
    making: Mutex<()>,
}

#[derive(Debug)]
struct Made<T> {
    mark: ForkMark,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    #[allow(clippy::new_without_default, reason = "statics need a constant")]
    pub const fn new() -> Self {
        Self { made: AtomicPtr::new(std::ptr::null_mut()), making: Mutex::new(()) }
    }

    /// This process's value, which `make` makes if there is none.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(value) = self.get() {
            return value;
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        self.get().unwrap_or_else(|| {
            // A child leaves its parent's value alone, whose threads it lacks.
            let made: &'static Made<T> =
                Box::leak(Box::new(Made { mark: ForkMark::new(), value: make() }));
            self.made.store(std::ptr::from_ref(made).cast_mut(), Ordering::Release);
            &made.value
        })
    }

    fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or a value that `get_or_make` has leaked, and that is never changed.
        let made = unsafe { self.made.load(Ordering::Acquire).cast_const().as_ref() };
        made.filter(|made| made.mark.is_own()).map(|made| &made.value)
    }
}

#[cfg(test)]
mod tests {
    use super::{ForkMark, PerProcess, refusal};

    #[test]
    fn the_process_that_made_a_mark_knows_it() {
        let mark = ForkMark::new();
        assert!(mark.is_own() && mark == ForkMark::new());
        assert!(!ForkMark::NONE.is_own() && !ForkMark(mark.0 + 1).is_own());
        let refused = refusal("wait", "device cpu:7");
        assert!(refused.to_string().contains("behind device cpu:7, which its parent"), "{refused}");
    }

    #[test]
    fn a_value_of_a_process_is_made_once() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!(*VALUE.get_or_make(|| 1), 1);
        assert_eq!(*VALUE.get_or_make(|| 2), 1);
    }
}
