//! Devices, their streams and events: handles over a backend, and the bookkeeping that keeps their
//! order cheap.

mod current;
mod deferred_free;
mod event;
mod fault;
mod gpu;
mod stream;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::audit::{Flow, SharedTraffic, Traffic};
#[cfg(feature = "cuda")]
use crate::backend::Queue;
use crate::backend::embedded::{EmbeddedDevice, Emulation, EmulationLog};
use crate::backend::{Backend, BackendError, Capacity, DeviceKind, MemoryUsage, Position};
use crate::error::{Error, Result};
use crate::sync::{self, DeviceLevel, Mutex};

pub use current::Entered;
pub use event::Event;
pub(crate) use fault::{FILL, POISON, call_error, late_error};
pub(crate) use stream::StreamCore;
pub use stream::{AutoSynchronize, Stream};

/// A device: memory of its own and streams of work. Cheap to clone; equal if it is the same device.
///
/// Arrays and launches that are told no stream use the *current* device of their thread: see
/// [`Device::current`] and [`Device::enter`].
///
/// ```
/// use resident::Device;
///
/// let device = Device::cpu();
/// let _here = device.enter();
/// assert_eq!(Device::current()?, device);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone)]
pub struct Device(Arc<DeviceShared>);

/// Streams of other devices, and up to where they touch this one's memory.
type RemoteUses = SmallVec<[(Arc<StreamCore>, Position); 2]>;

pub(crate) struct DeviceShared {
    backend: Arc<dyn Backend>,
    name: Arc<str>,
    /// Unique in the process.
    number: u64,
    default: Arc<StreamCore>,
    /// Streams made by `new_stream`, for `synchronize`: also ones whose last handle is gone, with
    /// work in flight or a failure to tell.
    streams: Mutex<Vec<Arc<StreamCore>>, DeviceLevel>,
    stream_count: AtomicU32,
    /// Where streams of other devices last touched this device's memory.
    remote_uses: Mutex<RemoteUses, DeviceLevel>,
    deferred_frees: Mutex<Vec<deferred_free::DeferredFree>, DeviceLevel>,
    /// Where memory is freed that several streams use at its end; made when it is first needed.
    frees: OnceLock<Arc<StreamCore>>,
    frees_since_look: AtomicU32,
    traffic: SharedTraffic,
    /// With what stale copies are filled, at hand.
    poison: Option<u8>,
}

impl Device {
    /// The embedded device: memory and asynchronous streams of this process. Always there, and the
    /// same one at each call. Kernels run here by their [`host`](crate::Kernel::host) bodies, on
    /// threads of the library.
    #[must_use]
    pub fn cpu() -> Self {
        static CPU: OnceLock<Device> = OnceLock::new();
        CPU.get_or_init(|| {
            Self::over(EmbeddedDevice::cpu()).unwrap_or_else(|refusal| {
                unreachable!("the embedded device refused a queue: {refusal}")
            })
        })
        .clone()
    }

    /// A fresh embedded device for tests and what-if, numbered from `cpu:1` on: see [`Emulation`].
    /// It lives as long as its handles and what uses them.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let small = Device::emulated(Emulation::new().memory(1 << 10));
    /// let _here = small.enter();
    /// let array = SmartArray::<f64, _>::ones(1000);
    /// assert!(matches!(array.gpu(), Err(resident::Error::OutOfMemory { .. })));
    /// ```
    #[must_use]
    pub fn emulated(emulation: Emulation) -> Self {
        Self::over(EmbeddedDevice::emulated(emulation))
            .unwrap_or_else(|refusal| unreachable!("a fresh device refused a queue: {refusal}"))
    }

