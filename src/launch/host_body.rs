//! Host bodies: closures that are called once for a whole launch.

use std::sync::Arc;

use super::arguments::unpack::Unpacker;
use super::signature::Signature;
use resident_backend::grid::Grid;
use resident_backend::scope::{self, BodyScope};
use resident_backend::thread_pools::in_own_pool;
use resident_backend::{KernelBody, rust_body, rust_body_that_may_leave_out};

/// Whose the closure of a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// The program: the closure may leave elements of an output as they are.
    Program,
    /// This library: the closure writes every element of its outputs.
    Library,
}

/// A closure as the body of a kernel with signature `S`.
pub(super) fn host_body<S: Signature>(
    name: Arc<str>,
    author: Author,
    run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static,
) -> Arc<dyn KernelBody> {
    let unpacked = move |grid: Grid, words: &[u64], pointers: &[*mut u8]| {
        let pointers = Pointers(pointers);
        let body = || {
            let mut unpacker = Unpacker::new(words, pointers.all());
            // SAFETY: the caller of a body passes the words and the resolved pointers of one launch
            // of this kernel.
            let arguments = unsafe { S::unpack(&mut unpacker) };
            run(grid, arguments);
        };
        if author == Author::Library || !scope::is_in_body() {
            // It uses no pool of the program, or is called by `Kernel::call`, on its thread.
            return body();
        }
        in_own_pool(|| {
            let _running = BodyScope::enter();
            body();
        });
    };
    match author {
        // SAFETY: `unpacked` unpacks the words with the same signature with which `Kernel` packed
        // them. The closure gets views of the declared elements only: shared views of elements that
        // the kernel reads, exclusive views of elements that it writes.
        Author::Program => unsafe { rust_body_that_may_leave_out(name, unpacked) },
        // SAFETY: as above.
        Author::Library => unsafe { rust_body(name, unpacked) },
    }
}

/// The pointers of one launch, which another thread may use while the one that has them waits.
struct Pointers<'a>(&'a [*mut u8]);

// SAFETY: the caller of a body promises that only the body uses the memory, whichever thread runs
// it.
unsafe impl Send for Pointers<'_> {}

// SAFETY: as above.
unsafe impl Sync for Pointers<'_> {}

impl<'a> Pointers<'a> {
    fn all(&self) -> &'a [*mut u8] {
        self.0
    }
}
