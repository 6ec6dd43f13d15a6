//! The parts of the benchmarks that tests use too.

pub mod cube;
pub mod tiles;

/// The middle one of some figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Programs measured on a GPU, each written with this library and by hand with cudarc.
#[cfg(feature = "cuda")]
pub mod gpu {
    pub mod fault;
    pub mod ours;
    pub mod programs;
    pub mod stand_in;
    pub mod twin;
}
