//! Communicators: one rank each, on one device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernels::{self, Context};
use crate::link::{Address, Link};
use crate::server;
use crate::status::{Outcome, Status};

const MARK: &[u8; 8] = b"stand-in";

/// An ncclUniqueId: a mark, the number of a world, and the name of its process, followed by zeros.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct UniqueId([u8; 128]);

/// One rank.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) link: Arc<Link>,
    pub(crate) device: i32,
    pub(crate) context: Context,
}

impl UniqueId {
    fn of(address: &Address) -> Outcome<Self> {
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(MARK);
        bytes[8..16].copy_from_slice(&address.world.to_le_bytes());
        let name = address.process.as_bytes();
        let place = bytes[16..].get_mut(..name.len()).ok_or(Status::INTERNAL_ERROR)?;
        place.copy_from_slice(name);
        Ok(Self(bytes))
    }

    fn address(&self) -> Outcome<Address> {
        let (head, name) = self.0.split_at(16);
        let (mark, number) = head.split_at(8);
        let number = number.try_into().map_err(|_| Status::INTERNAL_ERROR)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        match std::str::from_utf8(name) {
            Ok(name) if mark == MARK => {
                Ok(Address { process: name.into(), world: u64::from_le_bytes(number) })
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }
}

/// A new id.
pub(crate) fn unique_id() -> Outcome<UniqueId> {
    UniqueId::of(&server::new_world()?)
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
    let id = unique_id()?;
    (0..ranks).zip(devices).map(|(rank, device)| join_on(*device, id, rank, ranks)).collect()
}

fn join_on(device: i32, id: UniqueId, rank: i32, ranks: i32) -> Outcome<u64> {
    let index = |number: i32| usize::try_from(number).map_err(|_| Status::INVALID_ARGUMENT);
    let (rank, ranks) = (index(rank)?, index(ranks)?);
    if rank >= ranks {
        return Err(Status::INVALID_ARGUMENT);
    }
    let address = id.address()?;
    let context = Context::of(device)?;
    let link = if server::is_here(&address) {
        Link::here(server::world(address.world, ranks)?, rank, device)?
    } else {
        Link::elsewhere(address, [rank, ranks], device)?
    };
    Ok(add(Communicator { link: Arc::new(link), device, context }))
}

fn add(communicator: Communicator) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x4CC1_0000_0000_0010);
    let number = NEXT.fetch_add(0x10, Ordering::Relaxed);
    with(|communicators| communicators.insert(number, Arc::new(communicator)));
    number
}

pub(crate) fn find(number: u64) -> Outcome<Arc<Communicator>> {
    with(|communicators| communicators.get(&number).cloned()).ok_or(Status::INVALID_ARGUMENT)
}

/// Forgets a communicator. Its queued work goes on.
pub(crate) fn remove(number: u64) -> Outcome<Arc<Communicator>> {
    with(|communicators| communicators.remove(&number)).ok_or(Status::INVALID_ARGUMENT)
}

/// The communicators, by number; the numbers are never used as pointers.
fn with<T>(body: impl FnOnce(&mut HashMap<u64, Arc<Communicator>>) -> T) -> T {
    static COMMUNICATORS: Mutex<Option<HashMap<u64, Arc<Communicator>>>> = Mutex::new(None);
    body(COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}
