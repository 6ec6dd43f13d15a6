//! The address space of one device: live allocations, the pool of freed blocks, and the limit.
//!
//! An address is a number, not a pointer, and is never reused. So work that uses the address of
//! freed memory finds no memory, even if its block was allocated again. Work looks addresses up
//! when it runs, and keeps the blocks alive while it uses them.

mod reserved;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::block::{ALIGNMENT_BYTES, Block};
use super::machine::machine_memory;
use super::pages::Pages;
use super::pinned::MappedBlock;
use crate::errors::{CODE_UNKNOWN_ADDRESS, driver_error};
use resident_backend::ForeignMemory;
use resident_backend::failure::LeftOut;
use resident_backend::host_allocation::{ByteCount, CountedBytes};
use resident_backend::host_copy::BoundedMemory;
use resident_backend::imports::{AddressRange, InUse, counted_bytes, counted_in_pinned};
use resident_backend::sync;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{
    Address, BackendError, BackendErrorKind, Capacity, CopyBox, Footprint, HostMemory,
    MappedMemory, MemoryUsage,
};
use resident_host_code::Findings;

/// The pool keeps at most this many bytes, or as many as are in use if that is more. Other freed
/// blocks return to the system.
const POOLED_BYTES_MAX: u64 = 256 << 20;

/// Freeing a block up to this length is cheap, even if it must be filled with poison bytes.
const CHEAP_POISON_BYTES_MAX: u64 = 64 << 10;

type SharedState = Arc<BackendLock<AddressSpaceState>>;

/// All address spaces: embedded devices all use this process's memory, so an import on one looks
/// for overlaps with the memory of each. Locked while an import is checked and entered, so that of
/// two imports of the same memory one sees the other.
static SPACES: BackendLock<Vec<Weak<BackendLock<AddressSpaceState>>>> =
    BackendLock::new(Vec::new());

/// The memory of one device.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    poison: Option<u8>,
    /// The unit in which memory is committed to reservations, if there are any.
    page_bytes: Option<u64>,
    /// Where the checker keeps what launches left out, if the device checks them.
    findings: Option<Arc<Findings>>,
    /// Shared with the list of all address spaces, in which imports look for overlaps.
    state: SharedState,
}

#[derive(Debug, Default)]
struct AddressSpaceState {
    /// The memory of the device, if it was emulated with a size.
    total_bytes: Option<u64>,
    /// The limit that the program has set.
    limit_bytes: Option<u64>,
    live: BTreeMap<u64, Allocation>,
    /// Freed blocks by length. Empty lists are kept, since programs allocate the same lengths
    /// again.
    pool: BTreeMap<u64, Vec<Arc<Block>>>,
    pooled_bytes: u64,
    in_use_bytes: u64,
    draining_bytes: u64,
    next_address: u64,
}

#[derive(Debug)]
struct Allocation {
    block: Arc<Block>,
    /// Whether a free is queued.
    is_draining: bool,
    /// Whether other code was handed the memory, so that it may come back as memory to be taken
    /// over.
    is_lent: bool,
    /// The bytes that count as in use or draining. Mapped memory is the host's, and memory that
    /// came back counts where it was handed out: 0.
    counted_bytes: u64,
    host_access: HostAccess,
    /// The pages of a reservation.
    pages: Option<Pages>,
}

impl Allocation {
    fn located(&self, offset_bytes: u64) -> LocatedMemory {
        let is_of_device = matches!(self.host_access, HostAccess::None) && !self.block.is_foreign();
        let is_shared = !is_of_device || self.is_lent || self.block.is_exposed();
        let has_all_pages = self.pages.as_ref().is_none_or(Pages::are_all_committed);
        LocatedMemory { block: Arc::clone(&self.block), offset_bytes, is_shared, has_all_pages }
    }
}

/// Whether the host accesses the memory of an allocation too.
#[derive(Debug)]
enum HostAccess {
    None,
    /// The memory is the host's: it is no memory of the device in the count.
    Mapped {
        _counted: Box<CountedBytes>,
    },
    /// The memory is an array's in the host's ordinary memory: it counts nowhere.
    Shared,
    Managed,
}

