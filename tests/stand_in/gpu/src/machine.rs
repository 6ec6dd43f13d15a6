//! The machine: its settings, its devices, and their contexts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::{self, Handle, Object};
use crate::interface::interface;
use crate::kernel;
use crate::ledger::{Ledger, Pool};
use crate::work;
use resident_backend::{Backend, BackendError, Position, RawStream};
use resident_embedded::EmbeddedDevice;
use resident_embedded::{Emulation, EmulationLog, Hazard, HazardKind, Touch};
use resident_stand_in_client::settings::Values;

/// A device and its engine, which exist as long as any context exists.
#[derive(Debug)]
pub struct Device {
    pub ordinal: usize,
    pub engine: Arc<EmbeddedDevice>,
    pub ledger: Mutex<Ledger>,
    /// The default pool.
    pub default_pool: Arc<Pool>,
    /// The pool from which `cuMemAllocAsync` allocates.
    pub current_pool: Mutex<Arc<Pool>>,
    /// The engine's stream on which memory is unmapped, which has nothing else.
    unmapping: OnceLock<Arc<dyn RawStream>>,
}

#[derive(Debug, Default)]
struct State {
    devices: Vec<Arc<Device>>,
    slots: Vec<Slot>,
    /// Contexts other than primary contexts.
    other_contexts: Vec<Handle>,
    /// The logs of all devices that ever existed, each with the number of hazards already taken.
    logs: Vec<(EmulationLog, usize)>,
}

/// A device's primary context.
#[derive(Clone, Debug, Default)]
struct Slot {
    context: Option<Arc<Context>>,
    retained: u32,
    flags: u32,
}

static SETTINGS: RwLock<Option<Values>> = RwLock::new(None);
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// The process that called `cuInit`; 0 before that call.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// Sets the settings. Returns `false` if other settings already apply, or while a context is
/// in use.
pub fn configure(settings: Values, again: bool) -> bool {
    interface().before_configure();
    let mut state = state();
    let mut known = SETTINGS.write().unwrap_or_else(PoisonError::into_inner);
    let is_running = state.as_ref().is_some_and(State::has_contexts);
    if is_running || !again && known.is_some() {
        return false;
    }
    *known = Some(settings);
    drop(known);
    let devices = state.as_mut().map(|state| {
        state.slots.clear();
        std::mem::take(&mut state.devices)
    });
    drop(state);
    // The following may drop the last handles of the engines, so no lock may be held.
    devices.into_iter().flatten().for_each(|device| device.forget_pools());
    true
}

/// The settings: as configured, or the interface's if nothing was configured.
pub fn settings() -> Values {
    if let Some(settings) = *SETTINGS.read().unwrap_or_else(PoisonError::into_inner) {
        return settings;
    }
    let default = || interface().default_settings();
    *SETTINGS.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(default)
}

/// `cuInit`.
pub fn initialise() -> Outcome {
    if settings().devices == 0 {
        return Err(Code::NO_DEVICE);
    }
    // A child process cannot use a driver that its parent has initialised.
    let us = std::process::id();
    let before = INITIALISED_BY.compare_exchange(0, us, Ordering::AcqRel, Ordering::Acquire);
    if before.is_ok() || before == Err(us) { Ok(()) } else { Err(Code::NOT_INITIALIZED) }
}

/// Returns an error before `cuInit`, and in a child of the process that called it.
pub fn check_initialised() -> Outcome {
    if INITIALISED_BY.load(Ordering::Acquire) == std::process::id() {
        Ok(())
    } else {
        Err(Code::NOT_INITIALIZED)
    }
}

/// The ordinal of an existing device.
pub fn ordinal(device: i32) -> Outcome<usize> {
    check_initialised()?;
    usize::try_from(device)
        .ok()
        .filter(|ordinal| *ordinal < settings().devices as usize)
        .ok_or(Code::INVALID_DEVICE)
}

/// The existing device with this ordinal. Creates the devices if necessary.
pub fn device(device: i32) -> Outcome<Arc<Device>> {
    let ordinal = ordinal(device)?;
    let mut state = state();
    let state = state.get_or_insert_default();
    state.start();
    state.devices.get(ordinal).cloned().ok_or(Code::INVALID_DEVICE)
}

/// The device whose address space contains an address.
pub fn device_of_address(address: u64) -> Option<Arc<Device>> {
    let engine_ordinal = usize::try_from(address >> 44).ok()?;
    state()
        .as_ref()?
        .devices
        .iter()
        .find(|device| device.engine.ordinal() == engine_ordinal)
        .cloned()
}

