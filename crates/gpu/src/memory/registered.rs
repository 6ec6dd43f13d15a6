//! Host memory that the library registers with the driver for `page_lock` and for loans.
//!
//! The driver gets exactly the bytes of the array. If it refuses because some of these bytes, or of
//! their pages, are registered already, the array stays pageable and the error names the
//! neighbouring registration. A range that another library registered as a whole is used unchanged.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::pinned::HostMapping;
use super::pinned_ranges::PinnedRange;
use super::pointer;
use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{Driver, status};
use resident_backend::host_allocation::{ByteCount, CountedBytes};
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{BackendError, DeviceKind, PinnedRegistration};
use resident_core::Access;

/// The registrations of this process by start address, for all devices of a kind: a registration
/// made in one context is valid in all. The lock is held while the driver registers memory, so that
/// two threads cannot register the same bytes. It is not held while the driver unregisters memory,
/// which waits for the device on AMD's: an entry that is [ending](Stage::Ending) belongs to the
/// thread that makes the call, and nothing else registers the bytes, because their owner keeps them
/// until the call is over. Only the lock of the pinned ranges is taken under it.
static REGISTRATIONS: [BackendLock<Registrations>; DeviceKind::COUNT] =
    [const { BackendLock::new(Registrations(BTreeMap::new())) }; DeviceKind::COUNT];

/// The process that made the first registration; 0 if there is none. In a forked child the
/// registrations are invalid, and their lock may be held by a thread that does not exist in the
/// child.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Bytes of the host to register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBytes {
    pub start: *mut u8,
    pub len_bytes: usize,
    /// The device's access.
    pub access: Access,
}

/// The registration of one array's memory. Dropping it unregisters the memory.
pub(crate) struct HostRegistration {
    kind: DeviceKind,
    /// The memory's start; `None` if another library registered it.
    start: Option<usize>,
    is_unregistered: bool,
}

/// Bytes that one driver call registered.
struct Registration {
    end: usize,
    /// The context that registered them.
    context: Arc<Context>,
    stage: Stage,
    /// The dropped array's memory, kept allocated.
    memory: Option<Arc<dyn Any + Send + Sync>>,
    _range: PinnedRange,
    _counted: CountedBytes,
}

/// What becomes of a registration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    InUse,
    /// A thread unregisters it.
    Ending,
    /// Its array was dropped, but the driver refused to unregister its memory.
    Refused,
}

struct Registrations(BTreeMap<usize, Registration>);

impl HostRegistration {
    /// Registers bytes, at least one, for all devices.
    pub(crate) fn register(
        context: &Arc<Context>,
        bytes: HostBytes,
        mapping: HostMapping,
        pinned: &ByteCount,
    ) -> Result<Self, BackendError> {
        if !is_registering_process() {
            return Err(context.driver().register_host.error(status::NOT_INITIALIZED));
        }
        let kind = context.kind();
        unregister_refused(kind);
        let outcome = context
            .make_current()
            .and_then(|()| registrations(kind).insert(context, bytes, mapping, pinned));
        context.record_death(outcome).map(|start| Self { kind, start, is_unregistered: false })
    }
}

impl PinnedRegistration for HostRegistration {
    fn unregister(&mut self) -> bool {
        let Some(start) = self.start.filter(|_| is_registering_process()) else { return true };
        if !std::mem::replace(&mut self.is_unregistered, true) {
            unregister_one(self.kind, start, Stage::InUse);
        }
        !registrations(self.kind).0.contains_key(&start)
    }

    fn keep_until_unregistered(&mut self, memory: Arc<dyn Any + Send + Sync>) {
        if let Some(start) = self.start.filter(|_| is_registering_process())
            && let Some(registration) = registrations(self.kind).0.get_mut(&start)
        {
            registration.memory = Some(memory);
        }
    }
}

impl Drop for HostRegistration {
    fn drop(&mut self) {
        if !self.is_unregistered {
            self.unregister();
        }
    }
}

impl fmt::Debug for HostRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostRegistration({:#x?})", self.start)
    }
}

