//! Watches: while one exists, changes of an array by queued work are copied to the host, at most
//! one copy at a time, so that states in between are skipped.
//!
//! A copy of a state is *taken* under the array's lock, in one step: it is checked that the whole
//! array is on one device and that no access is between its acquisition and its mark, then the
//! copy is queued behind the work that wrote the array and recorded as a read. So any thread may
//! take a state at any time, whatever borrows exist: the thread that changes the array does, when
//! it has queued the change, and so do threads that query the watch.
//!
//! The watch's own lock is held for a few instructions, together with no other.

use std::sync::{Arc, Weak};
use std::time::Duration;

use smallvec::SmallVec;

use super::download::prepare_downloads;
use super::report::{Moved, count, stale_since};
use super::request::{Marks, Queued, Regions, Request, collect_conflicts};
use crate::audit::{self, Cause, Direction};
use crate::device::{self, Device, Stream};
use crate::error::{CalledAt, Error, Result};
use crate::storage::{ArrayState, HostBuffer, StateGuard, Storage, Watcher};
use resident_backend::call_site::CallSite;
use resident_backend::failure::{self, Inquiry};
use resident_backend::sync::{self, EventCount, Mutex};
use resident_backend::{
    Address, Bytes, CopyWork, FailureKind, FailureRecord, HostMemory, Memory, Position, TaskWaker,
    Work, host_copy, scope,
};
use resident_core::Access;
use resident_core::coherence::{Content, Location, Region, Undefined};
use resident_core::layout::{Selection, split_copies};
use resident_core::ordering::UseEnd;

/// The buffers that are kept for later states. With those of the newest state and of the copy in
/// flight, each state that a reader has left finds one.
const SPARES_MAX: usize = 2;

/// How long a thread that waits pauses before it looks again whether an access of another thread is
/// over, which ends without a notification.
const PAUSE: Duration = Duration::from_micros(200);

/// What a watch shares with the array that it watches.
pub(crate) struct WatchCore {
    storage: Weak<Storage>,
    /// The array's name for messages.
    array: String,
    site: CallSite,
    /// A state is taken after this many changes.
    every: u64,
    /// How often the array had been changed when the watch began.
    before: u64,
    state: Mutex<Progress>,
    spares: Arc<Spares>,
    /// Announced when there is something to look at.
    news: EventCount,
}

type Spares = Mutex<Vec<Arc<HostBuffer>>>;

#[derive(Default)]
struct Progress {
    /// How often the array has been changed since, as far as the watch was notified.
    changes: u64,
    /// The change after which a state was last asked for.
    asked: u64,
    /// The change up to which a state was taken, or could not be.
    taken: u64,
    /// Whether a thread is taking a state.
    is_taking: bool,
    /// Whether the next state waits for something that ends without a notification.
    is_blocked: bool,
    /// Usually one; the last state of an array is queued behind another.
    in_flight: SmallVec<[InFlight; 1]>,
    latest: Option<Arc<WatchedState>>,
    failed: Option<Error>,
    is_over: bool,
    /// The stream of the copies.
    stream: Option<Stream>,
    tasks: Vec<Arc<TaskWaker>>,
}

/// A copy of a state.
struct InFlight {
    change: u64,
    buffer: Arc<HostBuffer>,
    /// Empty if the state was made without a copy.
    queued: Queued,
    /// Keeps the records of failures of the queued work.
    _failures: Inquiry,
}

/// A complete state. Its memory is reused once no handle refers to it.
pub(crate) struct WatchedState {
    pub(crate) change: u64,
    buffer: Option<Arc<HostBuffer>>,
    spares: Arc<Spares>,
}

impl WatchedState {
    /// The start of the elements, in the array's memory order.
    pub(crate) fn base(&self) -> *mut u8 {
        self.buffer.as_ref().map_or(std::ptr::null_mut(), |buffer| buffer.base())
    }
}

impl Drop for WatchedState {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        let unkept = {
            let mut spares = self.spares.lock();
            if spares.len() < SPARES_MAX {
                spares.push(buffer);
                None
            } else {
                Some(buffer)
            }
        };
        drop(unkept);
    }
}

/// What a watch has for a caller that knows the states up to a change.
pub(crate) enum Next {
    State(Arc<WatchedState>),
    /// The array is gone, and its last state is known.
    Over,
    /// A state is there once this work is complete.
    Queued(Stream, Position),
    /// A change waits for an access of another thread, which ends without a notification.
    Blocked,
    /// Nothing before the next change.
    Nothing,
}

