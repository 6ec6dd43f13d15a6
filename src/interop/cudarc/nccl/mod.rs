//! Messages and reductions between GPUs by NCCL, on arrays, parts and views (feature `nccl`).
//!
//! A program has one *rank* per GPU, mostly a process or a thread each. All ranks get the same
//! [`Id`] ([`new_id`]), by MPI for example, and each makes a communicator of it ([`join`]).
//! cudarc's communicators, [`Comm`], are those of this module. The functions take arrays and views
//! as kernels do: they copy what is out of date to the GPU, queue the operation on the
//! communicator's stream, and return without waiting for it or for the other ranks. The array is
//! then newest on the GPU, and all later uses are ordered after the operation. Nothing goes through
//! the host.
//!
//! ```no_run
//! use resident::{Device, SmartArray, nccl};
//!
//! # let (rank, ranks) = (0, 1);
//! let id = nccl::new_id()?;                  // on one rank, which sends it to the others
//! let stream = Device::cuda(rank)?.new_stream()?;
//! let comm = nccl::join(id, rank, ranks, &stream)?;
//! let mut gradient = SmartArray::<f32, _>::ones(1000);
//! nccl::all_reduce_in_place(&comm, &mut gradient, &nccl::ReduceOp::Avg)?;
//! assert_eq!(gradient.get(0)?, 1.0);
//! # Ok::<(), resident::Error>(())
//! ```
//!
//! # Elements
//!
//! What is reduced are numbers that NCCL knows ([`NcclType`]; `f16` and `bf16` with cudarc's
//! feature `f16`). Other operations take any elements; those that NCCL does not know it gets as
//! bytes. Elements are in row-major order. A part whose rows do not lie in memory one after the
//! other, such as a column, is [`Error::NotContiguous`](crate::Error::NotContiguous): send a copy
//! (`to_contiguous`), and assign what was received (`assign_on`). A column-major array is row-major
//! by its other view, `a.t()`.
//!
//! # Guards as arguments
//!
//! Guards ([`gpu_on`](crate::SmartArray::gpu_on)) are arguments of [`Comm`]'s own methods too, in
//! memory order: `comm.send(&a.gpu_on(&stream)?, 1)`. Use these functions where you can:
//!
//! - cudarc's traits cannot return an error for a guard with gaps, so such a guard panics there,
//!   and does not become an empty message. Here it is an error.
//! - Between `group_start` and `group_end` NCCL only notes the calls, so a guard must live until
//!   `group_end`, as a slice of cudarc must. A [`Group`] keeps its guards itself. Call no function
//!   of this module between the two, since its guards would end too early.
//! - cudarc does not compare lengths: `comm.all_gather` into a short slice writes behind it.
//! - `Comm::from_rank` uses the calling thread's current context, which may be another GPU's, and
//!   panics if NCCL is not found. [`join`] selects the stream's, and returns an error.
//!
//! # Reports
//!
//! Messages ([`send`], [`recv`]) are in reports of the [`audit`](crate::audit), with the other rank
//! and the cause `mpi`, which all messages between ranks have: `Report::sent` and
//! `Report::received` are their totals. No copies are counted, since there are none between the
//! host and the GPU. How many bytes a collective moves is NCCL's choice, and not recorded.
//!
//! # Ranks that fail
//!
//! An operation whose other ranks do not come keeps its stream busy. [`abort`] ends it, and what it
//! was to write is lost. cudarc calls `ncclCommAbort` also when a communicator drops; what was to
//! be received then has unspecified contents. So synchronise the stream before you drop a
//! communicator whose work counts.
//!
//! # What was tried
//!
//! All of this was tried with a stand-in for NCCL on the stand-in driver, whose ranks are threads
//! and processes of one machine, and with no GPU. NVIDIA's NCCL is looked for when a program runs,
//! as `libnccl.so`.

mod abort;
mod call;
mod group;
mod hand_over;

