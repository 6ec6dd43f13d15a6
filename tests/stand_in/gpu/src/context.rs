//! Contexts: which one is current on a thread, whether it is lost, and which streams belong to it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::call;
use crate::code::{Code, Outcome};
use crate::handle::{self, Handle};
use crate::interface::{interface, rules};
use crate::machine::{self, Device};
use crate::stream::Stream;
use crate::work;
use resident_backend::{FailureRecord, Position, StreamId, failure};

/// A context. The primary context of a device exists as long as it is retained.
#[derive(Debug)]
pub struct Context {
    pub handle: Handle,
    pub device: Arc<Device>,
    /// The NULL stream.
    pub legacy: Arc<Stream>,
    /// The CUresult with which the context was lost, or 0. Set once.
    lost: AtomicU32,
    /// The process-wide number of failures at the last check.
    seen_epoch: AtomicU64,
    /// All work depends on position 1 of this stream, which fails when the context is lost.
    life: StreamId,
    /// Held while a loss is looked for, so that no thread reports a loss before copies have ended.
    looking: Mutex<()>,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// All streams except the NULL stream. A destroyed stream stays until its work is done.
    streams: Vec<Arc<Stream>>,
    /// The numbers of its streams, to look up failures; of streams that are over, those with one.
    stream_ids: Vec<StreamId>,
    peers: BTreeSet<usize>,
    /// The per-thread default streams.
    per_thread: HashMap<ThreadId, Arc<Stream>>,
}

