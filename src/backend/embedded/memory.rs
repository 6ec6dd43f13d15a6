//! The address space of one device: which block lies at which address, what is kept for reuse, and
//! the limit.
//!
//! An address is a number, not a pointer, and is never given out twice: work that names freed
//! memory finds nothing, whoever got the bytes since. Blocks are looked up when work runs, and
//! whoever found one holds it while it uses it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{ALIGNMENT_BYTES, Block};
use crate::backend::{Address, BackendError, BackendErrorKind, MemoryUsage};

/// Blocks kept for reuse may hold this much, or as much as is in use, whichever is more; what is
/// beyond goes back to the system.
const KEPT_BYTES_MAX: u64 = 256 << 20;

/// The driver code of a call that names memory which is not there.
const CODE_UNKNOWN_ADDRESS: i64 = 1;

/// Memory of one device.
#[derive(Debug)]
pub(super) struct AddressSpace {
    poison: Option<u8>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit_bytes: Option<u64>,
    live: BTreeMap<u64, Entry>,
    /// By length. Emptied lists stay: the same lengths come again.
    kept: BTreeMap<u64, Vec<Arc<Block>>>,
    kept_bytes: u64,
    in_use_bytes: u64,
    draining_bytes: u64,
    next_address: u64,
}

#[derive(Debug)]
struct Entry {
    block: Arc<Block>,
    /// A free is queued.
    freed: bool,
}

/// A place inside a block, which it keeps alive.
#[derive(Debug)]
pub(super) struct Located {
    block: Arc<Block>,
    offset_bytes: u64,
}

impl Located {
    /// The place; valid for reads and writes of `room_bytes` while `self` lives.
    pub(super) fn pointer(&self) -> *mut u8 {
        // In range: `locate` compared the offset with the block's length, which fits `usize`.
        self.block.start().wrapping_add(self.offset_bytes as usize)
    }

    /// Bytes from the place to the end of the block.
    pub(super) fn room_bytes(&self) -> u64 {
        self.block.len_bytes() - self.offset_bytes
    }
}

/// The address space, locked: several places are looked up at the cost of one lock.
pub(super) struct Map<'a>(MutexGuard<'a, State>);

impl Map<'_> {
    /// The block around `address`, if there is one.
    pub(super) fn locate(&self, address: Address) -> Option<Located> {
        let (start, entry) = self.0.live.range(..=address.0).next_back()?;
        let offset_bytes = address.0 - start;
        (offset_bytes <= entry.block.len_bytes())
            .then(|| Located { block: Arc::clone(&entry.block), offset_bytes })
    }
}

impl AddressSpace {
    /// An empty space whose addresses start at `first_address`.
    pub(super) fn new(first_address: u64, limit_bytes: Option<u64>, poison: Option<u8>) -> Self {
        let state = State {
            limit_bytes,
            live: BTreeMap::new(),
            kept: BTreeMap::new(),
            kept_bytes: 0,
            in_use_bytes: 0,
            draining_bytes: 0,
            next_address: first_address.max(ALIGNMENT_BYTES as u64),
        };
        Self { poison, state: Mutex::new(state) }
    }