use std::sync::OnceLock;

use cudarc::nccl::result::NcclError;
use cudarc::nccl::sys;

use crate::array::{AnyView, AnyViewMut};
use crate::device::Stream;
use crate::element::Element;
use crate::error::{AtCall, Error, Result};
use resident_backend::call_site::call_site;

use call::reason;

pub use abort::abort;
pub use cudarc::nccl::{Comm, Id, NcclType, ReduceOp};
pub use group::Group;

/// A new id, for the ranks of one communicator: pass it to all of them, for which
/// [`Id::internal`] is its bytes and [`Id::uninit`] makes it of them.
///
/// # Errors
///
/// [`Error::NoDevice`] if NCCL's library is not found; [`Error::Backend`] if it refuses.
#[track_caller]
pub fn new_id() -> Result<Id> {
    let site = call_site();
    expect_library().at(site)?;
    Id::new().map_err(|error| refused("the host", "nccl::new_id", &error)).at(site)
}

/// The communicator of a rank, of so many, on the GPU of the stream, on which its operations are
/// queued. Waits until all ranks have called it, each on a GPU of its own.
///
/// # Errors
///
/// [`Error::NoDevice`] if NCCL's library is not found, or if the stream is not one of an NVIDIA
/// GPU; [`Error::Foreign`] if there is no such rank; [`Error::Backend`] if NCCL refuses.
#[track_caller]
pub fn join(id: Id, rank: usize, ranks: usize, stream: &Stream) -> Result<Comm> {
    let site = call_site();
    expect_library().at(site)?;
    let cudarc = stream.try_cudarc().at(site)?;
    if rank >= ranks || i32::try_from(ranks).is_err() {
        return Err(Error::Foreign {
            call: site.into(),
            seen: format!("`nccl::join` of rank {rank} of {ranks}"),
            expected: format!("ranks counted from 0, of at most {}", i32::MAX),
        });
    }
    let device = stream.device_ref().name();
    cudarc.context().bind_to_thread().map_err(|error| Error::Backend {
        call: site.into(),
        device: device.clone(),
        operation: String::from("`nccl::join`"),
        cause: format!("the GPU's context is not usable: {error}"),
    })?;
    let joined = Comm::from_rank(cudarc, rank, ranks, id);
    joined.map_err(|error| refused(&device, "nccl::join", &error)).at(site)
}

/// Sends the elements to a rank, which receives as many ([`recv`]). Is over on the stream once they
/// were received, or buffered; between two ranks that both send, use a [`Group`].
///
/// ```no_run
/// # fn example(comm: &resident::nccl::Comm) -> resident::Result<()> {
/// use resident::{SmartArray, nccl, ndarray::s};
///
/// let mut table = SmartArray::<f64, _>::zeros((10, 10));
/// match comm.rank() {
///     0 => nccl::send(comm, &table.slice(s![9, ..]), 1)?,
///     _ => nccl::recv(comm, &mut table.slice_mut(s![0, ..]), 0)?,
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// - [`Error::NotContiguous`] if the elements are not row-major without gaps; [`Error::Foreign`] if
///   there is no such rank. Nothing was copied.
/// - [`Error::WrongDevice`] for a device array of another device, and what
///   [`gpu_on`](crate::SmartArray::gpu_on) returns.
/// - [`Error::Backend`] if NCCL refuses. Arrays that should have been written then have unspecified
///   contents.
#[track_caller]
pub fn send<T: Element>(comm: &Comm, from: &impl AnyView<T>, to: usize) -> Result<()> {
    let mut alone = Group::new();
    alone.send(comm, from, to)?;
    alone.end()
}

/// Receives the elements from a rank, which sends as many ([`send`]). They are overwritten, so
/// nothing is copied to the GPU before.
///
/// # Errors
///
/// As [`send`].
#[track_caller]
pub fn recv<T: Element>(comm: &Comm, to: &mut impl AnyViewMut<T>, from: usize) -> Result<()> {
    let mut alone = Group::new();
    alone.recv(comm, to, from)?;
    alone.end()
}

