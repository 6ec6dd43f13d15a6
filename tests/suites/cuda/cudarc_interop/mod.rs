//! Arrays beside cudarc: shared contexts and streams, and guards as cudarc's slices. The tests run
//! on the stand-in driver, whose hazard check covers every copy and launch of both libraries.

mod bench;
#[cfg(feature = "cublas")]
mod cublas;
mod guards;
mod slices;
mod streams;
mod without_pools;
