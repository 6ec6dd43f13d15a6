//! Contexts: who is current on a thread, what is lost, what belongs together.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::code::{Code, Outcome};
use super::handle::{self, Handle};
use super::machine::{self, Device};
use super::stream::Stream;
use super::work;
use crate::backend::{Position, QueueId, failure};

/// The primary context of a device, for as long as it is retained.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) handle: Handle,
    pub(super) device: Arc<Device>,
    /// The NULL stream.
    pub(super) legacy: Arc<Stream>,
    /// A CUresult, 0 while all is well. Set once.
    lost: AtomicU32,
    /// The process's count of failures that was looked at last.
    seen_epoch: AtomicU64,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// All streams but the NULL stream. Destroyed ones stay until their work is done.
    streams: Vec<Arc<Stream>>,
    /// Every queue there ever was, for looking up failures.
    queues: Vec<QueueId>,
    peers: BTreeSet<usize>,
    /// The default streams that belong to threads.
    per_thread: HashMap<ThreadId, Arc<Stream>>,
}

thread_local! {
    /// The stack of current contexts; the top is the last.
    static CURRENT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    /// A fresh one.
    pub(super) fn new(device: Arc<Device>) -> Outcome<Arc<Self>> {
        let handle = handle::next();
        let legacy = Stream::legacy(handle, &device)?;
        let lists = Lists { queues: vec![legacy.queue.id()], ..Lists::default() };
        let (lost, seen_epoch) = (AtomicU32::new(0), AtomicU64::new(failure::epoch()));
        Ok(Arc::new(Self { handle, device, legacy, lost, seen_epoch, lists: Mutex::new(lists) }))
    }

    /// The context that is current on this thread, if nothing stands against using it.
    pub(super) fn current() -> Outcome<Arc<Self>> {
        let context = Self::current_if_lost()?;
        context.check()?;
        Ok(context)
    }

    /// As `current`, for calls that a lost context still does.
    pub(super) fn current_if_lost() -> Outcome<Arc<Self>> {
        machine::check_initialised()?;
        if crate::backend::scope::is_in_body() {
            return Err(Code::NOT_PERMITTED);
        }
        let handle = current_handle().ok_or(Code::INVALID_CONTEXT)?;
        handle::context(handle).map_err(|_| Code::CONTEXT_IS_DESTROYED)
    }

    /// Whether it is lost: work of it has failed.
    pub(super) fn check(&self) -> Outcome {
        let epoch = failure::epoch();
        if self.seen_epoch.load(Ordering::Acquire) != epoch {
            self.look_for_failures();
            self.seen_epoch.store(epoch, Ordering::Release);
        }
        match self.lost.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    fn look_for_failures(&self) {
        let queues = self.lists().queues.clone();
        let all =
            |queue: QueueId| failure::first_between(queue, Position::START, Position(u64::MAX));
        if let Some((_, record)) = queues.into_iter().find_map(all) {
            let code = work::code_of_failure(&record);
            let _known_already =
                self.lost.compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// A stream of it, by handle: 0 and 1 are the NULL stream, 2 is the calling thread's own. Other
    /// contexts' are refused.
    pub(super) fn stream(&self, handle: Handle) -> Outcome<Arc<Stream>> {
        super::call::set_stream(handle);
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

    /// Takes a stream in.
    pub(super) fn add_stream(&self, stream: Arc<Stream>) {
        let mut lists = self.lists();
        lists.streams.retain(|stream| !stream.is_over());
        lists.queues.push(stream.queue.id());
        lists.streams.push(stream);
    }

    /// Failures of this queue are failures of the context.
    pub(super) fn watch(&self, queue: QueueId) {
        self.lists().queues.push(queue);
    }

    /// All streams, the NULL stream included.
    pub(super) fn streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.lists().streams.clone();
        streams.push(Arc::clone(&self.legacy));
        streams
    }

    /// Waits until all work is done, then says whether the context is well.
    pub(super) fn wait_for_all(&self) -> Outcome {
        for stream in self.streams() {
            stream.wait_until(stream.queue.tail())?;
        }
        self.device.ledger().settle();
        self.check()
    }

    /// Whether kernels were allowed to reach a peer.
    pub(super) fn enable_peer(&self, ordinal: usize) -> Outcome {
        if self.lists().peers.insert(ordinal) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_ALREADY_ENABLED)
        }
    }

    /// Takes that back.
    pub(super) fn disable_peer(&self, ordinal: usize) -> Outcome {
        if self.lists().peers.remove(&ordinal) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_NOT_ENABLED)
        }
    }

    /// Frees what is allocated, at its end.
    pub(super) fn free_everything(&self) {
        let addresses = self.device.ledger().of_context(self.handle);
        for address in addresses {
            self.device.ledger().remove(address, |_| true);
            let _engine_knows_it = self.legacy.queue.free(crate::backend::Address(address));
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call is made to say that a device has died, as a test asked. A dead device does nothing more:
/// so what was queued is over before.
pub(super) fn find_dead(code: Code) {
    let context = current_handle().and_then(|handle| handle::context(handle).ok());
    if let Some(context) = context.filter(|_| code.is_sticky()) {
        let _as_far_as_possible = context.wait_for_all();
    }
}

/// The handle of this thread's current context.
pub(super) fn current_handle() -> Option<Handle> {
    CURRENT.with_borrow(|stack| stack.last().copied())
}

/// Replaces the top of this thread's stack; 0 takes it off.
pub(super) fn set_current(handle: Handle) {
    CURRENT.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}

/// Puts a context on top of this thread's stack.
pub(super) fn push_current(handle: Handle) {
    CURRENT.with_borrow_mut(|stack| stack.push(handle));
}

/// Takes the top off.
pub(super) fn pop_current() -> Option<Handle> {
    CURRENT.with_borrow_mut(Vec::pop)
}
