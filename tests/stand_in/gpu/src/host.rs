//! Host memory: which ranges are pinned (page-locked), and what copies keep alive.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::code::{Code, Outcome};
use crate::handle::Handle;
use crate::interface::interface;
use crate::machine;
use resident_backend::HostMemory;

/// The page size. Host memory is pinned in units of pages, and pinned memory that the driver
/// allocates is aligned to them.
const PAGE_BYTES: usize = 4096;

/// A range of pinned memory, which consists of the requested bytes. With
/// `Settings::locks_whole_pages` the range owns its pages, and no other range can use them.
#[derive(Clone, Debug)]
pub struct Locked {
    pub start: u64,
    pub len_bytes: u64,
    pub flags: u32,
    pub context: Handle,
    /// The memory, if the driver allocated it; `None` if it is registered memory of the caller.
    block: Option<Arc<Block>>,
    /// For managed memory, which is the host's memory too here.
    managed: Option<Managed>,
}

/// What the driver knows about managed memory. A location is the number of a device, `HOST`, or
/// `NOWHERE`.
#[derive(Clone, Debug)]
pub struct Managed {
    pub is_read_mostly: bool,
    pub preferred: i32,
    pub accessed_by: Vec<i32>,
    pub prefetched: i32,
}

/// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`.
pub const HOST: i32 = -1;
pub const NOWHERE: i32 = -2;

static LOCKED: Mutex<BTreeMap<u64, Locked>> = Mutex::new(BTreeMap::new());

/// Allocates zeroed pinned memory.
pub fn allocate(len_bytes: usize, flags: u32, context: Handle) -> Outcome<u64> {
    let block = Arc::new(Block::zeroed(len_bytes)?);
    let start = block.start.as_ptr().addr() as u64;
    locked().insert(
        start,
        Locked {
            start,
            len_bytes: len_bytes as u64,
            flags,
            context,
            block: Some(block),
            managed: None,
        },
    );
    Ok(start)
}

/// Allocates managed memory, with unspecified contents.
pub fn allocate_managed(len_bytes: usize, context: Handle) -> Outcome<u64> {
    let start = allocate(len_bytes, 0, context)?;
    if let Some(range) = locked().get_mut(&start) {
        if let Some(block) = range.block.as_ref().filter(|_| machine::settings().poisons) {
            // SAFETY: the block has at least this many bytes, which no one else has yet.
            unsafe { block.start().write_bytes(0xFF, len_bytes) };
        }
        range.managed = Some(Managed {
            is_read_mostly: false,
            preferred: NOWHERE,
            accessed_by: Vec::new(),
            prefetched: NOWHERE,
        });
    }
    Ok(start)
}

/// Frees managed memory. Returns whether any starts there.
pub fn free_managed(start: u64) -> bool {
    let mut locked = locked();
    let is_managed = locked.get(&start).is_some_and(|range| range.managed.is_some());
    let freed = if is_managed { locked.remove(&start) } else { None };
    drop(locked);
    freed.is_some()
}

/// Uses what is known about the managed memory that contains a range. The result is
/// CUDA_ERROR_INVALID_VALUE if the range is empty or not in one allocation of managed memory.
pub fn with_managed<R>(
    start: u64,
    len_bytes: u64,
    use_managed: impl FnOnce(&mut Managed) -> Outcome<R>,
) -> Outcome<R> {
    let mut locked = locked();
    let (_, range) = locked.range_mut(..=start).next_back().ok_or(Code::INVALID_VALUE)?;
    let is_within = len_bytes > 0 && start + len_bytes <= range.start + range.len_bytes;
    match range.managed.as_mut().filter(|_| is_within) {
        Some(managed) => use_managed(managed),
        None => Err(Code::INVALID_VALUE),
    }
}

/// Frees pinned memory from `allocate`. Copies in flight keep the memory alive until they are
/// complete.
pub fn free(start: u64) -> Outcome {
    if around(start).is_some_and(|range| range.managed.is_some()) {
        return Err(Code::INVALID_VALUE);
    }
    take(start, true).map(drop).ok_or(Code::INVALID_VALUE)
}

/// Registers memory of the caller, unless part of it belongs to another registration.
pub fn register(start: u64, len_bytes: u64, flags: u32, context: Handle) -> Outcome {
    let end = start
        .checked_add(len_bytes)
        .and_then(|end| end.checked_next_multiple_of(PAGE_BYTES as u64));
    end.ok_or(Code::INVALID_VALUE)?;
    let new = Locked { start, len_bytes, flags, context, block: None, managed: None };
    let reach = new.reach();
    let mut locked = locked();
    let before = locked.range(..reach.end).next_back();
    if before.is_some_and(|(_, range)| range.reach().end > reach.start) {
        return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
    }
    locked.insert(start, new);
    Ok(())
}

/// Whether the process may not write some of these bytes, which drivers register only for reading.
pub fn is_write_protected(start: u64, len_bytes: u64) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().any(|line| {
        protected_range(line)
            .is_some_and(|range| range.start < start.saturating_add(len_bytes) && start < range.end)
    })
}

/// The addresses of a line of `/proc/self/maps` if it lacks the permission to write.
fn protected_range(line: &str) -> Option<Range<u64>> {
    let (range, permissions) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).ok());
    (!permissions[1..].starts_with('w')).then_some(start?..end?)
}

/// Whether devices access this host memory at its own address: pinned memory, and all memory if
/// they reach what is pageable.
pub fn is_accessible(address: u64) -> bool {
    around(address).is_some() || is_reached(address)
}

/// Whether it is pageable host memory that devices access.
pub fn is_reached(address: u64) -> bool {
    machine::settings().reaches_pageable
        && address != 0
        && machine::device_of_address(address).is_none()
        && around(address).is_none()
}