/// Memory from an address to the end of its block. This value keeps the block alive.
#[derive(Debug)]
pub(crate) struct LocatedMemory {
    block: Arc<Block>,
    offset_bytes: u64,
    /// Whether other code than the device's may access it.
    is_shared: bool,
    /// Whether all its pages have memory.
    has_all_pages: bool,
}

impl LocatedMemory {
    /// Whether other code than the device's may access the memory, such as the host.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether all its pages have memory, as those of a reservation may not.
    #[inline]
    pub(crate) fn has_all_pages(&self) -> bool {
        self.has_all_pages
    }

    /// Whether this is the first call for the block.
    pub(crate) fn take_new(&self) -> bool {
        self.block.take_new()
    }

    /// Whether the memory may hold bytes of an array that was freed.
    #[inline]
    pub(crate) fn may_have_leftovers(&self) -> bool {
        self.block.leftovers().may_exist()
    }

    /// Whether these bytes of it may be such bytes.
    pub(crate) fn may_have_leftovers_in(&self, footprint: &Footprint) -> bool {
        // Parts are remembered by their place in the block.
        self.may_have_leftovers()
            && (self.offset_bytes > 0 || self.block.leftovers().may_be_in(footprint))
    }

    /// These bytes of it were all overwritten, with nothing of an array that was freed.
    pub(crate) fn note_overwritten(&self, footprint: &Footprint) {
        if self.may_have_leftovers() && self.offset_bytes == 0 {
            self.block.leftovers().overwritten(footprint, self.block.len_bytes());
        }
    }

    /// Valid for reads and writes while `self` lives.
    pub(crate) fn bounded(&self) -> BoundedMemory {
        // The offset is in range: `locate` compared it with the block's length, which fits `usize`.
        let start = self.block.start().wrapping_add(self.offset_bytes as usize);
        BoundedMemory { start, len_bytes: self.block.len_bytes() - self.offset_bytes }
    }
}

/// The locked address space, for several lookups under one lock.
pub(crate) struct LockedAddresses<'a>(BackendGuard<'a, AddressSpaceState>);

impl LockedAddresses<'_> {
    /// The block that contains `address`, if there is one.
    pub(crate) fn locate(&self, address: Address) -> Option<LocatedMemory> {
        let (allocation, offset_bytes) = self.find(address)?;
        Some(allocation.located(offset_bytes))
    }

    /// The allocation that contains `address`, if there is one, and the offset in it.
    fn find(&self, address: Address) -> Option<(&Allocation, u64)> {
        let (start, allocation) = self.0.live.range(..=address.0).next_back()?;
        let offset_bytes = address.0 - start;
        (offset_bytes <= allocation.block.len_bytes()).then_some((allocation, offset_bytes))
    }

    /// Whether the memory at an address may hold bytes of an array that was freed.
    pub(crate) fn may_have_leftovers(&self, address: Address) -> bool {
        self.find(address).is_some_and(|(allocation, _)| allocation.block.leftovers().may_exist())
    }

    /// A pointer to the memory at an address, for other code, which may access it from now on.
    pub(crate) fn expose(&self, address: Address) -> Option<*mut u8> {
        let (allocation, offset_bytes) = self.find(address)?;
        allocation.block.expose();
        Some(allocation.block.start().wrapping_add(offset_bytes as usize))
    }

    /// The address of the first page without memory of these bytes of the memory at `address`.
    pub(crate) fn first_uncommitted(
        &self,
        address: Address,
        footprint: &Footprint,
    ) -> Option<Address> {
        let (start, allocation) = self.0.live.range(..=address.0).next_back()?;
        let offset_bytes = footprint.offset_bytes.checked_add(address.0 - start)?;
        let in_block = Footprint { offset_bytes, ..footprint.clone() };
        let missing = allocation.pages.as_ref()?.first_uncommitted(&in_block)?;
        Some(Address(start + missing))
    }
}

