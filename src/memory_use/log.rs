//! What happened to memory while something listened.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::place::Place;
use super::place_log::{Owner, PlaceLog};
use resident_backend::sync::Mutex;
use resident_backend::timeline;
use resident_documents::DocumentMemoryUse;

static LOGS: Mutex<Vec<Log>> = Mutex::new(Vec::new());

/// The length of `LOGS`.
static LISTENING: AtomicUsize = AtomicUsize::new(0);

/// What happened since one moment.
#[derive(Debug)]
struct Log {
    number: u64,
    started_ns: u64,
    /// The places where anything happened.
    places: Vec<PlaceLog>,
}

/// While this lives, it sees what all threads allocate and free.
#[derive(Debug)]
pub(crate) struct MemoryLog {
    number: u64,
}

/// Whether there is a log.
#[inline]
fn is_listening() -> bool {
    LISTENING.load(Ordering::Relaxed) > 0
}

impl MemoryLog {
    pub(crate) fn start() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let started_ns = timeline::now_ns();
        let mut logs = LOGS.lock();
        logs.push(Log { number, started_ns, places: Vec::new() });
        LISTENING.store(logs.len(), Ordering::Relaxed);
        Self { number }
    }

    /// What was in use since the start, or since the last [`restart`](Self::restart). Of `others`,
    /// places where nothing happened, it says what is in use.
    pub(crate) fn uses<'p>(
        &self,
        others: impl IntoIterator<Item = &'p Place>,
    ) -> Vec<DocumentMemoryUse> {
        let mut logs = LOGS.lock();
        let Some(log) = logs.iter_mut().find(|log| log.number == self.number) else {
            return Vec::new();
        };
        for place in others {
            if place.gauge.in_use() > 0 {
                log.place(place);
            }
        }
        log.places.iter().map(PlaceLog::to_document).collect()
    }

    /// Forgets what happened so far.
    pub(crate) fn restart(&self) {
        let started_ns = timeline::now_ns();
        let mut logs = LOGS.lock();
        if let Some(log) = logs.iter_mut().find(|log| log.number == self.number) {
            log.started_ns = started_ns;
            log.places.iter_mut().for_each(|place| place.restart(started_ns));
        }
    }
}

impl MemoryLog {
    /// Sees nothing more.
    pub(crate) fn end(&self) {
        let mut logs = LOGS.lock();
        let own = logs.iter().position(|log| log.number == self.number);
        let ended = own.map(|own| logs.remove(own));
        LISTENING.store(logs.len(), Ordering::Relaxed);
        drop(logs);
        drop(ended);
    }
}

impl Drop for MemoryLog {
    fn drop(&mut self) {
        self.end();
    }
}

impl Log {
    fn place(&mut self, place: &Place) -> &mut PlaceLog {
        let known = self.places.iter().position(|known| known.number() == place.number);
        let index = known.unwrap_or_else(|| {
            self.places.push(PlaceLog::new(place, self.started_ns));
            self.places.len() - 1
        });
        &mut self.places[index]
    }
}

impl Place {
    /// Counts memory. The `key` is its address, or another number that is unique at the place while
    /// the memory is in use. The caller holds no lock that `owner` takes.
    pub(crate) fn add(&self, key: u64, bytes: u64, owner: impl FnOnce() -> Owner) {
        self.all.add(bytes);
        if is_listening() {
            let owner = owner();
            change(self, |log| log.add(key, bytes, &owner), || self.gauge.add(bytes));
        } else {
            self.gauge.add(bytes);
        }
    }

    /// Counts memory no more. To be called before it can be allocated again.
    pub(crate) fn remove(&self, key: u64, bytes: u64) {
        self.all.subtract(bytes);
        if is_listening() {
            change(self, |log| log.remove(key, bytes), || self.gauge.subtract(bytes));
        } else {
            self.gauge.subtract(bytes);
        }
    }

    /// Notes that so many bytes were refused.
    pub(crate) fn note_refused(&self, bytes: u64) {
        if is_listening() {
            change(self, |log| log.note_refused(bytes), || ());
        }
    }
}

/// Makes a change at a place, and adds it to all logs.
#[cold]
fn change(place: &Place, tell: impl Fn(&mut PlaceLog), make: impl FnOnce()) {
    let mut logs = LOGS.lock();
    for log in &mut *logs {
        tell(log.place(place));
    }
    make();
}