/// Unregisters memory of the caller. Only this call ends a registration, whatever happens to the
/// memory or the context.
pub fn unregister(start: u64) -> Outcome {
    take(start, false).map(drop).ok_or(Code::HOST_MEMORY_NOT_REGISTERED)
}

/// The bytes of registered memory at some time.
#[derive(Debug)]
pub struct Kept {
    range: HostRange,
    bytes: Vec<u8>,
}

/// The bytes of all memory that is registered now.
pub fn keep_registered() -> Vec<Kept> {
    let locked = locked();
    let registered = locked.values().filter(|range| range.block.is_none());
    registered.map(|range| Kept::of(range.start, range.len_bytes as usize)).collect()
}

impl Kept {
    fn of(start: u64, len_bytes: usize) -> Self {
        let start: *mut u8 = std::ptr::with_exposed_provenance_mut(start as usize);
        let mut bytes = vec![0; len_bytes];
        // SAFETY: registered memory is live and initialised until it is unregistered.
        unsafe { std::ptr::copy_nonoverlapping(start, bytes.as_mut_ptr(), len_bytes) };
        Self { range: HostRange::new(start, len_bytes, None), bytes }
    }

    /// Writes the bytes back.
    pub fn restore(&self) {
        // SAFETY: the memory is registered as long as work is in flight: the end of a registration
        // waits for the device. That the caller of the driver may write it now is the point.
        unsafe {
            std::ptr::copy_nonoverlapping(self.bytes.as_ptr(), self.range.start, self.bytes.len());
        }
    }
}

/// The pinned range that contains an address.
pub fn around(address: u64) -> Option<Locked> {
    let locked = locked();
    let mut on_this_page = locked.range(..page_of(address).saturating_add(PAGE_BYTES as u64)).rev();
    on_this_page
        .find(|(_, range)| range.reach().start <= address)
        .map(|(_, range)| range)
        .filter(|range| address < range.reach().end)
        .cloned()
}

/// Whether some of these bytes were requested to be pinned. Bytes that are pinned only because they
/// share a page with requested bytes do not count.
pub fn is_partly_locked(start: u64, len_bytes: u64) -> bool {
    let locked = locked();
    let before = locked.range(..start.saturating_add(len_bytes)).next_back();
    before.is_some_and(|(_, range)| range.start + range.len_bytes > start)
}

fn page_of(address: u64) -> u64 {
    address / PAGE_BYTES as u64 * PAGE_BYTES as u64
}

fn take(start: u64, is_ours: bool) -> Option<Locked> {
    let mut locked = locked();
    locked.get(&start).filter(|range| range.block.is_some() == is_ours)?;
    locked.remove(&start)
}

fn locked() -> MutexGuard<'static, BTreeMap<u64, Locked>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Locked {
    /// Whether this range contains another range.
    pub fn holds(&self, start: u64, len_bytes: u64) -> bool {
        let reach = self.reach();
        start >= reach.start && start.checked_add(len_bytes).is_some_and(|end| end <= reach.end)
    }

    /// The addresses that count as pinned.
    fn reach(&self) -> Range<u64> {
        let end = self.start + self.len_bytes;
        let is_whole_pages = self.block.is_some() || machine::settings().locks_whole_pages;
        if is_whole_pages {
            page_of(self.start)..end.next_multiple_of(PAGE_BYTES as u64)
        } else {
            self.start..end
        }
    }

    /// Whether the driver allocated it, and the host needs an event to see what copies write.
    pub fn needs_release(&self) -> bool {
        let is_pinned = self.block.is_some() && !self.is_managed();
        is_pinned && interface().needs_release(self.flags)
    }

    /// Whether this is managed memory.
    pub fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    /// The allocation that keeps the memory alive while work uses it.
    pub fn block(&self) -> Option<Arc<Block>> {
        self.block.clone()
    }
}

/// Driver memory.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is an owned allocation, and no part of it is bound to a thread.
unsafe impl Send for Block {}
// SAFETY: a shared block returns only raw pointers.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates zeroed memory of at least this size, on pages that no other memory shares.
    pub fn zeroed(len_bytes: usize) -> Outcome<Self> {
        let whole_pages =
            len_bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or(Code::OUT_OF_MEMORY)?;
        let layout =
            Layout::from_size_align(whole_pages, PAGE_BYTES).map_err(|_| Code::OUT_OF_MEMORY)?;
        // SAFETY: the layout's size is above zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Code::OUT_OF_MEMORY)?;
        Ok(Self { start, layout })
    }

    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout, and only this drop frees it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Host memory that work accesses: the caller's or the driver's.
#[derive(Debug)]
pub struct HostRange {
    start: *mut u8,
    len_bytes: usize,
    /// Keeps driver memory alive.
    _block: Option<Arc<Block>>,
}

// SAFETY: any thread may access the range; the caller of the driver ensures that accesses do not
// race, as with a real driver.
unsafe impl Send for HostRange {}
// SAFETY: as above.
unsafe impl Sync for HostRange {}

impl HostRange {
    /// Memory that the caller of the driver or `block` keeps alive.
    pub fn new(start: *mut u8, len_bytes: usize, block: Option<Arc<Block>>) -> Self {
        Self { start, len_bytes, _block: block }
    }

    /// Driver memory.
    pub fn of(block: Arc<Block>, len_bytes: usize) -> Self {
        Self { start: block.start(), len_bytes, _block: Some(block) }
    }
}

// SAFETY: a block keeps its memory alive, and the memory is zeroed when it is allocated. For other
// memory the caller of the driver guarantees that it is live and initialised until the copy is done
// (CUDA's manual).
unsafe impl HostMemory for HostRange {
    fn base(&self) -> *mut u8 {
        self.start
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}
