//! The threads that run the host bodies of large operations, and the bodies of `host_each`.

use std::sync::{Mutex, PoisonError};

use resident_backend::parallel::Threads;

/// From this many elements on, an operation uses all cores.
pub(crate) const PARALLEL_LEN_MIN: usize = 16 * TASK_LEN;

/// The elements of which one task consists, whatever the number of threads, so that sums do not
/// depend on it. Without optimisation each takes many times as long, and fewer are worth a task.
pub(crate) const TASK_LEN: usize = if cfg!(debug_assertions) { 1 << 13 } else { 1 << 16 };

static THREADS: Threads = Threads::new("resident bodies", 64);

/// The number of threads that run pieces, with the one that calls.
pub(crate) fn threads() -> usize {
    THREADS.count()
}

/// Calls `run` with each of the pieces, on all cores, in any order.
pub(crate) fn each_piece<P: Send>(pieces: Vec<P>, run: impl Fn(P) + Sync) {
    let parts = pieces.len() as u64;
    let left = Mutex::new(pieces.into_iter());
    THREADS.run(parts, &|_| {
        let piece = left.lock().unwrap_or_else(PoisonError::into_inner).next();
        piece.into_iter().for_each(&run);
    });
}

/// The halves of a piece, or a small piece alone.
pub(crate) type Halves<P> = (P, Option<P>);

/// Halves a piece, and its halves, until `halve` finds them small.
pub(crate) fn pieces_of<P>(whole: P, halve: &impl Fn(P) -> Halves<P>) -> Vec<P> {
    let (mut pieces, mut open) = (Vec::new(), vec![whole]);
    while let Some(piece) = open.pop() {
        match halve(piece) {
            (first, Some(second)) => open.extend([second, first]),
            (small, None) => pieces.push(small),
        }
    }
    pieces
}
