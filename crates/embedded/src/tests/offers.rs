//! Launches that the calling thread offers to run.

use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};

use super::fixtures::{Accepting, body, depending, finish, gate, launch, queue_of, seeded};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::scope::{BodyScope, is_in_body};
use resident_backend::{KernelBody, Position, Queue, Turn, Work, failure};

/// Offers a launch, and runs it if the offer is taken. Returns its position and whether it was.
fn offer(queue: &Arc<dyn Queue>, work: Work, meanwhile: impl FnOnce()) -> (Position, bool) {
    let Work::Launch(mut work) = work else { unreachable!("a launch") };
    let mut call = work.as_call();
    call.turn = Turn::Offered;
    let position = queue.launch(&mut call).expect("it is queued");
    meanwhile();
    let is_taken = call.turn == Turn::Caller;
    if is_taken {
        queue.run_launch(&call, position);
    }
    (position, is_taken)
}

/// A body that says on which thread it runs.
fn noting() -> (mpsc::Receiver<ThreadId>, Arc<dyn KernelBody>) {
    let (sender, ran_on) = mpsc::channel();
    let sender = Mutex::new(sender);
    let note = body("note", move |_| {
        assert!(is_in_body());
        sender.lock().unwrap().send(thread::current().id()).unwrap();
    });
    (ran_on, note)
}

#[test]
fn the_calling_thread_runs_an_offered_launch_of_an_idle_queue() {
    let queue = queue_of(&EmbeddedDevice::plain());
    let (ran_on, note) = noting();
    for number in 1..=50 {
        let (position, is_taken) = offer(&queue, launch(&note, &[]), || ());
        assert!(is_taken && !is_in_body());
        assert_eq!((position, queue.completed()), (Position(number), Position(number)));
        assert_eq!(ran_on.try_recv(), Ok(thread::current().id()));
    }
}

#[test]
fn work_that_is_queued_meanwhile_waits_for_it() {
    let queue = queue_of(&EmbeddedDevice::plain());
    for _ in 0..200 {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let note = |name| {
            let ran = Arc::clone(&ran);
            body("note", move |_| ran.lock().unwrap().push(name))
        };
        let (first, second) = (note("first"), note("second"));
        let (_, is_taken) = offer(&queue, launch(&first, &[]), || {
            queue.launched(&second, &[]);
            assert!(!queue.poll(queue.tail()).unwrap());
        });
        assert!(is_taken);
        finish(&queue);
        assert_eq!(*ran.lock().unwrap(), ["first", "second"]);
    }
}

#[test]
fn no_offer_is_taken_where_the_launch_would_have_to_wait_or_is_not_the_callers() {
    let (ran_on, note) = noting();
    let busy = queue_of(&EmbeddedDevice::plain());
    let (open, held) = gate();
    busy.launched(&held, &[]);
    assert!(!offer(&busy, launch(&note, &[]), || ()).1, "a queue that works");
    drop(open);
    finish(&busy);
    let emulated = queue_of(&EmbeddedDevice::emulated(Emulation::new()));
    assert!(!offer(&emulated, launch(&note, &[]), || ()).1, "calls that are counted");
    finish(&emulated);
    let seeded = queue_of(&seeded(3));
    assert!(!offer(&seeded, launch(&note, &[]), || ()).1, "an order that a seed gives");
    finish(&seeded);
    let in_body = BodyScope::enter();
    assert!(!offer(&busy, launch(&note, &[]), || ()).1, "a body");
    drop(in_body);
    finish(&busy);
    assert_eq!(ran_on.try_iter().count(), 4);
}

#[test]
fn its_failures_are_those_of_any_launch() {
    let queue = queue_of(&EmbeddedDevice::plain());
    let failing = body("failing", |_| panic!("a body of a test"));
    let (position, is_taken) = offer(&queue, launch(&failing, &[]), || ());
    assert!(is_taken && !is_in_body());
    let record = failure::at(queue.id(), position).expect("it failed");
    assert!(record.cause.contains("a body of a test") && !record.inherited, "{record:?}");
    let (ran_on, note) = noting();
    let dependent = depending(launch(&note, &[]), &[(&queue, position)]);
    let (position, _) = offer(&queue, dependent, || ());
    let record = failure::at(queue.id(), position).expect("it did not run");
    assert!(record.inherited && ran_on.try_recv().is_err(), "{record:?}");
}