/// The outcome of taking a state.
enum Taken {
    Copy(InFlight),
    /// The whole array is not on one device, so there is no state of this change.
    Nowhere,
    /// Something must end first. `is_notified` says whether its end is notified.
    Later {
        is_notified: bool,
    },
    Over,
}

/// Where a state is.
struct Source {
    /// Elements on a device, if there are any.
    stored: Option<(Location, Device, Regions)>,
    constants: Vec<(Region, Bytes)>,
}

impl WatchCore {
    /// Begins to watch an array.
    pub(crate) fn begin(storage: &Arc<Storage>, every: u64, site: CallSite) -> Arc<Self> {
        let array = storage.named();
        let mut state = storage.lock();
        let core = Arc::new(Self {
            storage: Arc::downgrade(storage),
            array,
            site,
            every: every.max(1),
            before: state.changes(),
            state: Mutex::default(),
            spares: Arc::default(),
            news: EventCount::new(),
        });
        let watcher: Weak<Self> = Arc::downgrade(&core);
        state.watch(watcher);
        drop(state);
        core
    }

    /// The array's name for messages.
    pub(crate) fn array(&self) -> &str {
        &self.array
    }

    /// The newest complete state. Does not wait.
    pub(crate) fn latest(&self) -> Option<Arc<WatchedState>> {
        self.advance(false);
        report();
        self.state.lock().latest.clone()
    }

    /// The first state after the change `seen`, or why there is none yet. Does not wait.
    ///
    /// # Errors
    ///
    /// A failure that no earlier call has returned.
    pub(crate) fn next(&self, seen: u64) -> Result<Next> {
        self.advance(false);
        report();
        let mut state = self.state.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if let Some(latest) = state.latest.as_ref().filter(|latest| latest.change > seen) {
            return Ok(Next::State(Arc::clone(latest)));
        }
        if let Some((stream, position)) = state.in_flight.first().and_then(InFlight::end) {
            return Ok(Next::Queued(stream.clone(), position));
        }
        Ok(match () {
            () if state.is_over => Next::Over,
            () if state.is_blocked => Next::Blocked,
            () => Next::Nothing,
        })
    }

    /// Waits for the first state after the change `seen`. `None` if there will be none.
    pub(crate) fn wait(&self, seen: u64, site: CallSite) -> Result<Option<Arc<WatchedState>>> {
        loop {
            let news = self.news.current();
            match self.next(seen)? {
                Next::State(state) => return Ok(Some(state)),
                Next::Over => return Ok(None),
                Next::Queued(stream, position) => {
                    let waited = stream.wait_until(position, site);
                    waited.map_err(|refusal| self.refused(&stream, "waiting for", &refusal))?;
                }
                Next::Blocked | Next::Nothing if scope::is_in_body() => {
                    return Err(Error::InsideKernel {
                        call: CalledAt::UNKNOWN,
                        operation: format!("changed of a watch of {}", self.array),
                        waits_for: format!("the next change of {}", self.array),
                    });
                }
                Next::Blocked => self.news.wait_after_at_most(news, PAUSE),
                Next::Nothing => self.news.wait_after(news),
            }
        }
    }

    /// Wakes a task at the next change, or when the array is gone.
    pub(crate) fn wake_at_news(&self, task: &Arc<TaskWaker>) {
        let mut state = self.state.lock();
        if !state.tasks.iter().any(|known| Arc::ptr_eq(known, task)) {
            state.tasks.push(Arc::clone(task));
        }
    }

    /// Forgets a task.
    pub(crate) fn forget_task(&self, task: &Arc<TaskWaker>) {
        let is_this = |known: &mut Arc<TaskWaker>| Arc::ptr_eq(known, task);
        let forgotten: Vec<_> = self.state.lock().tasks.extract_if(.., is_this).collect();
        drop(forgotten);
    }

    pub(crate) fn refused(
        &self,
        stream: &Stream,
        doing: &str,
        refusal: &resident_backend::BackendError,
    ) -> Error {
        let operation = format!("{doing} a state of {}", self.array);
        device::call_error(stream.device_ref(), &self.array, &operation, refusal)
    }

    fn announce(&self) {
        let tasks = std::mem::take(&mut self.state.lock().tasks);
        self.news.announce();
        tasks.iter().for_each(|task| task.wake());
    }

