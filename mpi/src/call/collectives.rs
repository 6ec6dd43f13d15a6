//! Operations of all processes at once. None of them blocks.

use std::ffi::{c_int, c_void};

use mpi_sys as ffi;

use super::bytes::byte;
use super::check;
use super::element::{Number, datatype_of};
use super::request::Request;
use super::session::{Channel, Session};
use crate::error::{Error, Result};

/// How the elements of all processes become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The least of them.
    Min,
    /// The greatest of them.
    Max,
}

impl Reduce {
    fn operation(self) -> ffi::MPI_Op {
        match self {
            Self::Sum => constant!(RSMPI_SUM),
            Self::Product => constant!(RSMPI_PROD),
            Self::Min => constant!(RSMPI_MIN),
            Self::Max => constant!(RSMPI_MAX),
        }
    }
}

impl Session {
    /// Starts to collect `len_bytes` bytes of each process, at `own`, in `all`, by rank. It is over
    /// once all processes have started it.
    ///
    /// # Safety
    ///
    /// Until the request is over, both are valid, nothing writes `own`, and nothing reads or writes
    /// `all`, which is as long times the number of processes.
    pub(crate) unsafe fn all_gather(
        &self,
        own: *const u8,
        all: *mut u8,
        len_bytes: usize,
        request: &mut Request,
    ) -> Result<()> {
        let count = int("all_gather", len_bytes)?;
        let communicator = self.communicator(Channel::Collectives);
        let (own, all) = (own.cast::<c_void>(), all.cast::<c_void>());
        let raw = request.raw_mut();
        // SAFETY: this session proves that MPI runs; the caller vouches for the memory.
        let code = unsafe {
            ffi::MPI_Iallgather(own, count, byte(), all, count, byte(), communicator, raw)
        };
        check("MPI_Iallgather", code).inspect_err(|_| request.has_not_begun())
    }

    /// Starts to copy `len_bytes` bytes of the process `root` to all others.
    ///
    /// # Safety
    ///
    /// Until the request is over, the memory is valid, and nothing reads or writes it.
    pub(crate) unsafe fn broadcast(
        &self,
        memory: *mut u8,
        len_bytes: usize,
        root: usize,
        request: &mut Request,
    ) -> Result<()> {
        let count = int("broadcast", len_bytes)?;
        let communicator = self.communicator(Channel::Collectives);
        let (memory, raw) = (memory.cast::<c_void>(), request.raw_mut());
        // SAFETY: this session proves that MPI runs; the caller vouches for the memory.
        let code =
            unsafe { ffi::MPI_Ibcast(memory, count, byte(), root as c_int, communicator, raw) };
        check("MPI_Ibcast", code).inspect_err(|_| request.has_not_begun())
    }

    /// Starts to reduce `len` elements of each process at `from`, and to write the results to `to`
    /// in all of them.
    ///
    /// # Safety
    ///
    /// Until the request is over, both are valid for `len` elements of `T`, they do not overlap,
    /// nothing writes `from`, and nothing reads or writes `to`.
    pub(crate) unsafe fn all_reduce<T: Number>(
        &self,
        reduce: Reduce,
        from: *const T,
        to: *mut T,
        len: usize,
        request: &mut Request,
    ) -> Result<()> {
        let (count, datatype) = (int("all_reduce", len)?, datatype_of::<T>());
        let communicator = self.communicator(Channel::Collectives);
        let (from, to) = (from.cast::<c_void>(), to.cast::<c_void>());
        let (operation, raw) = (reduce.operation(), request.raw_mut());
        // SAFETY: this session proves that MPI runs; the caller vouches for the memory.
        let code =
            unsafe { ffi::MPI_Iallreduce(from, to, count, datatype, operation, communicator, raw) };
        check("MPI_Iallreduce", code).inspect_err(|_| request.has_not_begun())
    }
}

/// A count, as MPI takes it.
fn int(operation: &'static str, len: usize) -> Result<c_int> {
    c_int::try_from(len).map_err(|_| Error::Argument {
        operation,
        text: format!("{len} elements or bytes at once, but MPI takes 2147483647 at most"),
    })
}
