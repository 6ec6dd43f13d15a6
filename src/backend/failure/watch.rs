//! Calls that will ask for the outcome of work that they queue.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Exists while a call may still ask whether work failed that it has queued meanwhile. The records
/// of such failures stay.
#[derive(Debug)]
pub(crate) struct Watch {
    watches: &'static Watches,
    group: usize,
}

/// The watches that began before a point in time. At most one value exists at a time.
#[derive(Debug)]
pub(crate) struct WatchesBefore {
    watches: &'static Watches,
    group: usize,
}

/// The number of watches, in two groups that take turns, as in RCU: while the count of the older
/// group goes down to zero, new watches join the other.
#[derive(Debug)]
struct Watches {
    group: AtomicUsize,
    counts: [AtomicUsize; 2],
}

static WATCHES: Watches = Watches::new();

impl Watch {
    /// Begins a watch. The caller queues the work afterwards.
    pub(crate) fn begin() -> Self {
        WATCHES.begin()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watches.counts[self.group].fetch_sub(1, Ordering::SeqCst);
    }
}

impl WatchesBefore {
    /// The watches that have begun so far. `None` if some are left of the group before these, whose
    /// count new watches would join.
    pub(crate) fn now() -> Option<Self> {
        WATCHES.begun()
    }

    /// Whether all of them are over.
    pub(crate) fn are_over(&self) -> bool {
        self.watches.counts[self.group].load(Ordering::SeqCst) == 0
    }
}

impl Watches {
    const fn new() -> Self {
        Self { group: AtomicUsize::new(0), counts: [AtomicUsize::new(0), AtomicUsize::new(0)] }
    }

    fn begin(&'static self) -> Watch {
        loop {
            let group = self.group.load(Ordering::SeqCst);
            let watch = Watch { watches: self, group };
            self.counts[group].fetch_add(1, Ordering::SeqCst);
            if self.group.load(Ordering::SeqCst) == group {
                return watch;
            }
            // The groups changed before this watch was counted, which may have been overlooked.
            drop(watch);
        }
    }

    fn begun(&'static self) -> Option<WatchesBefore> {
        let group = self.group.load(Ordering::SeqCst);
        if self.counts[1 - group].load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.group.store(1 - group, Ordering::SeqCst);
        Some(WatchesBefore { watches: self, group })
    }
}

#[cfg(test)]
mod tests {
    use super::Watches;

    #[test]
    fn only_earlier_watches_are_waited_for() {
        let watches: &'static Watches = Box::leak(Box::new(Watches::new()));
        let (first, second) = (watches.begin(), watches.begin());
        let before = watches.begun().expect("no older watches");
        let later = watches.begin();
        assert!(!before.are_over());
        drop(first);
        assert!(!before.are_over());
        drop(second);
        assert!(before.are_over());
        let next = watches.begun().expect("the first group is over");
        assert!(!next.are_over());
        let _latest = watches.begin();
        // `later` has not ended, and its group may not begin again.
        assert!(watches.begun().is_none());
        drop(later);
        assert!(next.are_over());
    }
}
