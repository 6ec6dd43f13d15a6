//! Which accesses of a launch come before others, in whatever order a GPU runs its threads. Pure.
//!
//! Threads of a block are ordered by barriers, lanes of a warp also by `__syncwarp`. All others are
//! ordered only by a fence before an atomic write, and an atomic read of the same address.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::access::Touch;

/// The number of threads of a warp.
pub(super) const LANES: u32 = 32;

/// Who accessed some bytes, and when: block, time, thread, and two flags. Zero is no thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stamp(pub(super) u64);

const TIME_SHIFT: u32 = 12;
const BLOCK_SHIFT: u32 = 36;
const THREAD_MASK: u64 = 0x3ff << 2;
const READ: u64 = 1;
const ATOMIC: u64 = 2;

/// The last time that a stamp can hold. From then on the order is not checked.
const TIME_MAX: u32 = (1 << (BLOCK_SHIFT - TIME_SHIFT)) - 1;

/// The number of blocks that a stamp can tell apart.
pub(super) const BLOCKS_MAX: u64 = (1 << (64 - BLOCK_SHIFT)) - 1;

/// The number of threads of a block that a stamp can tell apart.
pub(super) const THREADS_MAX: u32 = 1024;

impl Stamp {
    pub(super) const NOBODY: Self = Self(0);

    fn new(block: u64, time: u32, thread: u32) -> Self {
        Self((block + 1) << BLOCK_SHIFT | u64::from(time) << TIME_SHIFT | u64::from(thread) << 2)
    }

    pub(super) fn block(self) -> u64 {
        (self.0 >> BLOCK_SHIFT) - 1
    }

    pub(super) fn thread(self) -> u32 {
        ((self.0 & THREAD_MASK) >> 2) as u32
    }

    fn time(self) -> u32 {
        (self.0 >> TIME_SHIFT) as u32 & TIME_MAX
    }

    pub(super) fn is_of_thread(self, other: Self) -> bool {
        (self.0 ^ other.0) & (THREAD_MASK | !0 << BLOCK_SHIFT) == 0
    }

    pub(super) fn is_at_time_of(self, other: Self) -> bool {
        self.time() == other.time()
    }

    pub(super) fn has_flags_of(self, other: Self) -> bool {
        (self.0 ^ other.0) & (READ | ATOMIC) == 0
    }

    pub(super) fn has_flags(self) -> bool {
        self.0 & (READ | ATOMIC) != 0
    }

    /// The same with the flags of the other too.
    pub(super) fn with_flags_of(self, other: Self) -> Self {
        Self(self.0 | other.0 & (READ | ATOMIC))
    }

    pub(super) fn without_flags(self) -> Self {
        Self(self.0 & !(READ | ATOMIC))
    }

    pub(super) fn reading(self) -> Self {
        Self(self.0 | READ)
    }

    pub(super) fn atomic(self) -> Self {
        Self(self.0 | ATOMIC)
    }

    pub(super) fn is_reading(self) -> bool {
        self.0 & READ != 0
    }

    pub(super) fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// How far two threads are apart: 0 in one warp, 1 in one block, 2 in different blocks.
    pub(super) fn distance(self, other: Self) -> u32 {
        if self.0 >> BLOCK_SHIFT != other.0 >> BLOCK_SHIFT {
            2
        } else {
            u32::from(self.thread() / LANES != other.thread() / LANES)
        }
    }
}

/// What stamps compiled code gives to accesses, and which of them it takes for ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastStamps {
    /// The lowest stamp of the running block.
    pub(super) block_start: u64,
    /// That of its thread 0 now.
    pub(super) now: u64,
    /// Stamps of the block below this one, counted from the lowest, come before all that its
    /// threads do now.
    pub(super) ordered: u64,
}

/// A thread read an address atomically, behind so many releases of it.
#[derive(Clone, Copy, Debug)]
struct Acquired {
    thread: u32,
    time: u32,
    address: usize,
    releases: usize,
}

/// A thread wrote an address atomically, behind a fence. What it did before the fence, and its
/// block before the barrier, comes before those that read that.
#[derive(Clone, Debug)]
struct Release {
    block: u64,
    thread: u32,
    fence: Fence,
    /// The fences that the threads of the block came to before the last barrier.
    of_block: Rc<HashMap<u32, u32>>,
}

