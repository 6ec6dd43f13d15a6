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
    next: Option<&'static Self>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());

impl LoadedCode {
    pub(in super::super) fn new(addresses: Range<usize>) -> Self {
        let entry = Box::leak(Box::new(Entry {
            start: addresses.start,
            end: AtomicUsize::new(addresses.end),
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

/// Whether an address is one of a kernel's code.
pub(super) fn is_loaded(address: usize) -> bool {
    let mut next = at(FIRST.load(Ordering::Acquire));
    while let Some(entry) = next {
        if (entry.start..entry.end.load(Ordering::Acquire)).contains(&address) {
            return true;
        }
        next = entry.next;
    }
    false
}

fn at(entry: *mut Entry) -> Option<&'static Entry> {
    // SAFETY: null, or an entry that `new` has leaked and, before it stored the pointer, written.
    unsafe { entry.as_ref() }
}

#[cfg(test)]
mod tests {
    use super::{LoadedCode, is_loaded};

    #[test]
    fn code_counts_from_its_load_until_it_is_unloaded() {
        // Addresses that no process has.
        let at = |page: usize| usize::MAX - (page << 12);
        let (first, second) = (LoadedCode::new(at(9)..at(8)), LoadedCode::new(at(5)..at(4)));
        assert!(is_loaded(at(9)) && is_loaded(at(8) - 1) && is_loaded(at(5)));
        assert!(!is_loaded(at(8)) && !is_loaded(at(9) - 1) && !is_loaded(0));
        drop(first);
        assert!(!is_loaded(at(9)) && is_loaded(at(5)));
        drop(second);
        assert!(!is_loaded(at(5)));
    }
}
