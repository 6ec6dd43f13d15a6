//! Host bodies: closures that are called once for a whole launch.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::arguments::unpack::Unpacker;
use super::signature::Signature;
use resident_backend::KernelBody;
use resident_backend::grid::Grid;

/// A closure as the body of a kernel with signature `S`.
pub(super) struct HostBody<S, F> {
    name: Arc<str>,
    run: F,
    signature: PhantomData<fn(S)>,
}

impl<S: Signature, F: for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static> HostBody<S, F> {
    pub(super) fn new(name: Arc<str>, run: F) -> Self {
        Self { name, run, signature: PhantomData }
    }
}

// SAFETY: `run` unpacks the words with the same signature with which `Kernel` packed them. The
// closure gets views of the declared elements only: shared views of elements that the kernel reads,
// exclusive views of elements that it writes.
unsafe impl<S: Signature, F: for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static> KernelBody
    for HostBody<S, F>
{
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) {
        let mut unpacker = Unpacker::new(words, pointers);
        // SAFETY: the caller passes the words and the resolved pointers of one launch of this
        // kernel.
        let arguments = unsafe { S::unpack(&mut unpacker) };
        (self.run)(grid, arguments);
    }
}

impl<S, F> fmt::Debug for HostBody<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBody({})", self.name)
    }
}
