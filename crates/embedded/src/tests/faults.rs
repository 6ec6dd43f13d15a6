//! Injected faults, at submission and late, for each call of a scenario; inherited failures; panics
//! in bodies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::fixtures::{
    Accepting, HostBytes, allocate, body, contents, contiguous, depending, download, fill, finish,
    increment, label, launch, log_of, queue_of, upload,
};
use crate::{Call, CallKind, EmbeddedDevice, Emulation, Fault, Outcome};
use resident_backend::{
    Backend, BackendError, BackendErrorKind, EventTiming, FailureKind, Position, RawStream, failure,
};
use resident_core::Access;

/// Makes each kind of call once, and some kinds twice. Returns the downloaded bytes.
fn scenario(device: &Arc<EmbeddedDevice>) -> Result<Vec<u8>, BackendError> {
    let (stream, other) = (queue_of(device), device.new_stream(None)?);
    let address = stream.allocate(8, &label("array"))?;
    let result = on_array(&stream, &other, address);
    // A refused free is retried.
    stream
        .wait(other.record(EventTiming::Disabled)?.as_ref())
        .or_else(|_| finish_quietly(&other))?;
    stream.free(address).or_else(|_| stream.free(address))?;
    device.trim().or_else(|_| device.trim())?;
    result
}

fn finish_quietly(stream: &Arc<dyn RawStream>) -> Result<(), BackendError> {
    stream.synchronize_to(stream.tail())
}

fn on_array(
    stream: &Arc<dyn RawStream>,
    other: &Arc<dyn RawStream>,
    address: resident_backend::Address,
) -> Result<Vec<u8>, BackendError> {
    let target = HostBytes::new([0; 8]);
    stream.submit(upload(&HostBytes::new(0..8), address, 8))?;
    stream.submit(fill(address, contiguous(0, 2), &[40]))?;
    stream.submit(launch(&increment(), &[(address, 8, Access::ReadWrite)]))?;
    let event = stream.record(EventTiming::Disabled)?;
    other.wait(event.as_ref())?;
    other.submit(download(address, &target, 8))?;
    finish_quietly(other)?;
    Ok(target.bytes())
}

fn calls_with(device: &Arc<EmbeddedDevice>, outcome: Outcome) -> Vec<Call> {
    log_of(device).calls().into_iter().filter(|call| call.outcome == outcome).collect()
}

const EXPECTED: [u8; 8] = [41, 41, 3, 4, 5, 6, 7, 8];

fn emulated(seed: u64) -> Emulation {
    Emulation::new().seed(seed)
}

#[test]
fn without_faults_the_scenario_makes_these_calls() {
    let device = EmbeddedDevice::emulated(emulated(1));
    assert_eq!(scenario(&device).unwrap(), EXPECTED);
    let calls = log_of(&device).calls();
    let kinds: Vec<CallKind> = calls.iter().map(|call| call.kind).collect();
    use CallKind::*;
    let expected = [
        NewStream,
        Allocate,
        Upload,
        Fill,
        Launch,
        RecordEvent,
        WaitEvent,
        Download,
        Synchronize,
        RecordEvent,
        WaitEvent,
        Free,
        Trim,
    ];
    assert_eq!(kinds, expected);
    assert!(
        calls
            .iter()
            .zip(1..)
            .all(|(call, number)| call.number == number && call.outcome == Outcome::Accepted)
    );
    assert_eq!(calls[2].to_string(), "#3 upload: upload, 8 bytes, stream 0, work 1");
    assert_eq!(calls[8].to_string(), "#9 synchronize, stream 1");
    assert_eq!(log_of(&device).hazards().len(), 0);
}

#[test]
fn each_call_can_be_refused_and_leaves_nothing_behind() {
    for call in 1..=13 {
        let device = EmbeddedDevice::emulated(emulated(call).fail(Fault::nth(call)));
        let outcome = scenario(&device);
        let refused = calls_with(&device, Outcome::Refused);
        assert_eq!(refused.iter().map(|refused| refused.number).collect::<Vec<_>>(), [call]);
        match refused[0].kind {
            CallKind::Free | CallKind::Trim => {
                assert_eq!(outcome.unwrap(), EXPECTED, "the retry succeeds");
            }
            CallKind::WaitEvent if call == 11 => {
                assert_eq!(outcome.unwrap(), EXPECTED, "the host waited instead");
            }
            _ => assert_eq!(outcome.unwrap_err().kind, BackendErrorKind::Injected, "call {call}"),
        }
        // The same scenario succeeds when it is repeated on the same device.
        assert_eq!(scenario(&device).unwrap(), EXPECTED, "after call {call}");
        let leaked = if call == 10 { 8 } else { 0 };
        assert_eq!(device.memory().in_use, leaked, "call 10 ends the scenario before its free");
    }
}

