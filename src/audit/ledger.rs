//! Ledgers: reports made of `tracing` events.

use std::sync::Arc;

use super::copy_record::CopyRecord;
use super::report::Report;
use crate::sync::Mutex;

/// Collects the copies whose `tracing` events its layer sees, for as long as the subscriber lives:
/// of all threads if the subscriber is the global one. The layers and filters of the subscriber
/// decide what it sees. Clones share what they have seen.
///
/// ```
/// use resident::{Device, SmartArray, audit};
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let ledger = audit::Ledger::new();
/// let subscriber = tracing_subscriber::registry().with(ledger.layer());
/// tracing::subscriber::with_default(subscriber, || {
///     let array = SmartArray::from(vec![1.0_f32; 1000]);
///     array.gpu_on(&Device::cpu().stream()).map(drop)
/// })?;
/// assert_eq!(ledger.report().traffic().to_device.bytes, 4000);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<Report>>);

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A layer for a subscriber of `tracing`, which writes to this ledger.
    #[must_use]
    pub fn layer(&self) -> LedgerLayer {
        LedgerLayer(self.clone())
    }

    /// The copies that the layers of this ledger have seen so far. Copies that launches avoided are
    /// no events, so [`avoided`](crate::Traffic::avoided) is 0.
    #[must_use]
    pub fn report(&self) -> Report {
        self.0.lock().clone()
    }
}

/// The layer of a [`Ledger`], for [`with`](tracing_subscriber::layer::SubscriberExt::with). It
/// takes the events of target `resident::transfer` and ignores others.
#[derive(Clone, Debug)]
pub struct LedgerLayer(Ledger);

impl LedgerLayer {
    pub(super) fn add(&self, record: &CopyRecord) {
        self.0.0.lock().add_copy(record);
    }
}