impl AddressSpace {
    /// An empty space whose addresses start at `first_address`.
    pub(crate) fn new(first_address: u64, total_bytes: Option<u64>, poison: Option<u8>) -> Self {
        let next_address = first_address.max(ALIGNMENT_BYTES as u64);
        let state = AddressSpaceState { total_bytes, next_address, ..Default::default() };
        let state = Arc::new(BackendLock::new(state));
        list(&state);
        Self { poison, page_bytes: None, findings: None, state }
    }

    /// The same, with reservations that get memory in this unit.
    pub(crate) fn paged(self, page_bytes: Option<u64>) -> Self {
        Self { page_bytes, ..self }
    }

    /// The same, for a device that checks launches.
    pub(crate) fn checked(self, findings: Option<Arc<Findings>>) -> Self {
        Self { findings, ..self }
    }

    /// Something that the checker does not see has written these bytes, or may write them.
    pub(crate) fn forget_left_out(&self, start: *const u8, footprint: &Footprint) {
        let Some(findings) = &self.findings else { return };
        let end_bytes = footprint.end_bytes().unwrap_or_default() as usize;
        let left_out = findings.left_out();
        if left_out.is_any_in(&(start.addr()..start.addr() + end_bytes)) {
            footprint.for_each_run(&mut |offset, len_bytes| {
                let first = start.addr() + offset as usize;
                left_out.forget(first..first + len_bytes as usize);
            });
        }
    }

    /// Whether the device knows what launches left out.
    pub(crate) fn knows_left_out(&self) -> bool {
        self.findings.is_some()
    }

    /// The first element without contents that a read of these bytes would read. `address` is that
    /// of `start` on the device.
    pub(crate) fn first_left_out(
        &self,
        address: Address,
        start: *const u8,
        footprint: &Footprint,
    ) -> Option<LeftOut> {
        let (start, end_bytes) = (start.addr(), footprint.end_bytes().unwrap_or_default() as usize);
        let left_out = self.findings.as_ref()?.left_out();
        if !left_out.is_any_in(&(start..start + end_bytes)) {
            return None;
        }
        let mut first = None;
        footprint.for_each_run(&mut |offset, len_bytes| {
            if first.is_none() {
                let run = start + offset as usize;
                first = left_out.first_in(&(run..run + len_bytes as usize));
            }
        });
        let (found, element) = first?;
        Some(LeftOut { address: Address(address.0 + (found - start) as u64), ..element })
    }

    /// A copy within the device has copied bytes without contents as what they are.
    pub(crate) fn copy_left_out(&self, source: *const u8, to: *const u8, part: &CopyBox) {
        let Some(findings) = &self.findings else { return };
        let (left_out, source) = (findings.left_out(), source.addr());
        let end_bytes = part.source_end_bytes().unwrap_or_default() as usize;
        if left_out.is_any_in(&(source..source + end_bytes)) {
            part.for_each_run(&mut |from, destination, len_bytes| {
                let run = source + from as usize;
                left_out.copy(&(run..run + len_bytes as usize), to.addr() + destination as usize);
            });
        }
    }

