//! Seeded devices: work runs only when a thread waits, in an order that the seed determines.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::fixtures::{
    Accepting, HostBytes, allocate, body, contents, contiguous, download, fill, finish, increment,
    log_of, queue_of, seeded, upload,
};
use crate::HazardKind;
use resident_backend::{Backend, EventTiming, RawStream};
use resident_core::Access;

const SEEDS: u64 = if cfg!(miri) { 10 } else { 1000 };

/// The order in which three pieces of work on each of three streams of two devices ran.
fn order_of(seed: u64) -> Vec<(usize, u32)> {
    let devices = [seeded(seed), seeded(seed)];
    let streams =
        [queue_of(&devices[0]), devices[0].new_stream(None).unwrap(), queue_of(&devices[1])];
    let ran = Arc::new(Mutex::new(Vec::new()));
    for (number, stream) in streams.iter().enumerate() {
        for step in 0..3 {
            let ran = Arc::clone(&ran);
            stream.launched(&body("note", move |_| ran.lock().unwrap().push((number, step))), &[]);
        }
    }
    assert!(ran.lock().unwrap().is_empty(), "no work runs before a thread waits");
    streams.iter().for_each(finish);
    drop(streams);
    Arc::into_inner(ran).expect("work that ran is gone").into_inner().unwrap()
}

#[test]
fn a_seed_determines_the_order_and_different_seeds_give_different_orders() {
    let orders: Vec<_> = (0..SEEDS).map(order_of).collect();
    assert_eq!(orders, (0..SEEDS).map(order_of).collect::<Vec<_>>());
    for order in &orders {
        for number in 0..3 {
            let steps: Vec<u32> =
                order.iter().filter(|ran| ran.0 == number).map(|ran| ran.1).collect();
            assert_eq!(steps, [0, 1, 2], "streams keep their order");
        }
    }
    let different: BTreeSet<_> = orders.into_iter().collect();
    // There are 9! / (3!)^3 = 1,680 orders; fewer if `finish` returns before all work has run.
    assert!(different.len() as u64 > SEEDS / 4, "{} orders of {SEEDS} seeds", different.len());
}

/// What the second step of a pipeline waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecondStep {
    WaitsForFirst,
    MayComeFirst,
}

/// A pipeline over three streams.
fn pipeline(seed: u64, second: SecondStep) -> (Vec<u8>, Vec<HazardKind>, Vec<String>) {
    let device = seeded(seed);
    let streams =
        [queue_of(&device), device.new_stream(None).unwrap(), device.new_stream(None).unwrap()];
    let source = HostBytes::new(0..16);
    let (target, aside) = (HostBytes::new([0; 16]), HostBytes::new([0; 16]));
    let (address, other) = (allocate(&streams[0], 16).unwrap(), allocate(&streams[1], 16).unwrap());
    streams[0].queued(upload(&source, address, 16));
    let uploaded = streams[0].record(EventTiming::Disabled).unwrap();
    streams[1].queued(fill(other, contiguous(0, 16), &[9]));
    if second == SecondStep::WaitsForFirst {
        streams[1].wait(uploaded.as_ref()).unwrap();
    }
    streams[1]
        .launched(&increment(), &[(address, 16, Access::ReadWrite), (other, 16, Access::Read)]);
    streams[2].follow(&streams[1]);
    streams[2].queued(download(address, &target, 16));
    // Two unordered reads do not conflict.
    streams[1].queued(download(other, &aside, 16));
    streams[2].launched(&body("look", |_| ()), &[(other, 16, Access::Read)]);
    streams[1].follow(&streams[2]);
    streams[1].free(address).unwrap();
    streams[1].free(other).unwrap();
    [2, 1, 0].iter().for_each(|stream| finish(&streams[*stream]));
    assert_eq!((device.memory().in_use, aside.bytes()), (0, vec![9; 16]));
    let hazards = log_of(&device).hazards();
    (
        target.bytes(),
        hazards.iter().map(|hazard| hazard.kind).collect(),
        hazards.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn an_ordered_program_has_one_result_and_no_hazard_under_every_seed() {
    let expected: Vec<u8> = (1..17).collect();
    for seed in 0..SEEDS {
        let (result, hazards, texts) = pipeline(seed, SecondStep::WaitsForFirst);
        assert_eq!((result, hazards), (expected.clone(), vec![]), "seed {seed}: {texts:?}");
    }
}

#[test]
fn a_missing_event_is_a_hazard_under_every_seed_and_a_wrong_result_under_some() {
    let expected: Vec<u8> = (1..17).collect();
    let mut wrong = 0;
    for seed in 0..SEEDS {
        let (result, hazards, texts) = pipeline(seed, SecondStep::MayComeFirst);
        assert!(hazards.contains(&HazardKind::Unordered), "seed {seed}");
        let first = &texts[0];
        assert!(
            ["upload", "kernel \"increment\"", "bytes 0..16", "memory on cpu:"]
                .iter()
                .all(|part| first.contains(part)),
            "{first}"
        );
        wrong += usize::from(result != expected);
    }
    assert!(wrong > 0, "the order was never reversed");
}

#[test]
fn the_last_handle_drops_work_that_no_thread_waited_for() {
    let device = seeded(1);
    let stream = queue_of(&device);
    let held = Arc::new(());
    let captured = Arc::clone(&held);
    stream.launched(
        &body("never", move |_| assert!(Arc::strong_count(&captured) == 0, "it must not run")),
        &[],
    );
    let event = stream.record(EventTiming::Disabled).unwrap();
    drop((stream, device));
    assert_eq!(Arc::strong_count(&held), 2, "an event keeps the simulation alive");
    drop(event);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_closed_stream_still_runs_work_that_another_stream_waits_for() {
    let device = seeded(2);
    let (stream, closed) = (queue_of(&device), device.new_stream(None).unwrap());
    let address = allocate(&stream, 4).unwrap();
    closed.queued(upload(&HostBytes::new([5; 4]), address, 4));
    stream.follow(&closed);
    drop(closed);
    assert_eq!(contents(&stream, address, 4), [5; 4]);
}

#[test]
fn several_threads_may_run_a_simulation() {
    let device = seeded(3);
    let streams: Vec<Arc<dyn RawStream>> =
        (0..4).map(|_| device.new_stream(None).unwrap()).collect();
    let address = allocate(&streams[0], 4).unwrap();
    streams[0].queued(fill(address, contiguous(0, 4), &[0]));
    let increment = increment();
    for round in 0..24 {
        streams[round % 4].launched(&increment, &[(address, 4, Access::ReadWrite)]);
        streams[(round + 1) % 4].follow(&streams[round % 4]);
    }
    std::thread::scope(|scope| {
        streams.iter().for_each(|stream| drop(scope.spawn(move || finish(stream))));
    });
    assert_eq!(contents(&streams[0], address, 4), [24; 4]);
}
