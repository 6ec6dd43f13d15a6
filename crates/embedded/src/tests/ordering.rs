//! The order of work on worker threads: work of one stream runs in order, work of two streams is
//! ordered only by events.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::fixtures::{
    Accepting, HostBytes, allocate, body, contents, fill, finish, gate, increment, launch,
    queue_of, seeded, upload,
};
use crate::EmbeddedDevice;
use resident_backend::{Backend, EventTiming, Position};
use resident_core::Access;

const ROUNDS: usize = if cfg!(miri) { 20 } else { 1000 };

#[test]
fn work_of_one_stream_runs_in_the_order_of_submission() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let ran = Arc::new(Mutex::new(Vec::new()));
    for number in 0..ROUNDS {
        let ran = Arc::clone(&ran);
        let position =
            stream.launched(&body("note", move |_| ran.lock().unwrap().push(number)), &[]);
        assert_eq!(position, Position(number as u64 + 1));
    }
    assert_eq!(stream.tail(), Position(ROUNDS as u64));
    finish(&stream);
    assert_eq!(stream.completed(), stream.tail());
    assert_eq!(*ran.lock().unwrap(), (0..ROUNDS).collect::<Vec<_>>());
}

#[test]
fn a_slow_stream_does_not_delay_another() {
    let device = EmbeddedDevice::plain();
    let (slow, quick) = (queue_of(&device), device.new_stream(None).unwrap());
    let (open, gate) = gate();
    let held = slow.launched(&gate, &[]);
    let address = allocate(&quick, 4).unwrap();
    quick.queued(upload(&HostBytes::new([1, 2, 3, 4]), address, 4));
    quick.launched(&increment(), &[(address, 4, Access::ReadWrite)]);
    assert_eq!(contents(&quick, address, 4), [2, 3, 4, 5]);
    assert!(!slow.poll(held).unwrap());
    drop(open);
    finish(&slow);
    assert!(slow.poll(held).unwrap());
}

#[test]
fn work_after_an_event_sees_earlier_writes() {
    let device = EmbeddedDevice::plain();
    let streams =
        [queue_of(&device), device.new_stream(None).unwrap(), device.new_stream(None).unwrap()];
    let address = allocate(&streams[0], 64).unwrap();
    streams[0].queued(fill(address, super::fixtures::contiguous(0, 64), &[0]));
    let increment = increment();
    for round in 0..ROUNDS {
        let (before, after) = (&streams[round % 3], &streams[(round + 1) % 3]);
        before.launched(&increment, &[(address, 64, Access::ReadWrite)]);
        after.follow(before);
    }
    assert_eq!(contents(&streams[ROUNDS % 3], address, 64), vec![(ROUNDS % 256) as u8; 64]);
}

#[test]
fn an_event_is_complete_once_everything_before_it_is() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let early = stream.record(EventTiming::Disabled).unwrap();
    assert!(early.is_complete().unwrap(), "nothing was before it");
    let (open, gate) = gate();
    stream.launched(&gate, &[]);
    let late = stream.record(EventTiming::Disabled).unwrap();
    assert!(!late.is_complete().unwrap());
    assert_eq!((late.stream(), late.position()), (stream.id(), stream.tail()));
    drop(open);
    late.synchronize().unwrap();
    assert!(late.is_complete().unwrap());
}

#[test]
fn queued_work_finishes_after_the_last_handle_drops() {
    let device = EmbeddedDevice::plain();
    let (open, gate) = gate();
    let (sender, receiver) = mpsc::channel();
    let stream = device.new_stream(None).unwrap();
    stream.launched(&gate, &[]);
    stream.launched(&body("send", move |_| sender.send(thread::current().id()).unwrap()), &[]);
    drop((stream, device));
    drop(open);
    let worker =
        receiver.recv_timeout(Duration::from_secs(60)).expect("queued work runs without handles");
    assert_ne!(worker, thread::current().id());
    // The work drops the body's captures, and the thread ends, so the channel closes.
    assert!(
        receiver
            .recv_timeout(Duration::from_secs(60))
            .is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_worker_ends_with_its_stream() {
    let device = EmbeddedDevice::plain();
    let stream = device.new_stream(None).unwrap();
    stream.launched(&body("work", |_| ()), &[]);
    finish(&stream);
    let address = allocate(&stream, 8).unwrap();
    assert!(Arc::strong_count(&device.core) > 1, "the worker's stream holds the device's core");
    drop(stream);
    let start = Instant::now();
    while Arc::strong_count(&device.core) > 1 && start.elapsed() < Duration::from_secs(60) {
        thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&device.core), 1);
    let other = queue_of(&device);
    other.free(address).unwrap();
    assert_eq!(device.memory().in_use, 0);
}

#[test]
fn many_threads_may_submit_to_one_stream() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let address = allocate(&stream, 1).unwrap();
    stream.queued(fill(address, super::fixtures::contiguous(0, 1), &[0]));
    let increment = increment();
    let (queue_of_all, body_of_all) = (&stream, &increment);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    queue_of_all.launched(body_of_all, &[(address, 1, Access::ReadWrite)]);
                }
                finish(queue_of_all);
            });
        }
    });
    assert_eq!(stream.tail(), Position(4 * ROUNDS as u64 + 1));
    assert_eq!(contents(&stream, address, 1), [(4 * ROUNDS % 256) as u8]);
}

#[test]
fn worker_and_seeded_streams_may_wait_for_each_other() {
    let (workers, seeded) = (EmbeddedDevice::plain(), seeded(1));
    let (first, second, third) =
        (queue_of(&seeded), queue_of(&workers), seeded.new_stream(None).unwrap());
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |number: u32| {
        let ran = Arc::clone(&ran);
        launch(&body("note", move |_| ran.lock().unwrap().push(number)), &[])
    };
    first.queued(note(1));
    second.follow(&first);
    second.queued(note(2));
    third.follow(&second);
    third.queued(note(3));
    finish(&third);
    assert_eq!(*ran.lock().unwrap(), [1, 2, 3]);
}

#[test]
fn a_worker_that_runs_a_simulation_waits_only_for_what_its_event_needs() {
    let (one, other) = (EmbeddedDevice::plain(), EmbeddedDevice::plain());
    let seeded = seeded(1);
    // The simulation checks its streams in the order of their creation. `last` was created first,
    // and waits for the worker that will run the simulation.
    let (last, first) = (queue_of(&seeded), seeded.new_stream(None).unwrap());
    let (slow, worker) = (queue_of(&one), queue_of(&other));
    let (open_slow, slow_gate) = gate();
    let (open_worker, worker_gate) = gate();
    slow.launched(&slow_gate, &[]);
    first.follow(&slow);
    worker.launched(&worker_gate, &[]);
    worker.follow(&first);
    last.follow(&worker);
    drop(open_worker);
    // This gives the worker time to reach its wait. If the worker takes longer, the test still
    // passes, but does not test the waiting.
    thread::sleep(Duration::from_millis(20));
    drop(open_slow);
    finish(&last);
}
