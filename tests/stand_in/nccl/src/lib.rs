//! NCCL without GPUs, for tests. It implements NCCL's C functions for ranks that are threads and
//! processes of one machine, by kernels on the [stand-in driver](../resident_stand_in).
//!
//! Like the driver it is built as two libraries: a shared object, which exports the `nccl*`
//! functions under NCCL's SONAME, and a Rust library, which tests link to [`load`] it.
//!
//! It supports communicators made by `ncclCommInitRank` and `ncclCommInitAll`, `ncclSend`,
//! `ncclRecv`, the collectives `ncclAllReduce`, `ncclBroadcast`, `ncclBcast`, `ncclReduce`,
//! `ncclAllGather` and `ncclReduceScatter`, groups, `ncclCommAbort` and asynchronous errors. The
//! library has no other functions.
//!
//! All work is queued on the stream that is passed: a kernel that reads what the rank sends, one
//! that writes what it receives, and one that waits until what it sent was received. So the
//! stand-in driver checks the order of all accesses. A kernel that waits for another rank occupies
//! its stream until the rank comes or the own communicator is aborted; no call waits. Differences
//! from NCCL:
//!
//! * `ncclCommInitRank` does not wait for the other ranks.
//! * All messages go through the process that made the unique id, by a Unix socket whose name is in
//!   the id. If this process ends, all other ranks have `ncclRemoteError`.
//! * A send is over once the other rank has received, whatever its size. NCCL buffers small
//!   messages.
//! * The kernels of a group run one after the other, those that read first. So a buffer of a group
//!   that is sent and received into is no hazard, though it is one in NCCL.
//! * Calls that do not fit those of other ranks fail: the kernel does, on each rank that sees it,
//!   and the asynchronous error is `ncclInvalidUsage`. NCCL waits forever, or overwrites memory.
//! * The waits of a rank continue when another one aborts or its process ends, and its asynchronous
//!   error becomes `ncclRemoteError`.
//!
//! * `functions`: NCCL's functions
//! * `communicator`: communicators, and the devices that they belong to
//! * `group`: operations until the end of their group, and the kernels that are queued for them
//! * `world`: what ranks have posted and not yet taken
//! * `link`, `server`, `request`: how ranks reach their world, in this process or another one
//! * `collective`, `elements`: what each rank gets of the contributions of all
//! * `kernels`: the kernels, and the functions of the driver

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod collective;
#[cfg(target_os = "linux")]
mod communicator;
#[cfg(target_os = "linux")]
mod elements;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
mod kernels;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod world;

use resident_stand_in_client::library::LibraryBesideTests;

/// Loads the library into this process, so that code that looks for NCCL afterwards finds it. The
/// stand-in driver must be loaded before the first communicator is made. Each test of a process may
/// call this.
///
/// # Errors
///
/// If the library cannot be found, with the paths that were tried.
pub fn load() -> Result<(), String> {
    static LIBRARY: LibraryBesideTests = LibraryBesideTests::new("libresident_stand_in_nccl.so");
    LIBRARY.load()
}
