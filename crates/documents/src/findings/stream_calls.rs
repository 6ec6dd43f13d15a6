//! Calls, and the streams of their work.

use super::symbols::Symbol;

/// A call, and the stream of its work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct CallOnStream {
    pub(super) site: Symbol,
    pub(super) device: Symbol,
    pub(super) stream: u32,
}