/// The primary context, which begins here if it does not exist. Only `end_unused` ends it.
pub fn primary(device: i32) -> Outcome<Arc<Context>> {
    let ordinal = ordinal(device)?;
    let known = {
        let state = state();
        let slot = state.as_ref().and_then(|state| state.slots.get(ordinal));
        slot.and_then(|slot| slot.context.clone())
    };
    known.map_or_else(|| retain(device), Ok)
}

/// Ends the primary contexts that have neither streams nor memory.
pub fn end_unused() {
    let unused: Vec<Arc<Context>> = {
        let mut state = state();
        let slots = state.as_mut().map(|state| state.slots.as_mut_slice()).unwrap_or_default();
        slots
            .iter_mut()
            .filter(|slot| slot.context.as_ref().is_some_and(|context| context.is_unused()))
            .filter_map(|slot| {
                slot.retained = 0;
                slot.context.take()
            })
            .collect()
    };
    unused.iter().for_each(end);
}

/// Retains the primary context.
pub fn retain(device: i32) -> Outcome<Arc<Context>> {
    let ordinal = ordinal(device)?;
    let mut state = state();
    let state = state.get_or_insert_default();
    state.start();
    let device = Arc::clone(&state.devices[ordinal]);
    let slot = &mut state.slots[ordinal];
    let context = match &slot.context {
        Some(context) => Arc::clone(context),
        None => {
            let context = Context::new(device)?;
            handle::insert(context.handle, Object::Context(Arc::clone(&context)));
            Arc::clone(slot.context.insert(context))
        }
    };
    slot.retained += 1;
    Ok(context)
}

/// Releases the primary context. The last release ends the context, after its work is complete.
pub fn release(device: i32) -> Outcome {
    let ordinal = ordinal(device)?;
    let ended = {
        let mut state = state();
        let slot = state
            .as_mut()
            .and_then(|state| state.slots.get_mut(ordinal))
            .ok_or(Code::INVALID_CONTEXT)?;
        slot.retained = slot.retained.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        if slot.retained > 0 { None } else { slot.context.take() }
    };
    if let Some(context) = ended {
        end(&context);
    }
    Ok(())
}

/// Creates a context other than the primary context.
pub fn create(device: i32) -> Outcome<Arc<Context>> {
    let ordinal = ordinal(device)?;
    let mut state = state();
    let state = state.get_or_insert_default();
    state.start();
    let context = Context::new(Arc::clone(&state.devices[ordinal]))?;
    handle::insert(context.handle, Object::Context(Arc::clone(&context)));
    state.other_contexts.push(context.handle);
    Ok(context)
}

/// Ends a context that is not a primary context, after its work is complete.
pub fn destroy(context: Handle) -> Outcome {
    check_initialised()?;
    let context = handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?;
    {
        let mut state = state();
        let other_contexts =
            state.as_mut().map(|state| &mut state.other_contexts).ok_or(Code::INVALID_CONTEXT)?;
        let index = other_contexts
            .iter()
            .position(|other| *other == context.handle)
            .ok_or(Code::INVALID_CONTEXT)?;
        other_contexts.remove(index);
    }
    end(&context);
    Ok(())
}

/// The flags of the primary context, and whether it exists.
pub fn primary_state(device: i32) -> Outcome<(u32, bool)> {
    let ordinal = ordinal(device)?;
    let state = state();
    let slot = state.as_ref().and_then(|state| state.slots.get(ordinal));
    Ok(slot.map_or((0, false), |slot| (slot.flags, slot.context.is_some())))
}

/// Sets the flags of a primary context.
pub fn set_primary_flags(device: i32, flags: u32) -> Outcome {
    let ordinal = ordinal(device)?;
    let mut state = state();
    let state = state.get_or_insert_default();
    state.start();
    state.slots[ordinal].flags = flags;
    Ok(())
}

/// The unordered accesses found so far, as text.
pub fn hazards(take: bool) -> Vec<String> {
    let mut state = state();
    let Some(state) = state.as_mut() else { return Vec::new() };
    let mut texts = Vec::new();
    for (log, taken) in &mut state.logs {
        let hazards = log.hazards();
        let sure = hazards.iter().skip(*taken).filter(|hazard| is_sure(hazard));
        texts.extend(sure.map(ToString::to_string));
        if take {
            *taken = hazards.len();
        }
    }
    texts
}

