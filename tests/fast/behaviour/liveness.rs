//! No program hangs that waits only for work that can run: seeded devices and devices with worker
//! threads, mixed over threads; tasks behind and in front of long work.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use resident::Event;
use support::own_process::HANG_LIMIT;
use support::prelude::*;

/// Sleeps for so many microseconds, and adds 1 to each element.
fn nap() -> Kernel<(u64, InOut<u64, Ix1>)> {
    Kernel::new("nap").host(|_grid, (micros, mut x)| {
        std::thread::sleep(Duration::from_micros(micros));
        x += 1;
    })
}

fn array() -> SmartArray<u64, Ix1> {
    SmartArray::zeros(4)
}

/// The seeded stream waits for the worker stream, which waits for the seeded one; the wait that the
/// host makes lies before both.
#[test]
fn a_worker_that_runs_a_simulation_stops_at_the_position_that_it_needs() {
    without_deadlock(|| {
        for seed in 0..20 {
            let (seeded, worker) = (Device::emulated(Emulation::new().seed(seed)), Device::cpu());
            cross(&nap(), &seeded.stream(), &worker.new_stream().unwrap()).unwrap();
        }
    });
}

fn cross(nap: &Kernel<(u64, InOut<u64, Ix1>)>, left: &Stream, right: &Stream) -> Result<()> {
    let (mut a, mut b, grid) = (array(), array(), Grid::cover(1));
    nap.launch_on(left, grid, (300, &mut a))?;
    let first = left.record()?;
    nap.launch_on(right, grid, (100, &mut b))?;
    right.wait(&first)?;
    left.wait(&right.record()?)?;
    first.synchronize()?;
    right.synchronize()?;
    left.synchronize()
}

/// A task awaits a seeded stream, which waits for the seeded stream of a thread that is gone.
#[test]
fn a_task_runs_the_simulations_that_its_stream_waits_for() {
    without_deadlock(|| {
        let (nap, worker) = (nap(), Device::cpu().new_stream().unwrap());
        let other = std::thread::spawn(|| Device::emulated(Emulation::new().seed(1)).stream());
        let (other, own) = (other.join().unwrap(), Device::emulated(Emulation::new().seed(2)));
        let (mut a, mut b) = (array(), array());
        nap.launch_on(&other, Grid::cover(1), (0, &mut a)).unwrap();
        // By way of a stream with a worker, and directly.
        worker.wait(&other.record().unwrap()).unwrap();
        for event in [worker.record().unwrap(), other.record().unwrap()] {
            own.stream().wait(&event).unwrap();
            nap.launch_on(&own.stream(), Grid::cover(1), (0, &mut b)).unwrap();
            assert_eq!(
                block_on(b.snapshot_on(&own.stream()).unwrap()).unwrap()[0],
                b.get(0).unwrap()
            );
            nap.launch_on(&other, Grid::cover(1), (0, &mut a)).unwrap();
        }
        own.stream().wait(&other.record().unwrap()).unwrap();
        block_on(own.stream().done()).unwrap();
        assert!(other.is_idle().unwrap());
    });
}

/// Threads with streams of seeded devices and of worker devices launch, record, wait, await, copy,
/// release, read and synchronise in random orders. They share events, and an array that they read.
#[test]
fn seeded_and_worker_devices_mixed_over_threads_never_hang() {
    without_deadlock(|| {
        for seed in 0..sampled(16, 60) {
            let devices = [
                Device::emulated(Emulation::new().seed(seed)),
                Device::emulated(Emulation::new()),
                Device::cpu(),
            ];
            let shared = Shared { events: Mutex::default(), ones: SmartArray::ones(4) };
            let kernel = nap();
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let (devices, kernel, shared) = (&devices, &kernel, &shared);
                    let own = seed * 8 + thread;
                    scope.spawn(move || wander(devices, kernel, shared, own).unwrap());
                }
            });
        }
    });
}

/// What the threads share.
struct Shared {
    events: Mutex<Vec<Event>>,
    ones: SmartArray<u64, Ix1>,
}

impl Shared {
    fn last_event(&self) -> Option<Event> {
        self.events.lock().unwrap().last().cloned()
    }
}

fn wander(
    devices: &[Device; 3],
    kernel: &Kernel<(u64, InOut<u64, Ix1>)>,
    shared: &Shared,
    seed: u64,
) -> Result<()> {
    // A simulation belongs to the thread that made its device: this thread has one of its own too.
    let (own, mut choices) = (Device::emulated(Emulation::new().seed(seed)), Random::new(seed));
    let mut streams = vec![own.stream(), own.new_stream()?];
    for device in devices {
        streams.push(device.new_stream()?);
    }
    let (mut arrays, mut launches) = ([array(), array()], [0_u64; 2]);
    for _ in 0..40 {
        let (stream, at) = (&streams[choices.below(streams.len())], choices.below(2));
        match choices.below(12) {
            0 | 1 => {
                let micros = choices.below(60) as u64;
                kernel.launch_on(stream, Grid::cover(1), (micros, &mut arrays[at]))?;
                launches[at] += 1;
            }
            2 => {
                let event = stream.record()?;
                shared.events.lock().unwrap().push(event);
            }
            3 => shared.last_event().map_or(Ok(()), |event| stream.wait(&event))?,
            4 => assert_eq!(arrays[at].get(0)?, launches[at]),
            5 => block_on(stream.done())?,
            6 => assert_eq!(block_on(arrays[at].snapshot_on(stream)?)?[3], launches[at]),
            7 => arrays[at].prefetch(stream)?,
            8 => {
                let [left, right] = &mut arrays;
                left.assign_on(stream, &*right)?;
                launches[0] = launches[1];
            }
            9 => arrays[at].release_on(&stream.device())?,
            10 => drop((shared.ones.gpu_on(stream)?, shared.ones.get(2)?)),
            _ => shared.last_event().map_or(Ok(()), |event| event.synchronize())?,
        }
    }
    streams.iter().try_for_each(|stream| stream.synchronize())
}