impl Release {
    /// Whether it comes after what a thread of its block did at a time.
    fn knows(&self, thread: u32, time: u32) -> bool {
        self.fence.knows(self.thread, thread, time)
            || self.of_block.get(&thread).is_some_and(|fence| time < *fence)
    }

    /// What two releases of an address have in common if they tell the same.
    fn key(&self, address: usize) -> ReleaseKey {
        let of_block = Rc::as_ptr(&self.of_block).addr();
        ReleaseKey {
            address,
            block: self.block,
            thread: self.thread,
            fence: self.fence.time,
            of_block,
        }
    }
}

/// What tells a release from others. A thread that waits repeats them, so that they are many.
#[derive(PartialEq, Eq, Hash, Debug)]
struct ReleaseKey {
    address: usize,
    block: u64,
    thread: u32,
    fence: u32,
    /// The address of the release's map, which lives as long as the release.
    of_block: usize,
}

/// A thread of a block has seen so many releases of an address.
#[derive(PartialEq, Eq, Hash, Debug)]
struct AcquiredKey {
    block: u64,
    thread: u32,
    address: usize,
    releases: usize,
}

/// What a thread knows when it comes to a fence.
#[derive(Clone, Debug, Default)]
struct Fence {
    /// What the thread itself did before this time.
    time: u32,
    /// What its block did before this time.
    barrier: u32,
    /// What the lanes of its warp did before these times, if it came to `__syncwarp`.
    lanes: Option<Rc<Lanes>>,
}

impl Fence {
    /// Whether it knows what a thread of its block did at a time. `own` is the fence's thread.
    fn knows(&self, own: u32, thread: u32, time: u32) -> bool {
        time < self.barrier
            || thread == own && time < self.time
            || thread / LANES == own / LANES
                && self.lanes.as_ref().is_some_and(|known| time < known[(thread % LANES) as usize])
    }
}

/// For each lane of a warp, a time.
type Lanes = [u32; LANES as usize];

/// What is known of the block that runs.
#[derive(Debug, Default)]
pub(super) struct OrderOfBlock {
    block: u64,
    /// Rises with each barrier and fence of the block.
    now: u32,
    /// All threads of the block know what the block did before this time.
    barrier: u32,
    /// For lanes that came to `__syncwarp` since the barrier: what they know of each lane of their
    /// warp, up to a time.
    lanes: HashMap<u32, Rc<Lanes>>,
    /// The last fence of each thread of the block.
    fences: HashMap<u32, Fence>,
    /// The times of those before the barrier.
    fences_before_barrier: Rc<HashMap<u32, u32>>,
    /// The threads that have not written anything volatile since their last fence.
    unused_fences: HashSet<u32>,
}

/// The order of the accesses of one launch, of whose blocks one runs at a time.
#[derive(Debug, Default)]
pub(super) struct Order {
    running: OrderOfBlock,
    /// Who has updated an address atomically last, of blocks with fences.
    last_updates: HashMap<usize, Stamp>,
    acquired: HashMap<u64, Vec<Acquired>>,
    released: HashMap<usize, Vec<Release>>,
    /// Those that are in `acquired` and `released`.
    known_acquired: HashSet<AcquiredKey>,
    known_releases: HashSet<ReleaseKey>,
}

impl Order {
    pub(super) fn start_block(&mut self, block: u64) {
        self.running = OrderOfBlock { block, now: 1, barrier: 1, ..OrderOfBlock::default() };
    }

    /// Another block runs, of which so much is known. Returns what is known of this one.
    pub(super) fn exchange_block(&mut self, other: OrderOfBlock) -> OrderOfBlock {
        std::mem::replace(&mut self.running, other)
    }

    /// The stamp of an access now.
    #[inline]
    pub(super) fn stamp(&self, thread: u32) -> Stamp {
        Stamp::new(self.running.block, self.running.now, thread)
    }

    /// The stamps of the running block, as long as time goes on.
    pub(super) fn fast_stamps(&self) -> Option<FastStamps> {
        let OrderOfBlock { block, now, barrier, .. } = self.running;
        (now < TIME_MAX).then(|| FastStamps {
            block_start: Stamp::new(block, 0, 0).0,
            now: Stamp::new(block, now, 0).0,
            ordered: u64::from(barrier) << TIME_SHIFT,
        })
    }

