//! Lists of a thread that are there as long as the thread runs, also for destructors of its other
//! thread-locals.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use smallvec::SmallVec;

/// The elements that need no heap.
const INLINE_LEN: usize = 4;

/// A list for a thread-local variable. It has no destructor, so that the variable is never gone;
/// instead it frees its memory whenever it becomes empty. What a thread leaves in it is leaked.
#[derive(Debug)]
pub struct ThreadList<T>(RefCell<ManuallyDrop<Elements<T>>>);

type Elements<T> = SmallVec<[T; INLINE_LEN]>;

impl<T> ThreadList<T> {
    #[allow(clippy::new_without_default, reason = "thread-locals need a constant")]
    pub const fn new() -> Self {
        const { assert!(!std::mem::needs_drop::<Self>(), "a thread-local with a destructor") };
        Self(RefCell::new(ManuallyDrop::new(SmallVec::new_const())))
    }

    /// Reads the list. `read` calls no code that may use the list.
    pub fn read<R>(&self, read: impl FnOnce(&[T]) -> R) -> R {
        read(&self.0.borrow())
    }

    /// Changes the list. `change` calls no code that may use the list: it returns what it removes.
    pub fn change<R>(&self, change: impl FnOnce(&mut SmallVec<[T; INLINE_LEN]>) -> R) -> R {
        let mut elements = self.0.borrow_mut();
        let result = change(&mut elements);
        if elements.is_empty() {
            drop(std::mem::take(&mut **elements));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc;

    use super::ThreadList;

    thread_local! {
        static LIST: ThreadList<String> = const { ThreadList::new() };
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }

    struct Last(mpsc::Sender<usize>);

    impl Drop for Last {
        fn drop(&mut self) {
            let len = LIST.with(|list| {
                list.change(|all| all.extend(["one", "more"].map(String::from)));
                list.read(<[String]>::len)
            });
            LIST.with(|list| list.change(std::mem::take));
            self.0.send(len).expect("the test listens");
        }
    }

    #[test]
    fn a_list_can_be_used_by_destructors_of_older_thread_locals() {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(|| {
            LAST.set(Some(Last(sender)));
            LIST.with(|list| list.change(|all| all.extend((0..9).map(|n| n.to_string()))));
            LIST.with(|list| list.change(|all| all.truncate(1)));
            let left = LIST.with(|list| list.change(|all| all.pop()));
            assert_eq!(left.as_deref(), Some("0"));
        });
        thread.join().expect("no panic");
        assert_eq!(receiver.recv(), Ok(2));
    }
}
