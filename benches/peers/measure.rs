//! Medians of batches.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use resident_benches::median;

static QUICK: AtomicBool = AtomicBool::new(false);

/// Medians, in nanoseconds for one operation.
pub struct Row {
    pub own: f64,
    pub peer: Option<f64>,
}

pub fn set_quick(quick: bool) {
    QUICK.store(quick, Ordering::Relaxed);
}

fn batches() -> usize {
    if QUICK.load(Ordering::Relaxed) { 1 } else { 101 }
}

/// How often one batch runs an operation of about `expected_ns`: about 20 µs of work.
pub fn turns(expected_ns: usize) -> usize {
    if QUICK.load(Ordering::Relaxed) { 2 } else { (20_000 / expected_ns).max(16) }
}

fn time(turns: usize, operation: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..turns {
        operation();
    }
    start.elapsed().as_nanos() as f64 / turns as f64
}

/// Measures one operation.
pub fn single(expected_ns: usize, mut own: impl FnMut()) -> Row {
    let turns = turns(expected_ns);
    time(turns, &mut own);
    Row { own: median((0..batches()).map(|_| time(turns, &mut own)).collect()), peer: None }
}

/// Measures two operations, with alternating batches.
pub fn compared(expected_ns: usize, mut own: impl FnMut(), mut peer: impl FnMut()) -> Row {
    let turns = turns(expected_ns);
    time(turns, &mut own);
    time(turns, &mut peer);
    let pairs: Vec<(f64, f64)> =
        (0..batches()).map(|_| (time(turns, &mut own), time(turns, &mut peer))).collect();
    Row {
        own: median(pairs.iter().map(|(own, _)| *own).collect()),
        peer: Some(median(pairs.iter().map(|(_, peer)| *peer).collect())),
    }
}

/// Measures an operation that times itself: `batch` returns nanoseconds per operation.
pub fn batched(mut batch: impl FnMut() -> f64) -> Row {
    batch();
    Row { own: median((0..batches()).map(|_| batch()).collect()), peer: None }
}

/// The median of the differences between two such operations, pair by pair.
pub fn difference(mut longer: impl FnMut() -> f64, mut shorter: impl FnMut() -> f64) -> Row {
    longer();
    shorter();
    Row {
        own: median((0..batches()).map(|_| black_box(longer()) - black_box(shorter())).collect()),
        peer: None,
    }
}
