//! Threads that use arrays over each kind of host memory on several embedded devices at once, with
//! worker threads and with seeds: ordinary, page-locked, pinned, mapped and managed memory, and
//! memory that is lent for a call. Each array has a model on the host, with which its contents are
//! compared. Threads hand arrays and pending copies to each other, and read one array together.
//!
//! `RESIDENT_STRESS_SECONDS` sets how long it runs, 2 by default, `RESIDENT_STRESS_THREADS` the
//! number of threads, and `RESIDENT_STRESS_SEED` what they do. Their steps are those of the seed,
//! but not the order in which threads and devices take turns.

mod random;
mod steps;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use support::watched::{assert_no_hazard, assert_nothing_left};

use crate::environment::asked;
use steps::Kernels;
use support::prelude::*;
use worker::Worker;

/// How often the devices are asked for hazards.
const LOOK_EVERY: Duration = Duration::from_millis(200);

fn seconds() -> u64 {
    asked("RESIDENT_STRESS_SECONDS", 2)
}

/// An array, and what it must contain.
struct Modelled {
    array: SmartArray<u32, Ix2>,
    model: Array2<u32>,
}

/// A copy to the host that is under way, and what it must contain.
struct Promised {
    pending: Pending<Array<u32, Ix2>>,
    model: Array2<u32>,
}

impl Promised {
    fn check(self) {
        assert_eq!(self.pending.wait().expect("nothing fails"), self.model);
    }
}

/// What the threads share.
struct Lab {
    devices: Vec<Device>,
    /// Three of each device.
    streams: Vec<Stream>,
    kernels: Kernels,
    /// Arrays that threads hand to each other.
    handed_on: Mutex<Vec<Modelled>>,
    promised: Mutex<Vec<Promised>>,
    /// An array that several threads read at once.
    read_by_all: RwLock<Modelled>,
    steps: AtomicU64,
    is_over: AtomicBool,
}

impl Lab {
    fn new(seed: u64) -> Self {
        let emulated = [
            Emulation::new().poison(true),
            // More memory than is used; but a device with a limit keeps account of its guards.
            Emulation::new().pieces(700).memory(64 << 20).page_bytes(64),
            Emulation::new().seed(seed).poison(true),
            Emulation::new().seed(seed + 1).pieces(700).page_bytes(64),
        ];
        let devices: Vec<_> =
            [Device::cpu()].into_iter().chain(emulated.map(Device::emulated)).collect();
        let new_stream = |device: &Device| device.new_stream().expect("a stream");
        let streams = devices
            .iter()
            .flat_map(|device| [device.stream(), new_stream(device), new_stream(device)])
            .collect();
        let model = Array2::from_shape_fn((24, 40), |(row, column)| (row * 40 + column) as u32);
        Self {
            devices,
            streams,
            kernels: Kernels::new(),
            handed_on: Mutex::default(),
            promised: Mutex::default(),
            read_by_all: RwLock::new(Modelled { array: SmartArray::from(model.clone()), model }),
            steps: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// The devices with a race check.
    fn emulated(&self) -> &[Device] {
        &self.devices[1..]
    }

    /// Runs the threads for the time asked for, or until one of them fails or there is a hazard.
    fn run(&self, seed: u64) {
        let threads = asked("RESIDENT_STRESS_THREADS", 4);
        println!("seed {seed}, {threads} threads");
        let (start, limit) = (Instant::now(), Duration::from_secs(seconds()));
        thread::scope(|scope| {
            for number in 0..threads {
                scope.spawn(move || Worker::new(self, seed * 1000 + number).run());
            }
            let _ended = Ending(self);
            while start.elapsed() < limit && !self.is_over() {
                thread::sleep(LOOK_EVERY);
                assert_no_hazard(self.emulated());
            }
        });
        let steps = self.steps.load(Ordering::Relaxed);
        println!("{steps} steps in {:?}", start.elapsed());
    }

    /// Drops all arrays and compares what is left with nothing.
    fn finish(self) {
        let Self { devices, streams, kernels, handed_on, promised, read_by_all, .. } = self;
        promised.into_inner().expect("no thread panicked").into_iter().for_each(Promised::check);
        drop((kernels, handed_on, read_by_all));
        for stream in &streams {
            stream.synchronize().expect("nothing fails");
        }
        assert_nothing_left(&devices[1..]);
        for device in &devices {
            let memory = device.memory();
            assert_eq!((memory.in_use, memory.pinned), (0, 0), "bytes left on {device}");
        }
        assert_eq!(audit::inventory().len(), 0, "arrays are left");
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Ends the run when it drops, also if its thread panics.
struct Ending<'l>(&'l Lab);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn threads_at_once() {
    let seed = asked("RESIDENT_STRESS_SEED", 1);
    let lab = Lab::new(seed);
    lab.run(seed);
    lab.finish();
}

/// Other tests of this program would disturb the counts of `Device::cpu()`.
#[test]
fn threads_that_share_devices_and_arrays_see_what_was_written_and_leave_nothing() {
    let limit = Duration::from_secs(seconds()) + own_process::HANG_LIMIT;
    let test = test_name!(threads_at_once);
    let output = own_process::run_within(limit, test, &[]);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert_success(&output, test);
}
