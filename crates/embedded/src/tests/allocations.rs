//! In the steady state a launch makes no heap allocation, on the submitting thread or the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::fixtures::{Accepting, allocate, body, entered_gate, finish, queue_of};
use crate::EmbeddedDevice;
use resident_allocations as counted;
use resident_core::Access;

#[global_allocator]
static COUNTING: counted::Counting = counted::Counting;

#[test]
fn a_launch_in_the_steady_state_allocates_nothing_on_either_side() {
    const BATCH: usize = 32;
    let stream = queue_of(&EmbeddedDevice::plain());
    let on_worker = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&on_worker);
    let main = thread::current().id();
    let count = body("count", move |_| {
        if thread::current().id() != main {
            seen.store(counted::of_this_thread(), Ordering::SeqCst);
        }
    });
    let arrays: Vec<_> =
        (0..4).map(|_| (allocate(&stream, 64).unwrap(), 64, Access::Overwrite)).collect();
    let submit_batch = || {
        for _ in 0..BATCH {
            stream.launched(&count, &arrays);
        }
    };
    // The worker swaps two buffers whenever it takes the queued operations. While a gate blocks the
    // stream, a whole batch is queued in one buffer. After a swap, a second gate blocks the stream
    // while the other buffer is filled. Then both buffers have their final capacity. Meanwhile this
    // thread polls, because a thread that waits runs operations itself, without a swap.
    let finish_on_worker = || {
        while !stream.poll(stream.tail()).unwrap() {
            thread::yield_now();
        }
    };
    for _ in 0..2 {
        stream.launched(&count, &arrays);
        finish_on_worker();
        let (entered, open, gate) = entered_gate();
        stream.launched(&gate, &[]);
        entered.recv().unwrap();
        submit_batch();
        drop(open);
        finish_on_worker();
    }
    let (here, there) = (counted::of_this_thread(), on_worker.load(Ordering::SeqCst));
    for round in 0..50 {
        submit_batch();
        if round % 2 == 0 { finish(&stream) } else { finish_on_worker() }
    }
    assert_eq!(
        (counted::of_this_thread() - here, on_worker.load(Ordering::SeqCst) - there),
        (0, 0)
    );
    drop(Box::new(here));
    assert_eq!(counted::of_this_thread() - here, 1, "allocations are counted");
}