    /// Completes the copies that are over, and takes a state if one was asked for. `is_last` queues
    /// it even behind another.
    fn advance(&self, is_last: bool) {
        while self.complete_first() {}
        while let Some((notified, stream)) = self.begin_taking(is_last) {
            let mut change = notified;
            let taken = self.take(&mut change, stream);
            if !self.end_taking(notified, change, taken) {
                return;
            }
        }
    }

    /// Completes the first copy in flight, if it is over. Returns whether it did.
    fn complete_first(&self) -> bool {
        let first = {
            let state = self.state.lock();
            state.in_flight.first().map(|first| (first.change, first.end_cloned()))
        };
        let Some((change, end)) = first else { return false };
        if let Some((stream, position)) = &end {
            let queue = stream.queue();
            // The caller that waits gets the error of a refused poll.
            let is_complete = || matches!(queue.poll(*position), Ok(true));
            if queue.completed() < *position && !is_complete() {
                return false;
            }
        }
        let completed = {
            let mut state = self.state.lock();
            match state.in_flight.first() {
                Some(first) if first.change == change => state.in_flight.remove(0),
                // Another thread has completed it.
                _ => return true,
            }
        };
        let failure = completed.failure();
        let outcome = match failure {
            Some((stream, record)) => Err(self.failed(&stream, &record)),
            None => Ok(Arc::new(WatchedState {
                change,
                buffer: Some(completed.buffer),
                spares: Arc::clone(&self.spares),
            })),
        };
        let old = {
            let mut state = self.state.lock();
            match outcome {
                Ok(new) => state.latest.replace(new),
                Err(error) => {
                    state.failed = Some(error);
                    None
                }
            }
        };
        drop(old);
        true
    }

    /// The change of which this thread is to take a state, and the stream if there is one.
    fn begin_taking(&self, is_last: bool) -> Option<(u64, Option<Stream>)> {
        let mut state = self.state.lock();
        let is_free = !state.is_taking && (is_last || state.in_flight.is_empty());
        if !is_free || state.is_over || state.asked <= state.taken {
            return None;
        }
        state.is_taking = true;
        Some((state.changes, state.stream.clone()))
    }

    /// Returns whether there is more to take. When taking began, the watch had been notified of
    /// changes up to `notified`; the state that was taken is that of `change`.
    fn end_taking(&self, notified: u64, change: u64, taken: Result<Taken>) -> bool {
        let mut state = self.state.lock();
        state.is_taking = false;
        match taken {
            Ok(Taken::Later { is_notified }) => {
                state.is_blocked = !is_notified;
                return state.changes > notified;
            }
            Ok(Taken::Over) => state.is_over = true,
            Ok(Taken::Copy(copy)) => state.in_flight.push(copy),
            Ok(Taken::Nowhere) => {}
            Err(error) => state.failed = Some(error),
        }
        (state.taken, state.is_blocked) = (change, false);
        false
    }

    /// Takes a state, and sets `change` to the one that it shows. The caller has the turn, and
    /// holds no lock.
    fn take(&self, change: &mut u64, stream: Option<Stream>) -> Result<Taken> {
        let Some(storage) = self.storage.upgrade() else { return Ok(Taken::Over) };
        let mut unused = None;
        // This calls no user code, so it does not unwind, and the turn is given back.
        // A part of a refused copy may be queued: its memory is not used again.
        let taken = self.take_into(&storage, change, stream, &mut unused)?;
        let spares = Arc::clone(&self.spares);
        drop(unused.map(|buffer| WatchedState { change: 0, buffer: Some(buffer), spares }));
        Ok(taken)
    }

