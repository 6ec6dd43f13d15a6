//! Streams: in-order queues of work, and who has waited for whom.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::event::Event;
use super::fault::is_untold;
use super::{Device, call_error, late_error};
use crate::backend::{BackendError, FailureKind, Position, Queue, QueueId, RawEvent, failure};
use crate::error::Result;
use crate::ordering::UseEnd;
use crate::sync::{self, Mutex, StreamLevel};

/// A stream's number, unique in the process.
pub(crate) type StreamId = QueueId;

/// Recorded events that are kept for later waits. Losing an old one only makes a later wait cover
/// more.
const EVENTS_KEPT: usize = 32;

/// A stream: work that runs in the order in which it was queued. Cheap to clone; equal if it is the
/// same stream.
///
/// Order between uses of the same bytes is kept whatever streams they are on; streams are there to
/// let independent work overlap.
///
/// ```
/// use resident::{Device, Grid, In, Kernel, Out, SmartArray, ndarray::Ix1};
///
/// let shift = Kernel::<(f32, In<f32, Ix1>, Out<f32, Ix1>)>::new("shift").host(|_grid, (by, x, mut y)| y.assign(&x.mapv(|x| x + by)));
/// let device = Device::cpu();
/// let (left, right) = (device.new_stream()?, device.new_stream()?);
/// let source = SmartArray::<f32, _>::zeros(100);
/// let [mut a, mut b, mut c] = [(); 3].map(|()| SmartArray::<f32, _>::uninit(100));
/// let grid = Grid::cover(100);
/// shift.launch_on(&left, grid, (1.0, &source, &mut a))?;
/// shift.launch_on(&right, grid, (2.0, &source, &mut b))?;               // may run at the same time
/// shift.launch_on(&right, grid, (4.0, &a, &mut c))?;                    // comes behind the first, which writes `a`
/// assert_eq!((b.host()?[0], c.host()?[0]), (2.0, 5.0));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// The stream lives as long as a handle or queued work.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    /// `None` for the device's default stream, whose core the device holds.
    own: Option<Arc<StreamCore>>,
}

/// What a stream is without its device; the device holds its default one.
pub(crate) struct StreamCore {
    /// The queue's number, at hand.
    id: StreamId,
    queue: Arc<dyn Queue>,
    number: u32,
    log: Mutex<StreamLog, StreamLevel>,
}

/// Events recorded here, waits done here, failures told.
#[derive(Default)]
struct StreamLog {
    recorded: VecDeque<Arc<dyn RawEvent>>,
    /// Other streams, and up to where this stream's later work is ordered behind them.
    waited: SmallVec<[(StreamId, Position); 4]>,
    /// Failures up to here were returned by a `synchronize`.
    told_upto: Position,
    /// Failures above that which another call returned already.
    told: SmallVec<[Position; 2]>,
}

impl Stream {
    pub(super) fn of(device: Device, own: Option<Arc<StreamCore>>) -> Self {
        Self { device, own }
    }

