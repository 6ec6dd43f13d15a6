//! Arrays beside cudarc: shared contexts and streams, captures, and guards as cudarc's slices. The
//! tests run on the stand-in driver, whose hazard check covers every copy and launch of both
//! libraries.

mod bench;
mod captures;
#[cfg(feature = "cublas")]
mod cublas;
mod guards;
#[cfg(feature = "nccl")]
mod nccl;
mod slices;
mod streams;
mod without_pools;
