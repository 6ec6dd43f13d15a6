//! One embedded device: its memory, its settings and its streams.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::engine::{DeviceCore, Streams, Usable};
use super::memory::{AddressSpace, StagingPool};
use super::race_check::Tracker;
use super::simulation::{Emulation, EmulationLog, Instruments, PAGE_BYTES, Simulation};
use resident_backend::grid::GridLimits;
use resident_backend::host_allocation::ByteCount;
use resident_backend::{BodyKind, DeviceProperties, environment, host_copy};
use resident_host_code::{Findings, Libraries};

/// The poison byte: NaN as a floating-point number, -1 as an integer.
const POISON: u8 = 0xFF;

/// Addresses of different devices differ in this bit or a higher one. So the lookup of another
/// device's address finds no memory, instead of the wrong memory.
const DEVICE_SHIFT: u32 = 44;

/// The copies of one call that are in flight together.
const CHUNKS_IN_FLIGHT_MAX: usize = 4;

/// The environment variable that makes embedded devices run CUDA C bodies, if it is `cuda`; else
/// it is `host`.
const KERNELS_VARIABLE: &str = "RESIDENT_CPU_KERNELS";

/// The environment variable that makes embedded devices check CUDA C bodies: a switch.
const SANITIZE_VARIABLE: &str = "RESIDENT_SANITIZE";

/// One embedded device.
pub struct EmbeddedDevice {
    pub(super) core: Arc<DeviceCore>,
    pub(super) streams: Arc<Streams>,
    pub(super) staging: Arc<StagingPool>,
    pub(super) pinned: ByteCount,
    pub(super) properties: DeviceProperties,
    pub(super) libraries: Libraries,
}

impl EmbeddedDevice {
    /// The process's plain embedded device: no memory limit, a worker thread for each stream, no
    /// call log, no faults and no race check.
    pub fn cpu() -> Arc<Self> {
        static CPU: OnceLock<Arc<EmbeddedDevice>> = OnceLock::new();
        Arc::clone(CPU.get_or_init(Self::plain))
    }

    /// A new device like the plain one, which also has number 0. For benchmarks, and for checkers
    /// such as loom that do not support statics.
    pub fn plain() -> Arc<Self> {
        let environment = Wishes::of_environment();
        let wishes = environment.as_ref().copied().unwrap_or_default();
        let findings: Option<Arc<Findings>> =
            wishes.sanitizes.then(|| Arc::new(Findings::default().printed()));
        let memory = AddressSpace::new(first_address(0), None, None)
            .checked(findings.clone())
            .paged(Some(PAGE_BYTES));
        let core = DeviceCore {
            ordinal: 0,
            memory,
            link: None,
            output_poison: cfg!(debug_assertions).then_some(POISON),
            instruments: None,
            usable: Usable::here(environment.err()),
        };
        Arc::new(Self {
            core: Arc::new(core),
            streams: Arc::new(Streams::new(None)),
            staging: Arc::default(),
            pinned: ByteCount::default(),
            libraries: Libraries::new(findings),
            properties: DeviceProperties {
                body_kind: wishes.body_kind(),
                grid_limits: GridLimits::default(),
                poison_byte: None,
                chunk_bytes_max: u64::MAX,
                chunks_in_flight_max: CHUNKS_IN_FLIGHT_MAX,
                page_bytes: Some(PAGE_BYTES),
                emulated_bytes: None,
                reaches_host_memory: wishes.reaches_host_memory,
                reads_between_parts: false,
                runs_by_itself: true,
                knows_left_out: wishes.sanitizes,
            },
        })
    }

