//! Memory accounting of a device: the bytes of each pool and allocation. The engine owns the memory
//! itself, and has no pools.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::code::{Code, Outcome};
use crate::handle::{self, Handle, Object};
use crate::mappings::Mappings;

/// A memory pool.
#[derive(Debug)]
pub struct Pool {
    pub handle: Handle,
    pub ordinal: usize,
}

impl Pool {
    /// Creates a pool of a device and its handle. The caller adds it to the device's accounting.
    pub fn new(ordinal: usize) -> Arc<Self> {
        let pool = Arc::new(Self { handle: handle::next(), ordinal });
        handle::insert(pool.handle, Object::Pool(Arc::clone(&pool)));
        pool
    }
}

/// The bytes of a pool, and its attributes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holding {
    pub used: u64,
    pub used_high: u64,
    pub reserved: u64,
    pub reserved_high: u64,
    pub release_threshold: u64,
    /// Whether `cuMemPoolDestroy` was called. The pool is then removed with its last allocation.
    pub is_destroyed: bool,
    /// The reuse attributes, which are stored but have no effect.
    pub reuse: [i32; 3],
}

/// The memory accounting of a device.
#[derive(Debug)]
pub struct Ledger {
    total_bytes: u64,
    direct_bytes: u64,
    pools: BTreeMap<Handle, Holding>,
    /// Live allocations by address.
    allocations: BTreeMap<u64, Allocation>,
    /// Reserved addresses, and the memory that is mapped to them.
    pub mappings: Mappings,
}

/// One allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub address: u64,
    pub len_bytes: u64,
    pub context: Handle,
    /// The pool of a stream-ordered allocation.
    pub pool: Option<Handle>,
    /// The allocation's number in the process.
    pub number: u64,
}

impl Ledger {
    /// Creates the accounting without any allocation.
    pub fn new(total_bytes: u64, default_pool: Handle) -> Self {
        let pools =
            BTreeMap::from([(default_pool, Holding { reuse: [1; 3], ..Holding::default() })]);
        let (allocations, mappings) = Default::default();
        Self { total_bytes, direct_bytes: 0, pools, allocations, mappings }
    }

    /// Free and total bytes, as `cuMemGetInfo` reports them.
    pub fn info(&self) -> (u64, u64) {
        let held = self.direct_bytes + self.pools.values().map(|pool| pool.reserved).sum::<u64>();
        (self.total_bytes.saturating_sub(held), self.total_bytes)
    }

    /// Reserves bytes for an allocation, or returns an error if there is not enough memory.
    pub fn reserve(&mut self, len_bytes: u64, pool: Option<Handle>) -> Outcome {
        let (free_bytes, _) = self.info();
        let Some(pool) = pool else {
            if len_bytes > free_bytes {
                return Err(Code::OUT_OF_MEMORY);
            }
            self.direct_bytes += len_bytes;
            return Ok(());
        };
        let holding = self
            .pools
            .get_mut(&pool)
            .filter(|pool| !pool.is_destroyed)
            .ok_or(Code::INVALID_VALUE)?;
        let used = holding.used.checked_add(len_bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let grows_by = used.saturating_sub(holding.reserved);
        if grows_by > free_bytes {
            return Err(Code::OUT_OF_MEMORY);
        }
        holding.used = used;
        holding.reserved += grows_by;
        holding.used_high = holding.used_high.max(used);
        holding.reserved_high = holding.reserved_high.max(holding.reserved);
        Ok(())
    }

    /// Returns the bytes of a reservation or of a freed allocation.
    pub fn give_back(&mut self, len_bytes: u64, pool: Option<Handle>) {
        let Some(handle) = pool else {
            self.direct_bytes -= len_bytes;
            return;
        };
        let Some(pool) = self.pools.get_mut(&handle) else { return };
        pool.used -= len_bytes;
        if pool.is_destroyed && pool.used == 0 {
            self.pools.remove(&handle);
        }
    }

    /// Inserts a live allocation.
    pub fn insert(&mut self, allocation: Allocation) {
        self.allocations.insert(allocation.address, allocation);
    }

    /// Removes the allocation that starts at an address, if `may_go` returns true for it.
    pub fn remove(
        &mut self,
        address: u64,
        may_go: impl FnOnce(&Allocation) -> bool,
    ) -> Option<Allocation> {
        let allocation = *self.allocations.get(&address).filter(|allocation| may_go(allocation))?;
        self.allocations.remove(&address);
        self.give_back(allocation.len_bytes, allocation.pool);
        Some(allocation)
    }

    /// The live allocation, or the mapped memory, that contains an address.
    pub fn around(&self, address: u64) -> Option<Allocation> {
        let mapped = || self.mappings.around(address).map(|mapping| mapping.allocation);
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        let is_within = address - allocation.address < allocation.len_bytes;
        is_within.then_some(*allocation).or_else(mapped)
    }

    /// What the engine has at an address: where an allocation or a reservation starts, and where
    /// the memory around the address ends.
    pub fn in_engine(&self, address: u64) -> Option<(u64, u64)> {
        match self.mappings.reservation(address, 0) {
            Some(start) => Some((start, self.mappings.end_of_access(address))),
            None => {
                self.around(address).map(|known| (known.address, known.address + known.len_bytes))
            }
        }
    }

    /// All live allocations of a context.
    pub fn of_context(&self, context: Handle) -> Vec<u64> {
        self.allocations
            .values()
            .filter(|allocation| allocation.context == context)
            .map(|allocation| allocation.address)
            .collect()
    }

    /// Releases pool memory above the release thresholds, after a host thread has waited.
    pub fn settle(&mut self) {
        for pool in self.pools.values_mut() {
            pool.reserved = pool.used.max(pool.reserved.min(pool.release_threshold));
        }
    }

    /// Releases unused memory of a pool, down to this many bytes.
    pub fn trim(&mut self, pool: Handle, keep_bytes: u64) -> Outcome {
        let pool = self.holding(pool)?;
        pool.reserved = pool.used.max(pool.reserved.min(keep_bytes));
        Ok(())
    }

    /// Adds a pool.
    pub fn add_pool(&mut self, pool: Handle) {
        self.pools.insert(pool, Holding { reuse: [1; 3], ..Holding::default() });
    }

    /// Destroys a pool. Its allocations stay until they are freed.
    pub fn destroy_pool(&mut self, pool: Handle) {
        let Some(holding) = self.pools.get_mut(&pool) else { return };
        holding.is_destroyed = true;
        holding.reserved = holding.used;
        if holding.used == 0 {
            self.pools.remove(&pool);
        }
    }

    /// The accounting of a pool.
    pub fn holding(&mut self, pool: Handle) -> Outcome<&mut Holding> {
        self.pools.get_mut(&pool).ok_or(Code::INVALID_VALUE)
    }

    /// All pools, and all memory that can be mapped.
    pub fn handles(&self) -> Vec<Handle> {
        self.pools.keys().chain(self.mappings.memory.keys()).copied().collect()
    }
}
