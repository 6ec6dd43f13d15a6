//! Seeded devices: work runs only when a thread waits, in an order that the seed determines.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::fixtures::{
    Accepting, HostBytes, allocate, body, contents, contiguous, download, fill, finish, increment,
    log_of, queue_of, seeded, upload,
};
use crate::HazardKind;
use resident_backend::{Backend, EventTiming, Queue};
use resident_core::Access;

const SEEDS: u64 = if cfg!(miri) { 10 } else { 1000 };

/// The order in which three pieces of work on each of three queues of two devices ran.
fn order_of(seed: u64) -> Vec<(usize, u32)> {
    let devices = [seeded(seed), seeded(seed)];
    let queues =
        [queue_of(&devices[0]), devices[0].new_queue(None).unwrap(), queue_of(&devices[1])];
    let ran = Arc::new(Mutex::new(Vec::new()));
    for (number, queue) in queues.iter().enumerate() {
        for step in 0..3 {
            let ran = Arc::clone(&ran);
            queue.launched(&body("note", move |_| ran.lock().unwrap().push((number, step))), &[]);
        }
    }
    assert!(ran.lock().unwrap().is_empty(), "no work runs before a thread waits");
    queues.iter().for_each(finish);
    drop(queues);
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
            assert_eq!(steps, [0, 1, 2], "queues keep their order");
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

/// A pipeline over three queues.
fn pipeline(seed: u64, second: SecondStep) -> (Vec<u8>, Vec<HazardKind>, Vec<String>) {
    let device = seeded(seed);
    let queues =
        [queue_of(&device), device.new_queue(None).unwrap(), device.new_queue(None).unwrap()];
    let source = HostBytes::new(0..16);
    let (target, aside) = (HostBytes::new([0; 16]), HostBytes::new([0; 16]));
    let (address, other) = (allocate(&queues[0], 16).unwrap(), allocate(&queues[1], 16).unwrap());
    queues[0].queued(upload(&source, address, 16));
    let uploaded = queues[0].record(EventTiming::Disabled).unwrap();
    queues[1].queued(fill(other, contiguous(0, 16), &[9]));
    if second == SecondStep::WaitsForFirst {
        queues[1].wait(uploaded.as_ref()).unwrap();
    }
    queues[1]
        .launched(&increment(), &[(address, 16, Access::ReadWrite), (other, 16, Access::Read)]);
    queues[2].follow(&queues[1]);
    queues[2].queued(download(address, &target, 16));
    // Two unordered reads do not conflict.
    queues[1].queued(download(other, &aside, 16));
    queues[2].launched(&body("look", |_| ()), &[(other, 16, Access::Read)]);
    queues[1].follow(&queues[2]);
    queues[1].free(address).unwrap();
    queues[1].free(other).unwrap();
    [2, 1, 0].iter().for_each(|queue| finish(&queues[*queue]));
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
    let queue = queue_of(&device);
    let held = Arc::new(());
    let captured = Arc::clone(&held);
    queue.launched(
        &body("never", move |_| assert!(Arc::strong_count(&captured) == 0, "it must not run")),
        &[],
    );
    let event = queue.record(EventTiming::Disabled).unwrap();
    drop((queue, device));
    assert_eq!(Arc::strong_count(&held), 2, "an event keeps the simulation alive");
    drop(event);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_closed_queue_still_runs_work_that_another_queue_waits_for() {
    let device = seeded(2);
    let (queue, closed) = (queue_of(&device), device.new_queue(None).unwrap());
    let address = allocate(&queue, 4).unwrap();
    closed.queued(upload(&HostBytes::new([5; 4]), address, 4));
    queue.follow(&closed);
    drop(closed);
    assert_eq!(contents(&queue, address, 4), [5; 4]);
}

#[test]
fn several_threads_may_run_a_simulation() {
    let device = seeded(3);
    let queues: Vec<Arc<dyn Queue>> = (0..4).map(|_| device.new_queue(None).unwrap()).collect();
    let address = allocate(&queues[0], 4).unwrap();
    queues[0].queued(fill(address, contiguous(0, 4), &[0]));
    let increment = increment();
    for round in 0..24 {
        queues[round % 4].launched(&increment, &[(address, 4, Access::ReadWrite)]);
        queues[(round + 1) % 4].follow(&queues[round % 4]);
    }
    std::thread::scope(|scope| {
        queues.iter().for_each(|queue| drop(scope.spawn(move || finish(queue))));
    });
    assert_eq!(contents(&queues[0], address, 4), [24; 4]);
}
