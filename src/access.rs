//! What a caller does with elements: the one vocabulary from a kernel's signature to the backends.

/// What is done with a region of one copy of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// Read it.
    Read,
    /// Read it and write all of it, or any part.
    ReadWrite,
    /// Write all of it without reading.
    Overwrite,
}

impl Access {
    /// Whether the access writes.
    #[inline]
    pub(crate) const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}