    /// Locks the space for lookups.
    pub(crate) fn lock_addresses(&self) -> LockedAddresses<'_> {
        LockedAddresses(self.lock())
    }

    /// The block that contains `address`, if there is one.
    pub(crate) fn locate(&self, address: Address) -> Option<LocatedMemory> {
        self.lock_addresses().locate(address)
    }

    /// The bytes in use; and the bytes that are pooled, or freed but still in use by queued work
    /// (draining).
    pub(crate) fn usage(&self) -> MemoryUsage {
        let state = self.lock();
        MemoryUsage {
            in_use: state.in_use_bytes,
            pooled: state.pooled_bytes + state.draining_bytes,
            ..MemoryUsage::default()
        }
    }

    /// The memory of a device that was emulated with a size. Pooled blocks count as free, since an
    /// allocation evicts them.
    pub(crate) fn capacity(&self) -> Option<Capacity> {
        let state = self.lock();
        let total = state.total_bytes?;
        Some(Capacity { total, free: state.free_bytes(total) })
    }

    /// The most bytes that can be in use.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.lock().bytes_max()
    }

    /// Limits the bytes in use, of freed memory that queued work still uses (draining), and of
    /// pooled blocks, or ends the limit. Present allocations stay.
    pub(crate) fn set_limit(&self, limit_bytes: Option<u64>) {
        let evicted = {
            let mut state = self.lock();
            state.limit_bytes = limit_bytes;
            state.shrink_pool()
        };
        // Blocks must be deallocated with no lock held.
        drop(evicted);
    }

    /// Allocates a pooled block of the same length, else a new one, for which pooled blocks are
    /// deallocated if necessary. Does not wait.
    pub(crate) fn allocate(&self, len_bytes: u64) -> Result<Address, BackendError> {
        let address = match self.allocate_pooled(len_bytes)? {
            Some(address) => address,
            None => {
                let block = Arc::new(self.new_block(len_bytes)?);
                self.lock().insert(block, HostAccess::None)
            }
        };
        if let Some(memory) = self.findings.as_ref().and_then(|_| self.locate(address)) {
            self.forget_left_out(memory.bounded().start, &Footprint::run(0, len_bytes));
        }
        Ok(address)
    }

    /// Allocates zeroed memory that the host accesses too. `None` if the system has none.
    pub(crate) fn allocate_mapped(
        &self,
        len_bytes: usize,
        pinned: &ByteCount,
    ) -> Option<MappedMemory> {
        let block = Arc::new(Block::zeroed(len_bytes as u64)?);
        let mapped = HostAccess::Mapped { _counted: Box::new(pinned.count(len_bytes)) };
        let address = self.lock().insert(Arc::clone(&block), mapped);
        Some((address, Arc::new(MappedBlock(block))))
    }

    /// Allocates memory that counts as the device's, and that the host accesses too. Does not wait.
    pub(crate) fn allocate_managed(&self, len_bytes: u64) -> Result<MappedMemory, BackendError> {
        let evicted = {
            let mut state = self.lock();
            state.expect_room("allocate", len_bytes)?;
            state.in_use_bytes += len_bytes;
            state.shrink_pool()
        };
        // Blocks must be deallocated with no lock held.
        drop(evicted);
        let block = Arc::new(self.new_block(len_bytes)?);
        let address = self.lock().insert(Arc::clone(&block), HostAccess::Managed);
        Ok((address, Arc::new(MappedBlock(block))))
    }

    /// Gives memory of the caller an address, until [`unmap`](Self::unmap). `None` if it has no
    /// bytes.
    ///
    /// # Safety
    ///
    /// The bytes are initialised and stay allocated until `unmap`, and until work that is queued
    /// before it is complete.
    pub(crate) unsafe fn map(
        &self,
        start: *mut u8,
        len_bytes: usize,
        pinned: &ByteCount,
    ) -> Option<Address> {
        // SAFETY: the caller's promise is passed on.
        let block = unsafe { Block::lent(start, len_bytes) }?;
        let mapped = HostAccess::Mapped { _counted: Box::new(pinned.count(len_bytes)) };
        Some(self.lock().insert(Arc::new(block), mapped))
    }

    /// Gives host memory an address, until it is freed. `None` if it has no bytes.
    pub(crate) fn share(&self, memory: Arc<dyn HostMemory>) -> Option<Address> {
        let block = Arc::new(Block::shared(memory)?);
        Some(self.lock().insert(block, HostAccess::Shared))
    }

    /// Removes the address of memory of the caller.
    pub(crate) fn unmap(&self, address: Address) {
        let allocation = self.lock().live.remove(&address.0);
        drop(allocation);
    }

    /// Marks an allocation as draining (freed, but still used by queued work) and returns its
    /// length. [`release`](Self::release) frees it once the stream reaches the queued free.
    pub(crate) fn begin_free(&self, address: Address) -> Result<u64, BackendError> {
        let mut state = self.lock();
        let live = state.live.get_mut(&address.0).filter(|allocation| !allocation.is_draining);
        let allocation = live.ok_or_else(|| unknown_address("free", address))?;
        allocation.is_draining = true;
        let len_bytes = allocation.block.len_bytes();
        let counted_bytes = allocation.counted_bytes;
        state.in_use_bytes -= counted_bytes;
        state.draining_bytes += counted_bytes;
        Ok(len_bytes)
    }

    /// Reverts `begin_free`, after the free could not be queued.
    pub(crate) fn undo_free(&self, address: Address) {
        let mut state = self.lock();
        let draining = state.live.get_mut(&address.0).filter(|allocation| allocation.is_draining);
        let Some(allocation) = draining else { return };
        allocation.is_draining = false;
        let counted_bytes = allocation.counted_bytes;
        state.draining_bytes -= counted_bytes;
        state.in_use_bytes += counted_bytes;
    }

    /// Performs a free: removes the address, fills the block with poison bytes if the device uses
    /// them, and adds the block to the pool.
    pub(crate) fn release(&self, address: Address) {
        let mut state = self.lock();
        let Some(allocation) = state.live.remove(&address.0) else { return };
        if !matches!(allocation.host_access, HostAccess::None) {
            // The host's handle may live longer, so the memory is not kept for reuse. It returns to
            // the system with no lock held.
            state.draining_bytes -= allocation.counted_bytes;
            drop(state);
            drop(allocation);
            return;
        }
        let Allocation { mut block, counted_bytes, pages, .. } = allocation;
        if block.is_foreign() || pages.is_some() {
            state.draining_bytes -= counted_bytes;
            // Dropping the block calls other code, or the system.
            drop(state);
            sync::assert_none_held();
            return;
        }
        // If an operation still uses the block, it was freed too early. The block is not pooled
        // then, and is deallocated when that operation drops.
        let is_unused = Arc::get_mut(&mut block).is_some();
        if let (Some(byte), Some(block)) = (self.poison, Arc::get_mut(&mut block)) {
            // No operation can find the block any more, so the fill needs no lock.
            drop(state);
            block.fill(byte);
            state = self.lock();
        }
        state.draining_bytes -= block.len_bytes();
        if is_unused && state.may_pool(block.len_bytes()) {
            state.pool(block);
        }
    }

    /// Whether a refused allocation of `len_bytes` may fit once queued frees have run. If the
    /// device has a limit, the allocation may fit already, because a free may have run since the
    /// refusal.
    pub(crate) fn may_find_room(&self, len_bytes: u64) -> bool {
        let state = self.lock();
        match state.bytes_max() {
            Some(limit_bytes) => len_bytes <= state.free_bytes(limit_bytes) + state.draining_bytes,
            None => state.draining_bytes > 0,
        }
    }

    /// Returns all pooled blocks to the system.
    pub(crate) fn trim(&self) {
        let pool = {
            let mut state = self.lock();
            state.pooled_bytes = 0;
            std::mem::take(&mut state.pool)
        };
        drop(pool);
    }

    /// Whether a free of `address` is cheap enough to run on the submitting thread, under locks.
    pub(crate) fn is_cheap_to_free(&self, address: Address) -> bool {
        let is_cheap = |located: LocatedMemory| {
            let is_short = located.bounded().len_bytes <= CHEAP_POISON_BYTES_MAX;
            let may_be_pooled = !located.block.is_foreign() && !located.block.is_reserved();
            may_be_pooled && (self.poison.is_none() || is_short)
        };
        self.locate(address).is_none_or(is_cheap)
    }

    /// The memory at an address, for other code, which may hand it back to
    /// [`take_over`](Self::take_over) while it is allocated. Null if there is none.
    pub(crate) fn hand_out(&self, address: Address) -> *mut u8 {
        let mut state = self.lock();
        let Some((start, allocation)) = state.live.range_mut(..=address.0).next_back() else {
            return std::ptr::null_mut();
        };
        let offset_bytes = address.0 - start;
        if offset_bytes > allocation.block.len_bytes() {
            return std::ptr::null_mut();
        }
        allocation.is_lent = true;
        let block = Arc::clone(&allocation.block);
        drop(state);
        self.forget_left_out(block.start(), &Footprint::run(0, block.len_bytes()));
        block.start().wrapping_add(offset_bytes as usize)
    }

    /// Takes over memory of other code, which no array of an embedded device uses, unless it was
    /// handed out.
    ///
    /// # Safety
    ///
    /// As [`Backend::take_over`](resident_backend::Backend::take_over).
    pub(crate) unsafe fn take_over(&self, memory: ForeignMemory) -> Result<Address, BackendError> {
        // SAFETY: the caller's promise is passed on.
        let Some(block) = (unsafe { Block::foreign(memory) }) else {
            let detail = "memory to be taken over has no bytes".to_owned();
            return Err(driver_error(CODE_UNKNOWN_ADDRESS, "take_over", detail));
        };
        let block = Arc::new(block);
        // On an error the block drops after the locks, since its drop calls other code.
        import(range_of(&block), |counted_bytes| {
            let mut state = self.lock();
            state.in_use_bytes += counted_bytes;
            state.insert_counted(Arc::clone(&block), counted_bytes, HostAccess::None, None)
        })
    }

    /// Counts the bytes as in use, and allocates a pooled block for them if there is one.
    fn allocate_pooled(&self, len_bytes: u64) -> Result<Option<Address>, BackendError> {
        let mut state = self.lock();
        state.expect_room("allocate", len_bytes)?;
        let pooled = state.take_pooled(len_bytes);
        state.in_use_bytes += len_bytes;
        let evicted = state.shrink_pool();
        let address = pooled.map(|block| {
            // Poison has overwritten it when it was freed.
            if self.poison.is_none() {
                block.leftovers().begin();
            }
            state.insert(block, HostAccess::None)
        });
        // Blocks must be deallocated with no lock held.
        drop(state);
        drop(evicted);
        Ok(address)
    }

    /// Allocates a new block whose bytes are already counted. If the system has no memory, trims
    /// the pool and retries once.
    fn new_block(&self, len_bytes: u64) -> Result<Block, BackendError> {
        let block = Block::zeroed(len_bytes).or_else(|| {
            self.trim();
            Block::zeroed(len_bytes)
        });
        let Some(mut block) = block else {
            let mut state = self.lock();
            state.in_use_bytes -= len_bytes;
            let free_bytes = machine_memory().map_or(0, |capacity| capacity.free);
            return Err(out_of_memory("allocate", len_bytes, free_bytes, state.draining_bytes));
        };
        if let Some(byte) = self.poison {
            block.fill(byte);
        }
        Ok(block)
    }

    fn lock(&self) -> BackendGuard<'_, AddressSpaceState> {
        self.state.lock()
    }
}

