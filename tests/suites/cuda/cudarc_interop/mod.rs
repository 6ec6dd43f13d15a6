//! Arrays beside cudarc: its context and streams, ours as its and its as ours, guards as its
//! slices. Run against the stand-in driver, whose check of ordering sees every copy and launch,
//! whoever queued it.

mod bench;
#[cfg(feature = "cublas")]
mod cublas;
mod guards;
mod slices;
mod streams;
mod without_pools;
