//! Calls that will ask for the outcome of work that they queue.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Exists while a call may still ask whether work failed that it has queued meanwhile. The records
/// of such failures stay.
#[derive(Debug)]
pub struct Inquiry {
    inquiries: &'static Inquiries,
    group: usize,
}

/// The inquiries that began before a point in time. At most one value exists at a time.
#[derive(Debug)]
pub struct InquiriesBefore {
    inquiries: &'static Inquiries,
    group: usize,
}

/// The number of inquiries, in two groups that take turns, as in RCU: while the count of the older
/// group goes down to zero, new inquiries join the other.
#[derive(Debug)]
struct Inquiries {
    group: AtomicUsize,
    counts: [AtomicUsize; 2],
}

static INQUIRIES: Inquiries = Inquiries::new();

impl Inquiry {
    /// Begins an inquiry. The caller queues the work afterwards.
    pub fn begin() -> Self {
        INQUIRIES.begin()
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        self.inquiries.counts[self.group].fetch_sub(1, Ordering::SeqCst);
    }
}

impl InquiriesBefore {
    /// The inquiries that have begun so far. `None` if some are left of the group before these,
    /// whose count new inquiries would join.
    pub fn now() -> Option<Self> {
        INQUIRIES.begun()
    }

    /// Whether all of them are over.
    pub fn are_over(&self) -> bool {
        self.inquiries.counts[self.group].load(Ordering::SeqCst) == 0
    }
}

impl Inquiries {
    const fn new() -> Self {
        Self { group: AtomicUsize::new(0), counts: [AtomicUsize::new(0), AtomicUsize::new(0)] }
    }

    fn begin(&'static self) -> Inquiry {
        loop {
            let group = self.group.load(Ordering::SeqCst);
            let inquiry = Inquiry { inquiries: self, group };
            self.counts[group].fetch_add(1, Ordering::SeqCst);
            if self.group.load(Ordering::SeqCst) == group {
                return inquiry;
            }
            // The groups changed before this inquiry was counted, which may have been overlooked.
            drop(inquiry);
        }
    }

    fn begun(&'static self) -> Option<InquiriesBefore> {
        let group = self.group.load(Ordering::SeqCst);
        if self.counts[1 - group].load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.group.store(1 - group, Ordering::SeqCst);
        Some(InquiriesBefore { inquiries: self, group })
    }
}

#[cfg(test)]
mod tests {
    use super::Inquiries;

    #[test]
    fn only_earlier_watches_are_waited_for() {
        let inquiries: &'static Inquiries = Box::leak(Box::new(Inquiries::new()));
        let (first, second) = (inquiries.begin(), inquiries.begin());
        let before = inquiries.begun().expect("no older inquiries");
        let later = inquiries.begin();
        assert!(!before.are_over());
        drop(first);
        assert!(!before.are_over());
        drop(second);
        assert!(before.are_over());
        let next = inquiries.begun().expect("the first group is over");
        assert!(!next.are_over());
        let _latest = inquiries.begin();
        // `later` has not ended, and its group may not begin again.
        assert!(inquiries.begun().is_none());
        drop(later);
        assert!(next.are_over());
    }
}
