//! Removes the records of late failures that no one can ask for any more.
//!
//! A record is looked up by stream and position. Four kinds of callers know a position: an array,
//! as the writer of a region; queued work, as work that it depends on; a call that waits for its
//! own copies; and `synchronize`. So there are two steps, each taken by a thread that holds no
//! lock, when an access finds that there are many records:
//!
//! 1. Every live array takes the failures so far into account. From then on no new work depends on
//!    failed work, except for accesses that are acquired and not marked: with one of these, the
//!    step is repeated later. The tails of all streams are noted, and the calls that wait.
//! 2. When the streams have passed these tails and the calls are over, the records are removed. A
//!    stream keeps the first that `synchronize` has to return.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::{Storage, live_arrays};
use crate::device::{Device, StreamCore, UNREPORTED_MAX};
use resident_backend::sync::{self, Mutex};
use resident_backend::{Position, failure};

/// The first step, taken.
struct Sweep {
    /// The number of failures that every array has taken into account.
    count: u64,
    inquiries: failure::InquiriesBefore,
    tails: Vec<(Weak<StreamCore>, Position)>,
    arrays: usize,
}

static IS_RUNNING: AtomicBool = AtomicBool::new(false);
static SWEEP: Mutex<Option<Sweep>> = Mutex::new(None);

/// Takes the next step, unless another thread takes one. The caller holds no lock.
#[cold]
pub(crate) fn forget_failures() {
    sync::assert_none_held();
    if IS_RUNNING.swap(true, Ordering::Acquire) {
        return;
    }
    let begun = SWEEP.lock().take();
    let next = match begun {
        None => begin(),
        Some(sweep) => sweep.finish(),
    };
    *SWEEP.lock() = next;
    IS_RUNNING.store(false, Ordering::Release);
    sync::run_deferred_drops();
}

fn begin() -> Option<Sweep> {
    let count = failure::count();
    let arrays = live_arrays();
    if !arrays.iter().all(|array| take_into_account(array)) {
        failure::postpone_forgetting();
        return None;
    }
    let inquiries = failure::InquiriesBefore::now();
    let tails = all_streams().iter().map(tail_of).collect();
    Some(Sweep { count, inquiries, tails, arrays: arrays.len() })
}

/// Whether the array has no access that is acquired and not marked.
fn take_into_account(array: &Storage) -> bool {
    let mut state = array.lock();
    state.reconcile(array.memory_order());
    !state.has_pins()
}

fn tail_of(stream: &Arc<StreamCore>) -> (Weak<StreamCore>, Position) {
    (Arc::downgrade(stream), stream.raw().tail())
}

fn all_streams() -> Vec<Arc<StreamCore>> {
    Device::all_live().iter().flat_map(Device::all_streams).collect()
}

impl Sweep {
    /// Whether no work that was queued before the first step is left, and no call that waited then.
    fn is_passed(&mut self) -> bool {
        let is_pending = |(stream, tail): &(Weak<StreamCore>, Position)| {
            stream.upgrade().is_some_and(|stream| stream.raw().completed() < *tail)
        };
        while let Some(entry) = self.tails.last() {
            if is_pending(entry) {
                return false;
            }
            self.tails.pop();
        }
        self.inquiries.are_over()
    }

    /// Takes the second step if it can be taken, else returns the first.
    fn finish(mut self) -> Option<Self> {
        if !self.is_passed() {
            return Some(self);
        }
        let streams = all_streams();
        let unreported: HashSet<_> = streams
            .iter()
            .flat_map(|stream| {
                let positions = stream.unreported_failures(UNREPORTED_MAX);
                positions.into_iter().map(|position| (stream.id(), position))
            })
            .collect();
        let is_kept = |stream, position| unreported.contains(&(stream, position));
        failure::forget(self.count, is_kept, self.arrays);
        streams.iter().for_each(|stream| stream.forget_reported());
        None
    }
}
