//! In the steady state, a launch on a GPU allocates no heap memory on the calling thread.

#![cfg(target_os = "linux")]

use std::sync::{Mutex, PoisonError};

use resident_allocations as allocations;
use resident_overhead::{ours, tiles};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Held by one test at a time: they share a device, whose lists of unused staging blocks grow when
/// several threads have blocks at once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The runs in which tables reach their size: an upload records an event in every sixteenth, and a
/// stream keeps 32 events.
const WARM_UP: usize = 640;

/// The allocations of this thread in 100 runs, the least of five counts: where the system is slow
/// to run another thread, a table may become larger than ever, which happens once in many runs.
fn in_steady_state(mut program: ours::Program) -> u64 {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    (0..WARM_UP).for_each(|_| program());
    let count = |_| {
        let before = allocations::of_this_thread();
        (0..100).for_each(|_| program());
        allocations::of_this_thread() - before
    };
    (0..5).map(count).min().expect("five counts")
}

#[test]
fn the_counter_counts() {
    assert_eq!(in_steady_state(Box::new(|| drop(std::hint::black_box(Box::new(1))))), 100);
}

#[test]
fn reading_one_element_allocates_nothing() {
    assert_eq!(in_steady_state(ours::launch_and_get()), 0);
}

#[test]
fn reading_one_element_that_is_known_to_be_written_allocates_nothing() {
    assert_eq!(in_steady_state(ours::launch_wait_and_get()), 0);
}

#[test]
fn writing_16_kib_allocates_nothing() {
    assert_eq!(in_steady_state(ours::write_and_launch()), 0);
}

#[test]
fn launches_allocate_nothing() {
    for arrays in [0, 1, 4, 8, 16] {
        for has_other_stream in [false, true] {
            let allocations = in_steady_state(ours::launch(arrays, has_other_stream));
            assert_eq!(allocations, 0, "{arrays} arrays, two streams: {has_other_stream}");
        }
    }
}

/// Streams that wait for each other, and that no thread waits for: their finished work is noticed
/// by the launches themselves.
#[test]
fn a_program_that_never_waits_keeps_nothing_of_its_launches() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for stream_count in [1, 4] {
        let mut program = tiles::launch(4, stream_count, false);
        (0..2_000).for_each(|_| program());
        let before = allocations::live_bytes_of_this_thread();
        (0..20_000).for_each(|_| program());
        let grown = allocations::live_bytes_of_this_thread() - before;
        assert!(grown < 64 << 10, "{grown} bytes more, {stream_count} streams");
    }
}
