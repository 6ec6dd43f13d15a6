//! The embedded device itself: its memory, its settings, its queues.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::emulation::{Emulation, Link};
use super::instruments::{Instruments, bare_draft};
use super::lane::{Engine, Lane};
use super::log::{CallKind, EmulationLog};
use super::memory::AddressSpace;
use super::queue::EmbeddedQueue;
use super::seeded::World;
use super::time;
use super::tracker::Tracker;
use crate::backend::{
    Address, Backend, BackendError, BackendErrorKind, BodyKind, Capacity, DeviceKind, HostMemory,
    LoadError, LoadedKernel, MemoryUsage, PinnedRegistration, Position, Program, Queue,
    SourceDevice, scope,
};

/// The poison: NaN as a floating-point number, -1 as an integer.
const POISON: u8 = 0xFF;

/// Addresses of different devices differ in the bits from this one on, so that a mix-up finds no
/// memory rather than the wrong one.
const DEVICE_SHIFT: u32 = 44;

/// The driver code for what a machine does not tell.
const CODE_UNKNOWN_CAPACITY: i64 = 4;

/// What of a device its queued work needs: it lives as long as either.
#[derive(Debug)]
pub(super) struct DeviceCore {
    pub(super) ordinal: usize,
    pub(super) memory: AddressSpace,
    pub(super) link: Option<Link>,
    pub(super) poison: Option<u8>,
    /// Larger copies to and from the host go in pieces.
    chunk_bytes_max: u64,
    /// Of emulated devices.
    pub(super) instruments: Option<Instruments>,
    lanes: Mutex<Vec<Weak<Lane>>>,
    lane_count: AtomicU32,
}

/// The device is made of host memory: it reaches all of it.
#[derive(Debug)]
struct Reachable;

impl PinnedRegistration for Reachable {}

/// One embedded device.
pub(crate) struct EmbeddedDevice {
    core: Arc<DeviceCore>,
    world: Option<Arc<World>>,
}

impl EmbeddedDevice {
    /// The plain device: no limit but the machine's memory, a worker for each queue, nothing
    /// watched. One for the process.
    pub(crate) fn cpu() -> Arc<Self> {
        static CPU: OnceLock<Arc<EmbeddedDevice>> = OnceLock::new();
        Arc::clone(CPU.get_or_init(Self::plain))
    }

    /// A device like the plain one, but a new one, with number 0 as well. For benchmarks and for
    /// checkers that want no statics.
    pub(crate) fn plain() -> Arc<Self> {
        Arc::new(Self { core: Arc::new(DeviceCore::plain()), world: None })
    }

    /// A fresh device as `emulation` describes it, numbered from 1 in the process.
    pub(crate) fn emulated(emulation: Emulation) -> Arc<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
        let world = emulation.seed.map(World::join);
        let poison = emulation.poison.then_some(POISON);
        let memory = AddressSpace::new(first_address(ordinal), emulation.memory_bytes, poison);
        let tracker =
            world.as_ref().map_or_else(Tracker::of_process, |world| Arc::clone(world.tracker()));
        let instruments = Some(Instruments::new(emulation.faults, tracker));
        let core = DeviceCore {
            link: emulation.link,
            chunk_bytes_max: emulation.chunk_bytes_max,
            instruments,
            ..DeviceCore::new(ordinal, memory, poison)
        };
        Arc::new(Self { core: Arc::new(core), world })
    }

    /// What was called and what was unordered, of an emulated device.
    pub(crate) fn log(&self) -> Option<EmulationLog> {
        self.core
            .instruments
            .as_ref()
            .map(|instruments| EmulationLog::new(Arc::clone(instruments.log())))
    }

    /// What of it queued work holds.
    pub(super) fn core(&self) -> &Arc<DeviceCore> {
        &self.core
    }

    fn new_lane(&self) -> Arc<Lane> {
        let number = self.core.lane_count.fetch_add(1, Ordering::Relaxed);
        let engine = self
            .world
            .as_ref()
            .map_or(Engine::Worker, |world| Engine::Seeded(Arc::downgrade(world)));
        let lane = Arc::new(Lane::new(number, Arc::clone(&self.core), engine));
        self.world.iter().for_each(|world| world.add(Arc::clone(&lane)));
        let mut lanes = self.core.lanes();
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(&lane));
        lane
    }
}

impl DeviceCore {
    fn plain() -> Self {
        Self::new(0, AddressSpace::new(0, None, None), None)
    }

    fn new(ordinal: usize, memory: AddressSpace, poison: Option<u8>) -> Self {
        let (lanes, lane_count) = (Mutex::new(Vec::new()), AtomicU32::new(0));
        Self {
            ordinal,
            memory,
            link: None,
            poison,
            chunk_bytes_max: u64::MAX,
            instruments: None,
            lanes,
            lane_count,
        }
    }