impl Registrations {
    /// Registers memory; the context is current. Returns its start, or `None` if another library
    /// registered all of it.
    fn insert(
        &mut self,
        context: &Arc<Context>,
        HostBytes { start, len_bytes, access }: HostBytes,
        mapping: HostMapping,
        pinned: &ByteCount,
    ) -> Result<Option<usize>, BackendError> {
        const PORTABLE: u32 = 1;
        let read_only = read_only_flag(context, access);
        let flags = PORTABLE | mapping.flag() | read_only.unwrap_or(0);
        let bytes = start.addr()..start.addr() + len_bytes;
        let driver = context.driver();
        let kind = context.kind();
        let _relaxed = Relaxed::enter(driver);
        let register = &driver.register_host;
        let outcome = if !driver.vendor.refuses_registered_memory
            && (self.overlaps(&bytes) || is_registered_in_part(driver, &bytes))
        {
            status::HOST_MEMORY_ALREADY_REGISTERED
        } else {
            // SAFETY: the caller of `pin_host_memory` owns these bytes and keeps them until
            // `unregister`; registering does not change their contents. No registration has them
            // already: else the driver refuses the call, or the call is not made.
            unsafe { (register.function)(start.cast(), len_bytes, flags) }
        };
        match outcome {
            status::SUCCESS => {
                let context = Arc::clone(context);
                let memory = None;
                let registration = Registration {
                    end: bytes.end,
                    context,
                    stage: Stage::InUse,
                    memory,
                    _range: PinnedRange::new(kind, start, len_bytes),
                    _counted: pinned.count(len_bytes),
                };
                self.0.insert(bytes.start, registration);
                Ok(Some(bytes.start))
            }
            status::HOST_MEMORY_ALREADY_REGISTERED => {
                let neighbour = self.neighbour(&bytes);
                let is_neighbours = neighbour.as_ref().is_some_and(|other| {
                    registration_at(driver, other.start) == registration_at(driver, bytes.start)
                });
                if !is_neighbours && is_one_registration(driver, &bytes) {
                    return Ok(None);
                }
                Err(already_registered(driver, &bytes, neighbour))
            }
            other if read_only.is_some() || access.writes() => Err(register.error(other)),
            other => Err(not_for_reading_only(register.error(other))),
        }
    }

    /// Whether this library registered some of the bytes.
    fn overlaps(&self, bytes: &Range<usize>) -> bool {
        let before = self.0.range(..bytes.end).next_back();
        before.is_some_and(|(_, registration)| registration.end > bytes.start)
    }

    /// A registration made by this library that has a page in common with `bytes`.
    fn neighbour(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let page_bytes = page_bytes();
        let first_page = bytes.start / page_bytes * page_bytes;
        let last_page_end = bytes.end.checked_next_multiple_of(page_bytes).unwrap_or(usize::MAX);
        let (start, registration) = self.0.range(..last_page_end).next_back()?;
        (registration.end > first_page).then_some(*start..registration.end)
    }

    /// Begins to end a registration that is at this stage. Returns the context that made it.
    fn begin_to_end(&mut self, start: usize, stage: Stage) -> Option<Arc<Context>> {
        let registration = self.0.get_mut(&start).filter(|known| known.stage == stage)?;
        registration.stage = Stage::Ending;
        Some(Arc::clone(&registration.context))
    }

    /// The driver has refused to end a registration.
    fn mark_refused(&mut self, start: usize) {
        if let Some(registration) = self.0.get_mut(&start) {
            registration.stage = Stage::Refused;
        }
    }

    /// The memory that the driver refused to unregister before, unless its device died.
    fn refused(&self) -> Vec<usize> {
        let is_worth_a_try = |registration: &Registration| {
            registration.stage == Stage::Refused && registration.context.death().is_none()
        };
        let refused = self.0.iter().filter(|(_, registration)| is_worth_a_try(registration));
        refused.map(|(start, _)| *start).collect()
    }
}

/// Unregisters memory, without the lock, unless the registration is at another stage.
fn unregister_one(kind: DeviceKind, start: usize, stage: Stage) {
    let Some(context) = registrations(kind).begin_to_end(start, stage) else { return };
    if unregister_in(&context, start) {
        let removed = registrations(kind).0.remove(&start);
        // Dropping a context calls the driver, so the lock is released before.
        drop(removed);
    } else {
        registrations(kind).mark_refused(start);
    }
}

