//! Waits of the host between two pieces of work of one stream, after which the host reads nothing:
//! meanwhile the stream has nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use super::step::{Launched, Step, Waited};
use super::stream_calls::CallOnStream;
use super::symbols::{Symbol, Symbols};
use super::tally::times;
use crate::document::DocumentFinding;

/// Fewer waits are left alone: a program may wait a few times for the sake of its own order.
const COUNT_MIN: u64 = 8;

/// If streams were idle for a smaller part of the whole time, the waits are left alone.
const PART_MIN: u64 = 20;

/// So many streams, threads, and calls on streams are distinguished.
const STREAMS_MAX: usize = 1 << 12;

/// A wait of a thread that nothing followed yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    call: CallOnStream,
    /// When the stream had nothing more to do.
    idle_since_ns: u64,
}

/// The waits of one call.
#[derive(Clone, Copy, Default, Debug)]
struct Stalls {
    count: u64,
    idle_ns: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct StallingWaits {
    pending: BTreeMap<Symbol, Pending>,
    finished: BTreeMap<(Symbol, u32), u64>,
    /// The streams that have copied to the host since the last wait that counts.
    read: BTreeSet<(Symbol, u32)>,
    stalls: BTreeMap<CallOnStream, Stalls>,
}

impl StallingWaits {
    pub(super) fn add(&mut self, step: &Step<'_>, symbols: &mut Symbols) {
        match step {
            // A wait for contents is needed.
            Step::Waited(wait) if wait.reason != "synchronize" => {
                self.pending.remove(&symbols.of(wait.thread));
            }
            Step::Waited(wait) => self.add_wait(wait, symbols),
            Step::Launched(launch) => self.add_launch(launch, symbols),
            // The host may have waited for what it copies, and for its sake.
            Step::Copied(copy) => {
                self.pending.remove(&symbols.of(copy.thread));
                if copy.direction == "to_host" {
                    self.read.insert((symbols.of(copy.device), copy.stream));
                }
            }
            // It may have waited for what it sends, or for all processes.
            Step::Talked { thread } => {
                self.pending.remove(&symbols.of(thread));
            }
            Step::Evicted(_) | Step::Discarded(_) | Step::Accessed(_) | Step::Ended { .. } => {}
        }
        self.keep_small();
    }

    fn add_wait(&mut self, wait: &Waited<'_>, symbols: &mut Symbols) {
        let (device, stream) = (symbols.of(wait.device), wait.stream);
        let thread = symbols.of(wait.thread);
        self.pending.remove(&thread);
        // A wait for an earlier part of the work leaves the stream busy.
        let idle_since_ns = self.finished.get(&(device, stream)).copied();
        if let Some(idle_since_ns) = idle_since_ns.filter(|time_ns| *time_ns <= wait.finished_ns) {
            let call = CallOnStream { site: symbols.of(wait.site), device, stream };
            self.pending.insert(thread, Pending { call, idle_since_ns });
        }
    }

    fn add_launch(&mut self, launch: &Launched<'_>, symbols: &mut Symbols) {
        let stream = (symbols.of(launch.device), launch.stream);
        // The host may have read what came down before it waited.
        let has_read = self.read.remove(&stream);
        if let Some(wait) = self.pending.remove(&symbols.of(launch.thread))
            && (wait.call.device, wait.call.stream) == stream
            && !has_read
        {
            let stall = self.stalls.entry(wait.call).or_default();
            stall.count += 1;
            let until_ns = launch.times.map_or(wait.idle_since_ns, |times| times.0);
            stall.idle_ns += until_ns.saturating_sub(wait.idle_since_ns);
        }
        self.finished.extend(launch.times.map(|times| (stream, times.1)));
    }

    /// Forgets streams and threads once there are very many.
    fn keep_small(&mut self) {
        let of_threads = self.pending.len();
        if of_threads.max(self.finished.len()).max(self.read.len()) > STREAMS_MAX {
            self.pending.clear();
            self.finished.clear();
            self.read.clear();
        }
        if self.stalls.len() > STREAMS_MAX {
            let fewest = self.stalls.iter().min_by_key(|(_, stall)| stall.count);
            let fewest = fewest.map(|(call, _)| *call);
            if let Some(call) = fewest {
                self.stalls.remove(&call);
            }
        }
    }

    pub(super) fn findings(&self, duration_ns: u64, symbols: &Symbols) -> Vec<DocumentFinding> {
        let least_ns = (duration_ns / PART_MIN).max(1);
        let is_large = |stall: &Stalls| stall.count >= COUNT_MIN && stall.idle_ns >= least_ns;
        let large = self.stalls.iter().filter(|(_, stall)| is_large(stall));
        large.map(|(call, stalls)| finding_of(*call, *stalls, symbols)).collect()
    }
}

fn finding_of(call: CallOnStream, stalls: Stalls, symbols: &Symbols) -> DocumentFinding {
    let CallOnStream { site, device, stream } = call;
    DocumentFinding {
        kind: "stalling_wait".to_owned(),
        message: format!(
            "the host waits {} for stream {stream} of {}, and then queues more work there without \
             having read anything",
            times(stalls.count),
            symbols.text(device)
        ),
        change: "Leave out the wait, if nothing else depends on it: work of one stream runs in \
                 order, and reading an array waits for the work that it needs."
            .to_owned(),
        sites: vec![symbols.text(site).to_owned()],
        array: None,
        count: 0,
        bytes: 0,
        nanoseconds: Some(stalls.idle_ns),
        host_memory_bytes: 0,
    }
}
