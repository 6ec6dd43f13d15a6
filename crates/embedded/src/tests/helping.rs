//! Threads that wait run ready work themselves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use super::fixtures::{Accepting, body, finish, gate, queue_of, sending_task, task};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::scope::is_in_body;
use resident_backend::{Backend, EventTiming, Position, Queue, failure};

const ROUNDS: usize = if cfg!(miri) { 10 } else { 500 };

#[test]
fn work_runs_once_and_in_order_whoever_runs_it() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let queue = queue_of(&device);
        let ran = Arc::new(Mutex::new(Vec::new()));
        for number in 0..ROUNDS {
            let seen = Arc::clone(&ran);
            let note = body("note", move |_| {
                assert!(is_in_body());
                seen.lock().unwrap().push(number);
            });
            queue.launched(&note, &[]);
            if number % 3 == 0 {
                finish(&queue);
                assert!(!is_in_body());
                assert_eq!(ran.lock().unwrap().len(), number + 1);
            }
        }
        finish(&queue);
        assert_eq!(*ran.lock().unwrap(), (0..ROUNDS).collect::<Vec<_>>());
        assert!(failure::first_between(queue.id(), Position::START, queue.tail()).is_none());
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
        let queue = queue_of(&device);
        let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let (open, held) = gate();
        let position = queue.launched(&held, &[]);
        let task = task(Waker::from(Arc::new(Holding(begun, Mutex::new(ends)))));
        queue.register_waker(position, &task).unwrap();
        drop(open);
        begins.recv().expect("the worker wakes the task");
        let (sender, ran_on) = mpsc::channel();
        let note = body("note", move |_| sender.send(thread::current().id()).unwrap());
        queue.launched(&note, &[]);
        finish(&queue);
        assert_eq!(ran_on.try_recv(), Ok(thread::current().id()));
        drop(end);
    }
}

/// Several threads wait for positions of several queues that wait for each other.
#[test]
fn threads_that_wait_for_queues_that_wait_for_each_other_all_return() {
    const QUEUES: usize = 12;
    let device = EmbeddedDevice::plain();
    let queues: Vec<Arc<dyn Queue>> =
        (0..QUEUES).map(|_| device.new_queue(None).expect("a queue")).collect();
    let count = Arc::new(AtomicUsize::new(0));
    for round in 0..ROUNDS / 10 {
        for index in 0..QUEUES {
            let (queue, seen) = (&queues[index], Arc::clone(&count));
            if index > 0 {
                let event = queues[index - 1].record(EventTiming::Disabled).unwrap();
                queue.wait(&*event).unwrap();
            }
            let in_order = body("in order", move |_| {
                assert_eq!(seen.fetch_add(1, Ordering::SeqCst), round * QUEUES + index);
            });
            queue.launched(&in_order, &[]);
        }
        thread::scope(|scope| {
            for queue in [&queues[QUEUES - 1], &queues[QUEUES / 2], &queues[QUEUES - 1]] {
                scope.spawn(move || finish(queue));
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), (round + 1) * QUEUES);
    }
    for queue in &queues {
        assert!(failure::first_between(queue.id(), Position::START, queue.tail()).is_none());
    }
}

#[test]
fn a_body_that_panics_on_a_thread_that_waits_is_a_failure_of_its_work() {
    let queue = queue_of(&EmbeddedDevice::plain());
    for _ in 0..20 {
        let failing = body("failing", |_| panic!("a body of a test"));
        let position = queue.launched(&failing, &[]);
        finish(&queue);
        assert!(!is_in_body());
        let record = failure::at(queue.id(), position).expect("it failed");
        assert!(record.cause.contains("a body of a test"), "{record:?}");
    }
}

/// The last work of a queue without a handle may run on a thread that waits for an event, while the
/// worker is about to end. The task is woken all the same.
#[test]
fn tasks_of_a_queue_without_a_handle_are_woken() {
    let device = EmbeddedDevice::plain();
    for round in 0..ROUNDS / 5 {
        let queue = device.new_queue(None).unwrap();
        let (open, held) = gate();
        queue.launched(&held, &[]);
        queue.launched(&body("after", |_| ()), &[]);
        let event = queue.record(EventTiming::Disabled).unwrap();
        let (receiver, task) = sending_task();
        queue.register_waker(queue.tail(), &task).unwrap();
        drop(queue);
        if round % 2 == 0 {
            drop(open);
        } else {
            thread::spawn(move || drop(open));
        }
        event.synchronize().unwrap();
        receiver.recv_timeout(Duration::from_secs(60)).expect("the task is woken");
    }
}
