//! Where the code of loaded kernels is, for a handler of signals: a list that it reads without a
//! lock and without thread-local variables.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The code of a library, from its load until this drops.
#[derive(Debug)]
pub(in super::super) struct LoadedCode(&'static Entry);

/// An entry is never freed, since a handler may be reading it.
#[derive(Debug)]
struct Entry {
    start: usize,
    /// 0 once the library is unloaded.
    end: AtomicUsize,
    /// The name of its kernel.
    kernel: Box<str>,
    next: Option<&'static Self>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());

impl LoadedCode {
    pub(in super::super) fn new(addresses: Range<usize>, kernel: &str) -> Self {
        let entry = Box::leak(Box::new(Entry {
            start: addresses.start,
            end: AtomicUsize::new(addresses.end),
            kernel: kernel.into(),
            next: None,
        }));
        let mut first = FIRST.load(Ordering::Acquire);
        loop {
            entry.next = at(first);
            let swapped = FIRST.compare_exchange(
                first,
                std::ptr::from_mut(entry),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match swapped {
                // No thread writes to it from here on, except to the atomic field.
                Ok(_) => return Self(entry),
                Err(other) => first = other,
            }
        }
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::Release);
    }
}

/// The name of the kernel of whose code an address is, if it is of one's.
pub(super) fn kernel_at(address: usize) -> Option<&'static str> {
    let mut next = at(FIRST.load(Ordering::Acquire));
    while let Some(entry) = next {
        if (entry.start..entry.end.load(Ordering::Acquire)).contains(&address) {
            return Some(&entry.kernel);
        }
        next = entry.next;
    }
    None
}

fn at(entry: *mut Entry) -> Option<&'static Entry> {
    // SAFETY: null, or an entry that `new` has leaked and, before it stored the pointer, written.
    unsafe { entry.as_ref() }
}

#[cfg(test)]
mod tests {
    use super::{LoadedCode, kernel_at};

    #[test]
    fn code_counts_from_its_load_until_it_is_unloaded() {
        // Addresses that no process has.
        let at = |page: usize| usize::MAX - (page << 12);
        let (first, second) =
            (LoadedCode::new(at(9)..at(8), "first"), LoadedCode::new(at(5)..at(4), "second"));
        assert_eq!(
            [at(9), at(8) - 1, at(5)].map(kernel_at),
            ["first", "first", "second"].map(Some)
        );
        assert_eq!([at(8), at(9) - 1, 0].map(kernel_at), [None; 3]);
        drop(first);
        assert_eq!([at(9), at(5)].map(kernel_at), [None, Some("second")]);
        drop(second);
        assert_eq!(kernel_at(at(5)), None);
    }
}
