//! Host bodies: closures that are called once for a whole launch.

use std::sync::Arc;

use super::arguments::unpack::Unpacker;
use super::signature::Signature;
use resident_backend::grid::Grid;
use resident_backend::{KernelBody, rust_body};

/// A closure as the body of a kernel with signature `S`.
pub(super) fn host_body<S: Signature>(
    name: Arc<str>,
    run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static,
) -> Arc<dyn KernelBody> {
    let unpacked = move |grid: Grid, words: &[u64], pointers: &[*mut u8]| {
        let mut unpacker = Unpacker::new(words, pointers);
        // SAFETY: the caller of a body passes the words and the resolved pointers of one launch of
        // this kernel.
        let arguments = unsafe { S::unpack(&mut unpacker) };
        run(grid, arguments);
    };
    // SAFETY: `unpacked` unpacks the words with the same signature with which `Kernel` packed them.
    // The closure gets views of the declared elements only: shared views of elements that the
    // kernel reads, exclusive views of elements that it writes.
    unsafe { rust_body(name, unpacked) }
}