impl AddressSpaceState {
    /// The smaller of the device's memory and the limit.
    fn bytes_max(&self) -> Option<u64> {
        [self.total_bytes, self.limit_bytes].into_iter().flatten().min()
    }

    /// The allocations that arrays use. Memory whose free is queued is no longer an array's.
    fn ranges_in_use(&self) -> impl Iterator<Item = InUse> {
        let in_use = self.live.values().filter(|allocation| !allocation.is_draining);
        in_use.map(|Allocation { block, is_lent, .. }| InUse {
            range: range_of(block),
            is_lent: *is_lent,
        })
    }

    fn free_bytes(&self, limit_bytes: u64) -> u64 {
        limit_bytes.saturating_sub(self.in_use_bytes).saturating_sub(self.draining_bytes)
    }

    /// Fails if `len_bytes` more exceed the limit, even without pooled blocks.
    fn expect_room(&self, call: &'static str, len_bytes: u64) -> Result<(), BackendError> {
        let free_bytes = self.bytes_max().map_or(u64::MAX, |limit| self.free_bytes(limit));
        if len_bytes > free_bytes {
            return Err(out_of_memory(call, len_bytes, free_bytes, self.draining_bytes));
        }
        Ok(())
    }

    /// Removes blocks from the pool until what is held is within the limit.
    fn shrink_pool(&mut self) -> Vec<Arc<Block>> {
        let mut evicted = Vec::new();
        let Some(limit_bytes) = self.bytes_max() else { return evicted };
        let pooled_bytes_max = self.free_bytes(limit_bytes);
        while self.pooled_bytes > pooled_bytes_max {
            match self.take_longest_pooled() {
                Some(block) => evicted.push(block),
                None => break,
            }
        }
        evicted
    }

