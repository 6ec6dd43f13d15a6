//! The kinds of access to elements, from a kernel's signature down to the backends.

/// An access to a region of one copy of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Read it.
    Read,
    /// Read it, and write any or all of it.
    ReadWrite,
    /// Write all of it without reading.
    Overwrite,
}

impl Access {
    /// Whether the access writes.
    #[inline]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}
