//! A long run in one process, of a program like a server, with short-lived streams, arrays and
//! guards, one like a batch job, with arrays that live long and are used in parts, one with arrays
//! of each kind and each kind of host memory, and a server on the stand-in for a GPU, in turn.
//!
//! `RESIDENT_SOAK_SECONDS` sets how long it runs; 10 by default. The first tenth warms up. After
//! some round of the last tenth, the process must have no more memory than it had at most then,
//! within 2 % and 1 MiB, no more of the driver's streams and events, and not 100 threads more:
//! threads of dropped streams may be many for a moment, while what is leaked is there after each
//! round. What grows makes the quickest round of the last tenth slower than that of the first, and
//! other programs disturb the quickest least; on a shared machine it may take three times as long.
//! Where nothing else runs, `RESIDENT_SOAK_TIME_MAX=1.02` allows 2 %. With
//! `RESIDENT_SOAK_ROUNDS_PER_SECOND` the process sleeps between rounds. Each tenth is printed.

mod programs;

use std::time::{Duration, Instant};

use crate::environment::asked;
#[cfg(feature = "cuda")]
use programs::GpuServer;
use programs::{Batch, Server, add_one, pass_through_all_kinds};
use support::prelude::*;

/// The memory that an allocator may take at any time.
const SLACK_BYTES: u64 = 1 << 20;

/// What the quickest round of the last tenth may take, as a multiple of the first tenth's.
const TIME_MAX: f64 = 3.0;

/// A busy machine may stop the process for the whole first tenth.
const WARM_ROUNDS_MIN: u64 = 10;

/// In shorter runs a tenth has too few rounds for the quickest to be undisturbed.
const TIMED_SECONDS: u64 = 30;

/// The threads of streams that were dropped a moment ago. A program like a server drops thousands.
const SLACK_THREADS: u64 = 100;

fn seconds() -> u64 {
    asked("RESIDENT_SOAK_SECONDS", 10)
}

/// What a process has.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    memory_bytes: u64,
    threads: u64,
    /// The driver's, on the stand-in for a GPU.
    streams: u64,
    events: u64,
}

impl Usage {
    fn now([streams, events]: [u64; 2]) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).expect(name);
            let number = line.split_whitespace().nth(1).expect(name);
            number.parse().expect(name)
        };
        Self { memory_bytes: field("VmRSS:") << 10, threads: field("Threads:"), streams, events }
    }

    fn zip(self, other: Self, choose: fn(u64, u64) -> u64) -> Self {
        Self {
            memory_bytes: choose(self.memory_bytes, other.memory_bytes),
            threads: choose(self.threads, other.threads),
            streams: choose(self.streams, other.streams),
            events: choose(self.events, other.events),
        }
    }
}

/// What was seen in a tenth of the run.
#[derive(Clone, Copy, Debug)]
struct Tenth {
    quickest_ms: f64,
    least: Usage,
    most: Usage,
}

/// The programs' rounds, and how many a second there are at most.
struct Run<R> {
    round: R,
    number: u64,
    start: Instant,
    /// Zero if there is no limit.
    rounds_per_second: f64,
}

impl<R: FnMut(u64) -> [u64; 2]> Run<R> {
    /// Runs rounds until so much time has passed since the start.
    fn until(&mut self, end: Duration, rounds_min: u64) -> Tenth {
        let (mut seen, first) = (None, self.number);
        while self.start.elapsed() < end || self.number < first + rounds_min {
            let began = Instant::now();
            let usage = Usage::now((self.round)(self.number));
            let ms = began.elapsed().as_secs_f64() * 1e3;
            let before = seen.unwrap_or(Tenth { quickest_ms: ms, least: usage, most: usage });
            seen = Some(Tenth {
                quickest_ms: before.quickest_ms.min(ms),
                least: before.least.zip(usage, u64::min),
                most: before.most.zip(usage, u64::max),
            });
            self.number += 1;
            self.pause();
        }
        seen.expect("there was a round")
    }

    fn pause(&self) {
        if self.rounds_per_second > 0.0 {
            let next = Duration::from_secs_f64(self.number as f64 / self.rounds_per_second);
            std::thread::sleep(next.saturating_sub(self.start.elapsed()));
        }
    }
}

/// Runs `round`, which returns how many streams and events are open, for the time asked for, and
/// compares the last tenth with the first.
fn soak(round: impl FnMut(u64) -> [u64; 2]) {
    let limit = Duration::from_secs(seconds());
    let rounds_per_second = asked("RESIDENT_SOAK_ROUNDS_PER_SECOND", 0.0);
    let mut run = Run { round, number: 0, start: Instant::now(), rounds_per_second };
    let tenths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|tenth| {
        let rounds_min = if tenth == 1 { WARM_ROUNDS_MIN } else { 1 };
        let seen = run.until(limit * tenth / 10, rounds_min);
        println!("after {} rounds: {seen:?}", run.number);
        seen
    });
    let (warm, last) = (tenths[0], tenths[9]);
    let is_slower = last.quickest_ms > asked("RESIDENT_SOAK_TIME_MAX", TIME_MAX) * warm.quickest_ms;
    assert!(!is_slower || seconds() < TIMED_SECONDS, "{warm:?} became {last:?}");
    let (warm, last) = (warm.most, last.least);
    let memory_max = warm.memory_bytes + warm.memory_bytes / 50 + SLACK_BYTES;
    assert!(last.memory_bytes <= memory_max, "{warm:?} became {last:?}");
    assert!(last.threads <= warm.threads + SLACK_THREADS, "{warm:?} became {last:?}");
    assert!(last.streams <= warm.streams, "{warm:?} became {last:?}");
    assert!(last.events <= warm.events, "{warm:?} became {last:?}");
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn programs_in_turn() {
    let (device, kernel) = (Device::cpu(), add_one());
    let _here = device.enter();
    let (server, mut batch) = (Server::new(), Batch::new());
    #[cfg(feature = "cuda")]
    let mut gpu_server = GpuServer::new();
    soak(|round| {
        server.run();
        batch.run(round);
        for _ in 0..5 {
            pass_through_all_kinds(&device, &kernel).expect("nothing fails");
        }
        #[cfg(feature = "cuda")]
        return gpu_server.run();
        #[cfg(not(feature = "cuda"))]
        [0, 0]
    });
    drop((server, batch));
    // It tells of a launch of the server that failed.
    let _told = device.synchronize();
    assert_eq!((device.memory().in_use, device.memory().pinned), (0, 0));
}

/// Other tests of this program would disturb the counts, so the programs run in a process that runs
/// nothing else.
#[test]
fn long_runs_take_no_more_memory_threads_or_time() {
    let limit = Duration::from_secs(2 * seconds()) + own_process::HANG_LIMIT;
    let test = test_name!(programs_in_turn);
    let output = own_process::run_within(limit, test, &[]);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert_success(&output, test);
}