    fn insert(&mut self, block: Arc<Block>, host_access: HostAccess) -> Address {
        let counted_bytes = match host_access {
            HostAccess::Mapped { .. } | HostAccess::Shared => 0,
            HostAccess::None | HostAccess::Managed => block.len_bytes(),
        };
        self.insert_counted(block, counted_bytes, host_access, None)
    }

    fn insert_counted(
        &mut self,
        block: Arc<Block>,
        counted_bytes: u64,
        host_access: HostAccess,
        pages: Option<Pages>,
    ) -> Address {
        let address = self.next_address;
        // A gap follows each block, so that the address one past its end lies in no other block.
        let stride = (block.len_bytes() / ALIGNMENT_BYTES as u64 + 1) * ALIGNMENT_BYTES as u64;
        self.next_address = address.wrapping_add(stride);
        let (is_draining, is_lent) = (false, false);
        self.live.insert(
            address,
            Allocation { block, is_draining, is_lent, counted_bytes, host_access, pages },
        );
        Address(address)
    }

    fn take_pooled(&mut self, len_bytes: u64) -> Option<Arc<Block>> {
        let block = self.pool.get_mut(&len_bytes)?.pop()?;
        self.pooled_bytes -= len_bytes;
        Some(block)
    }

    fn take_longest_pooled(&mut self) -> Option<Arc<Block>> {
        self.pool.retain(|_, blocks| !blocks.is_empty());
        let len_bytes = *self.pool.last_key_value()?.0;
        self.take_pooled(len_bytes)
    }

