//! A kernel of a module and its parameters.

/// A kernel of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) parameters: Vec<Slot>,
    /// The maximum number of threads per block, if the module declares it.
    pub(super) max_threads: Option<u32>,
}

/// The offset and size of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub(super) offset_bytes: usize,
    pub(super) len_bytes: usize,
}
