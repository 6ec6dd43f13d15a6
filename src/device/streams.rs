//! The streams of a device: making them, finding them, and waiting for all of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handles::{Device, RemoteUses, Stream};
use super::{StreamCore, call_error, late_error};
use crate::error::{AtCall, Error, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::sync;
use resident_backend::timeline::WaitReason;
use resident_backend::{BackendError, FailureKind, FailureRecord, Position, RawStream};

/// A device with fewer streams than this is not searched for unused ones when another is made.
const SWEEP_AT_MIN: usize = 16;

/// Of the failures on dropped streams, a device keeps this many for later calls of `synchronize`.
pub(crate) const UNREPORTED_MAX: usize = 64;

impl Device {
    /// The device's default stream, which the library made; it is not CUDA's legacy default stream.
    /// `gpu()`, `launch` and other calls without a stream argument use it, unless this thread
    /// entered another stream ([`Stream::enter`]).
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::of(self.clone(), Arc::clone(self.default_core()))
    }

    #[inline]
    pub(crate) fn default_core(&self) -> &Arc<StreamCore> {
        &self.0.default_stream
    }

    /// Makes another stream. Uses of the same bytes are ordered across streams, and nothing else
    /// is: see [`Stream`]. A GPU's streams are non-blocking, as made by `cuStreamCreate` with
    /// `CU_STREAM_NON_BLOCKING`: they do not wait for the legacy default stream.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if the driver cannot create a stream; [`Error::DeviceLost`] if the device
    /// died.
    #[track_caller]
    pub fn new_stream(&self) -> Result<Stream> {
        self.stream_over(|| self.new_core()).at(call_site())
    }

    /// The stream over the core that `make` makes.
    pub(super) fn stream_over(
        &self,
        make: impl FnOnce() -> Result<Arc<StreamCore>, BackendError>,
    ) -> Result<Stream> {
        self.0.backend.reap();
        let core = make().map_err(|error| call_error(self, "this", "creating a stream", &error))?;
        self.keep_stream(&core);
        sync::run_deferred_drops();
        Ok(Stream::of(self.clone(), core))
    }

    /// Keeps a new stream for `synchronize`. Drops unused streams when the list has doubled, so
    /// that making a stream takes the same time however many there are.
    fn keep_stream(&self, core: &Arc<StreamCore>) {
        let is_due = {
            let streams = self.0.streams.lock();
            streams.list.len() >= streams.sweep_at
        };
        if is_due {
            self.drop_unused_streams();
        }
        self.0.streams.lock().list.push(Arc::clone(core));
    }

    pub(super) fn new_core(&self) -> Result<Arc<StreamCore>, BackendError> {
        self.0.backend.new_stream(None).map(|raw| self.core_over(raw))
    }

    pub(super) fn core_over(&self, raw: Arc<dyn RawStream>) -> Arc<StreamCore> {
        Arc::new(StreamCore::new(raw, self.next_stream_number()))
    }

    fn next_stream_number(&self) -> u32 {
        self.0.stream_count.fetch_add(1, Ordering::Relaxed)
    }

    /// The live stream of this device for which `is_it` returns true; if there is none, a new
    /// stream over the raw stream that `make` returns. The search and the addition are one atomic
    /// step, so that a cudarc stream that is adopted twice becomes one stream.
    #[cfg(feature = "cuda")]
    pub(crate) fn find_or_add_stream(
        &self,
        is_it: impl Fn(&dyn RawStream) -> bool,
        make: impl FnOnce() -> Arc<dyn RawStream>,
    ) -> Stream {
        if is_it(self.0.default_stream.raw()) {
            return self.stream();
        }
        self.drop_unused_streams();
        let mut streams = self.0.streams.lock();
        let known = streams.list.iter().find(|stream| is_it(stream.raw())).cloned();
        let core = known.unwrap_or_else(|| {
            let core = self.core_over(make());
            streams.list.push(Arc::clone(&core));
            core
        });
        Stream::of(self.clone(), core)
    }

    /// Waits for all work that uses this device's memory, including work on streams of other
    /// devices, but not for functions of the host ([`Stream::launch_host_function`]), which may
    /// call this method themselves. Reading an array needs no such call:
    /// [`SmartArray::host`](crate::SmartArray::host) waits for the work that it needs. Use this
    /// call for timing, and to get failures.
    ///
    /// ```
    /// use resident::{Device, Emulation, Error, Grid, InOut, Kernel, SmartArray};
    ///
    /// let broken =
    ///     Kernel::<(InOut<f32>,)>::new("broken").host(|_grid, _| panic!("no such pixel"));
    /// let device = Device::emulated(Emulation::new());
    /// let mut array = SmartArray::<f32, _>::zeros(10);
    /// // The launch is queued: no error yet.
    /// broken.launch_on(&device.stream(), Grid::cover(10), (&mut array,))?;
    /// let failure = device.synchronize().unwrap_err();
    /// assert!(failure.to_string().contains("no such pixel"));
    /// device.synchronize()?;                                     // reported once
    /// assert!(matches!(array.host(), Err(Error::Lost { .. })));  // each read of lost contents
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first failure of that work that no earlier call returned: [`Error::Backend`], for a
    /// panic in a kernel body as well as for a copy that the driver could not complete, or
    /// [`Error::DeviceLost`]. Otherwise [`Error::Backend`] if the driver's wait fails;
    /// [`Error::InsideKernel`] if the call would have to wait inside a kernel body.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let site = call_site();
        self.retry_deferred_frees();
        let pending = self.pending_positions();
        // All streams are waited for before a failure is reported, because each call reports one
        // failure and leaves the others to later calls.
        for (stream, position) in &pending {
            let waited = stream.wait_until(&self.0.name, *position, site, WaitReason::Synchronize);
            waited.map_err(|error| call_error(self, "this", "synchronising", &error)).at(site)?;
        }
        let of_dropped = self.0.streams.lock().unreported.pop_front();
        let reported = of_dropped.map_or(Ok(()), |record| Err(late_error(self, &record)));
        let reported = reported.and_then(|()| {
            pending.iter().try_for_each(|(stream, at)| self.synchronize_to(stream, *at, site))
        });
        if matches!(reported, Err(Error::DeviceLost { .. })) {
            // All streams of a lost device fail together, which counts as one failure.
            let is_other = |record: &Arc<FailureRecord>| record.kind != FailureKind::Device;
            self.0.streams.lock().unreported.retain(is_other);
            pending.iter().for_each(|(stream, position)| stream.skip_device_deaths(*position));
        }
        reported.at(site)?;
        drop(pending);
        self.drop_unused_streams();
        self.retire_remote_uses();
        sync::run_deferred_drops();
        Ok(())
    }

    /// Waits for all work queued on this device until now, and reports none of its failures.
    pub(crate) fn wait_for_all(&self, site: CallSite) -> Result<()> {
        for (stream, position) in &self.pending_positions() {
            let waited = stream.wait_until(&self.0.name, *position, site, WaitReason::Synchronize);
            waited.map_err(|error| call_error(self, "this", "waiting for a device", &error))?;
        }
        Ok(())
    }

    /// Waits for a stream, then returns its first unreported failure up to `position`.
    pub(super) fn synchronize_to(
        &self,
        stream: &StreamCore,
        position: Position,
        site: CallSite,
    ) -> Result<()> {
        let waited = stream.wait_until(&self.0.name, position, site, WaitReason::Synchronize);
        waited.map_err(|error| call_error(self, "this", "synchronising", &error))?;
        stream.take_failure(position).map_or(Ok(()), |record| Err(late_error(self, &record)))
    }

    /// All streams that use this device's memory, with the positions queued so far.
    fn pending_positions(&self) -> Vec<(Arc<StreamCore>, Position)> {
        let now = |stream: &Arc<StreamCore>| (Arc::clone(stream), stream.raw().reserve_position());
        let mut pending = vec![now(&self.0.default_stream)];
        pending.extend(self.0.free_stream.get().map(now));
        pending.extend(self.0.streams.lock().list.iter().map(now));
        pending.extend(self.0.remote_uses.lock().iter().cloned());
        pending
    }

    /// All streams of this device, dropped ones with work in flight included.
    pub(crate) fn all_streams(&self) -> Vec<Arc<StreamCore>> {
        let mut streams = vec![Arc::clone(&self.0.default_stream)];
        streams.extend(self.0.free_stream.get().cloned());
        streams.extend(self.0.streams.lock().list.iter().cloned());
        streams
    }

    /// Drops the streams that have no handle and no work in flight, and keeps their failures.
    /// Dropping the last reference is deferred until no lock is held, since it may drop any object.
    fn drop_unused_streams(&self) {
        let mut streams = self.0.streams.lock();
        let unused: Vec<_> = streams.list.extract_if(.., |stream| !is_in_use(stream)).collect();
        for stream in &unused {
            while let Some(record) = stream.take_failure(stream.raw().tail()) {
                if streams.unreported.len() < UNREPORTED_MAX {
                    streams.unreported.push_back(record);
                }
            }
        }
        streams.sweep_at = SWEEP_AT_MIN.max(2 * streams.list.len());
        if !unused.is_empty() {
            sync::defer_drop(unused);
        }
    }

    /// Records that a stream of another device uses this device's memory up to `position`.
    pub(crate) fn record_remote_use(&self, stream: &Arc<StreamCore>, position: Position) {
        self.retire_remote_uses();
        let mut remote_uses = self.0.remote_uses.lock();
        match remote_uses.iter_mut().find(|(user, _)| user.id() == stream.id()) {
            Some((_, upto)) => *upto = (*upto).max(position),
            None => remote_uses.push((Arc::clone(stream), position)),
        }
    }

    fn retire_remote_uses(&self) {
        let is_over = |(user, upto): &(Arc<StreamCore>, Position)| user.raw().completed() >= *upto;
        let mut remote_uses = self.0.remote_uses.lock();
        if remote_uses.iter().any(is_over) {
            let (past, pending): (RemoteUses, RemoteUses) =
                std::mem::take(&mut *remote_uses).into_iter().partition(is_over);
            *remote_uses = pending;
            sync::defer_drop(past);
        }
    }
}

/// Whether the stream has a handle, or something for a `synchronize` to wait for.
fn is_in_use(stream: &Arc<StreamCore>) -> bool {
    Arc::strong_count(stream) > 1 || !stream.is_finished()
}