    fn may_pool(&self, len_bytes: u64) -> bool {
        let limit_bytes = self.bytes_max().unwrap_or(u64::MAX);
        let pooled_bytes = self.pooled_bytes + len_bytes;
        pooled_bytes <= POOLED_BYTES_MAX.max(self.in_use_bytes)
            && pooled_bytes <= self.free_bytes(limit_bytes)
    }

    fn pool(&mut self, block: Arc<Block>) {
        self.pooled_bytes += block.len_bytes();
        self.pool.entry(block.len_bytes()).or_default().push(block);
    }
}

/// Adds an address space to those in which imports look.
fn list(state: &SharedState) {
    let mut spaces = SPACES.lock();
    spaces.retain(|space| space.strong_count() > 0);
    spaces.push(Arc::downgrade(state));
}

/// Calls `enter` with the bytes that an import counts, unless an array uses the memory.
fn import(
    memory: AddressRange,
    enter: impl FnOnce(u64) -> Address,
) -> Result<Address, BackendError> {
    // The last handle of a space must not drop under the lock: this list outlives the lock.
    let alive: Vec<SharedState>;
    let spaces = SPACES.lock();
    alive = spaces.iter().filter_map(Weak::upgrade).collect();
    let refused = |detail| driver_error(CODE_UNKNOWN_ADDRESS, "take_over", detail);
    let mut counted = counted_in_pinned(memory).map_err(refused)?;
    for space in &alive {
        let there = counted_bytes(memory, space.lock().ranges_in_use()).map_err(refused)?;
        counted = counted.min(there);
    }
    Ok(enter(counted))
}

fn range_of(block: &Block) -> AddressRange {
    AddressRange::new(block.start().addr() as u64, block.len_bytes())
}

fn unknown_address(call: &'static str, address: Address) -> BackendError {
    let detail = format!(
        "no live memory starts at address {:#x}; it was freed before or never allocated here",
        address.0
    );
    driver_error(CODE_UNKNOWN_ADDRESS, call, detail)
}

fn out_of_memory(call: &'static str, requested: u64, free: u64, draining: u64) -> BackendError {
    let detail = if draining == 0 {
        String::new()
    } else {
        format!("{draining} bytes more are freed by queued work")
    };
    BackendError { kind: BackendErrorKind::OutOfMemory { requested, free, draining }, call, detail }
}
