//! The handles [`Device`] and [`Stream`], and the state that they share. The other files of this
//! module implement them.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::allocating::Allocations;
use super::stream_core::StreamCore;
use crate::memory_use::Place;
use crate::traffic::TrafficCounter;
use resident_backend::sync::{DeviceLevel, Mutex};
use resident_backend::{Address, Backend, DeviceProperties, FailureRecord, Position};
use resident_core::ordering::UseEnd;

/// A device: its own memory, and streams of work. Cheap to clone; two handles are equal if they
/// refer to the same device.
///
/// Calls that name no stream use the *current* device of their thread: see [`Device::current`],
/// [`Device::enter`] and [`Stream::enter`].
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
pub struct Device(pub(super) Arc<DeviceShared>);

pub(crate) struct DeviceShared {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) name: Arc<str>,
    /// Unique in the process.
    pub(super) number: u64,
    pub(super) default_stream: Arc<StreamCore>,
    /// The streams made by `new_stream`, for `synchronize`. A stream without handles stays here
    /// while it has work in flight.
    pub(super) streams: Mutex<StreamList, DeviceLevel>,
    pub(super) stream_count: AtomicU32,
    /// Uses of this device's memory by streams of other devices.
    pub(super) remote_uses: Mutex<RemoteUses, DeviceLevel>,
    pub(super) deferred_frees: Mutex<Vec<DeferredFree>, DeviceLevel>,
    /// The stream that frees memory whose last uses are on several streams, and that writes back
    /// what a full device evicts; made when first needed.
    pub(super) free_stream: OnceLock<Arc<StreamCore>>,
    pub(super) frees_since_reap: AtomicU32,
    pub(super) allocations: Allocations,
    /// See [`Device::is_scarce`].
    pub(super) is_scarce: AtomicBool,
    /// See [`Device::has_been_full`].
    pub(super) has_been_full: AtomicBool,
    /// The limit that the program has set.
    pub(super) memory_limit: Mutex<Option<u64>>,
    /// Of `transfer/memory/room.rs`: the arrays whose copies are evicted next.
    pub(super) eviction_queue: Mutex<Option<Box<dyn Any + Send>>>,
    pub(super) traffic: TrafficCounter,
    /// How many handles of this device and of its streams states of arrays have.
    pub(super) held_by_arrays: AtomicUsize,
    /// The memory of arrays.
    pub(super) memory: Arc<Place>,
    pub(super) properties: DeviceProperties,
}

// A panic leaves it usable: what a lock guards is changed as a whole. The suite `unwinding` of the
// sweeps panics in each place.
impl std::panic::RefUnwindSafe for DeviceShared {}

/// A stream of a device: a queue whose work runs in the order in which it was queued. Cheap to
/// clone; two handles are equal if they refer to the same stream.
///
/// Uses of the same bytes are ordered even if they are on different streams. Streams let
/// independent work overlap.
///
/// ```
/// use resident::{Device, Grid, In, Kernel, Out, SmartArray, ndarray::Ix1};
///
/// let shift = Kernel::<(f32, In<f32, Ix1>, Out<f32, Ix1>)>::new("shift")
///     .host(|_grid, (by, x, mut y)| y.assign(&x.mapv(|x| x + by)));
/// let device = Device::cpu();
/// let (left, right) = (device.new_stream()?, device.new_stream()?);
/// let source = SmartArray::<f32, _>::zeros(100);
/// let [mut a, mut b, mut c] = [(); 3].map(|()| SmartArray::<f32, _>::uninit(100));
/// let grid = Grid::cover(100);
/// shift.launch_on(&left, grid, (1.0, &source, &mut a))?;
/// shift.launch_on(&right, grid, (2.0, &source, &mut b))?; // may run at the same time
/// shift.launch_on(&right, grid, (4.0, &a, &mut c))?; // runs after the first, which writes `a`
/// assert_eq!((b.host()?[0], c.host()?[0]), (2.0, 5.0));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Who waits
///
/// | call | what waits, and until when |
/// |---|---|
/// | [`Stream::wait`] | later work of this stream, until the event; the caller does not |
/// | [`Stream::synchronize`], [`Device::synchronize`] | the caller, until the work queued so far is complete |
/// | [`Stream::done`] | a task that awaits it, likewise; the call returns at once |
/// | [`Stream::auto_synchronize`] | the caller, when the guard drops |
/// | [`Event::synchronize`](crate::Event::synchronize) | the caller, until the event |
/// | [`HostFunction::wait`](crate::HostFunction::wait) | the caller, until the function returned |
/// | [`Pending::wait`](crate::Pending::wait), `.await` | the caller, or a task, until the copy is complete |
/// | [`Stream::is_idle`], [`Event::is_complete`](crate::Event::is_complete), [`record`](Self::record) | no thread |
/// | launches, `_on` calls | later uses of the same bytes, on whatever stream; the caller only for what the call's own documentation says |
/// | [`SmartArray::host`](crate::SmartArray::host) and its kin | the caller, until what writes these bytes, and their copy, are complete |
///
/// The stream lives as long as it has a handle or queued work, and keeps its device open. So there
/// is no stream of a device that was dropped.
#[derive(Clone)]
pub struct Stream {
    pub(super) device: Device,
    pub(super) core: Arc<StreamCore>,
}

/// The streams of a device.
#[derive(Default)]
pub(super) struct StreamList {
    pub(super) list: Vec<Arc<StreamCore>>,
    /// With this many streams, unused ones are dropped before another is added.
    pub(super) sweep_at: usize,
    /// Failures on dropped streams that no call has returned, the oldest first.
    pub(super) unreported: VecDeque<Arc<FailureRecord>>,
}

/// Memory to free, and the uses that must complete first.
#[derive(Debug)]
pub(super) struct DeferredFree {
    pub(super) address: Address,
    pub(super) uses: Vec<(Stream, UseEnd)>,
}

/// Streams of other devices, and the positions up to which they use this device's memory.
pub(super) type RemoteUses = SmallVec<[(Arc<StreamCore>, Position); 2]>;
