//! Waits, wakers, and calls inside a body.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use super::fixtures::{
    Accepting, allocate, body, finish, gate, queue_of, seeded, sending_task, task,
};
use crate::engine::ControlOperation;
use crate::{EmbeddedDevice, Emulation};
use resident_backend::scope::is_in_body;
use resident_backend::{Backend, BackendErrorKind, EventTiming, Position, failure};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn both_modes() -> [Arc<EmbeddedDevice>; 2] {
    [EmbeddedDevice::plain(), seeded(1)]
}

#[test]
fn a_wait_inside_a_body_is_refused_if_it_would_block() {
    for device in both_modes() {
        let (stream, other) = (queue_of(&device), device.new_stream(None).unwrap());
        let (sender, receiver) = mpsc::channel();
        let (open, gate) = gate();
        let inner = Arc::clone(&other);
        let event = other.record(EventTiming::Disabled).unwrap();
        event.synchronize().unwrap();
        let seeing = body("seeing", move |_| {
            // This work cannot have completed: it is queued behind the gate, or in a simulation in
            // which this thread is already running an operation.
            let pending = inner.launched(&body("later", |_| ()), &[]);
            let complete = inner.synchronize_to(Position::START).map_err(|error| error.kind);
            let event = event.synchronize().map_err(|error| error.kind);
            let waited = inner.synchronize_to(pending).map_err(|error| error.kind);
            sender.send((is_in_body(), complete, event, waited)).unwrap();
        });
        if device.ordinal() == 0 {
            other.launched(&gate, &[]);
        }
        stream.launched(&seeing, &[]);
        finish(&stream);
        let (inside, complete, event, waited) = receiver.recv().unwrap();
        assert!(inside && !is_in_body());
        assert_eq!(
            (complete, event, waited),
            (Ok(()), Ok(()), Err(BackendErrorKind::InsideKernel))
        );
        drop(open);
        finish(&other);
        assert!(failure::first_between(stream.id(), Position::START, stream.tail()).is_none());
    }
}

#[test]
fn a_trim_inside_a_body_is_refused_while_a_free_is_queued() {
    for device in both_modes() {
        let stream = queue_of(&device);
        let (sender, receiver) = mpsc::channel();
        let (inner_device, inner) = (Arc::clone(&device), Arc::clone(&stream));
        let address = allocate(&stream, 100).unwrap();
        let trimming = body("trimming", move |_| {
            let before = inner_device.trim().map_err(|error| error.kind);
            inner.free(address).unwrap();
            sender.send((before, inner_device.trim().map_err(|error| error.kind))).unwrap();
        });
        stream.launched(&trimming, &[]);
        finish(&stream);
        assert_eq!(receiver.recv().unwrap(), (Ok(()), Err(BackendErrorKind::InsideKernel)));
    }
}

#[test]
fn an_allocation_inside_a_body_does_not_wait_for_frees() {
    for emulation in [Emulation::new().memory(100).seed(1), Emulation::new().memory(100)] {
        let stream = queue_of(&EmbeddedDevice::emulated(emulation));
        let (sender, receiver) = mpsc::channel();
        let inner = Arc::clone(&stream);
        let address = allocate(&stream, 100).unwrap();
        let allocating = body("allocating", move |_| {
            let full = allocate(&inner, 1).map_err(|error| error.kind);
            inner.free(address).unwrap();
            sender.send((full, allocate(&inner, 1).map_err(|error| error.kind))).unwrap();
        });
        stream.launched(&allocating, &[]);
        finish(&stream);
        let full = BackendErrorKind::OutOfMemory { requested: 1, free: 0, draining: 0 };
        assert_eq!(receiver.recv().unwrap(), (Err(full), Err(BackendErrorKind::InsideKernel)));
        assert!(allocate(&stream, 1).is_ok());
    }
}

#[test]
fn a_poll_inside_a_body_runs_nothing() {
    let stream = queue_of(&seeded(1));
    let inner = Arc::clone(&stream);
    let (sender, receiver) = mpsc::channel();
    let polling = body("polling", move |_| sender.send(inner.poll(Position(2)).unwrap()).unwrap());
    stream.launched(&polling, &[]);
    stream.launched(&body("later", |_| ()), &[]);
    finish(&stream);
    assert!(!receiver.recv().unwrap());
}

#[test]
fn a_wait_is_clamped_to_the_last_submitted_position() {
    for device in both_modes() {
        let stream = queue_of(&device);
        stream.launched(&body("one", |_| ()), &[]);
        stream.synchronize_to(Position(99)).unwrap();
        assert_eq!(stream.completed(), Position(1));
    }
}