    /// Locks the space for looking up.
    pub(super) fn map(&self) -> Map<'_> {
        Map(self.lock())
    }

    /// The block around `address`, if there is one.
    pub(super) fn locate(&self, address: Address) -> Option<Located> {
        self.map().locate(address)
    }

    /// Bytes in use, and bytes kept or draining.
    pub(super) fn usage(&self) -> MemoryUsage {
        let state = self.lock();
        MemoryUsage { in_use: state.in_use_bytes, pooled: state.kept_bytes + state.draining_bytes }
    }

    /// The limit and what of it can be had now, if there is one. Kept blocks make room by
    /// themselves and count as free.
    pub(super) fn limit(&self) -> Option<(u64, u64)> {
        let state = self.lock();
        state.limit_bytes.map(|limit_bytes| (limit_bytes, state.free_bytes(limit_bytes)))
    }

    /// From now on no more than so much may be in use and draining together. What is, stays.
    pub(super) fn set_limit(&self, limit_bytes: u64) {
        self.lock().limit_bytes = Some(limit_bytes);
    }

    /// Takes a block: a kept one of the same length, else a new one for which kept ones make room.
    /// Waits for nothing.
    pub(super) fn allocate(&self, len_bytes: u64) -> Result<Address, BackendError> {
        if let Some(address) = self.reserve(len_bytes)? {
            return Ok(address);
        }
        let block = Arc::new(self.new_block(len_bytes)?);
        Ok(self.lock().insert(block))
    }

    /// Marks the block as freed: from now on it is draining. The free itself is `retire`, when the
    /// lane comes to it.
    pub(super) fn begin_free(&self, address: Address) -> Result<u64, BackendError> {
        let mut state = self.lock();
        let entry = state
            .live
            .get_mut(&address.0)
            .filter(|entry| !entry.freed)
            .ok_or_else(|| unknown(address))?;
        entry.freed = true;
        let len_bytes = entry.block.len_bytes();
        state.in_use_bytes -= len_bytes;
        state.draining_bytes += len_bytes;
        Ok(len_bytes)
    }

    /// Takes `begin_free` back, where the free could not be queued.
    pub(super) fn undo_free(&self, address: Address) {
        let mut state = self.lock();
        let Some(entry) = state.live.get_mut(&address.0).filter(|entry| entry.freed) else {
            return;
        };
        entry.freed = false;
        let len_bytes = entry.block.len_bytes();
        state.draining_bytes -= len_bytes;
        state.in_use_bytes += len_bytes;
    }

    /// Runs a free: the address is gone, the block is poisoned if the device does that, and kept.
    pub(super) fn retire(&self, address: Address) {
        let mut state = self.lock();
        let Some(Entry { mut block, .. }) = state.live.remove(&address.0) else { return };
        // A block that work still holds was freed too early. It is not reused: the work's bytes
        // stay its own, and go with it.
        let alone = Arc::get_mut(&mut block).is_some();
        if let (Some(byte), Some(block)) = (self.poison, Arc::get_mut(&mut block)) {
            // Nobody else finds the block any more, so that filling it needs no lock.
            drop(state);
            block.fill(byte);
            state = self.lock();
        }
        state.draining_bytes -= block.len_bytes();
        if alone && state.may_keep(block.len_bytes()) {
            state.keep(block);
        }
    }

    /// Whether `len_bytes` might fit once queued frees have run.
    pub(super) fn may_find_room(&self, len_bytes: u64) -> bool {
        let state = self.lock();
        let room_bytes = state.limit_bytes.map_or(u64::MAX, |limit_bytes| {
            state.free_bytes(limit_bytes).saturating_add(state.draining_bytes)
        });
        state.draining_bytes > 0 && len_bytes <= room_bytes
    }

    /// Gives all kept blocks back to the system.
    pub(super) fn trim(&self) {
        let kept = {
            let mut state = self.lock();
            state.kept_bytes = 0;
            std::mem::take(&mut state.kept)
        };
        drop(kept);
    }

    /// Whether a free of `address` is so little work that the submitting thread may do it.
    pub(super) fn is_light(&self, address: Address) -> bool {
        const LIGHT_BYTES: u64 = 64 << 10;
        self.poison.is_none()
            || self.locate(address).is_none_or(|located| located.room_bytes() <= LIGHT_BYTES)
    }

    /// Counts the bytes as in use, and gives them a kept block if there is one.
    fn reserve(&self, len_bytes: u64) -> Result<Option<Address>, BackendError> {
        // Dropped after the lock, which is taken later.
        let mut given_back = Vec::new();
        let mut state = self.lock();
        let kept = state.take_kept(len_bytes);
        if kept.is_none() {
            self.make_room(&mut state, len_bytes, &mut given_back)?;
        }
        state.in_use_bytes += len_bytes;
        Ok(kept.map(|block| state.insert(block)))
    }

    /// Under a limit, takes kept blocks out until `len_bytes` fit beside what is left.
    fn make_room(
        &self,
        state: &mut State,
        len_bytes: u64,
        given_back: &mut Vec<Arc<Block>>,
    ) -> Result<(), BackendError> {
        let Some(limit_bytes) = state.limit_bytes else { return Ok(()) };
        let free_bytes = state.free_bytes(limit_bytes);
        if len_bytes > free_bytes {
            return Err(out_of_memory(len_bytes, free_bytes, state.draining_bytes));
        }
        while len_bytes > free_bytes - state.kept_bytes {
            match state.take_any_kept() {
                Some(block) => given_back.push(block),
                None => break,
            }
        }
        Ok(())
    }

    /// A new block, counted already. If the system has none, it is tried once more without what is
    /// kept.
    fn new_block(&self, len_bytes: u64) -> Result<Block, BackendError> {
        let block = Block::zeroed(len_bytes).or_else(|| {
            self.trim();
            Block::zeroed(len_bytes)
        });
        let Some(mut block) = block else {
            let mut state = self.lock();
            state.in_use_bytes -= len_bytes;
            let free_bytes = super::time::machine_memory().map_or(0, |capacity| capacity.free);
            return Err(out_of_memory(len_bytes, free_bytes, state.draining_bytes));
        };
        if let Some(byte) = self.poison {
            block.fill(byte);
        }
        Ok(block)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn free_bytes(&self, limit_bytes: u64) -> u64 {
        limit_bytes.saturating_sub(self.in_use_bytes).saturating_sub(self.draining_bytes)
    }

    fn insert(&mut self, block: Arc<Block>) -> Address {
        let address = self.next_address;
        // A gap behind each block, so that the address one past its end is in no other.
        let stride = (block.len_bytes() / ALIGNMENT_BYTES as u64 + 1) * ALIGNMENT_BYTES as u64;
        self.next_address = address.wrapping_add(stride);
        self.live.insert(address, Entry { block, freed: false });
        Address(address)
    }

    fn take_kept(&mut self, len_bytes: u64) -> Option<Arc<Block>> {
        let block = self.kept.get_mut(&len_bytes)?.pop()?;
        self.kept_bytes -= len_bytes;
        Some(block)
    }

    fn take_any_kept(&mut self) -> Option<Arc<Block>> {
        self.kept.retain(|_, blocks| !blocks.is_empty());
        let len_bytes = *self.kept.last_key_value()?.0;
        self.take_kept(len_bytes)
    }

    fn may_keep(&self, len_bytes: u64) -> bool {
        self.kept_bytes + len_bytes <= KEPT_BYTES_MAX.max(self.in_use_bytes)
    }

    fn keep(&mut self, block: Arc<Block>) {
        self.kept_bytes += block.len_bytes();
        self.kept.entry(block.len_bytes()).or_default().push(block);
    }
}

fn unknown(address: Address) -> BackendError {
    let detail = format!(
        "no live memory starts at address {:#x}; it was freed before or never allocated here",
        address.0
    );
    BackendError {
        kind: BackendErrorKind::Driver { code: CODE_UNKNOWN_ADDRESS },
        call: "free",
        detail,
    }
}

fn out_of_memory(requested: u64, free: u64, draining_bytes: u64) -> BackendError {
    let detail = if draining_bytes == 0 {
        String::new()
    } else {
        format!("{draining_bytes} bytes more are freed by queued work")
    };
    BackendError {
        kind: BackendErrorKind::OutOfMemory { requested, free },
        call: "allocate",
        detail,
    }
}
