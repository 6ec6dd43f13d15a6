//! Streams: in-order queues of work.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::done::Done;
use super::event::Event;
use super::handles::{Device, Stream};
use super::host_function::HostFunction;
use super::stream_core::{StreamCore, StreamId};
use super::{call_error, late_error};
use crate::error::{AtCall, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::timeline::WaitReason;
use resident_backend::{BackendError, EventTiming, Position, RawStream};

impl Stream {
    pub(super) fn of(device: Device, core: Arc<StreamCore>) -> Self {
        Self { device, core }
    }

    /// The stream's device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device.clone()
    }

    /// Waits for all work queued here so far, as `cuStreamSynchronize` does. Functions of the host
    /// are no such work, since they may call this method themselves: wait for one by
    /// [`HostFunction::wait`].
    ///
    /// # Errors
    ///
    /// The first failure of that work that no earlier call returned:
    /// [`Error::Backend`](crate::Error::Backend), for a panic in a kernel body as well as for a
    /// copy that the driver could not complete, or [`Error::DeviceLost`](crate::Error::DeviceLost).
    /// Otherwise [`Error::Backend`](crate::Error::Backend) if the driver's wait fails;
    /// [`Error::InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
    /// kernel body. [`Device::synchronize`] has an example.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let (position, site) = (self.raw().reserve_position(), call_site());
        self.device.synchronize_to(self.core(), position, site).at(site)
    }

    /// A future of all work queued here so far: `synchronize` for a task, as Numba's
    /// `stream.async_done()`. It is woken when that work is complete, however much is queued behind
    /// it. The task may belong to any executor, and to several kinds of devices at once.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, Result, SmartArray, Stream};
    ///
    /// async fn doubled(stream: &Stream, array: &mut SmartArray<f32, resident::ndarray::Ix1>)
    /// -> Result<()> {
    ///     let double = Kernel::<(InOut<f32>,)>::new("double")
    ///         .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    ///     double.launch_on(stream, Grid::cover(array.len()), (array,))?;
    ///     stream.done().await                       // other tasks of this thread run meanwhile
    /// }
    /// # let stream = Device::cpu().new_stream()?;
    /// # let mut array = SmartArray::<f32, _>::ones(100);
    /// # let mut task = std::pin::pin!(doubled(&stream, &mut array));
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let outcome = loop {
    /// #     match task.as_mut().poll(&mut context) {
    /// #         std::task::Poll::Ready(outcome) => break outcome,
    /// #         std::task::Poll::Pending => std::thread::yield_now(),
    /// #     }
    /// # };
    /// # use std::future::Future as _;
    /// # outcome?;
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The future yields what [`synchronize`](Self::synchronize) returns for that work; failures
    /// that it yields are not returned again. The call itself never fails.
    #[track_caller]
    pub fn done(&self) -> Done {
        Done::of(self.clone(), call_site())
    }

    /// Runs a function of the host once all work queued here so far is over, whether it failed or
    /// not: CUDA's `cuLaunchHostFunc`, Numba's `stream.add_callback`. Does not wait. The functions
    /// of a stream run one after the other, in the order of these calls, on a thread of the
    /// library.
    ///
    /// Unlike CUDA's, the function may call everything, this library and the driver included,
    /// because no work waits for it: neither later work of the stream nor
    /// [`synchronize`](Self::synchronize). What must come after it is queued by the function
    /// itself, or after [`HostFunction::wait`]. It runs even if the returned handle is dropped, but
    /// not if the program ends first.
    ///
    /// On a seeded device it runs once a thread that waits for something, such as the returned
    /// handle, has run the work before it. What the function itself queues is reproducible only if
    /// the program waits for the function meanwhile.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// let double = Kernel::<(InOut<f32>,)>::new("double")
    ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let stream = Device::cpu().new_stream()?;
    /// let mut array = SmartArray::<f32, _>::ones(100);
    /// double.launch_on(&stream, Grid::cover(100), (&mut array,))?;
    /// let sum = stream.launch_host_function(move || array.host().map(|view| view.sum()))?;
    /// assert_eq!(sum.wait()??, 200.0);             // the function's result is a `Result` itself
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Libraries on the CPU
    ///
    /// On [`Device::cpu`](crate::Device::cpu) the address of a guard is a pointer, so the function
    /// may pass it to other code, such as a library in C. Keep the guard until the function is
    /// over, since no work waits for the function:
    ///
    /// ```
    /// use resident::{Device, SmartArray};
    ///
    /// unsafe extern "C" fn scale(values: *mut f32, len: usize, factor: f32) {
    ///     // ... a function of a library in C ...
    /// #   for index in 0..len {
    /// #       // SAFETY: the caller promises that there are `len` values, which nothing else uses.
    /// #       unsafe { *values.add(index) *= factor };
    /// #   }
    /// }
    ///
    /// let stream = Device::cpu().new_stream()?;
    /// let mut array = SmartArray::from(vec![1.5_f32; 100]);
    /// let guard = array.gpu_mut_on(&stream)?;                          // uploads the elements
    /// let (address, len) = (guard.address(), guard.len());
    /// let function = stream.launch_host_function(move || {
    ///     // SAFETY: the upload is over, and the guard lives until this function is over.
    ///     unsafe { scale(address as *mut f32, len, 2.0) }
    /// })?;
    /// function.wait()?;
    /// drop(guard);
    /// assert_eq!(array.host()?.sum(), 300.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the system refuses a thread; the function is
    /// then dropped.
    #[track_caller]
    pub fn launch_host_function<R, F>(&self, function: F) -> Result<HostFunction<R>>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        let site = call_site();
        HostFunction::launch(self, function, site).at(site)
    }

    /// The first failure up to `position`, all complete, that no call has returned.
    pub(super) fn reported_upto(&self, position: Position) -> Result<()> {
        let failure = self.core().take_failure(position);
        failure.map_or(Ok(()), |record| Err(late_error(&self.device, &record)))
    }

    /// Whether all work queued here so far has completed or failed: `cuStreamQuery`, though
    /// functions of the host ([`launch_host_function`](Self::launch_host_function)) do not count:
    /// see [`HostFunction::is_complete`]. Does not wait.
    /// On a seeded device each call runs one ready operation, so that a polling loop ends.
    ///
    /// ```
    /// # fn main() -> resident::Result<()> {
    /// let stream = resident::Device::cpu().new_stream()?;
    /// assert!(stream.is_idle()?);  // nothing was queued yet
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the query fails;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn is_idle(&self) -> Result<bool> {
        let raw = self.core().raw();
        raw.poll(raw.reserve_position())
            .map_err(|error| call_error(&self.device, "this", "querying a stream", &error))
            .at(call_site())
    }

    /// Records an event after all work queued here so far: `cuEventRecord`, with timing enabled.
    /// [`Event`] shows how to measure the time between two events.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver refuses to record an event;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn record(&self) -> Result<Event> {
        let recorded = self.core().raw().record(EventTiming::Enabled);
        let raw = recorded
            .map_err(|error| call_error(&self.device, "this", "recording an event", &error))
            .at(call_site())?;
        self.core().keep_event(Arc::clone(&raw));
        Ok(Event::new(raw, self.clone()))
    }

    /// Makes work queued here from now on start after `event`, as `cuStreamWaitEvent` does. The
    /// host does not wait, unless the event belongs to another kind of device: no driver can wait
    /// for events of another driver, so in that case the host waits in this call.
    ///
    /// Uses of arrays need no such call: the library orders them. Use this call to order work that
    /// other code queues.
    ///
    /// ```
    /// # fn main() -> resident::Result<()> {
    /// let device = resident::Device::cpu();
    /// let (producer, consumer) = (device.new_stream()?, device.new_stream()?);
    /// // ... foreign work is queued on `producer` ...
    /// consumer.wait(&producer.record()?)?;
    /// // ... what is queued on `consumer` from here on runs after it ...
    /// consumer.synchronize()?;
    /// assert!(producer.is_idle()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver refuses;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if one of the devices died;
    /// [`Error::InsideKernel`](crate::Error::InsideKernel) if the host would have to wait inside a
    /// kernel body.
    #[track_caller]
    pub fn wait(&self, event: &Event) -> Result<()> {
        let site = call_site();
        self.wait_for_event(event.stream(), event.raw(), site)
            .map_err(|error| call_error(&self.device, "this", "waiting for an event", &error))
            .at(site)
    }

    /// Synchronises this stream when the returned guard drops, even while a panic unwinds (unlike
    /// Numba's `stream.auto_synchronize()`). The next `synchronize` reports failures. Inside a
    /// kernel body the guard does not wait.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// # fn main() -> resident::Result<()> {
    /// let double = Kernel::<(InOut<f32>,)>::new("double")
    ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let stream = Device::cpu().new_stream()?;
    /// let mut array = SmartArray::<f32, _>::ones(100);
    /// {
    ///     let _synchronized_at_the_end = stream.auto_synchronize();
    ///     double.launch_on(&stream, Grid::cover(100), (&mut array,))?;
    /// }
    /// assert!(stream.is_idle()?);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn auto_synchronize(&self) -> AutoSynchronize<'_> {
        AutoSynchronize { stream: self, site: call_site() }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<StreamCore> {
        &self.core
    }

    #[inline]
    pub(crate) fn id(&self) -> StreamId {
        self.core.id()
    }

    /// Blocks until the work up to `position` is complete. The caller holds no lock.
    pub(crate) fn wait_until(
        &self,
        position: Position,
        site: CallSite,
    ) -> std::result::Result<(), BackendError> {
        self.core().wait_until(&self.device.0.name, position, site, WaitReason::Contents)
    }

    #[inline]
    pub(crate) fn raw(&self) -> &dyn RawStream {
        self.core().raw()
    }

    #[inline]
    pub(crate) fn device_ref(&self) -> &Device {
        &self.device
    }

    pub(crate) fn number(&self) -> u32 {
        self.core().number()
    }
}

/// Synchronises its stream when it is dropped: see [`Stream::auto_synchronize`].
#[derive(Debug)]
#[must_use = "the stream is synchronised when this guard drops"]
pub struct AutoSynchronize<'a> {
    stream: &'a Stream,
    site: CallSite,
}

impl Drop for AutoSynchronize<'_> {
    fn drop(&mut self) {
        let (stream, site) = (self.stream, self.site);
        let (position, reason) = (stream.raw().reserve_position(), WaitReason::Synchronize);
        // This does not wait inside a kernel body. The next `synchronize` reports failures of work.
        let _ = stream.core().wait_until(&stream.device.0.name, position, site, reason);
    }
}

impl PartialEq for Stream {
    /// Compares pointers, since every launch compares streams.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
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
