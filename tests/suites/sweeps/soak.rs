//! A long run in one process, of a program like a server, with short-lived streams, arrays and
//! guards, one like a batch job, with arrays that live long and are used in parts, and one with
//! arrays of each kind and each kind of host memory, in turn.
//!
//! `RESIDENT_SOAK_SECONDS` sets how long it runs; 10 by default. The first tenth warms up. After
//! some round of the last tenth, the process must have no more memory than it had at most then,
//! within 2 % and 1 MiB, and not 100 threads more: threads of dropped streams may be many for a
//! moment, while what is leaked is there after each round. What grows makes the quickest round of
//! the last tenth slower than that of the first, and other programs disturb the quickest least; on
//! a shared machine it may take three times as long. Where nothing else runs,
//! `RESIDENT_SOAK_TIME_MAX=1.02` allows 2 %.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::{Duration, Instant};

use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::{Array1, Ix1, Ix2, s};
use resident::{
    Device, DeviceArray, Error, Grid, In, InOut, Kernel, ManagedArray, MappedArray, PinnedArray,
    Result, SmartArray, Stream, field, field_mut, with_mapped, with_pinned,
};
use support::own_process::{self, assert_success};
use support::test_name;

/// The memory that an allocator may take at any time.
const SLACK_BYTES: u64 = 1 << 20;

/// What the quickest round of the last tenth may take, as a multiple of the first tenth's.
const TIME_MAX: f64 = 3.0;

/// A busy machine may stop the process for the whole first tenth.
const WARM_ROUNDS_MIN: u32 = 10;

/// In shorter runs a tenth has too few rounds for the quickest to be undisturbed.
const TIMED_SECONDS: u64 = 30;

/// The threads of streams that were dropped a moment ago. A program like a server drops thousands.
const SLACK_THREADS: u64 = 100;

/// The number in an environment variable.
fn asked<N: FromStr<Err: Debug>>(variable: &str, usual: N) -> N {
    let text = std::env::var(variable).ok();
    text.map_or(usual, |text| text.parse().expect(variable))
}

fn seconds() -> u64 {
    asked("RESIDENT_SOAK_SECONDS", 10)
}

/// What a process has: bytes of memory in use, and threads.
#[derive(Clone, Copy, Debug)]
struct Usage {
    memory_bytes: u64,
    threads: u64,
}

impl Usage {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).expect(name);
            let number = line.split_whitespace().nth(1).expect(name);
            number.parse().expect(name)
        };
        Self { memory_bytes: field("VmRSS:") << 10, threads: field("Threads:") }
    }

    fn zip(self, other: Self, choose: fn(u64, u64) -> u64) -> Self {
        Self {
            memory_bytes: choose(self.memory_bytes, other.memory_bytes),
            threads: choose(self.threads, other.threads),
        }
    }
}

/// Runs `round` for the time asked for, and compares the end with the end of the first tenth.
fn soak(mut round: impl FnMut(u64)) {
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds()));
    let mut number = 0;
    let mut run_until = |end: Duration, rounds_min: u32, choose: fn(u64, u64) -> u64| {
        let (mut rounds, mut usage, mut quickest) = (0, None, Duration::MAX);
        while start.elapsed() < end || rounds < rounds_min {
            let began = Instant::now();
            round(number);
            quickest = quickest.min(began.elapsed());
            rounds += 1;
            number += 1;
            let now = Usage::now();
            usage = Some(usage.map_or(now, |seen: Usage| seen.zip(now, choose)));
        }
        (quickest.as_secs_f64() * 1e3, usage.expect("there was a round"))
    };
    let (warm_ms, warm) = run_until(limit / 10, WARM_ROUNDS_MIN, u64::max);
    let _ = run_until(limit * 9 / 10, 1, u64::max);
    let (last_ms, last) = run_until(limit, 1, u64::min);
    println!(
        "{warm_ms:.2} ms for the quickest round and {warm:?} at first, {last_ms:.2} ms and \
         {last:?} at last, {number} rounds"
    );
    let is_slower = last_ms > asked("RESIDENT_SOAK_TIME_MAX", TIME_MAX) * warm_ms;
    assert!(!is_slower || seconds() < TIMED_SECONDS, "{warm_ms} ms became {last_ms} ms");
    let memory_max = warm.memory_bytes + warm.memory_bytes / 50 + SLACK_BYTES;
    assert!(last.memory_bytes <= memory_max, "{warm:?} became {last:?}");
    assert!(last.threads <= warm.threads + SLACK_THREADS, "{warm:?} became {last:?}");
}

fn add_one() -> Kernel<(InOut<f32>,)> {
    Kernel::new("add_one").host(|_, (xs,): (&mut [f32],)| xs.iter_mut().for_each(|x| *x += 1.0))
}

/// One request: a stream of its own, an array that comes and goes, a shared one that is read, and
/// a launch that fails.
fn request(
    device: &Device,
    shared: &SmartArray<f32, Ix1>,
    [kernel, fails]: [&Kernel<(InOut<f32>,)>; 2],
) {
    let stream = device.new_stream().expect("a stream");
    let mut array = SmartArray::from(vec![1.0_f32; 256]);
    kernel.launch_on(&stream, Grid::cover(256), (&mut array,)).expect("launched");
    drop(shared.gpu_on(&stream).expect("room"));
    drop(shared.slice(s![3..9]).gpu_on(&stream).expect("room"));
    let other = device.new_stream().expect("a stream");
    other.wait(&stream.record().expect("an event")).expect("a wait");
    kernel.launch_on(&other, Grid::cover(256), (&mut array,)).expect("launched");
    assert_eq!(array.get(7).expect("copied"), 3.0);
    assert_eq!(array.host().expect("copied").sum(), 3.0 * 256.0);
    other.synchronize().expect("nothing failed");
    fails.launch_on(&other, Grid::cover(256), (&mut array,)).expect("launched");
    assert!(matches!(array.host(), Err(Error::Lost { .. })));
}