    /// Every device that can be used now: GPUs by number, the embedded one last. GPUs are opened by
    /// this, which takes the driver a moment each; those that cannot be opened are left out, and
    /// [`Device::cuda`] says why. Emulated devices belong to whoever made them and are not listed.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// let devices = Device::all();
    /// assert_eq!(devices.last(), Some(&Device::cpu()));
    /// for device in &devices {
    ///     println!("{device}: {}, {} bytes free", device.model(), device.capacity()?.free);
    /// }
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = gpu::all();
        all.push(Self::cpu());
        all
    }

    fn over(backend: Arc<dyn Backend>) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let queue = backend.default_queue().map_err(|refusal| {
            fault::backend_error(&backend.name(), "making its default stream", &refusal)
        })?;
        let shared = DeviceShared {
            default: Arc::new(StreamCore::new(queue, 0)),
            name: backend.name().into(),
            poison: backend.poison_byte(),
            backend,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            streams: Mutex::new(Vec::new()),
            stream_count: AtomicU32::new(1),
            remote_uses: Mutex::new(RemoteUses::new()),
            deferred_frees: Mutex::new(Vec::new()),
            frees: OnceLock::new(),
            frees_since_look: AtomicU32::new(0),
            traffic: SharedTraffic::default(),
        };
        Ok(Self(Arc::new(shared)))
    }

    /// Its family: which driver it is reached by, and so which bodies of a kernel it runs.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.backend.kind()
    }

    /// Its number within its family, from 0 on: for GPUs as the driver counts.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.0.backend.ordinal()
    }

    /// Its name: family and number, as reports and errors show it.
    ///
    /// ```
    /// use resident::{Device, DeviceKind};
    ///
    /// let device = Device::cpu();
    /// assert_eq!((device.kind(), device.ordinal(), device.name().as_str()), (DeviceKind::Cpu, 0, "cpu:0"));
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name.to_string()
    }

    /// Its name, for records: nothing is copied.
    pub(crate) fn name_shared(&self) -> Arc<str> {
        Arc::clone(&self.0.name)
    }

    /// Its default stream: the library's own, tied to no legacy default stream of CUDA's. `gpu()`,
    /// `launch` and whatever else is told no stream work there.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::of(self.clone(), None)
    }

    /// Makes another stream. Order between streams is kept wherever they use the same bytes, and
    /// nowhere else: [`Stream`] shows it. A GPU's streams are non-blocking, as by `cuStreamCreate`
    /// with `CU_STREAM_NON_BLOCKING`: the legacy default stream holds none of them up.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if the driver makes no stream; [`Error::DeviceLost`] if the device died.
    pub fn new_stream(&self) -> Result<Stream> {
        self.0.backend.reap();
        let core = self
            .new_core()
            .map_err(|refusal| call_error(self, "this", "making a stream", &refusal))?;
        self.forget_unused_streams();
        self.0.streams.lock().push(Arc::clone(&core));
        Ok(Stream::of(self.clone(), Some(core)))
    }

    fn new_core(&self) -> Result<Arc<StreamCore>, BackendError> {
        let queue = self.0.backend.new_queue()?;
        Ok(Arc::new(StreamCore::new(queue, self.0.stream_count.fetch_add(1, Ordering::Relaxed))))
    }

    /// The stream of this device that `is_it` knows, if one is alive; else one over the queue that
    /// `make` gives. One look and one entry: a stream of others that is adopted twice is one
    /// stream.
    #[cfg(feature = "cuda")]
    pub(crate) fn stream_where(
        &self,
        is_it: impl Fn(&dyn Queue) -> bool,
        make: impl FnOnce() -> Arc<dyn Queue>,
    ) -> Stream {
        if is_it(self.0.default.queue()) {
            return self.stream();
        }
        self.forget_unused_streams();
        let mut streams = self.0.streams.lock();
        let known = streams.iter().find(|stream| is_it(stream.queue())).cloned();
        let core = known.unwrap_or_else(|| {
            let core = Arc::new(StreamCore::new(
                make(),
                self.0.stream_count.fetch_add(1, Ordering::Relaxed),
            ));
            streams.push(Arc::clone(&core));
            core
        });
        Stream::of(self.clone(), Some(core))
    }

    /// Waits for all work that touches this device's memory, on whatever stream and of whatever
    /// device it is queued. Reading an array needs no such call:
    /// [`SmartArray::host`](crate::SmartArray::host) waits for what it reads. This one is for
    /// timing, and for being told of failures.
    ///
    /// ```
    /// use resident::{Device, Emulation, Error, Grid, InOut, Kernel, SmartArray};
    ///
    /// let broken = Kernel::<(InOut<f32>,)>::new("broken").host(|_grid, _| panic!("no such pixel"));
    /// let device = Device::emulated(Emulation::new());
    /// let mut array = SmartArray::<f32, _>::zeros(10);
    /// broken.launch_on(&device.stream(), Grid::cover(10), (&mut array,))?;  // is queued: no error yet
    /// let failure = device.synchronize().unwrap_err();
    /// assert!(failure.to_string().contains("no such pixel"));
    /// device.synchronize()?;                                                // told once
    /// assert!(matches!(array.host(), Err(Error::Lost { .. })));             // a read of what is lost, each time
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first failure of that work which no earlier call returned: [`Error::Backend`], for a
    /// kernel body that panicked as for a copy that the driver gave up, or [`Error::DeviceLost`];
    /// [`Error::Backend`] if the driver cannot wait; [`Error::InsideKernel`] if it would have to
    /// wait inside a kernel body.
    pub fn synchronize(&self) -> Result<()> {
        self.run_deferred_frees();
        // All of it is waited for before anything is told: a call tells one failure, and leaves the
        // others to the next.
        let mut all: Vec<(Arc<StreamCore>, Position)> =
            vec![(Arc::clone(&self.0.default), self.0.default.queue().reserve_position())];
        all.extend(
            self.0
                .frees
                .get()
                .map(|stream| (Arc::clone(stream), stream.queue().reserve_position())),
        );
        all.extend(
            self.0
                .streams
                .lock()
                .iter()
                .map(|stream| (Arc::clone(stream), stream.queue().reserve_position())),
        );
        all.extend(self.0.remote_uses.lock().iter().cloned());
        for (stream, position) in &all {
            let waited = stream.queue().synchronize_to(*position);
            waited.map_err(|refusal| call_error(self, "this", "synchronising", &refusal))?;
        }
        let told =
            all.iter().try_for_each(|(stream, position)| stream.synchronize_to(self, *position));
        if matches!(told, Err(Error::DeviceLost { .. })) {
            // The device died under all of its streams at once: that is one failure.
            all.iter().for_each(|(stream, position)| stream.tell_death(*position));
        }
        told?;
        drop(all);
        self.forget_unused_streams();
        self.forget_past_visits();
        sync::run_deferred_drops();
        Ok(())
    }

    /// What has been moved to and from this device since it was opened, for all arrays. A copy
    /// between two devices counts on both; `avoided` are the launches on this one. Moves nothing.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// let (one, two) = (SmartArray::from(vec![0_u8; 100]), SmartArray::from(vec![0_u8; 200]));
    /// drop(one.gpu_on(&device.stream())?);
    /// drop(two.gpu_on(&device.stream())?);
    /// assert_eq!((device.traffic().to_device.count, device.traffic().to_device.bytes), (2, 300));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.traffic.get()
    }

    /// What this library holds there, in bytes: of live arrays, and what is kept or not yet free
    /// behind them.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// let array = SmartArray::<f32, _>::zeros(1000);
    /// drop(array.gpu_on(&device.stream())?);
    /// assert_eq!(device.memory().in_use, 4000);
    /// drop(array);                                                          // waits for nothing
    /// device.synchronize()?;
    /// assert_eq!(device.memory().in_use, 0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> MemoryUsage {
        self.run_deferred_frees();
        self.0.backend.memory()
    }

    /// What the driver reports, in bytes: for a GPU `cuMemGetInfo`, for the embedded device the
    /// machine's memory or the limit that it was given.
    ///
    /// ```
    /// use resident::{Device, Emulation};
    ///
    /// let device = Device::emulated(Emulation::new().memory(1 << 20));
    /// assert_eq!((device.capacity()?.total, device.capacity()?.free), (1 << 20, 1 << 20));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if the driver does not answer, or the system does not tell its memory;
    /// [`Error::DeviceLost`] if the device died.
    pub fn capacity(&self) -> Result<Capacity> {
        self.0
            .backend
            .capacity()
            .map_err(|refusal| call_error(self, "this", "asking for its memory", &refusal))
    }

    /// What the device calls itself, as in `NVIDIA H200`.
    ///
    /// ```
    /// assert_eq!(resident::Device::cpu().model(), "embedded device");
    /// ```
    #[must_use]
    pub fn model(&self) -> String {
        self.0.backend.model()
    }

    /// Bounds what this library holds on the device: an allocation that would bring the bytes in
    /// use above `len_bytes` is [`Error::OutOfMemory`] from now on. What is in use stays. Useful
    /// where a GPU is shared.
    ///
    /// ```
    /// use resident::{Device, Emulation, Error, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// device.set_memory_limit(1 << 10);
    /// let array = SmartArray::<f64, _>::ones(1000);
    /// assert!(matches!(array.gpu_on(&device.stream()), Err(Error::OutOfMemory { .. })));
    /// ```
    pub fn set_memory_limit(&self, len_bytes: u64) {
        self.0.backend.set_memory_limit(len_bytes);
    }

    /// Gives memory that is kept for reuse back to the system, of the device and page-locked memory
    /// of the host, once queued frees have run: it waits for them. Live arrays stay where they are.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// drop(SmartArray::<f32, _>::zeros(1000).gpu_on(&device.stream())?);    // dropped at once
    /// device.trim()?;
    /// assert_eq!((device.memory().in_use, device.memory().pooled), (0, 0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InsideKernel`] if it would have to wait inside a kernel body; [`Error::Backend`] if
    /// the driver refuses; [`Error::DeviceLost`] if the device died.
    pub fn trim(&self) -> Result<()> {
        self.run_deferred_frees();
        self.0
            .backend
            .trim()
            .map_err(|refusal| call_error(self, "this", "giving memory back", &refusal))
    }

    /// What was called on an emulated device, and what was unordered. `None` for every other
    /// device, the plain embedded one too.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray, emulation::CallKind};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// drop(SmartArray::from(vec![1.0_f32; 8]).gpu_on(&device.stream())?);
    /// let log = device.emulation().expect("this device is emulated");
    /// assert!(log.calls().iter().any(|call| call.kind == CallKind::Upload));
    /// assert!(Device::cpu().emulation().is_none());
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn emulation(&self) -> Option<EmulationLog> {
        self.0.backend.downcast_ref::<EmbeddedDevice>()?.log()
    }

    /// Unique in the process, and never used again.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    /// The byte pattern for stale copies, if this device wants that.
    #[inline]
    pub(crate) fn poison(&self) -> Option<u8> {
        self.0.poison
    }

    #[inline]
    pub(crate) fn default_core(&self) -> &Arc<StreamCore> {
        &self.0.default
    }

    pub(crate) fn count(&self, traffic: &Traffic) {
        self.0.traffic.add(traffic);
    }

    /// Counts what launches did not have to move.
    #[inline]
    pub(crate) fn count_avoided(&self, flow: Flow) {
        self.0.traffic.add_avoided(flow);
    }

    /// Streams that nobody has any more and nobody will want to know of. The last handle of one
    /// drops what is queued there: not under the lock.
    fn forget_unused_streams(&self) {
        let mut streams = self.0.streams.lock();
        let (kept, unused): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *streams).into_iter().partition(is_in_use);
        *streams = kept;
        if !unused.is_empty() {
            sync::defer_drop(unused);
        }
    }

    fn forget_past_visits(&self) {
        let is_over =
            |(visitor, upto): &(Arc<StreamCore>, Position)| visitor.queue().completed() >= *upto;
        let mut remote_uses = self.0.remote_uses.lock();
        if remote_uses.iter().any(is_over) {
            let (past, pending): (RemoteUses, RemoteUses) =
                std::mem::take(&mut *remote_uses).into_iter().partition(is_over);
            *remote_uses = pending;
            sync::defer_drop(past);
        }
    }

    /// Remembers that a stream of another device touches this device's memory up to `position`.
    pub(crate) fn visited_by(&self, stream: &Arc<StreamCore>, position: Position) {
        self.forget_past_visits();
        let mut remote_uses = self.0.remote_uses.lock();
        match remote_uses.iter_mut().find(|(visitor, _)| visitor.id() == stream.id()) {
            Some((_, upto)) => *upto = (*upto).max(position),
            None => remote_uses.push((Arc::clone(stream), position)),
        }
    }
}

/// Somebody has a handle, or a `synchronize` will want to know of it.
fn is_in_use(stream: &Arc<StreamCore>) -> bool {
    Arc::strong_count(stream) > 1 || !stream.is_settled()
}

impl PartialEq for Device {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Device {}

impl PartialEq<&Self> for Device {
    fn eq(&self, other: &&Self) -> bool {
        self == *other
    }
}

impl PartialEq<Device> for &Device {
    fn eq(&self, other: &Device) -> bool {
        *self == other
    }
}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Error {
    pub(crate) fn no_device(wanted: impl Into<Box<str>>, reason: impl Into<Box<str>>) -> Self {
        Self::NoDevice {
            wanted: crate::error::Text::new(wanted),
            reason: crate::error::Text::new(reason),
        }
    }
}
