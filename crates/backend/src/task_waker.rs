//! The waker of a task that waits for queued work.

use std::task::Waker;

use crate::sync::{self, Mutex};
use crate::unwinding::contain_panic;

/// The waker that a task passed when it polled last. The task keeps one `TaskWaker` for all polls,
/// so that each poll replaces the waker instead of adding one.
///
/// A waker is user code: it is cloned, dropped and woken with no lock held. It may panic. When it
/// is cloned, the task's poll gets the panic. It is woken and dropped by any thread, or while a
/// panic unwinds: then only the panic hook gets it.
#[derive(Debug, Default)]
pub struct TaskWaker(Mutex<Option<Waker>>);

impl TaskWaker {
    /// Replaces the waker.
    pub fn set(&self, waker: &Waker) {
        sync::assert_none_held();
        let new = waker.clone();
        let old = self.0.lock().replace(new);
        contain_panic(|| drop(old));
    }

    /// Drops the waker: no task waits any more.
    pub fn clear(&self) {
        sync::assert_none_held();
        let old = self.0.lock().take();
        contain_panic(|| drop(old));
    }

    /// Wakes the task, once for each `set`.
    pub fn wake(&self) {
        sync::assert_none_held();
        let Some(waker) = self.0.lock().take() else { return };
        contain_panic(|| waker.wake());
    }
}

impl Drop for TaskWaker {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::TaskWaker;

    /// A waker that panics when it is woken and when it is dropped; it counts its drops.
    struct Broken(Arc<AtomicUsize>);

    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("woken");
        }
    }

    impl Drop for Broken {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            if !std::thread::panicking() {
                panic!("dropped");
            }
        }
    }

    #[test]
    fn no_panic_of_a_waker_leaves_the_task() {
        let drops = Arc::<AtomicUsize>::default();
        let set = |task: &TaskWaker| task.set(&Waker::from(Arc::new(Broken(Arc::clone(&drops)))));
        let task = TaskWaker::default();
        set(&task);
        set(&task);
        assert_eq!(drops.load(Ordering::SeqCst), 1, "the second waker takes the first one's place");
        task.clear();
        set(&task);
        task.wake();
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        set(&task);
        drop(task);
        assert_eq!(drops.load(Ordering::SeqCst), 4);
    }
}
