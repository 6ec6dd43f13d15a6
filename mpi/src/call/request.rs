//! Requests: operations of MPI that have begun, or that can be started again and again.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use mpi_sys as ffi;

use super::bytes::Bytes;
use super::session::{Session, is_live};
use super::{check, class_of, text_of};
use crate::error::{Error, Result};

/// What a test of a request says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// MPI may still use the memory.
    Pending,
    /// Over. The memory is as its owner wants it.
    Done,
    /// Over. A message arrived that was longer or shorter than the memory.
    OtherLength,
}

/// An operation of MPI. Its memory belongs to whoever started it: see `crate::transfer`.
pub(crate) struct Request {
    raw: ffi::MPI_Request,
    /// What a persistent operation reads or writes.
    memory: *const u8,
    /// What a receive is to bring.
    expected: Option<Bytes>,
    is_active: bool,
}

// SAFETY: MPI's handles are plain values. Only those of `crate::inbox` are used by two threads, one
// at a time, and the second thread exists only where MPI allows it.
unsafe impl Send for Request {}

impl Request {
    pub(crate) fn null() -> Self {
        Self::persistent(request_null(), ptr::null(), None)
    }

    /// A persistent operation, not started. `bytes` lives as long as the request, for its type.
    pub(super) fn persistent(
        raw: ffi::MPI_Request,
        memory: *const u8,
        expected: Option<Bytes>,
    ) -> Self {
        Self { raw, memory, expected, is_active: false }
    }

    /// Whether it is a persistent operation on memory at this address.
    pub(crate) fn is_of(&self, memory: *const u8) -> bool {
        self.raw != request_null() && ptr::eq(self.memory, memory)
    }

    /// Where a function of MPI writes the request that it starts.
    pub(super) fn raw_mut(&mut self) -> &mut ffi::MPI_Request {
        self.is_active = true;
        &mut self.raw
    }

    /// Says that the function of MPI to which `raw_mut` was given has started nothing.
    pub(super) fn has_not_begun(&mut self) {
        *self = Self::null();
    }

    /// Starts a persistent request.
    ///
    /// # Safety
    ///
    /// Until a test of it says that it is over, the memory that was named when the request was made
    /// is valid, and nothing else writes it, nor reads it if it is that of a receive. The message
    /// that a receive gets is not longer than its memory: MPI may write beyond it then, although it
    /// returns an error.
    pub(crate) unsafe fn start(&mut self, _session: &Session) -> Result<()> {
        assert!(!self.is_active, "a request is started once at a time");
        // SAFETY: the session proves that MPI runs; the request is not active, as was asserted; the
        // caller vouches for its memory.
        check("MPI_Start", unsafe { ffi::MPI_Start(&mut self.raw) })?;
        self.is_active = true;
        Ok(())
    }

    /// Whether the operation is over. Lets MPI progress.
    ///
    /// # Errors
    ///
    /// `Error::Mpi`: it is not known whether MPI still uses the memory.
    pub(crate) fn test(&mut self, _session: &Session) -> Result<Outcome> {
        if !self.is_active {
            return Ok(Outcome::Done);
        }
        let (mut flag, mut status) = (0, MaybeUninit::<ffi::MPI_Status>::zeroed());
        // SAFETY: the session proves that MPI runs, and the request is of it.
        let code = unsafe { ffi::MPI_Test(&mut self.raw, &mut flag, status.as_mut_ptr()) };
        if code != ffi::MPI_SUCCESS as c_int {
            return self.failed(code);
        }
        if flag == 0 {
            return Ok(Outcome::Pending);
        }
        self.is_active = false;
        // SAFETY: it was zeroed, which is a value of it: it consists of integers.
        let status = unsafe { status.assume_init() };
        match &self.expected {
            Some(bytes) if !bytes.are_all_in(&status)? => Ok(Outcome::OtherLength),
            _ => Ok(Outcome::Done),
        }
    }

    /// A message that is too long has ended its request, with the memory filled.
    fn failed(&mut self, code: c_int) -> Result<Outcome> {
        if class_of(code) == ffi::MPI_ERR_TRUNCATE as c_int {
            self.is_active = false;
            return Ok(Outcome::OtherLength);
        }
        Err(Error::Mpi { call: "MPI_Test", code, text: text_of(code) })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // An active request is never freed: MPI would go on without it.
        if self.is_active || self.raw == request_null() || !is_live() {
            return;
        }
        // SAFETY: MPI runs: a session lives, and it is finalised on the thread of all requests, or
        // once the thread that has others has ended. The request is persistent and not active.
        unsafe { ffi::MPI_Request_free(&mut self.raw) };
    }
}

pub(super) fn request_null() -> ffi::MPI_Request {
    constant!(RSMPI_REQUEST_NULL)
}