    /// Takes a state into `buffer`, for which it gets memory.
    fn take_into(
        &self,
        storage: &Storage,
        change: &mut u64,
        mut stream: Option<Stream>,
        buffer: &mut Option<Arc<HostBuffer>>,
    ) -> Result<Taken> {
        let request = Request::new(storage, &Selection::Whole, Cause::Watch, "a watch", self.site);
        let failures = Inquiry::begin();
        loop {
            let mut state = storage.lock();
            if !state.is_watched() {
                return Ok(Taken::Over);
            }
            if state.has_pins() || state.is_being_filled() {
                return Ok(Taken::Later { is_notified: false });
            }
            *change = state.changes() - self.before;
            let Some(source) = find(&request, &mut state)? else { return Ok(Taken::Nowhere) };
            let home = source.stored.as_ref().map(|(_, device, _)| device.clone());
            let is_home = |stream: &Stream| Some(stream.device_ref()) == home.as_ref();
            let (Some(memory), true) =
                (&*buffer, home.is_none() || stream.as_ref().is_some_and(is_home))
            else {
                // Both are made without the lock. The state may change meanwhile.
                drop(state);
                stream = self.stream_of(home.as_ref(), stream)?;
                *buffer = Some(match buffer.take() {
                    Some(buffer) => buffer,
                    None => self.memory(storage, home.as_ref())?,
                });
                continue;
            };
            let queued = match (&stream, source.stored) {
                (Some(stream), Some((location, _, regions))) => {
                    match queue(&request, state, stream, (location, &regions), memory)? {
                        Some(queued) => queued,
                        None => return Ok(Taken::Later { is_notified: true }),
                    }
                }
                _ => {
                    drop(state);
                    Queued::new()
                }
            };
            fill(storage, memory, &source.constants);
            let Some(buffer) = buffer.take() else { return Ok(Taken::Nowhere) };
            let change = *change;
            return Ok(Taken::Copy(InFlight { change, buffer, queued, _failures: failures }));
        }
    }

    /// The watch's stream on a device.
    fn stream_of(&self, home: Option<&Device>, old: Option<Stream>) -> Result<Option<Stream>> {
        let Some(home) = home else { return Ok(old) };
        if old.as_ref().is_some_and(|stream| stream.device_ref() == home) {
            return Ok(old);
        }
        let new = home.new_stream().map_err(|error| error.at(self.site))?;
        let replaced = self.state.lock().stream.replace(new.clone());
        drop(replaced);
        Ok(Some(new))
    }

    /// Memory for a state, page-locked for the device where that is possible.
    fn memory(&self, storage: &Storage, home: Option<&Device>) -> Result<Arc<HostBuffer>> {
        let spare = self.spares.lock().pop();
        let memory = match spare {
            Some(memory) => memory,
            None => {
                let new = storage.new_host_memory();
                Arc::new(new.ok_or_else(|| super::error::host_full(storage).at(self.site))?)
            }
        };
        if let Some(device) = home {
            let pin = || device.backend().pin_host_memory(memory.base(), memory.len_bytes());
            // Without it copies are staged, which is slower.
            let _pageable = memory.register(device.kind(), pin, || ());
            if !memory.is_pinned_for(device.kind()) {
                prepare_downloads(device, std::iter::once(memory.len_bytes() as u64));
            }
        }
        Ok(memory)
    }

    fn failed(&self, stream: &Stream, record: &FailureRecord) -> Error {
        if !record.inherited || record.kind != FailureKind::Contents {
            return device::late_error(stream.device_ref(), record);
        }
        Error::Lost {
            array: self.array.clone(),
            operation: record.operation.clone(),
            site: record.site.into(),
            cause: record.cause.clone(),
        }
    }
}

impl Watcher for WatchCore {
    fn notify(self: Arc<Self>, changes: u64) {
        let changes = changes - self.before;
        let (taken_before, is_change) = {
            let mut state = self.state.lock();
            let is_change = changes > state.changes;
            if is_change {
                state.changes = changes;
                state.asked = state.asked.max(changes - changes % self.every);
            }
            (state.taken, is_change)
        };
        self.advance(false);
        let has_taken = self.state.lock().taken > taken_before;
        if has_taken || is_change {
            self.announce();
        }
        report();
    }

    fn finish(self: Arc<Self>, changes: u64) {
        {
            let mut state = self.state.lock();
            state.changes = changes - self.before;
            state.asked = state.changes;
        }
        loop {
            self.advance(true);
            let mut state = self.state.lock();
            if !state.is_taking {
                state.is_over = true;
                break;
            }
            drop(state);
            // Another thread takes an earlier state, for which it waits for nothing.
            std::thread::yield_now();
        }
        self.announce();
        report();
    }
}

impl InFlight {
    /// The end of the copy.
    fn end(&self) -> Option<(&Stream, Position)> {
        self.queued.last().map(|(stream, position)| (stream, *position))
    }

    fn end_cloned(&self) -> Option<(Stream, Position)> {
        self.queued.last().cloned()
    }

    /// The failure of the copy, which no `synchronize` returns.
    fn failure(&self) -> Option<(Stream, Arc<FailureRecord>)> {
        let mut first = None;
        for (stream, position) in &self.queued {
            if let Some(record) = failure::at(stream.id(), *position) {
                stream.core().mark_reported(*position);
                first.get_or_insert_with(|| (stream.clone(), record));
            }
        }
        first
    }
}

