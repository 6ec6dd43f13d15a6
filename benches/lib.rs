//! The parts of the benchmarks that tests use too.

pub mod cube;
/// Programs measured on a GPU, each written with this library and by hand with cudarc.
#[cfg(feature = "cuda")]
pub mod gpu {
    pub mod fault;
    pub mod ours;
    pub mod programs;
    pub mod stand_in;
    pub mod twin;
}