    /// The device that it is of.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device.clone()
    }

    /// Waits for everything queued here so far, as `cuStreamSynchronize` does.
    ///
    /// # Errors
    ///
    /// The first failure of that work which no earlier call returned:
    /// [`Error::Backend`](crate::Error::Backend), for a kernel body that panicked as for a copy
    /// that the driver gave up, or [`Error::DeviceLost`](crate::Error::DeviceLost);
    /// [`Error::Backend`](crate::Error::Backend) if the driver cannot wait;
    /// [`Error::InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a kernel
    /// body. [`Device::synchronize`] shows one.
    pub fn synchronize(&self) -> Result<()> {
        self.core().synchronize(&self.device)
    }

    /// Whether everything queued here so far has completed, well or not: `cuStreamQuery`. Waits for
    /// nothing. On a seeded device each call runs one piece of ready work, so that a loop that asks
    /// comes to an end.
    ///
    /// ```
    /// # fn main() -> resident::Result<()> {
    /// let stream = resident::Device::cpu().new_stream()?;
    /// assert!(stream.is_idle()?);                                           // nothing was queued yet
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver does not answer;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    pub fn is_idle(&self) -> Result<bool> {
        let queue = self.core().queue();
        queue.poll(queue.reserve_position()).map_err(|refusal| {
            call_error(&self.device, "this", "asking whether a stream is idle", &refusal)
        })
    }

    /// Records an event behind everything queued here so far: `cuEventRecord`. It carries a time
    /// stamp. [`Event`] shows how two of them time what is between.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver records none;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    pub fn record(&self) -> Result<Event> {
        let raw =
            self.core().queue().record(true).map_err(|refusal| {
                call_error(&self.device, "this", "recording an event", &refusal)
            })?;
        self.core().log.lock().keep(Arc::clone(&raw));
        Ok(Event::new(raw, self.clone()))
    }

    /// Lets work queued here from now on start after `event`, as `cuStreamWaitEvent` does. The host
    /// waits for nothing, unless the event is of another kind of device: no driver waits for
    /// another's events, so then the host waits for it here.
    ///
    /// Arrays need no such call. It is for work that the library does not know of: what it queues
    /// on one stream comes after what was queued on the other.
    ///
    /// ```
    /// # fn main() -> resident::Result<()> {
    /// let device = resident::Device::cpu();
    /// let (producer, consumer) = (device.new_stream()?, device.new_stream()?);
    /// // ... foreign work is queued on `producer` ...
    /// consumer.wait(&producer.record()?)?;
    /// // ... what is queued on `consumer` from here on comes after it ...
    /// consumer.synchronize()?;
    /// assert!(producer.is_idle()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver refuses;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if a device died that is concerned;
    /// [`Error::InsideKernel`](crate::Error::InsideKernel) if the host would have to wait inside a
    /// kernel body.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.wait_raw(event.stream(), event.raw())
            .map_err(|refusal| call_error(&self.device, "this", "waiting for an event", &refusal))
    }

    /// Synchronises this stream when the guard drops, also while unwinding; Numba's
    /// `stream.auto_synchronize()` does so at a normal exit alone. A failure found there stays for
    /// the next `synchronize`; inside a kernel body nothing is waited for.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// # fn main() -> resident::Result<()> {
    /// let double = Kernel::<(InOut<f32>,)>::new("double").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let stream = Device::cpu().new_stream()?;
    /// let mut array = SmartArray::<f32, _>::ones(100);
    /// {
    ///     let _over_at_the_end = stream.auto_synchronize();
    ///     double.launch_on(&stream, Grid::cover(100), (&mut array,))?;
    /// }
    /// assert!(stream.is_idle()?);
    /// # Ok(()) }
    /// ```
    pub fn auto_synchronize(&self) -> AutoSynchronize<'_> {
        AutoSynchronize { stream: self }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<StreamCore> {
        self.own.as_ref().unwrap_or_else(|| self.device.default_core())
    }

    #[inline]
    pub(crate) fn id(&self) -> StreamId {
        self.core().id()
    }

    #[inline]
    pub(crate) fn queue(&self) -> &dyn Queue {
        self.core().queue()
    }

    #[inline]
    pub(crate) fn device_ref(&self) -> &Device {
        &self.device
    }

    pub(crate) fn number(&self) -> u32 {
        self.core().number
    }

    /// Orders later work of this stream behind `at` of `other`. CopyCosts nothing where that is
    /// known already.
    pub(crate) fn order_after(&self, other: &Self, at: UseEnd) -> Result<(), BackendError> {
        if self.is_behind(other, at) {
            return Ok(());
        }
        let event = other.core().event_covering(at)?;
        self.wait_raw(other, &event)
    }

    /// Whether what is queued here next is known to come after `at` of `other`.
    pub(crate) fn is_behind(&self, other: &Self, at: UseEnd) -> bool {
        self.id() == other.id()
            || other.core().is_done(at)
            || self.core().has_waited(other.id(), at)
    }

    /// Takes an event now, so that a later wait for work queued so far covers nothing more. A
    /// failure is made good by the wait itself.
    pub(crate) fn record_in_time(&self) {
        let tail = self.queue().tail();
        if self.core().log.lock().recorded.back().is_some_and(|event| event.position() >= tail) {
            return;
        }
        if let Ok(event) = self.queue().record(false) {
            self.core().log.lock().keep(event);
        }
    }

    fn wait_raw(&self, other: &Self, event: &Arc<dyn RawEvent>) -> Result<(), BackendError> {
        if self.device.kind() == other.device.kind() {
            self.queue().wait(&**event)?;
        } else {
            // No driver waits for another family's events; the host does. What it waits for may be
            // user code, which may ask for any lock.
            sync::assert_none_held();
            event.synchronize()?;
        }
        self.core().log.lock().has_waited_for(other.id(), event.position());
        Ok(())
    }
}

impl StreamCore {
    pub(super) fn new(queue: Arc<dyn Queue>, number: u32) -> Self {
        Self { id: queue.id(), queue, number, log: Mutex::new(StreamLog::default()) }
    }

    #[inline]
    pub(crate) fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    #[inline]
    pub(crate) fn id(&self) -> StreamId {
        self.id
    }

    /// Whether that use is known to be over.
    #[inline]
    pub(crate) fn is_done(&self, at: UseEnd) -> bool {
        self.queue.completed() >= at.position().unwrap_or_else(|| self.queue.reserve_position())
    }