/// Passes reports of copies to captures and subscribers, and drops streams. Last: a subscriber that
/// panics must leave nothing half done.
fn report() {
    audit::report_recorded();
    sync::run_deferred_drops();
}

/// Where the newest contents are, if they are all on one device or constants.
///
/// # Errors
///
/// `Lost` if a failure took some of them.
fn find(request: &Request<'_>, state: &mut ArrayState) -> Result<Option<Source>> {
    let memory_order = request.storage.memory_order();
    if memory_order.is_empty() {
        return Ok(None);
    }
    state.reconcile(memory_order);
    let (mut is_lost, mut is_whole, mut found) = (false, true, None);
    let (mut regions, mut constants) = (Regions::new(), Vec::new());
    state.coherence.visit_contents(&memory_order.whole(), |region, content| match content {
        Content::Undefined(Undefined::Never) => is_whole = false,
        Content::Undefined(Undefined::Lost(_)) => is_lost = true,
        Content::Constant { value, .. } => {
            constants.extend(memory_order.unbroken(region).into_iter().map(|part| (part, value)));
        }
        Content::Stored(holders) => {
            let is_device = |location: &Location| *location != Location::HOST;
            let location = match found {
                Some(location) => Some(location).filter(|found| holders.contains(*found)),
                None => holders.locations().iter().find(is_device),
            };
            is_whole = is_whole && location.is_some();
            found = found.or(location);
            regions.push(*region);
        }
    });
    if is_lost {
        // The plan names the failure that took them.
        return request.plan(state, Location::HOST).map(|_| None);
    }
    if !is_whole {
        return Ok(None);
    }
    let bytes = |(region, value)| (region, state.constant_value(value, memory_order, &region));
    let constants = constants.into_iter().map(bytes).collect();
    let device = |location| state.device_copy(location).device.clone();
    let stored = found.map(|location| (location, device(location), regions));
    Ok(Some(Source { stored, constants }))
}

/// Queues the copy of these regions, behind the work that wrote them. `None` if a guard is open,
/// with which other code may queue more work: its drop notifies.
fn queue(
    request: &Request<'_>,
    mut state: StateGuard<'_>,
    stream: &Stream,
    (location, regions): (Location, &Regions),
    memory: &Arc<HostBuffer>,
) -> Result<Option<Queued>> {
    let mut writers = Marks::new();
    collect_conflicts(&state, location, None, Access::Read, stream, &mut writers);
    let kind = stream.device_ref().kind();
    let is_strange = |mark: &resident_core::ordering::Mark| {
        let other = state.stream(mark.stream);
        mark.end == UseEnd::OPEN || other.is_some_and(|other| other.device_ref().kind() != kind)
    };
    if writers.iter().any(is_strange) {
        return Ok(None);
    }
    let depends = request.wait_for_writers(&mut state, stream, location, regions)?;
    let parts = request.same_offsets(regions);
    let chunks = match memory.is_pinned_for(kind) {
        true => SmallVec::from_iter([parts]),
        false => split_copies(parts, stream.device_ref().backend().chunk_bytes_max()),
    };
    let mut queued = Queued::new();
    for parts in chunks {
        let work = Work::Copy(Box::new(CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source: Memory::Device(state.device_copy(location).address().unwrap_or(Address(0))),
            destination: Memory::Host(Arc::clone(memory) as Arc<dyn HostMemory>),
            source_device: None,
            parts,
            depends: depends.clone(),
            label: request.storage.label("state for a watch of", request.site),
        }));
        let position = request.submit_read(&mut state, stream, location, regions, work)?;
        queued.push((stream.clone(), position));
    }
    let since = stale_since(&state, Location::HOST, regions);
    let copied = Moved::of(&queued, Direction::ToHost, request.bytes_of(regions));
    count(request, &mut state, copied, stream.device_ref(), stream, since);
    Ok(Some(queued))
}

/// Fills the parts of a state that are constants.
fn fill(storage: &Storage, memory: &HostBuffer, constants: &[(Region, Bytes)]) {
    for (region, value) in constants {
        let footprint = storage.memory_order().footprint(region);
        // SAFETY: the memory has the array's length, and the footprint lies within it. The watch
        // has the memory for itself: `memory` gave it. Queued work writes other regions of it.
        unsafe { host_copy::fill(memory.base(), &footprint, value) };
    }
}