/// The sum, or another reduction, of the elements of all ranks, on each of them.
///
/// # Errors
///
/// As [`send`], and [`Error::Shape`] if the two have not as many elements. Shapes may differ.
#[track_caller]
pub fn all_reduce<T: Element + NcclType>(
    comm: &Comm,
    from: &impl AnyView<T>,
    to: &mut impl AnyViewMut<T>,
    reduction: &ReduceOp,
) -> Result<()> {
    let mut alone = Group::new();
    alone.all_reduce(comm, from, to, reduction)?;
    alone.end()
}

/// [`all_reduce`] of an array into itself.
///
/// # Errors
///
/// As [`send`].
#[track_caller]
pub fn all_reduce_in_place<T: Element + NcclType>(
    comm: &Comm,
    array: &mut impl AnyViewMut<T>,
    reduction: &ReduceOp,
) -> Result<()> {
    let mut alone = Group::new();
    alone.all_reduce_in_place(comm, array, reduction)?;
    alone.end()
}

/// The sum, or another reduction, of the elements of all ranks, in place of those of the root. The
/// other ranks keep theirs.
///
/// # Errors
///
/// As [`send`].
#[track_caller]
pub fn reduce_in_place<T: Element + NcclType>(
    comm: &Comm,
    array: &mut impl AnyViewMut<T>,
    reduction: &ReduceOp,
    root: usize,
) -> Result<()> {
    let mut alone = Group::new();
    alone.reduce_in_place(comm, array, reduction, root)?;
    alone.end()
}

/// The root's elements, in place of those of the other ranks.
///
/// # Errors
///
/// As [`send`].
#[track_caller]
pub fn broadcast_in_place<T: Element>(
    comm: &Comm,
    array: &mut impl AnyViewMut<T>,
    root: usize,
) -> Result<()> {
    let mut alone = Group::new();
    alone.broadcast_in_place(comm, array, root)?;
    alone.end()
}

/// The elements of all ranks, one after the other, on each of them.
///
/// # Errors
///
/// As [`send`], and [`Error::Shape`] if `to` has not as many elements as all ranks together.
#[track_caller]
pub fn all_gather<T: Element>(
    comm: &Comm,
    from: &impl AnyView<T>,
    to: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let mut alone = Group::new();
    alone.all_gather(comm, from, to)?;
    alone.end()
}

/// The sum, or another reduction, of the elements of all ranks, of which each rank gets one of as
/// many equal parts.
///
/// # Errors
///
/// As [`send`], and [`Error::Shape`] if `to` has not one part of the elements.
#[track_caller]
pub fn reduce_scatter<T: Element + NcclType>(
    comm: &Comm,
    from: &impl AnyView<T>,
    to: &mut impl AnyViewMut<T>,
    reduction: &ReduceOp,
) -> Result<()> {
    let mut alone = Group::new();
    alone.reduce_scatter(comm, from, to, reduction)?;
    alone.end()
}

/// Whether NCCL's library is found.
///
/// ```
/// if !resident::nccl::is_found() {
///     println!("messages go by the host");
/// }
/// ```
#[must_use]
pub fn is_found() -> bool {
    static IS_PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loading the library runs its initialisers alone, as of any library.
    *IS_PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// cudarc panics where the library cannot be loaded.
fn expect_library() -> Result<()> {
    if is_found() {
        return Ok(());
    }
    Err(Error::no_device(
        "NCCL",
        "there is no library of that name where the loader looks; install NCCL",
    ))
}

fn refused(device: &str, operation: &str, error: &NcclError) -> Error {
    Error::Backend {
        call: crate::error::CalledAt::UNKNOWN,
        device: String::from(device),
        operation: format!("`{operation}`"),
        cause: reason(error),
    }
}
