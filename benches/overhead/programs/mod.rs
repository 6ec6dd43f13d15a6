//! Programs for a driver that does nothing, each written with this library and by hand.

#![cfg(feature = "cuda")]

pub mod by_hand;
pub mod kernels;
#[path = "../../tiles.rs"]
pub mod matrices;
pub mod ours;
pub mod tiles;

use std::time::Instant;

/// How long a run takes, of so many one after the other.
pub fn time_ns(program: &mut ours::Program, turns: u32) -> f64 {
    let start = Instant::now();
    (0..turns).for_each(|_| program());
    start.elapsed().as_nanos() as f64 / f64::from(turns)
}

/// The middle one of some figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
