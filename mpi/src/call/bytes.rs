//! The length of a message, as MPI counts: in an `int`.

use std::ffi::c_int;

use mpi_sys as ffi;

use super::check;
use super::session::{Session, is_live};
use crate::error::Result;

/// Above an `int`, bytes are counted in blocks of so many.
const BLOCK_BYTES: usize = 1 << 30;

/// A number of bytes, as a datatype and how many there are of it: one for each message, so that the
/// messages of a sender and a receiver correspond whatever their lengths.
pub(super) struct Bytes {
    datatype: ffi::MPI_Datatype,
    count: c_int,
    is_derived: bool,
}

impl Bytes {
    pub(super) fn new(session: &Session, len_bytes: usize) -> Result<Self> {
        match c_int::try_from(len_bytes) {
            Ok(count) => Ok(Self { datatype: byte(), count, is_derived: false }),
            Err(_) => Self::derived(session, len_bytes),
        }
    }

    pub(super) fn datatype(&self) -> ffi::MPI_Datatype {
        self.datatype
    }

    pub(super) fn count(&self) -> c_int {
        self.count
    }

    /// Whether the message of this status has as many.
    pub(super) fn are_all_in(&self, status: &ffi::MPI_Status) -> Result<bool> {
        let mut count = 0;
        // SAFETY: MPI filled the status, on this thread, so it runs; the datatype is its own or was
        // committed, and is freed by `drop` only.
        let code = unsafe { ffi::MPI_Get_count(status, self.datatype, &mut count) };
        check("MPI_Get_count", code)?;
        Ok(count == self.count)
    }

    /// One element that consists of whole blocks, and of the bytes that are left.
    fn derived(_session: &Session, len_bytes: usize) -> Result<Self> {
        let mut block = byte();
        // SAFETY: the session proves that MPI runs.
        let code = unsafe { ffi::MPI_Type_contiguous(BLOCK_BYTES as c_int, byte(), &mut block) };
        check("MPI_Type_contiguous", code)?;
        let (blocks, rest) = (len_bytes / BLOCK_BYTES, len_bytes % BLOCK_BYTES);
        let lengths = [blocks as c_int, rest as c_int];
        let displacements = [0, (blocks * BLOCK_BYTES) as ffi::MPI_Aint];
        let (types, mut datatype) = ([block, byte()], byte());
        // SAFETY: the session proves that MPI runs; the arrays have as many elements as is said.
        let code = unsafe {
            ffi::MPI_Type_create_struct(
                2,
                lengths.as_ptr(),
                displacements.as_ptr(),
                types.as_ptr(),
                &mut datatype,
            )
        };
        check("MPI_Type_create_struct", code)?;
        // SAFETY: the session proves that MPI runs. `block` is not used again; types made of it
        // stay.
        check("MPI_Type_free", unsafe { ffi::MPI_Type_free(&mut block) })?;
        // SAFETY: the session proves that MPI runs, and the type was just made.
        check("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(&mut datatype) })?;
        Ok(Self { datatype, count: 1, is_derived: true })
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if self.is_derived && is_live() {
            // SAFETY: MPI runs: as in `Request::drop`. Requests that use the type keep it.
            unsafe { ffi::MPI_Type_free(&mut self.datatype) };
        }
    }
}

/// A byte, as a type of which MPI changes nothing.
pub(super) fn byte() -> ffi::MPI_Datatype {
    constant!(RSMPI_UINT8_T)
}