#[test]
fn copies_fills_and_launches_can_fail_late_and_other_calls_cannot() {
    for call in 1..=13 {
        let device = EmbeddedDevice::emulated(emulated(call).fail(Fault::nth(call).late()));
        let result = scenario(&device).unwrap();
        let failed = calls_with(&device, Outcome::Failed);
        if !matches!(call, 3..=5 | 8) {
            assert_eq!(
                (result, failed.len()),
                (EXPECTED.to_vec(), 0),
                "call {call} cannot fail late"
            );
            continue;
        }
        assert_eq!(failed.iter().map(|failed| failed.number).collect::<Vec<_>>(), [call]);
        let without = match call {
            4 => [1, 2, 3, 4, 5, 6, 7, 8],
            5 => [40, 40, 2, 3, 4, 5, 6, 7],
            8 => [0; 8],
            _ => continue,
        };
        assert_eq!(result, without, "the work of call {call} did not run");
        assert!(failed[0].to_string().ends_with(", failed"));
    }
}

#[test]
fn a_late_failure_is_recorded_before_its_position_completes() {
    let device = EmbeddedDevice::emulated(emulated(1).fail(Fault::nth(2).late()));
    let stream = queue_of(&device);
    let address = allocate(&stream, 4).unwrap();
    let position = stream.queued(upload(&HostBytes::new([1; 4]), address, 4));
    assert!(failure::at(stream.id(), position).is_none(), "it has not run");
    finish(&stream);
    let record = failure::at(stream.id(), position).unwrap();
    assert_eq!((record.kind, record.inherited), (FailureKind::Copy, false));
    assert!(record.cause.contains("at call 2"), "{}", record.cause);
    let found = failure::first_between(stream.id(), Position::START, stream.tail()).unwrap();
    assert_eq!(found.0, position);
}

#[test]
fn work_that_depends_on_failed_work_does_not_run_and_names_the_root() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(emulated(1))] {
        let (stream, other) = (queue_of(&device), device.new_stream(None).unwrap());
        let address = allocate(&stream, 4).unwrap();
        stream.queued(upload(&HostBytes::new([1; 4]), address, 4));
        let failing = body("failing", |_| panic!("the {} of a test", "panic"));
        let root = stream.launched(&failing, &[(address, 4, Access::Read)]);
        other.follow(&stream);
        let ran = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ran);
        let mark = body("mark", move |_| seen.store(true, Ordering::SeqCst));
        let second = other.queued(depending(launch(&mark, &[]), &[(&stream, root)]));
        let third = other.queued(depending(
            upload(&HostBytes::new([7; 4]), address, 4),
            &[(&stream, Position(1)), (&other, second)],
        ));
        assert_eq!(contents(&other, address, 4), [1; 4], "neither ran");
        assert!(!ran.load(Ordering::SeqCst));
        let first = failure::at(stream.id(), root).unwrap();
        assert_eq!(
            (first.kind, first.operation.as_str(), first.inherited),
            (FailureKind::Contents, "kernel \"failing\"", false)
        );
        assert_eq!(first.cause, "the panic of a test");
        assert!(first.site.is_some_and(|site| site.file().ends_with("faults.rs")));
        for position in [second, third] {
            let inherited = failure::at(other.id(), position).unwrap();
            assert!(inherited.inherited);
            assert_eq!(
                (inherited.kind, &inherited.operation, &inherited.cause),
                (first.kind, &first.operation, &first.cause)
            );
            assert_eq!(inherited.site, first.site);
        }
    }
}

#[test]
fn a_panic_in_a_body_or_its_drop_leaves_the_stream_running() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a drop of a test");
        }
    }
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(emulated(1))] {
        let stream = queue_of(&device);
        let plain = stream.launched(&body("plain", |_| panic!("a plain panic of a test")), &[]);
        let odd = stream.launched(&body("odd", |_| std::panic::panic_any(7)), &[]);
        let evil = stream.launched(&body("evil", |_| std::panic::panic_any(Bomb)), &[]);
        let (bomb, gate) = (Bomb, Arc::new(Mutex::new(())));
        let (passes, closed) = (Arc::clone(&gate), gate.lock());
        let holding = body("holding", move |_| {
            let _held = (&bomb, passes.lock());
        });
        let dropped = stream.launched(&holding, &[]);
        // The stream has the last handle.
        drop(holding);
        drop(closed);
        finish(&stream);
        let cause = |position| failure::at(stream.id(), position).unwrap().cause.clone();
        assert_eq!(cause(plain), "a plain panic of a test");
        assert_eq!(
            (cause(odd), cause(evil)),
            ("a panic without a message".to_owned(), "a panic without a message".to_owned())
        );
        assert_eq!(cause(dropped), "dropping it panicked: a drop of a test");
        stream.launched(&body("after", |_| ()), &[]);
        finish(&stream);
        assert_eq!(stream.completed(), Position(5));
    }
}

#[test]
fn two_faults_fail_two_calls() {
    let device = EmbeddedDevice::emulated(emulated(1).fail(Fault::nth(1)).fail(Fault::nth(3)));
    let stream = queue_of(&device);
    let outcomes: Vec<bool> = (0..4).map(|_| allocate(&stream, 8).is_ok()).collect();
    assert_eq!(outcomes, [false, true, false, true]);
    assert_eq!(device.memory().in_use, 16);
}