    /// All threads of the block have come to a barrier.
    pub(super) fn pass_barrier(&mut self) {
        self.advance();
        self.running.barrier = self.running.now;
        self.running.lanes.clear();
        if !self.running.fences.is_empty() {
            let times = self.running.fences.iter().map(|(thread, fence)| (*thread, fence.time));
            self.running.fences_before_barrier = Rc::new(times.collect());
        }
    }

    /// The lanes in `mask` of a warp have come to `__syncwarp`.
    pub(super) fn pass_warp_barrier(&mut self, warp: u32, mask: u32) {
        self.advance();
        let members = || (0..LANES).filter(|lane| mask >> lane & 1 == 1);
        let mut known = [0; LANES as usize];
        for lane in members() {
            if let Some(of_lane) = self.running.lanes.get(&(warp * LANES + lane)) {
                known.iter_mut().zip(of_lane.iter()).for_each(|(all, one)| *all = (*all).max(*one));
            }
        }
        members().for_each(|lane| known[lane as usize] = self.running.now);
        let known = Rc::new(known);
        self.running.lanes.extend(members().map(|lane| (warp * LANES + lane, Rc::clone(&known))));
    }

    /// The thread has come to a fence.
    pub(super) fn pass_fence(&mut self, thread: u32) {
        self.advance();
        self.running.fences.insert(thread, self.knowledge(thread, self.running.now));
        self.running.unused_fences.insert(thread);
    }

    /// Whether a volatile write of the thread is a signal to others: the first after a fence.
    pub(super) fn signals(&mut self, thread: u32) -> bool {
        self.running.unused_fences.remove(&thread)
    }

    /// Whether this thread of the running block knows the last atomic update of an address, made
    /// behind a fence: so it has seen what all others did there, as the last of all blocks does.
    pub(super) fn is_behind_updates(&self, address: usize, thread: u32) -> bool {
        let last = self.last_updates.get(&address);
        last.is_some_and(|last| {
            self.is_before_in_block(*last, thread)
                && self.running.fences.contains_key(&last.thread())
        })
    }

    /// What a thread knows, with what it does itself before a time.
    fn knowledge(&self, thread: u32, time: u32) -> Fence {
        Fence {
            time,
            barrier: self.running.barrier,
            lanes: self.running.lanes.get(&thread).cloned(),
        }
    }

    /// The thread accesses an address atomically.
    pub(super) fn pass_atomic(&mut self, thread: u32, address: usize, touch: Touch) {
        let releases = self.released.get(&address).map_or(0, Vec::len);
        if touch.reads() && releases > 0 {
            let key = AcquiredKey { block: self.running.block, thread, address, releases };
            if self.known_acquired.insert(key) {
                let acquired = Acquired { thread, time: self.running.now, address, releases };
                self.acquired.entry(self.running.block).or_default().push(acquired);
            }
        }
        if touch == Touch::AtomicUpdate && !self.running.fences.is_empty() {
            self.last_updates.insert(address, self.stamp(thread));
        }
        if touch.writes()
            && !(self.running.fences.is_empty() && self.running.fences_before_barrier.is_empty())
        {
            let fence = self.running.fences.get(&thread).cloned().unwrap_or_default();
            let of_block = Rc::clone(&self.running.fences_before_barrier);
            let release = Release { block: self.running.block, thread, fence, of_block };
            if self.known_releases.insert(release.key(address)) {
                self.released.entry(address).or_default().push(release);
            }
        }
    }

    /// Whether an earlier access comes before what this thread of the running block does now.
    #[inline]
    pub(super) fn is_before(&self, earlier: Stamp, thread: u32) -> bool {
        if self.running.now >= TIME_MAX {
            return true;
        }
        self.is_before_in_block(earlier, thread) || self.is_released(earlier, thread)
    }

    /// As [`is_before`](Self::is_before), without fences.
    #[inline]
    pub(super) fn is_before_in_block(&self, earlier: Stamp, thread: u32) -> bool {
        earlier.block() == self.running.block
            && (earlier.thread() == thread
                || earlier.time() < self.running.barrier
                || self.is_before_in_warp(earlier, thread))
    }

    /// Whether an earlier access comes before what any thread of the running block does now.
    pub(super) fn is_before_all(&self, earlier: Stamp) -> bool {
        earlier.block() == self.running.block && earlier.time() < self.running.barrier
            || self.running.now >= TIME_MAX
    }

