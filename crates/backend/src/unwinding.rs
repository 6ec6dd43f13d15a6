//! Panics where none may unwind: out of user code that another thread or a destructor calls, and
//! out of work on memory that is borrowed only until the work is over.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;

/// Runs user code and keeps its panic from the caller: `None` if it panicked, which the panic hook
/// has reported. The payload is leaked, because its drop may panic again.
pub fn contain_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(std::mem::forget).ok()
}

/// Runs work that must end before a borrow does, and ends the process if the work unwinds, as
/// `std::thread::scope` does: other threads may still use the borrowed memory. `doing` says what
/// could not be finished.
#[inline]
pub fn abort_on_unwind<T>(doing: &'static str, run: impl FnOnce() -> T) -> T {
    let unfinished = Unfinished(doing);
    let outcome = run();
    std::mem::forget(unfinished);
    outcome
}

/// Work that is not over. Dropped only by an unwind.
struct Unfinished(&'static str);

impl Drop for Unfinished {
    #[cold]
    fn drop(&mut self) {
        let _unwritten = writeln!(
            io::stderr(),
            "resident: a panic interrupted {}. Other threads may still use the memory, which the \
             caller is about to get back, so the process ends.",
            self.0
        );
        process::abort();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{abort_on_unwind, contain_panic};

    /// A value whose drop panics.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_panic_is_kept_from_the_caller_even_if_its_payload_cannot_be_dropped() {
        assert_eq!(contain_panic(|| 3), Some(3));
        assert_eq!(contain_panic::<()>(|| std::panic::panic_any(Bomb)), None);
    }

    #[test]
    #[ignore = "run in processes of its own by the test below"]
    fn unwinds() {
        abort_on_unwind::<()>("the wait for a test", || panic!("in the midst of it"));
    }

    #[test]
    fn an_unwind_ends_the_process_with_a_message() {
        assert_eq!(abort_on_unwind("nothing", || 3), 3);
        let program = std::env::current_exe().expect("this program has a path");
        let test = "unwinding::tests::unwinds";
        let output = Command::new(program)
            .args(["--exact", test, "--ignored", "--nocapture"])
            .output()
            .expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{}: {errors}", output.status);
        assert!(errors.contains("a panic interrupted the wait for a test. Other"), "{errors}");
        #[cfg(unix)]
        assert!(std::os::unix::process::ExitStatusExt::signal(&output.status).is_some());
    }
}
