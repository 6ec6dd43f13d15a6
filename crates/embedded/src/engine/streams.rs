//! All streams of one device.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use super::device_core::DeviceCore;
use super::stream::{EmbeddedStream, Scheduler};
use crate::errors::inside_kernel;
use crate::simulation::Simulation;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{BackendError, scope};

/// A device with fewer streams than this is not searched for dropped ones.
const SWEEP_AT_MIN: usize = 16;

/// The streams of one device. Handles of the device, streams and events hold it, and it keeps their
/// simulation alive.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    simulation: Option<Arc<Simulation>>,
    count: AtomicU32,
    known: BackendLock<KnownStreams>,
}

#[derive(Debug, Default)]
struct KnownStreams {
    list: Vec<Weak<EmbeddedStream>>,
    /// With this many streams, dropped ones are removed before another is added.
    sweep_at: usize,
}

impl Streams {
    /// Creates an empty list. Without a simulation, each stream gets a worker thread.
    pub(crate) fn new(simulation: Option<Arc<Simulation>>) -> Self {
        Self { simulation, ..Self::default() }
    }

    /// Creates the next stream.
    pub(crate) fn add(&self, device: &Arc<DeviceCore>) -> Arc<EmbeddedStream> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let scheduler = self
            .simulation
            .as_ref()
            .map_or(Scheduler::Worker, |simulation| Scheduler::Seeded(Arc::downgrade(simulation)));
        let stream = Arc::new(EmbeddedStream::new(number, Arc::clone(device), scheduler));
        if let Some(simulation) = &self.simulation {
            simulation.add(Arc::clone(&stream));
        }
        let mut known = self.lock();
        if known.list.len() >= known.sweep_at {
            known.list.retain(|stream| stream.strong_count() > 0);
            known.sweep_at = SWEEP_AT_MIN.max(2 * known.list.len());
        }
        known.list.push(Arc::downgrade(&stream));
        stream
    }

    /// Waits for all frees and decommits submitted so far, on behalf of `call`.
    pub(crate) fn wait_for_frees(&self, call: &'static str) -> Result<(), BackendError> {
        let streams: Vec<_> = self.lock().list.iter().filter_map(Weak::upgrade).collect();
        for stream in streams {
            if stream.progress.is_complete(stream.last_free()) {
                continue;
            }
            if scope::is_in_body() {
                return Err(inside_kernel(call));
            }
            stream.wait_for(stream.last_free())?;
        }
        Ok(())
    }

    fn lock(&self) -> BackendGuard<'_, KnownStreams> {
        self.known.lock()
    }
}
