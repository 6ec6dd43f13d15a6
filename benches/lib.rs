//! What the benchmarks share with each other and with the tests.

pub mod cube;
/// Programs that are measured on a GPU, each written with this library and by hand with cudarc.
#[cfg(feature = "cuda")]
pub mod gpu {
    pub mod fault;
    pub mod ours;
    pub mod programs;
    pub mod stand_in;
    pub mod twin;
}
