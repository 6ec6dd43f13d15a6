//! Communicators: one rank each, on one device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernels::{self, Context};
use crate::status::{Outcome, Status};
use crate::world::World;

/// An ncclUniqueId.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct UniqueId([u8; 128]);

/// One rank.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) world: Arc<World>,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) device: i32,
    pub(crate) context: Context,
}

#[derive(Default)]
struct Registry {
    /// The ids that were given out; `None` until the first rank comes.
    worlds: HashMap<UniqueId, Option<Arc<World>>>,
    /// By number; the numbers are never used as pointers.
    communicators: HashMap<u64, Arc<Communicator>>,
}

/// A new id.
pub(crate) fn unique_id() -> UniqueId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; 128];
    bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    bytes[8..16].copy_from_slice(b"stand-in");
    let id = UniqueId(bytes);
    with(|registry| registry.worlds.insert(id, None));
    id
}

/// Makes the communicator of a rank on the calling thread's device, and returns its number.
pub(crate) fn join(id: UniqueId, rank: i32, ranks: i32) -> Outcome<u64> {
    let device = kernels::current_device()?;
    join_on(device, id, rank, ranks)
}

/// Makes the communicators of all ranks of new world, on these devices.
pub(crate) fn join_all(devices: &[i32]) -> Outcome<Vec<u64>> {
    let ranks = i32::try_from(devices.len()).map_err(|_| Status::INVALID_ARGUMENT)?;
    let count = kernels::device_count()?;
    if devices.iter().any(|device| !(0..count).contains(device)) {
        return Err(Status::INVALID_ARGUMENT);
    }
    let id = unique_id();
    (0..ranks).zip(devices).map(|(rank, device)| join_on(*device, id, rank, ranks)).collect()
}

fn join_on(device: i32, id: UniqueId, rank: i32, ranks: i32) -> Outcome<u64> {
    let index = |number: i32| usize::try_from(number).map_err(|_| Status::INVALID_ARGUMENT);
    let (rank, ranks) = (index(rank)?, index(ranks)?);
    if rank >= ranks {
        return Err(Status::INVALID_ARGUMENT);
    }
    let world = world(id, ranks)?;
    let context = Context::of(device)?;
    world.join(rank, device)?;
    Ok(add(Communicator { world, rank, ranks, device, context }))
}

fn world(id: UniqueId, ranks: usize) -> Outcome<Arc<World>> {
    with(|registry| {
        let known = registry.worlds.get_mut(&id).ok_or(Status::INVALID_ARGUMENT)?;
        let world = known.get_or_insert_with(|| Arc::new(World::new(ranks)));
        if world.size() == ranks { Ok(Arc::clone(world)) } else { Err(Status::INVALID_ARGUMENT) }
    })
}

fn add(communicator: Communicator) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x4CC1_0000_0000_0010);
    let number = NEXT.fetch_add(0x10, Ordering::Relaxed);
    with(|registry| registry.communicators.insert(number, Arc::new(communicator)));
    number
}

pub(crate) fn find(number: u64) -> Outcome<Arc<Communicator>> {
    with(|registry| registry.communicators.get(&number).cloned()).ok_or(Status::INVALID_ARGUMENT)
}

/// Forgets a communicator. Its queued work goes on.
pub(crate) fn remove(number: u64) -> Outcome<Arc<Communicator>> {
    with(|registry| registry.communicators.remove(&number)).ok_or(Status::INVALID_ARGUMENT)
}

fn with<T>(body: impl FnOnce(&mut Registry) -> T) -> T {
    static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
    body(REGISTRY.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}
