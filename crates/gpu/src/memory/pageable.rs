//! The backend's own pageable host memory: for staging if no pinned block is available, and for the
//! pattern of a fill.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use resident_backend::{BackendError, BackendErrorKind, HostMemory};

/// A block of pageable memory.
#[derive(Debug)]
pub(crate) struct PageableBlock {
    start: NonNull<u8>,
    layout: Layout,
}

impl PageableBlock {
    /// A zeroed block of `len_bytes` bytes, at least one; `call` names the operation in errors.
    pub(crate) fn zeroed(len_bytes: u64, call: &'static str) -> Result<Self, BackendError> {
        let layout = usize::try_from(len_bytes.max(1))
            .ok()
            .and_then(|len_bytes| Layout::from_size_align(len_bytes, 64).ok())
            .ok_or_else(|| no_room(len_bytes, call))?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        start.map(|start| Self { start, layout }).ok_or_else(|| no_room(len_bytes, call))
    }

    /// A block that contains `pattern`, repeated `count` times, for a fill.
    pub(crate) fn repeating(pattern: &[u8], count: usize) -> Result<Self, BackendError> {
        let block = Self::zeroed((pattern.len() * count) as u64, "fill")?;
        // SAFETY: the block has this many initialised bytes, and no other code can access it yet.
        let bytes = unsafe { std::slice::from_raw_parts_mut(block.base(), block.len_bytes()) };
        bytes.chunks_exact_mut(pattern.len()).for_each(|chunk| chunk.copy_from_slice(pattern));
        Ok(block)
    }
}

#[cold]
fn no_room(requested: u64, call: &'static str) -> BackendError {
    BackendError {
        kind: BackendErrorKind::OutOfHostMemory { requested },
        call,
        detail: "the host has no memory to stage it in".to_owned(),
    }
}

// SAFETY: the value owns its allocation, and only returns a pointer.
unsafe impl Send for PageableBlock {}
// SAFETY: as above; users of the pointer order their accesses (`HostMemory`).
unsafe impl Sync for PageableBlock {}

// SAFETY: `start` points to `layout.size()` bytes, which `zeroed` initialised and only `drop`
// frees.
unsafe impl HostMemory for PageableBlock {
    fn base(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn len_bytes(&self) -> usize {
        self.layout.size()
    }

    fn is_staging(&self) -> bool {
        true
    }
}

impl Drop for PageableBlock {
    fn drop(&mut self) {
        // SAFETY: `zeroed` allocated it with this layout, and nothing else frees it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