thread_local! {
    /// The stack of current contexts; the last one is the top.
    static CURRENT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    /// Creates a context.
    pub fn new(device: Arc<Device>) -> Outcome<Arc<Self>> {
        let handle = handle::next();
        let life = StreamId::next();
        let legacy = Stream::legacy(handle, life, &device)?;
        let lists = Lists { stream_ids: vec![legacy.raw.id()], ..Lists::default() };
        Ok(Arc::new(Self {
            handle,
            device,
            legacy,
            lost: AtomicU32::new(0),
            seen_epoch: AtomicU64::new(failure::epoch()),
            life,
            looking: Mutex::new(()),
            lists: Mutex::new(lists),
        }))
    }

    /// The current context of this thread, if it can be used.
    pub fn current() -> Outcome<Arc<Self>> {
        let context = Self::current_if_lost()?;
        context.check()?;
        Ok(context)
    }

    /// The current context, and a stream of it.
    pub fn current_and_stream(stream: Handle) -> Outcome<(Arc<Self>, Arc<Stream>)> {
        let context = Self::current()?;
        let stream = context.stream(stream)?;
        Ok((context, stream))
    }

    /// Like `current`, for calls that work on a lost context too.
    pub fn current_if_lost() -> Outcome<Arc<Self>> {
        machine::check_initialised()?;
        if resident_backend::scope::is_in_body() {
            return Err(rules().not_permitted);
        }
        interface().current_context()
    }

    /// Returns an error if the context is lost because queued work failed.
    pub fn check(&self) -> Outcome {
        let is_seen = |epoch| self.seen_epoch.load(Ordering::Acquire) == epoch;
        if !is_seen(failure::epoch()) {
            let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
            let epoch = failure::epoch();
            if !is_seen(epoch) {
                self.look_for_loss();
                self.seen_epoch.store(epoch, Ordering::Release);
            }
        }
        match self.lost.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// The outcome of the work so far, for a callback. Unlike `check`, this waits for nothing.
    pub fn status(&self) -> Outcome {
        self.first_failure().map_or(Ok(()), |record| Err(work::code_of_failure(&record)))
    }

    fn first_failure(&self) -> Option<Arc<FailureRecord>> {
        let stream_ids = self.lists().stream_ids.clone();
        stream_ids.into_iter().find_map(first_failure)
    }

    /// Marks the context as lost if work failed. Before any call reports that, work that has not
    /// begun is cancelled, and copies to the host have ended: the host may use their memory again.
    fn look_for_loss(&self) {
        let is_known = self.lost.load(Ordering::Acquire) != 0;
        let Some(record) = self.first_failure().filter(|_| !is_known) else { return };
        let code = work::code_of_failure(&record);
        failure::record(self.life, Position(1), record);
        self.streams().iter().for_each(|stream| stream.end_copy_to_host());
        self.lost.store(code.0, Ordering::Release);
    }

    /// The stream with this handle: 0 and 1 are the NULL stream, 2 is the per-thread default
    /// stream. Streams of other contexts are rejected.
    pub fn stream(&self, handle: Handle) -> Outcome<Arc<Stream>> {
        if !interface().is_stream(handle) {
            return Err(Code::INVALID_HANDLE);
        }
        call::set_stream(handle);
        if handle <= 1 {
            return Ok(Arc::clone(&self.legacy));
        }
        if handle == 2 {
            return self.stream_of_thread();
        }
        handle::stream(handle)
            .ok()
            .filter(|stream| stream.context == self.handle)
            .ok_or(Code::INVALID_HANDLE)
    }

    fn stream_of_thread(&self) -> Outcome<Arc<Stream>> {
        let thread = thread::current().id();
        if let Some(stream) = self.lists().per_thread.get(&thread) {
            return Ok(Arc::clone(stream));
        }
        let stream = Stream::new(self, 0, 0)?;
        self.lists().per_thread.insert(thread, Arc::clone(&stream));
        Ok(stream)
    }

    /// The stream on which all work of the context depends.
    pub fn life(&self) -> StreamId {
        self.life
    }

    /// Adds a stream.
    pub fn add_stream(&self, stream: Arc<Stream>) {
        let mut lists = self.lists();
        let all = std::mem::take(&mut lists.streams);
        let (over, streams): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.is_over());
        lists.streams = streams;
        let is_over = |id: StreamId| over.iter().any(|stream| stream.raw.id() == id);
        lists.stream_ids.retain(|id| !is_over(*id) || first_failure(*id).is_some());
        lists.stream_ids.push(stream.raw.id());
        lists.streams.push(stream);
    }

    /// Adds a stream, whose failures are then failures of the context.
    pub fn watch(&self, id: StreamId) {
        self.lists().stream_ids.push(id);
    }

    /// All streams, the NULL stream included.
    pub fn streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.lists().streams.clone();
        streams.push(Arc::clone(&self.legacy));
        streams
    }

    /// Waits until all work is done, then returns an error if the context is lost.
    pub fn wait_for_all(&self) -> Outcome {
        for stream in self.streams() {
            stream.wait_until(stream.raw.tail())?;
        }
        self.device.ledger().settle();
        self.check()
    }

    /// Whether it has neither memory nor streams that are not destroyed.
    pub fn is_unused(&self) -> bool {
        let lists = self.lists();
        lists.streams.iter().all(|stream| stream.is_destroyed())
            && self.device.ledger().of_context(self.handle).is_empty()
    }

    /// Enables peer access for kernels.
    pub fn enable_peer(&self, ordinal: usize) -> Outcome {
        if self.lists().peers.insert(ordinal) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_ALREADY_ENABLED)
        }
    }

    /// Disables peer access.
    pub fn disable_peer(&self, ordinal: usize) -> Outcome {
        if self.lists().peers.remove(&ordinal) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_NOT_ENABLED)
        }
    }

    /// Frees all allocations when the context ends.
    pub fn free_everything(&self) {
        let addresses = self.device.ledger().of_context(self.handle);
        for address in addresses {
            self.device.ledger().remove(address, |_| true);
            let _engine_knows_it = self.legacy.raw.free(crate::allocate::in_engine(address));
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the device as failed, as a test requested. Waits for queued work first, because a failed
/// device runs nothing more.
pub fn find_dead(code: Code) {
    if !rules().sticky.contains(&code) {
        return;
    }
    if let Ok(context) = interface().current_context() {
        let _as_far_as_possible = context.wait_for_all();
    }
}

/// The handle of this thread's current context.
pub fn current_handle() -> Option<Handle> {
    CURRENT.with_borrow(|stack| stack.last().copied())
}

/// Replaces the top of this thread's stack of contexts; 0 removes the top.
pub fn set_current(handle: Handle) {
    CURRENT.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}

/// Pushes a context onto this thread's stack.
pub fn push_current(handle: Handle) {
    CURRENT.with_borrow_mut(|stack| stack.push(handle));
}

/// Pops the top of this thread's stack.
pub fn pop_current() -> Option<Handle> {
    CURRENT.with_borrow_mut(Vec::pop)
}

/// The first failure of a stream's work.
fn first_failure(id: StreamId) -> Option<Arc<FailureRecord>> {
    let first = failure::first_between(id, Position::START, Position(u64::MAX));
    first.map(|(_, record)| record)
}
