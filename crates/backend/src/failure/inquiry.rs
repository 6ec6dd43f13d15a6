//! Calls that will ask for the outcome of work that they queue.

use std::sync::Arc;

use crate::sync::BackendLock;

/// Exists while a call may still ask whether work failed that it has queued meanwhile. The records
/// of such failures stay.
#[derive(Debug)]
pub struct Inquiry {
    _generation: Arc<Generation>,
}

/// The inquiries that began before a point in time.
#[derive(Debug)]
pub struct InquiriesBefore(Arc<Generation>);

/// What the inquiries that begin between two removals of records have in common: handles to one
/// value.
#[derive(Debug, Default)]
struct Generation;

/// The generation that inquiries join now.
static CURRENT: Current = Current(BackendLock::new(None));

struct Current(BackendLock<Option<Arc<Generation>>>);

impl Inquiry {
    /// Begins an inquiry. The caller queues the work afterwards.
    pub fn begin() -> Self {
        CURRENT.begin()
    }
}

impl InquiriesBefore {
    /// The inquiries that have begun so far, except those for which an earlier value waits.
    pub fn now() -> Self {
        CURRENT.end()
    }

    /// Whether all of them are over.
    pub fn are_over(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some()
    }
}

impl Current {
    fn begin(&self) -> Inquiry {
        Inquiry { _generation: Arc::clone(self.0.lock().get_or_insert_default()) }
    }

    fn end(&self) -> InquiriesBefore {
        InquiriesBefore(self.0.lock().take().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::{BackendLock, Current};

    #[test]
    fn only_earlier_inquiries_are_waited_for() {
        let current = Current(BackendLock::new(None));
        let (first, second) = (current.begin(), current.begin());
        let mut before = current.end();
        let later = current.begin();
        assert!(!before.are_over());
        drop(first);
        assert!(!before.are_over());
        drop(second);
        assert!(before.are_over());
        let mut next = current.end();
        let _latest = current.begin();
        assert!(!next.are_over());
        drop(later);
        assert!(next.are_over());
        assert!(!current.end().are_over());
    }
}
