//! One access of a thread to memory.

/// One access.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryAccess {
    pub(super) address: usize,
    pub(super) len_bytes: usize,
    pub(super) touch: Touch,
    pub(super) extent: Extent,
    /// Whether the source says `volatile`. That makes an access real, and orders nothing.
    pub(super) is_volatile: bool,
    /// Whether it is an atomic operation that compares first.
    pub(super) is_swap: bool,
    /// The place in the library's image behind the access.
    pub(super) code: usize,
}

/// What kind of value an access concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// A number or a vector, which GPUs access only where it is aligned.
    Value,
    /// A number somewhere, or bytes that a function copies or fills.
    Bytes,
    /// A record, part of which may be padding.
    Record,
}

impl MemoryAccess {
    /// Whether the value is a number, which GPUs access only where it is aligned. A value of 16
    /// bytes may be two numbers.
    pub(super) fn is_number(&self) -> bool {
        self.extent == Extent::Value && matches!(self.len_bytes, 2 | 4 | 8)
    }

    pub(super) fn is_record(&self) -> bool {
        self.extent == Extent::Record
    }
}

/// How a thread accesses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Touch {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    /// Reads and writes in one step.
    AtomicUpdate,
}

impl Touch {
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::AtomicRead | Self::AtomicUpdate)
    }

    pub(super) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite | Self::AtomicUpdate)
    }

    pub(super) fn is_atomic(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }
}