/// Forgets the engines' own records of calls: tests look at those of the driver.
pub fn forget_calls() {
    if let Some(state) = state().as_mut() {
        state.logs.iter().for_each(|(log, _)| drop(log.take_calls()));
    }
}

/// Whether a hazard is none only because of what is not known: if a kernel may write memory, and it
/// is not declared how, it is not known whether it reads.
fn is_sure(hazard: &Hazard) -> bool {
    let name = hazard.operation.name.strip_prefix("kernel \"");
    let may_read =
        hazard.kind == HazardKind::NeverWritten && hazard.operation.touch == Touch::Writes;
    let is_declared = |name: &str| kernel::find(name.trim_end_matches('"')).is_some();
    !may_read || name.is_none_or(is_declared)
}

/// Bytes in use on a device.
pub fn memory_in_use(ordinal: usize) -> u64 {
    state()
        .as_ref()
        .and_then(|state| state.devices.get(ordinal))
        .map_or(0, |device| device.engine.memory().in_use)
}

/// Ends a context: completes its queued work, then drops its objects and frees its memory.
fn end(context: &Arc<Context>) {
    // A failure is ignored: work that can no longer run need not complete.
    let _as_far_as_possible = context.wait_for_all();
    let objects = handle::remove_of_context(context.handle);
    context.free_everything();
    context.device.ledger().settle();
    drop(objects);
    let ended = {
        let mut state = state();
        let Some(state) = state.as_mut() else { return };
        if !state.has_contexts() { std::mem::take(&mut state.devices) } else { Vec::new() }
    };
    // The following may drop the last handles of the engines, so no lock may be held.
    ended.iter().for_each(|device| device.forget_pools());
    drop(ended);
}

impl State {
    fn has_contexts(&self) -> bool {
        !self.other_contexts.is_empty() || self.slots.iter().any(|slot| slot.context.is_some())
    }

    /// Creates all devices at once, so that seeded devices share one simulation.
    fn start(&mut self) {
        let count = settings().devices as usize;
        self.slots.resize(count, Slot::default());
        if self.devices.is_empty() {
            interface().before_devices();
            self.devices = (0..count).map(|ordinal| Arc::new(Device::new(ordinal))).collect();
            self.logs.extend(
                self.devices.iter().filter_map(|device| device.engine.log()).map(|log| (log, 0)),
            );
        }
    }
}

impl Device {
    fn new(ordinal: usize) -> Self {
        let settings = settings();
        let mut emulation = Emulation::new()
            .memory(settings.memory_bytes)
            .page_bytes(settings.page_bytes)
            .poison(settings.poisons);
        if settings.is_seeded {
            emulation = emulation.seed(settings.seed);
        }
        let default_pool = Pool::new(ordinal);
        let ledger = Ledger::new(settings.memory_bytes, default_pool.handle);
        let engine = EmbeddedDevice::emulated(emulation);
        Self {
            ordinal,
            engine,
            ledger: Mutex::new(ledger),
            current_pool: Mutex::new(Arc::clone(&default_pool)),
            default_pool,
            unmapping: OnceLock::new(),
        }
    }

    /// Calls the engine on the stream on which memory is unmapped, and waits until that is done.
    pub fn unmap(
        &self,
        call: impl FnOnce(&dyn RawStream) -> Result<Position, BackendError>,
    ) -> Outcome {
        let failed = |error| work::code_of_error(&error);
        let new = || self.engine.new_stream(None).map_err(failed);
        let stream = match self.unmapping.get() {
            Some(stream) => stream,
            None => {
                let stream = new()?;
                self.unmapping.get_or_init(|| stream)
            }
        };
        let position = call(&**stream).map_err(failed)?;
        stream.synchronize_to(position).map_err(failed)
    }

    /// The accounting of the device's memory.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pool that stream-ordered allocations use.
    pub fn current_pool(&self) -> Arc<Pool> {
        Arc::clone(&self.current_pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the pool that stream-ordered allocations use.
    pub fn set_current_pool(&self, pool: Arc<Pool>) {
        *self.current_pool.lock().unwrap_or_else(PoisonError::into_inner) = pool;
    }

    fn forget_pools(&self) {
        let handles = self.ledger().handles();
        for pool_or_memory in handles {
            handle::remove(pool_or_memory);
        }
    }
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
