//! Allocation that reclaims freed memory if the device is full.

use super::gpu_stream::{GpuStream, all_of, find};
use super::handle::GpuStreamHandle;
use crate::device::GpuDeviceState;
use crate::driver::{StreamHandle, invalid};
use resident_backend::{Address, BackendError, BackendErrorKind, PageRange, scope};

/// Allocates memory for use on `stream`.
pub(super) fn allocate(
    device: &GpuDeviceState,
    len_bytes: u64,
    stream: StreamHandle,
) -> Result<Address, BackendError> {
    reclaiming(device, len_bytes, || device.memory().allocate(len_bytes, stream))
}

/// Commits memory to pages. The caller holds no lock.
pub(crate) fn commit(device: &GpuDeviceState, pages: &PageRange) -> Result<(), BackendError> {
    let len_bytes = device.memory().committed_bytes(pages);
    reclaiming(device, len_bytes, || commit_when_unmapped(device, pages))
}

/// Commits memory to pages, after work before their decommit, if that is queued. If the driver has
/// no memory, takes that of other pages whose decommit is queued.
fn commit_when_unmapped(device: &GpuDeviceState, pages: &PageRange) -> Result<(), BackendError> {
    let memory = device.memory();
    let len_bytes = memory.committed_bytes(pages);
    loop {
        device.context().make_current()?;
        let (stream, position) = match memory.commit(pages) {
            Ok(None) => return Ok(()),
            Ok(Some(leaving)) => leaving,
            Err(error) => {
                let is_full = matches!(error.kind, BackendErrorKind::OutOfMemory { .. })
                    && !memory.is_beyond_limit(len_bytes)
                    && !scope::is_in_body();
                memory.leaving().filter(|_| is_full).ok_or(error)?
            }
        };
        let Some(stream) = find(stream) else {
            let detail = "the stream on which a page's decommit was queued is gone".to_owned();
            return Err(invalid("commit", detail));
        };
        stream.wait_for(position)?;
    }
}

/// Makes an attempt to allocate. If the device is full, waits for it (including queued frees),
/// trims the pool, and tries once more. If the library then holds more than its limit, in memory
/// kept for reuse, trims the pool too.
fn reclaiming<T>(
    device: &GpuDeviceState,
    len_bytes: u64,
    attempt: impl Fn() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    let memory = device.memory();
    let allocated = attempt().or_else(|error| {
        // If the library's own limit was exceeded, waiting does not help: freed bytes do not count
        // against this limit.
        let is_full = matches!(error.kind, BackendErrorKind::OutOfMemory { .. })
            && !memory.is_beyond_limit(len_bytes);
        if !is_full || memory.usage().pooled == 0 || scope::is_in_body() {
            return Err(error);
        }
        trim(device)?;
        attempt()
    })?;
    if memory.holds_too_much() && !scope::is_in_body() {
        // What cannot be returned now, the next allocation returns.
        let _refused = trim(device);
    }
    Ok(allocated)
}

/// Completes the oldest operation in flight on a stream, if the device has finished it: the staging
/// memory of that operation is then free. The caller holds no lock.
pub(crate) fn reap_oldest(stream: &GpuStreamHandle) {
    stream.0.reap_oldest();
}

impl GpuStream {
    /// As [`reap_oldest`].
    pub(super) fn reap_oldest(&self) {
        let oldest = self.state().in_flight.front();
        // If the stream cannot be polled, the next caller that waits gets the error.
        let _outcome = oldest.map(|position| self.poll(position));
    }
}

/// Waits for the device's streams, completes their work, and returns unused memory to the driver.
/// The caller holds no lock.
pub(crate) fn trim(device: &GpuDeviceState) -> Result<(), BackendError> {
    let context = device.context();
    context.make_current()?;
    all_of(device).iter().try_for_each(|stream| wait(stream))?;
    // Dropping a value meanwhile may have made another device's context current.
    context.make_current()?;
    device.memory().trim()
}

/// Waits for one stream. A wait for the whole context would also wait for the streams of other
/// code, and end its captures.
fn wait(stream: &GpuStream) -> Result<(), BackendError> {
    stream.make_current()?;
    // The work before a capture may have ended or not; its memory stays in use until it has.
    if stream.is_captured()? { Ok(()) } else { stream.wait_for(stream.tail()) }
}