/// A program like a server.
struct Server {
    device: Device,
    shared: SmartArray<f32, Ix1>,
    kernel: Kernel<(InOut<f32>,)>,
    fails: Kernel<(InOut<f32>,)>,
}

impl Server {
    fn new() -> Self {
        // No hook is called, so that nothing is printed.
        let fails = Kernel::<(InOut<f32>,)>::new("fails")
            .host(|_, (_xs,)| std::panic::resume_unwind(Box::new("no such value")));
        Self { device: Device::cpu(), shared: SmartArray::zeros(1 << 12), kernel: add_one(), fails }
    }

    fn run(&self) {
        for _ in 0..20 {
            request(&self.device, &self.shared, [&self.kernel, &self.fails]);
        }
    }
}

/// Long-lived arrays of a batch job.
struct Batch {
    streams: Vec<Stream>,
    matrix: SmartArray<f32, Ix2>,
    sums: SmartArray<f32, Ix1>,
    smooth: Kernel<(In<f32, Ix2>, InOut<f32>)>,
    add_one: Kernel<(InOut<f32>,)>,
}

impl Batch {
    fn new() -> Self {
        let device = Device::cpu();
        let smooth = Kernel::<(In<f32, Ix2>, InOut<f32>)>::new("smooth")
            .host(|_, (tile, sums)| sums[0] = tile.sum());
        Self {
            streams: (0..4).map(|_| device.new_stream().expect("a stream")).collect(),
            matrix: SmartArray::zeros((64, 64)),
            sums: SmartArray::zeros(64),
            smooth,
            add_one: add_one(),
        }
    }

    /// Writes rows on devices and on the host, reads overlapping tiles, fills parts, and looks.
    fn run(&mut self, round: u64) {
        for step in 0..64_usize {
            let stream = &self.streams[(step + round as usize) % 4];
            let mut row = self.matrix.slice_mut(s![step, ..]);
            self.add_one.launch_on(stream, Grid::cover(64), (&mut row,)).expect("launched");
            let top = step.saturating_sub(2);
            let tile = self.matrix.slice(s![top..(step + 3).min(64), 10..40]);
            let mut sum = self.sums.slice_mut(s![step..=step]);
            self.smooth.launch_on(stream, Grid::cover(1), (&tile, &mut sum)).expect("launched");
        }
        let column = (round % 64) as usize;
        self.matrix.slice_mut(s![.., column]).fill(round as f32).expect("filled");
        self.matrix.set((column, 3), 1.0).expect("set");
        assert_eq!(self.matrix.get((column, 3)).expect("there"), 1.0);
        self.sums.host().map(drop).expect("copied");
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    mass: f32,
    charge: f32,
}

/// Short-lived arrays of each kind, and copies between them, some of which nothing waits for.
fn pass_through_all_kinds(device: &Device, add_one: &Kernel<(InOut<f32>,)>) -> Result<()> {
    let stream = device.new_stream()?;
    let mut lent = Array1::<f32>::ones(256);
    let mut there = DeviceArray::from_host_on(&stream, &lent)?;
    let mut pinned = PinnedArray::from_array(lent.view())?;
    add_one.launch_on(&stream, Grid::cover(256), (&mut there,))?;
    there.copy_to_pinned_on(&stream, &mut pinned)?;
    there.copy_from_pinned_on(&stream, &pinned)?;
    drop(there.copy_to_host_on(&stream)?);
    let mut rows = DeviceArray::uninit_on(&stream, (9, 256))?;
    rows.copy_from_device_on(&stream, &there.broadcast((9, 256))?)?;
    let pending = rows.t().copy_to_host_on(&stream)?;
    let mut mapped = MappedArray::from_array(lent.view())?;
    add_one.launch_on(&stream, Grid::cover(256), (&mut mapped,))?;
    let managed = SmartArray::from(ManagedArray::from_array(mapped.host()?.view())?);
    let live = managed.watch()?;
    with_pinned(&mut lent, |lent| there.copy_to_pinned_on(&stream, lent))?;
    with_mapped(&mut lent, |lent| add_one.launch_on(&stream, Grid::cover(256), (lent,)))?;
    assert_eq!((lent.sum(), managed.host()?.sum()), (768.0, 512.0));
    let mut cloud = SmartArray::from(vec![Particle { mass: 1.0, charge: 2.0 }; 64]);
    let (mut mass, charge) = field_mut!(cloud, Particle, mass, charge);
    mass.assign_on(&stream, &charge)?;
    drop(live);
    let explicit = cloud.into_device(device)?;
    assert_eq!(field!(explicit, Particle, mass).get(63)?, 2.0);
    assert_eq!((pending.wait()?.sum(), pinned.host()?.sum()), (9.0 * 512.0, 512.0));
    Ok(())
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn three_programs() {
    let (device, kernel) = (Device::cpu(), add_one());
    let _here = device.enter();
    let (server, mut batch) = (Server::new(), Batch::new());
    soak(|round| {
        server.run();
        batch.run(round);
        for _ in 0..5 {
            pass_through_all_kinds(&device, &kernel).expect("nothing fails");
        }
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
    let test = test_name!(three_programs);
    let output = own_process::run_within(limit, test, &[]);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert_success(&output, test);
}