/// Unregisters what the driver refused to unregister before.
fn unregister_refused(kind: DeviceKind) {
    let refused = registrations(kind).refused();
    refused.into_iter().for_each(|start| unregister_one(kind, start, Stage::Refused));
}

/// Unregisters memory in the context that registered it. Returns `false` if the driver refused.
fn unregister_in(context: &Context, start: usize) -> bool {
    // The driver may still unregister memory of a dead context, so the call is made even if making
    // the context current returns an error.
    if context.make_current().is_err() {
        let _dead = context.driver().set_current(context.place());
    }
    let start = std::ptr::without_provenance_mut(start);
    let driver = context.driver();
    let _relaxed = Relaxed::enter(driver);
    // SAFETY: `insert` registered this address. No copy in flight uses the memory: such a copy
    // keeps the array, and with it the registration (`HostMemory`).
    match unsafe { (driver.unregister_host.function)(start) } {
        status::SUCCESS | status::HOST_MEMORY_NOT_REGISTERED => true,
        other => {
            let refused = driver.unregister_host.error(other);
            let _recorded = context.record_death::<()>(Err(refused));
            false
        }
    }
}

fn registrations(kind: DeviceKind) -> BackendGuard<'static, Registrations> {
    REGISTRATIONS[kind as usize].lock()
}

/// Whether this process made the registrations, rather than the parent that it was forked from.
fn is_registering_process() -> bool {
    let this = std::process::id();
    let before = PROCESS.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
    before.is_ok() || before == Err(this)
}

/// The flag of memory that the device only reads, if the device knows it: without the flag the
/// driver refuses memory that the process cannot write.
fn read_only_flag(context: &Context, access: Access) -> Option<u32> {
    const READ_ONLY: u32 = 8;
    (!access.writes() && context.registers_read_only_memory()).then_some(READ_ONLY)
}

#[cold]
fn not_for_reading_only(refused: BackendError) -> BackendError {
    let advice = "this device registers no memory that is mapped for reading only, as the array's \
                  may be: leave the array pageable, or map the file copy-on-write";
    BackendError { detail: format!("{}: {advice}", refused.detail), ..refused }
}

#[cold]
fn already_registered(
    driver: &Driver,
    bytes: &Range<usize>,
    neighbour: Option<Range<usize>>,
) -> BackendError {
    let refused = driver.register_host.error(status::HOST_MEMORY_ALREADY_REGISTERED);
    let advice = match neighbour {
        Some(other) => format!(
            "the array at {bytes:#x?} shares a page with the page-locked array at {other:#x?}, \
             and this driver registers a page only once: allocate one of them page-aligned, put \
             both into one array, or leave this one pageable"
        ),
        None => format!(
            "another library registered a part of the array at {bytes:#x?}, or of its first or \
             last page: unregister that part first, register all of the array, or leave it pageable"
        ),
    };
    BackendError { detail: format!("{}: {advice}", refused.detail), ..refused }
}

/// Whether all of these bytes lie in one registration; a context is current.
fn is_one_registration(driver: &Driver, bytes: &Range<usize>) -> bool {
    let at = |address| registration_at(driver, address);
    let first = at(bytes.start);
    let last = at(bytes.end - 1);
    first.is_some() && first == last
}

/// Whether the first or the last of these bytes is registered; a context is current. A registration
/// between them is not seen: a question for each page would take long.
fn is_registered_in_part(driver: &Driver, bytes: &Range<usize>) -> bool {
    [bytes.start, bytes.end - 1].into_iter().any(|at| registration_at(driver, at).is_some())
}

/// The number of the registration that contains this address, 0 if the driver gives none; `None`
/// for pageable memory. A context is current.
fn registration_at(driver: &Driver, address: usize) -> Option<u64> {
    let address = address as u64;
    let number = || pointer::attribute(driver, address, pointer::BUFFER_ID).unwrap_or(0);
    pointer::is_pinned_host(driver, address).then(number)
}

#[cfg(target_os = "linux")]
fn page_bytes() -> usize {
    rustix::param::page_size()
}

#[cfg(not(target_os = "linux"))]
fn page_bytes() -> usize {
    4096
}