    fn is_before_in_warp(&self, earlier: Stamp, thread: u32) -> bool {
        earlier.thread() / LANES == thread / LANES
            && self
                .running
                .lanes
                .get(&thread)
                .is_some_and(|known| earlier.time() < known[(earlier.thread() % LANES) as usize])
    }

    /// Whether fences and atomics lead from an access to this thread of the running block.
    fn is_released(&self, earlier: Stamp, thread: u32) -> bool {
        if self.released.is_empty() {
            return false;
        }
        let fence = self.knowledge(thread, u32::MAX);
        let of_block = Rc::default();
        let now = Release { block: self.running.block, thread, fence, of_block };
        let covers = |release: &Release| {
            release.block == earlier.block() && release.knows(earlier.thread(), earlier.time())
        };
        // Of each address, the releases that were looked at.
        let (mut open, mut examined) = (vec![now], HashMap::<usize, usize>::new());
        while let Some(point) = open.pop() {
            let acquired = self.acquired.get(&point.block).map_or(&[][..], Vec::as_slice);
            for one in acquired.iter().filter(|one| point.knows(one.thread, one.time)) {
                let from = examined.entry(one.address).or_default();
                if *from < one.releases {
                    let new = &self.released[&one.address][*from..one.releases];
                    if new.iter().any(covers) {
                        return true;
                    }
                    open.extend_from_slice(new);
                    *from = one.releases;
                }
            }
        }
        false
    }

    fn advance(&mut self) {
        self.running.now = (self.running.now + 1).min(TIME_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Touch};

    fn started() -> Order {
        let mut order = Order::default();
        order.start_block(0);
        order
    }

    #[test]
    fn a_barrier_orders_the_threads_of_a_block_and_no_others() {
        let mut order = started();
        let earlier = order.stamp(3);
        assert!(order.is_before(earlier, 3) && !order.is_before(earlier, 4));
        order.pass_barrier();
        assert!(order.is_before(earlier, 4));
        assert!(!order.is_before(order.stamp(3), 4), "what it does after the barrier");
        order.start_block(1);
        order.pass_barrier();
        assert!(!order.is_before(earlier, 3), "the same thread of another block");
    }

    #[test]
    fn a_warp_barrier_orders_its_lanes_and_what_they_knew() {
        let mut order = started();
        let first = order.stamp(32);
        let other_warp = order.stamp(3);
        order.pass_warp_barrier(1, 0b0011);
        assert!(order.is_before(first, 33) && !order.is_before(first, 34));
        assert!(!order.is_before(other_warp, 33));
        let second = order.stamp(33);
        order.pass_warp_barrier(1, 0b0110);
        assert!(order.is_before(first, 34), "lane 1 knew it");
        assert!(order.is_before(second, 34) && !order.is_before(second, 32));
    }

    #[test]
    fn a_fence_and_atomics_order_blocks_along_chains() {
        let mut order = started();
        let earlier = order.stamp(7);
        order.pass_barrier();
        let unfenced = order.stamp(5);
        order.pass_atomic(0, 0x100, Touch::AtomicUpdate);
        order.pass_fence(0);
        let behind = order.stamp(0);
        order.pass_atomic(0, 0x100, Touch::AtomicUpdate);
        order.start_block(1);
        assert!(!order.is_before(earlier, 0), "nothing has been read yet");
        order.pass_atomic(2, 0x100, Touch::AtomicRead);
        assert!(order.is_before(earlier, 2) && !order.is_before(earlier, 3));
        assert!(!order.is_before(unfenced, 2), "behind the barrier of another thread");
        assert!(!order.is_before(behind, 2), "behind the fence");
        order.pass_barrier();
        assert!(order.is_before(earlier, 3), "by way of thread 2");
        order.pass_fence(3);
        order.pass_atomic(3, 0x200, Touch::AtomicWrite);
        order.start_block(2);
        order.pass_atomic(0, 0x200, Touch::AtomicRead);
        assert!(order.is_before(earlier, 0), "by way of two addresses");
    }

    #[test]
    fn an_atomic_write_without_a_fence_orders_nothing() {
        let mut order = started();
        let earlier = order.stamp(0);
        order.pass_atomic(0, 0x100, Touch::AtomicUpdate);
        order.start_block(1);
        order.pass_atomic(0, 0x100, Touch::AtomicUpdate);
        assert!(!order.is_before(earlier, 0));
    }
}