    /// Blocks until that use is over.
    pub(crate) fn wait_until_done(&self, at: UseEnd) -> Result<(), BackendError> {
        sync::assert_none_held();
        self.queue.synchronize_to(at.position().unwrap_or_else(|| self.queue.reserve_position()))
    }

    fn has_waited(&self, other: StreamId, at: UseEnd) -> bool {
        let Some(position) = at.position() else { return false };
        self.log.lock().waited.iter().any(|(stream, upto)| *stream == other && *upto >= position)
    }

    /// The earliest event known to cover `at`, or one taken now: later than need be, but right.
    fn event_covering(&self, at: UseEnd) -> Result<Arc<dyn RawEvent>, BackendError> {
        if let Some(position) = at.position() {
            let log = self.log.lock();
            if let Some(event) = log.recorded.iter().find(|event| event.position() >= position) {
                return Ok(Arc::clone(event));
            }
        }
        let event = self.queue.record(false)?;
        self.log.lock().keep(Arc::clone(&event));
        Ok(event)
    }

    pub(super) fn synchronize(&self, device: &Device) -> Result<()> {
        self.synchronize_to(device, self.queue.reserve_position())
    }

    /// Waits, then returns the first failure up to `position` that nobody was told of.
    pub(super) fn synchronize_to(&self, device: &Device, position: Position) -> Result<()> {
        sync::assert_none_held();
        self.queue
            .synchronize_to(position)
            .map_err(|refusal| call_error(device, "this", "synchronising", &refusal))?;
        let mut log = self.log.lock();
        while let Some((failed, record)) =
            failure::first_between(self.id(), log.told_upto, position)
        {
            log.told_upto = failed;
            if !record.inherited && !is_untold(&record) && !log.told.contains(&failed) {
                return Err(late_error(device, &record));
            }
        }
        Ok(())
    }

    /// Failures up to `position` that are a device's death were told already.
    pub(super) fn tell_death(&self, position: Position) {
        let mut log = self.log.lock();
        while let Some((failed, record)) =
            failure::first_between(self.id(), log.told_upto, position)
            && record.kind == FailureKind::Device
        {
            log.told_upto = failed;
        }
    }

    /// Everything queued is complete, and every failure of it was told.
    pub(super) fn is_settled(&self) -> bool {
        let tail = self.queue.tail();
        if self.queue.completed() < tail {
            return false;
        }
        let log = self.log.lock();
        let mut after = log.told_upto;
        while let Some((position, record)) = failure::first_between(self.id(), after, tail) {
            if !record.inherited && !is_untold(&record) && !log.told.contains(&position) {
                return false;
            }
            after = position;
        }
        true
    }

    /// A failure that some other call has just returned is not returned again by `synchronize`.
    pub(crate) fn tell(&self, position: Position) {
        let mut log = self.log.lock();
        if position > log.told_upto && !log.told.contains(&position) {
            log.told.push(position);
        }
    }
}

impl StreamLog {
    fn keep(&mut self, event: Arc<dyn RawEvent>) {
        if self.recorded.len() == EVENTS_KEPT {
            self.recorded.pop_front();
        }
        // Events of one queue come here in order but for races between threads, which the search
        // tolerates.
        self.recorded.push_back(event);
    }

    fn has_waited_for(&mut self, other: StreamId, position: Position) {
        match self.waited.iter_mut().find(|(stream, _)| *stream == other) {
            Some((_, upto)) => *upto = (*upto).max(position),
            None => self.waited.push((other, position)),
        }
    }
}

/// Synchronises its stream when it is dropped: see [`Stream::auto_synchronize`].
#[derive(Debug)]
#[must_use = "the stream is synchronised when this guard drops"]
pub struct AutoSynchronize<'a> {
    stream: &'a Stream,
}

impl Drop for AutoSynchronize<'_> {
    fn drop(&mut self) {
        let queue = self.stream.queue();
        // Inside a kernel body nothing can be waited for; the failure of work is told by the next
        // `synchronize`.
        let _ = queue.synchronize_to(queue.reserve_position());
    }
}

impl PartialEq for Stream {
    /// By identity alone: nothing is looked up, since marks are compared with streams at every
    /// launch.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let own = |stream: &Self| stream.own.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        self.device == other.device && own(self) == own(other)
    }
}

impl Eq for Stream {}

impl PartialEq<&Self> for Stream {
    fn eq(&self, other: &&Self) -> bool {
        self == *other
    }
}

impl PartialEq<Stream> for &Stream {
    fn eq(&self, other: &Stream) -> bool {
        *self == other
    }
}

impl Hash for Stream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({} stream {})", self.device, self.number())
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stream {}", self.device, self.number())
    }
}
