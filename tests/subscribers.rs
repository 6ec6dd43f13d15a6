//! What a `tracing` subscriber may do: it is called with no lock of the library held. A file of its own, as `tracing_events.rs`.

use std::sync::{Arc, Mutex};

use resident::{Device, Emulation, Result, SmartArray, Validity, audit, ndarray::Ix1};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Looks at an array whenever something is moved.
#[derive(Clone)]
struct Looking {
    array: Arc<SmartArray<u32, Ix1>>,
    seen: Arc<Mutex<Vec<(Validity, usize)>>>,
}

impl<S: tracing::Subscriber> Layer<S> for Looking {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::transfer" {
            let look = (self.array.residency().host(), audit::inventory().len());
            self.seen.lock().expect("no panic").push(look);
        }
    }
}

#[test]
fn a_subscriber_may_look_at_the_array_that_is_moved() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let array = Arc::new(SmartArray::from((0..100).collect::<Vec<u32>>()));
    let looking = Looking { array: Arc::clone(&array), seen: Arc::default() };
    let subscriber = tracing_subscriber::registry().with(looking.clone());
    tracing::subscriber::with_default(subscriber, || -> Result<()> {
        drop(array.gpu_on(&device.stream())?);
        drop(array.try_clone()?.host()?);
        drop(array.snapshot_on(&device.stream())?.wait()?);
        Ok(())
    })?;
    let seen = looking.seen.lock().expect("no panic");
    assert_eq!(seen.len(), 2, "one transfer up, and one down for the clone, which lives on the device");
    assert!(seen.iter().all(|(validity, live)| *validity == Validity::Valid && *live > 0));
    Ok(())
}
