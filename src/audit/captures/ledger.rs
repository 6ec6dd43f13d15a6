//! Ledgers: reports made of `tracing` events.

use std::sync::Arc;

use super::capture::Attached;
use crate::audit::recording::block::open::OpenBlock;
use crate::audit::recording::facts::{MessageRecord, Record};
use crate::audit::recording::listeners::Capture;
use crate::audit::reports::report::Report;

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
pub struct Ledger {
    capture: Arc<Capture>,
    /// Ends with the last clone.
    _attached: Option<Arc<Attached>>,
}

impl Ledger {
    /// An empty ledger, which sees what its [`layer`](Self::layer) sees.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A ledger that needs no subscriber: it sees what the calls of all threads cause from now on,
    /// launches and waits included, until the last clone drops. It keeps the latest 65,536 records
    /// and exact totals, so its memory is bounded.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let ledger = audit::Ledger::attach();
    /// let array = SmartArray::from(vec![1.0_f32; 1000]);
    /// array.prefetch(&Device::cpu().stream())?;
    /// assert!(ledger.report().traffic().to_device.bytes >= 4000);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use = "the ledger sees what happens while it lives"]
    pub fn attach() -> Self {
        let capture = Arc::<Capture>::default();
        let attached = Arc::new(Attached::start(Arc::clone(&capture)));
        Self { capture, _attached: Some(attached) }
    }

    /// A layer for a subscriber of `tracing`, which writes to this ledger. What an
    /// [attached](Self::attach) ledger's layer sees counts twice.
    #[must_use]
    pub fn layer(&self) -> LedgerLayer {
        LedgerLayer(Arc::clone(&self.capture))
    }

    /// Begins again with an empty report: for a report of each day, say. What was queued before the
    /// call is forgotten, by all clones; memory that is still in use counts on.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let stream = Device::cpu().stream();
    /// let ledger = audit::Ledger::attach();
    /// let [one, other] = [10, 20].map(|len| SmartArray::from(vec![0_u8; len]).named("of a day"));
    /// one.prefetch(&stream)?;
    /// ledger.reset();
    /// other.prefetch(&stream)?;
    /// let sites = ledger.report().sites();
    /// let bytes: u64 =
    ///     sites.iter().filter(|it| it.array == "of a day").map(|it| it.flow.bytes).sum();
    /// assert_eq!(bytes, 20);
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn reset(&self) {
        self.capture.reset();
    }

    /// What was seen so far: of a ledger with a layer only copies and messages, which are events
    /// of `tracing`.
    /// Launches are no such events, so its [`avoided`](crate::Traffic::avoided) is 0.
    #[must_use]
    pub fn report(&self) -> Report {
        self.capture.so_far()
    }
}

/// The layer of a [`Ledger`], for `SubscriberExt::with` of `tracing_subscriber`. It takes the
/// events of target `resident::transfer` and ignores others.
#[derive(Clone, Debug)]
pub struct LedgerLayer(Arc<Capture>);

impl LedgerLayer {
    pub(in crate::audit) fn add(&self, record: &Record) {
        self.append(&record.thread, |block| block.push_record(record));
    }

    pub(in crate::audit) fn add_message(&self, record: &MessageRecord) {
        self.append(&record.thread, |block| block.push_message(record));
    }

    fn append(&self, thread: &Arc<str>, push: impl FnOnce(&mut OpenBlock)) {
        let mut block = OpenBlock::new(Arc::clone(thread));
        push(&mut block);
        block.close().map(Arc::new).iter().for_each(|block| self.0.add(block));
    }
}
