//! Threads that wait run ready work themselves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use super::fixtures::{Accepting, body, finish, gate, queue_of, sending_task, task};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::scope::is_in_body;
use resident_backend::{Backend, EventTiming, Position, RawStream, failure};

const ROUNDS: usize = if cfg!(miri) { 10 } else { 500 };

#[test]
fn work_runs_once_and_in_order_whoever_runs_it() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let stream = queue_of(&device);
        let ran = Arc::new(Mutex::new(Vec::new()));
        for number in 0..ROUNDS {
            let seen = Arc::clone(&ran);
            let note = body("note", move |_| {
                assert!(is_in_body());
                seen.lock().unwrap().push(number);
            });
            stream.launched(&note, &[]);
            if number % 3 == 0 {
                finish(&stream);
                assert!(!is_in_body());
                assert_eq!(ran.lock().unwrap().len(), number + 1);
            }
        }
        finish(&stream);
        assert_eq!(*ran.lock().unwrap(), (0..ROUNDS).collect::<Vec<_>>());
        assert!(failure::first_between(stream.id(), Position::START, stream.tail()).is_none());
    }
}

/// The worker does not come to run the work: it is busy with a waker.
#[test]
fn a_thread_that_waits_runs_the_work_itself() {
    struct Holding(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);
    impl Wake for Holding {
        fn wake(self: Arc<Self>) {
            let _test_waits = self.0.send(());
            let _dropped = self.1.lock().expect("it is woken once").recv();
        }
    }
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let stream = queue_of(&device);
        let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let (open, held) = gate();
        let position = stream.launched(&held, &[]);
        let task = task(Waker::from(Arc::new(Holding(begun, Mutex::new(ends)))));
        stream.register_waker(position, &task).unwrap();
        drop(open);
        begins.recv().expect("the worker wakes the task");
        let (sender, ran_on) = mpsc::channel();
        let note = body("note", move |_| sender.send(thread::current().id()).unwrap());
        stream.launched(&note, &[]);
        finish(&stream);
        assert_eq!(ran_on.try_recv(), Ok(thread::current().id()));
        drop(end);
    }
}

/// Several threads wait for positions of several streams that wait for each other.
#[test]
fn threads_that_wait_for_streams_that_wait_for_each_other_all_return() {
    const STREAMS: usize = 12;
    let device = EmbeddedDevice::plain();
    let streams: Vec<Arc<dyn RawStream>> =
        (0..STREAMS).map(|_| device.new_stream(None).expect("a stream")).collect();
    let count = Arc::new(AtomicUsize::new(0));
    for round in 0..ROUNDS / 10 {
        for index in 0..STREAMS {
            let (stream, seen) = (&streams[index], Arc::clone(&count));
            if index > 0 {
                let event = streams[index - 1].record(EventTiming::Disabled).unwrap();
                stream.wait(&*event).unwrap();
            }
            let in_order = body("in order", move |_| {
                assert_eq!(seen.fetch_add(1, Ordering::SeqCst), round * STREAMS + index);
            });
            stream.launched(&in_order, &[]);
        }
        thread::scope(|scope| {
            for stream in [&streams[STREAMS - 1], &streams[STREAMS / 2], &streams[STREAMS - 1]] {
                scope.spawn(move || finish(stream));
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), (round + 1) * STREAMS);
    }
    for stream in &streams {
        assert!(failure::first_between(stream.id(), Position::START, stream.tail()).is_none());
    }
}

#[test]
fn a_body_that_panics_on_a_thread_that_waits_is_a_failure_of_its_work() {
    let stream = queue_of(&EmbeddedDevice::plain());
    for _ in 0..20 {
        let failing = body("failing", |_| panic!("a body of a test"));
        let position = stream.launched(&failing, &[]);
        finish(&stream);
        assert!(!is_in_body());
        let record = failure::at(stream.id(), position).expect("it failed");
        assert!(record.cause.contains("a body of a test"), "{record:?}");
    }
}

/// The last work of a stream without a handle may run on a thread that waits for an event, while
/// the worker is about to end. The task is woken all the same.
#[test]
fn tasks_of_a_stream_without_a_handle_are_woken() {
    let device = EmbeddedDevice::plain();
    for round in 0..ROUNDS / 5 {
        let stream = device.new_stream(None).unwrap();
        let (open, held) = gate();
        stream.launched(&held, &[]);
        stream.launched(&body("after", |_| ()), &[]);
        let event = stream.record(EventTiming::Disabled).unwrap();
        let (receiver, task) = sending_task();
        stream.register_waker(stream.tail(), &task).unwrap();
        drop(stream);
        if round % 2 == 0 {
            drop(open);
        } else {
            thread::spawn(move || drop(open));
        }
        event.synchronize().unwrap();
        receiver.recv_timeout(Duration::from_secs(60)).expect("the task is woken");
    }
}