#[test]
fn a_waker_is_woken_after_completion_and_not_before() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let count = Arc::new(Count::default());
    let task = task(Waker::from(Arc::clone(&count)));
    stream.register_waker(Position(9), &task).unwrap();
    assert_eq!(count.0.load(Ordering::SeqCst), 1, "there was nothing to wait for");
    let (open, gate) = gate();
    let position = stream.launched(&gate, &[]);
    task.set(&Waker::from(Arc::clone(&count)));
    stream.register_waker(position, &task).unwrap();
    stream.register_waker(position, &task).unwrap();
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    drop(open);
    let start = Instant::now();
    while count.0.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::yield_now();
    }
    finish(&stream);
    assert_eq!(count.0.load(Ordering::SeqCst), 2, "registered twice, woken once");
}

#[test]
fn a_task_is_woken_although_its_stream_is_still_busy() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let (receiver, task) = sending_task();
    let (first_open, first) = gate();
    let (open, gate) = gate();
    let position = stream.launched(&first, &[]);
    stream.launched(&gate, &[]);
    stream.register_waker(position, &task).unwrap();
    drop(first_open);
    receiver.recv_timeout(Duration::from_secs(60)).expect("woken while the gate is closed");
    drop(open);
    finish(&stream);
}

/// As `select!` in a loop does, which makes a future in each round and drops it.
#[test]
fn futures_that_were_polled_and_dropped_are_forgotten_before_their_work_is_complete() {
    let device = EmbeddedDevice::plain();
    let stream = device.streams.add(&device.core);
    let count = Arc::new(Count::default());
    let kept = task(Waker::from(Arc::clone(&count)));
    assert!(stream.progress.register(Position(1), &kept).is_empty());
    for _ in 0..10_000 {
        assert!(stream.progress.register(Position(1), &Arc::default()).is_empty());
        assert!(stream.progress.waiter_count() <= 64);
    }
    assert_eq!(stream.submit_control(ControlOperation::Record(None), |_, _| ()), Ok(Position(1)));
    while count.0.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(stream.progress.waiter_count(), 0);
}

/// A thread that submits may hold an array's lock, so it must wake no task: user code runs there.
/// The task waits for the position that the submitted operation gets.
#[test]
fn an_operation_that_runs_at_once_leaves_tasks_to_the_worker() {
    let device = EmbeddedDevice::plain();
    let stream = device.streams.add(&device.core);
    let address = device.core.memory.allocate(64).expect("room");
    device.core.memory.begin_free(address).expect("it is allocated");
    let controls = [ControlOperation::Record(None), ControlOperation::Free(address)];
    for control in controls {
        let position = Position(stream.tail().0 + 1);
        let (receiver, waiting) = sending_task();
        assert!(stream.progress.register(position, &waiting).is_empty());
        let submitted = stream.submit_control(control, |_, _| ()).expect("it runs");
        assert_eq!(submitted, position);
        let woken_on = receiver.recv_timeout(Duration::from_secs(60)).expect("it is woken");
        assert_ne!(woken_on, std::thread::current().id());
        while !stream.progress.is_complete(stream.tail()) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_task_on_a_seeded_stream_completes() {
    let stream = queue_of(&seeded(4));
    for _ in 0..5 {
        stream.launched(&body("work", |_| ()), &[]);
    }
    let count = Arc::new(Count::default());
    let (position, mut polls) = (stream.tail(), 0);
    // A minimal executor: polls once for each wake-up.
    while !stream.poll(position).unwrap() {
        polls += 1;
        let task = task(Waker::from(Arc::clone(&count)));
        stream.register_waker(position, &task).unwrap();
        assert!(count.0.load(Ordering::SeqCst) >= polls, "each poll is followed by a wake-up");
    }
    assert_eq!(polls, 4, "each poll runs one operation");
}

#[test]
fn a_waker_that_panics_leaves_the_stream_running() {
    struct Panicking;
    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("a waker of a test");
        }
    }
    let stream = queue_of(&EmbeddedDevice::plain());
    let (open, gate) = gate();
    stream.launched(&gate, &[]);
    let task = task(Waker::from(Arc::new(Panicking)));
    stream.register_waker(stream.tail(), &task).unwrap();
    drop(open);
    finish(&stream);
    let after = stream.launched(&body("after", |_| ()), &[]);
    finish(&stream);
    assert!(stream.completed() >= after);
}
