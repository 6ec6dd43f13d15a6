//! Launches that the calling thread may run before the call returns.

use std::cell::Cell;
use std::sync::{Arc, Mutex, mpsc};

use super::fixtures::{Accepting, body, depending, finish, gate, launch, queue_of, seeded};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::scope::{BodyScope, is_in_body};
use resident_backend::{KernelBody, Position, RawStream, Work, failure};

thread_local! {
    /// Whether this thread is inside `brief`.
    static IS_LAUNCHING: Cell<bool> = const { Cell::new(false) };
}

/// Queues a brief launch.
fn brief(stream: &Arc<dyn RawStream>, work: Work) -> Position {
    let Work::Launch(mut work) = work else { unreachable!("a launch") };
    let mut call = work.as_call();
    call.is_brief = true;
    IS_LAUNCHING.set(true);
    let position = stream.launch(&mut call).expect("it is queued");
    IS_LAUNCHING.set(false);
    position
}

/// A body that says whether it runs inside `brief`.
fn noting() -> (mpsc::Receiver<bool>, Arc<dyn KernelBody>) {
    let (sender, ran_at_once) = mpsc::channel();
    let sender = Mutex::new(sender);
    let note = body("note", move |_| {
        assert!(is_in_body());
        sender.lock().unwrap().send(IS_LAUNCHING.get()).unwrap();
    });
    (ran_at_once, note)
}

#[test]
fn the_calling_thread_runs_a_brief_launch_of_an_idle_stream() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let (ran_at_once, note) = noting();
    for number in 1..=50 {
        let position = brief(&stream, launch(&note, &[]));
        assert!(!is_in_body());
        assert_eq!((position, stream.completed()), (Position(number), Position(number)));
        assert_eq!(ran_at_once.try_recv(), Ok(true));
    }
}

#[test]
fn work_that_is_queued_meanwhile_waits_for_it() {
    let stream = queue_of(&EmbeddedDevice::plain());
    for _ in 0..200 {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let [in_first, in_second] = [(); 2].map(|()| Arc::clone(&ran));
        let second = body("second", move |_| in_second.lock().unwrap().push("second"));
        let inner = Arc::clone(&stream);
        let first = body("first", move |_| {
            inner.launched(&second, &[]);
            assert!(!inner.poll(inner.tail()).unwrap());
            in_first.lock().unwrap().push("first");
        });
        brief(&stream, launch(&first, &[]));
        finish(&stream);
        assert_eq!(*ran.lock().unwrap(), ["first", "second"]);
    }
}

#[test]
fn the_stream_runs_it_where_it_would_have_to_wait_or_is_not_the_callers() {
    let (ran_at_once, note) = noting();
    let runs_later = |stream: &Arc<dyn RawStream>, why, release: &dyn Fn()| {
        brief(stream, launch(&note, &[]));
        release();
        finish(stream);
        assert_eq!(ran_at_once.try_recv(), Ok(false), "{why}");
    };
    let plain = queue_of(&EmbeddedDevice::plain());
    let (open, held) = gate();
    plain.launched(&held, &[]);
    runs_later(&plain, "a stream that works", &|| open.send(()).unwrap());
    let emulated = queue_of(&EmbeddedDevice::emulated(Emulation::new()));
    runs_later(&emulated, "calls that are counted", &|| ());
    runs_later(&queue_of(&seeded(3)), "an order that a seed gives", &|| ());
    let in_body = Cell::new(Some(BodyScope::enter()));
    runs_later(&plain, "a body", &|| drop(in_body.take()));
}

#[test]
fn its_failures_are_those_of_any_launch() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let failing = body("failing", |_| panic!("a body of a test"));
    let position = brief(&stream, launch(&failing, &[]));
    assert!(stream.completed() == position && !is_in_body());
    let record = failure::at(stream.id(), position).expect("it failed");
    assert!(record.cause.contains("a body of a test") && !record.inherited, "{record:?}");
    let (ran_at_once, note) = noting();
    let position = brief(&stream, depending(launch(&note, &[]), &[(&stream, position)]));
    let record = failure::at(stream.id(), position).expect("it did not run");
    assert!(record.inherited && ran_at_once.try_recv().is_err(), "{record:?}");
}
