//! Host memory of the embedded device: ordinary memory, since the device can access all of it.

use std::sync::Arc;

use super::block::Block;
use resident_backend::host_allocation::{ByteCount, CountedBytes};
use resident_backend::{DeviceKind, HostMemory};

/// Memory of an array, pinned for embedded devices.
#[derive(Debug)]
pub(crate) struct PinnedBlock {
    block: Block,
    len_bytes: usize,
    _counted: CountedBytes,
}

impl PinnedBlock {
    /// A block of zeros. `None` if the system has no memory.
    pub(crate) fn zeroed(len_bytes: usize, pinned: &ByteCount) -> Option<Self> {
        let block = Block::zeroed(len_bytes as u64)?;
        Some(Self { block, len_bytes, _counted: pinned.count(len_bytes) })
    }
}

// SAFETY: the value owns its block, whose `len_bytes` bytes are initialised (`Block::zeroed`).
unsafe impl HostMemory for PinnedBlock {
    fn base(&self) -> *mut u8 {
        self.block.start()
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        kind == DeviceKind::Cpu
    }
}

/// Memory that the device accesses too, which has an address.
#[derive(Debug)]
pub(super) struct MappedBlock(pub(super) Arc<Block>);

// SAFETY: the value keeps its block, whose bytes are initialised (`Block::zeroed`).
unsafe impl HostMemory for MappedBlock {
    fn base(&self) -> *mut u8 {
        self.0.start()
    }

    fn len_bytes(&self) -> usize {
        self.0.len_bytes() as usize
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        kind == DeviceKind::Cpu
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Block, MappedBlock, PinnedBlock};
    use resident_backend::host_allocation::ByteCount;
    use resident_backend::{DeviceKind, HostMemory};

    /// To a GPU it is ordinary memory, whose copies are staged.
    #[test]
    fn memory_of_embedded_devices_is_pinned_for_them_alone() {
        let pinned = PinnedBlock::zeroed(100, &ByteCount::default()).expect("memory");
        let mapped = MappedBlock(Arc::new(Block::zeroed(100).expect("memory")));
        let memories: [&dyn HostMemory; 2] = [&pinned, &mapped];
        for memory in memories {
            assert_eq!(memory.len_bytes(), 100);
            assert!(memory.is_pinned_for(DeviceKind::Cpu), "{memory:?}");
            assert!(!memory.is_pinned_for(DeviceKind::Cuda), "{memory:?}");
            assert!(!memory.is_pinned_for(DeviceKind::Hip), "{memory:?}");
        }
    }
}