    /// A call of the device itself: counted, and refused where a fault says so.
    fn counted<T>(
        &self,
        kind: CallKind,
        call: impl FnOnce() -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        match &self.instruments {
            None => call(),
            Some(instruments) => instruments
                .counted(bare_draft(None, kind), |_| call().map(|value| (value, Position::START))),
        }
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Weak<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory. Where there is no room, queued frees are waited for if they can make some; in
    /// a world that runs ready work.
    pub(super) fn allocate(&self, len_bytes: u64) -> Result<Address, BackendError> {
        self.memory.allocate(len_bytes).or_else(|refusal| {
            if !self.memory.may_find_room(len_bytes) {
                return Err(refusal);
            }
            self.drain("allocate")?;
            self.memory.allocate(len_bytes)
        })
    }

    /// Waits for all frees queued so far.
    fn drain(&self, call: &'static str) -> Result<(), BackendError> {
        let lanes: Vec<Arc<Lane>> = self.lanes().iter().filter_map(Weak::upgrade).collect();
        let pending = lanes.iter().filter(|lane| !lane.progress().is_complete(lane.last_free()));
        for lane in pending {
            if scope::is_in_body() {
                return Err(inside_kernel(call));
            }
            lane.wait_until(lane.last_free())?;
        }
        Ok(())
    }
}

impl SourceDevice for EmbeddedDevice {}

impl Backend for EmbeddedDevice {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn ordinal(&self) -> usize {
        self.core.ordinal
    }

    fn name(&self) -> String {
        format!("cpu:{}", self.core.ordinal)
    }

    fn capacity(&self) -> Result<Capacity, BackendError> {
        let limited = self.core.memory.limit().map(|(total, free)| Capacity { total, free });
        limited.or_else(time::machine_memory).ok_or_else(|| BackendError {
            kind: BackendErrorKind::Driver { code: CODE_UNKNOWN_CAPACITY },
            call: "capacity",
            detail: "this machine has no /proc/meminfo to read its memory from".to_owned(),
        })
    }

    fn memory(&self) -> MemoryUsage {
        self.core.memory.usage()
    }

    fn default_queue(&self) -> Result<Arc<dyn Queue>, BackendError> {
        Ok(Arc::new(EmbeddedQueue::new(self.new_lane(), self.world.clone())))
    }

    fn new_queue(&self) -> Result<Arc<dyn Queue>, BackendError> {
        self.core.counted(CallKind::NewStream, || self.default_queue())
    }

    fn trim(&self) -> Result<(), BackendError> {
        self.core.counted(CallKind::Trim, || {
            self.core.drain("trim")?;
            self.core.memory.trim();
            Ok(())
        })
    }

    fn set_memory_limit(&self, len_bytes: u64) {
        self.core.memory.set_limit(len_bytes);
    }

    fn memory_limit(&self) -> Option<u64> {
        self.core.memory.limit().map(|(limit_bytes, _)| limit_bytes)
    }

    fn model(&self) -> String {
        "embedded device".to_owned()
    }

    fn poison_byte(&self) -> Option<u8> {
        self.core.poison
    }

    fn can_access_peer(&self, peer: &dyn Backend) -> bool {
        peer.downcast_ref::<Self>().is_some()
    }

    fn allocate_staging(&self, _len_bytes: u64) -> Option<Arc<dyn HostMemory>> {
        None
    }

    fn reap(&self) {}

    fn prepare_downloads(&self, _lens_bytes: &[u64]) {}

    fn chunk_bytes_max(&self) -> u64 {
        self.core.chunk_bytes_max
    }

    fn pin_host_memory(
        &self,
        _start: *mut u8,
        _len_bytes: usize,
    ) -> Result<Box<dyn PinnedRegistration>, BackendError> {
        self.core.counted(CallKind::PinnedRegistration, || {
            Ok(Box::new(Reachable) as Box<dyn PinnedRegistration>)
        })
    }

    fn body_kind(&self) -> BodyKind {
        BodyKind::Host
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn LoadedKernel>, LoadError> {
        Err(LoadError::Program(format!(
            "kernel \"{}\" has device code, which the embedded device does not run",
            program.kernel
        )))
    }
}

impl fmt::Debug for EmbeddedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedDevice({})", self.name())
    }
}

/// A call that would wait, on a thread that runs queued work.
pub(super) fn inside_kernel(call: &'static str) -> BackendError {
    BackendError { kind: BackendErrorKind::InsideKernel, call, detail: String::new() }
}

/// Devices share a number space only after 2^20 of them, or 2^44 bytes: even then each looks up its
/// own blocks alone.
fn first_address(ordinal: usize) -> u64 {
    (ordinal as u64) << DEVICE_SHIFT
}