/// Wakes by a message.
struct Message(mpsc::Sender<()>);

impl Wake for Message {
    fn wake(self: Arc<Self>) {
        let _the_test_has_ended = self.0.send(());
    }
}

/// The kernel behind the snapshot waits for what the task does with the snapshot.
#[test]
fn a_snapshot_wakes_its_task_although_the_stream_is_busy_behind_it() {
    without_deadlock(|| {
        let (stream, first) = (Device::cpu().new_stream().unwrap(), nap());
        let (sender, receiver) = mpsc::channel::<u64>();
        let receiver = Mutex::new(receiver);
        let answered =
            Kernel::<(InOut<u64, Ix1>,)>::new("answered").host(move |_grid, (mut x,)| {
                let answer = receiver.lock().unwrap().recv_timeout(HANG_LIMIT);
                x += answer.unwrap_or(1_000_000);
            });
        let mut x = array();
        first.launch_on(&stream, Grid::cover(1), (20_000, &mut x)).unwrap();
        let mut snapshot = pin!(x.snapshot_on(&stream).unwrap());
        answered.launch_on(&stream, Grid::cover(1), (&mut x,)).unwrap();
        let (woken, wakes) = mpsc::channel();
        let waker = Waker::from(Arc::new(Message(woken)));
        let seen = loop {
            match snapshot.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(seen) => break seen.unwrap(),
                Poll::Pending => wakes.recv_timeout(HANG_LIMIT).expect("it is woken"),
            }
        };
        assert_eq!(seen[0], 1);
        sender.send(5).unwrap();
        assert_eq!(x.get(0).unwrap(), 6);
    });
}

/// Uses the library, as a waker may: it looks at all arrays.
struct Looking(Arc<AtomicBool>);

impl Wake for Looking {
    fn wake(self: Arc<Self>) {
        assert!(!audit::inventory().is_empty(), "the test's array is alive");
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A free that runs on the calling thread, under the array's lock, completes a position that a task
/// waits for.
#[test]
fn a_waker_never_runs_under_the_lock_of_an_array() {
    without_deadlock(|| {
        let done = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Busy threads make it likely that the worker is interrupted before it wakes the task.
            for _ in 0..2 {
                let done = Arc::clone(&done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            (0..sampled(40, 100)).for_each(|_| release_with_a_waker().unwrap());
            done.store(true, Ordering::Relaxed);
        });
    });
}

fn release_with_a_waker() -> Result<()> {
    let device = Device::cpu();
    let (stream, woken) = (device.new_stream()?, Arc::new(AtomicBool::new(false)));
    let mut x = array();
    x.prefetch(&stream)?;
    nap().launch_on(&stream, Grid::cover(1), (0, &mut x))?;
    let mut snapshot = pin!(x.snapshot_on(&stream)?);
    let waker = Waker::from(Arc::new(Looking(Arc::clone(&woken))));
    let is_pending = snapshot.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
    while !stream.is_idle()? {
        std::hint::spin_loop();
    }
    x.release_on(&device)?;
    while is_pending && !woken.load(Ordering::SeqCst) {
        std::hint::spin_loop();
    }
    Ok(())
}

#[test]
fn an_index_beyond_all_numbers_is_an_error() {
    let mut array = SmartArray::<f32, _>::zeros((3, 4));
    for index in [(1, isize::MAX as usize), (usize::MAX, usize::MAX), (3, 0)] {
        assert!(matches!(array.set(index, 1.0), Err(Error::Shape { .. })));
        assert!(matches!(array.get(index), Err(Error::Shape { .. })));
    }
}

/// The numbers of threads of this process that run host functions.
#[cfg(target_os = "linux")]
fn host_threads() -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("resident host")).count()
}

#[test]
#[cfg(target_os = "linux")]
fn threads_that_run_host_functions_end_when_there_are_none() {
    support::own_process!();
    without_deadlock(|| {
        let (device, kernel) = (Device::emulated(Emulation::new()), nap());
        for _round in 0..20 {
            let functions = Vec::from_iter((0..10).map(|_| {
                let (stream, mut array) = (device.new_stream().unwrap(), array());
                kernel.launch_on(&stream, Grid::cover(1), (10, &mut array)).unwrap();
                stream.launch_host_function(move || array.host().map(drop)).unwrap()
            }));
            // The thread of this function is there, and has its name, until the count is over.
            let (begun, begins) = mpsc::channel();
            let (lets_end, end) = mpsc::channel::<()>();
            let held = device.new_stream().unwrap().launch_host_function(move || {
                begun.send(()).expect("the test waits");
                end.recv().expect("the test lets it end");
            });
            begins.recv().expect("it begins");
            assert!(host_threads() > 0);
            lets_end.send(()).expect("it waits");
            held.unwrap().wait().unwrap();
            functions.into_iter().for_each(|function| function.wait().unwrap().unwrap());
        }
        while host_threads() > 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}