    /// A new device with these settings. Such devices are numbered from 1 in the process.
    pub fn emulated(emulation: Emulation) -> Arc<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
        let simulation = emulation.seed.map(Simulation::join);
        let tracker = simulation
            .as_ref()
            .map_or_else(Tracker::of_process, |simulation| Arc::clone(simulation.tracker()));
        let environment = Wishes::of_environment();
        let asked = environment.as_ref().copied().unwrap_or_default();
        let findings = if emulation.is_strict { Findings::strict() } else { Findings::default() };
        let findings = if asked.sanitizes { findings.printed() } else { findings };
        let instruments = Instruments::new(emulation.faults, findings, tracker);
        let wishes = Wishes {
            sanitizes: emulation.sanitizes || asked.sanitizes,
            prefers_cuda: emulation.prefers_cuda || asked.prefers_cuda,
            ..asked
        };
        let findings = wishes.sanitizes.then(|| Arc::clone(&instruments.log.findings));
        let poison = emulation.is_poisoning.then_some(POISON);
        let page_bytes = Some(emulation.page_bytes).filter(|page_bytes| *page_bytes > 0);
        let core = DeviceCore {
            ordinal,
            memory: AddressSpace::new(first_address(ordinal), emulation.memory_bytes, poison)
                .checked(findings.clone())
                .paged(page_bytes),
            link: emulation.link,
            instruments: Some(instruments),
            output_poison: poison,
            usable: Usable::here(environment.err()),
        };
        let properties = DeviceProperties {
            body_kind: wishes.body_kind(),
            grid_limits: emulation.grid_limits,
            poison_byte: poison,
            chunk_bytes_max: emulation.chunk_bytes_max,
            chunks_in_flight_max: CHUNKS_IN_FLIGHT_MAX,
            page_bytes,
            emulated_bytes: emulation.memory_bytes,
            reaches_host_memory: asked.reaches_host_memory,
            reads_between_parts: false,
            runs_by_itself: simulation.is_none(),
            knows_left_out: wishes.sanitizes,
        };
        Arc::new(Self {
            core: Arc::new(core),
            streams: Arc::new(Streams::new(simulation)),
            staging: Arc::default(),
            pinned: ByteCount::default(),
            libraries: Libraries::new(findings),
            properties,
        })
    }

    /// The log of an emulated device.
    pub fn log(&self) -> Option<EmulationLog> {
        let instruments = self.core.instruments.as_ref();
        instruments.map(|instruments| EmulationLog(Arc::clone(&instruments.log)))
    }
}

impl fmt::Debug for EmbeddedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedDevice(cpu:{})", self.core.ordinal)
    }
}

/// What the environment asks of embedded devices.
#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    /// Checks of CUDA C bodies, as `Emulation::sanitize` asks for.
    sanitizes: bool,
    /// Which of a kernel's bodies runs, as `Emulation::prefer_cuda` says.
    prefers_cuda: bool,
    /// Whether arrays use host memory in its place. Off if nothing is asked: embedded devices show
    /// what a GPU with memory of its own copies.
    reaches_host_memory: bool,
}

impl Wishes {
    /// The error says which variable has a value that no device understands. Variables that are
    /// read later are looked at too.
    fn of_environment() -> Result<Self, String> {
        resident_host_code::launch_timeout()?;
        host_copy::threads_asked()?;
        let parse = |text: &str| match text {
            "cuda" => Some(true),
            "host" => Some(false),
            _ => None,
        };
        let prefers_cuda = environment::read(KERNELS_VARIABLE, "cuda or host", parse)?;
        let sanitizes = environment::switch(SANITIZE_VARIABLE)?;
        let reaches_host_memory = environment::switch(environment::COHERENT_VARIABLE)?;
        Ok(Self { sanitizes, prefers_cuda: prefers_cuda.unwrap_or(false), reaches_host_memory })
    }

    /// Which of a kernel's bodies a device runs: CUDA C if that is checked.
    fn body_kind(self) -> BodyKind {
        if self.sanitizes || self.prefers_cuda { BodyKind::HostFromCuda } else { BodyKind::Host }
    }
}

/// Two devices share addresses only after 2^20 devices, or after 2^44 bytes on one device. Even
/// then, each device looks up only its own blocks.
fn first_address(ordinal: usize) -> u64 {
    (ordinal as u64) << DEVICE_SHIFT
}
