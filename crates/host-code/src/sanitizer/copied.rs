//! Copies of shared memory that nothing has written, such as the rest of a tile that is copied
//! whole. As long as nobody uses the copy it is unwritten memory too, and no error. Pure.

use super::access::{MemoryAccess, Touch};
use super::order::Stamp;

/// A thread has read shared memory that nothing has written.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnwrittenRead {
    by: Stamp,
    pub(super) address: usize,
    pub(super) len_bytes: usize,
    /// Where it has written as many bytes right after.
    pub(super) written: Option<usize>,
}

impl UnwrittenRead {
    /// The read, if it is one of a number: other copies are not announced in this order.
    pub(super) fn new(by: Stamp, access: MemoryAccess) -> Option<Self> {
        let MemoryAccess { address, len_bytes, .. } = access;
        let is_read = access.touch == Touch::Read && !access.is_record();
        is_read.then_some(Self { by, address, len_bytes, written: None })
    }

    /// The same read, behind the next access, which is one to shared memory that nothing has
    /// written. None if that access makes no copy.
    pub(super) fn followed_by(self, me: Stamp, access: MemoryAccess) -> Option<Self> {
        let is_copy = self.written.is_none()
            && access.touch == Touch::Write
            && access.len_bytes == self.len_bytes
            && me.is_of_thread(self.by);
        is_copy.then_some(Self { written: Some(access.address), ..self })
    }
}
