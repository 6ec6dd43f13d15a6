//! A file that all processes open together: MPI-IO.

use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;

use mpi_sys as ffi;

use super::bytes::{Bytes, byte};
use super::check;
use super::session::{Channel, Session, is_live};
use crate::error::Result;

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// An existing file.
    Read,
    /// The file is made if there is none.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// An open file. All processes call each of its methods, in the same order.
pub(crate) struct File<'a> {
    raw: ffi::MPI_File,
    session: &'a Session,
}

/// The elements of a row-major array in a file that one process reads or writes. All processes
/// name the same array.
pub(crate) struct FilePart {
    /// Of the whole array.
    pub(crate) shape: Vec<c_int>,
    pub(crate) part: Vec<Range<c_int>>,
    pub(crate) element_bytes: c_int,
}

/// A datatype that is freed with it.
struct Datatype(ffi::MPI_Datatype);

impl Session {
    pub(crate) fn open_file(&self, path: &CStr, access: Access) -> Result<File<'_>> {
        let mode = match access {
            Access::Read => ffi::MPI_MODE_RDONLY,
            Access::Write => ffi::MPI_MODE_WRONLY | ffi::MPI_MODE_CREATE,
        };
        let (info, mut raw) = (constant!(RSMPI_INFO_NULL), constant!(RSMPI_FILE_NULL));
        let communicator = self.communicator(Channel::Collectives);
        // SAFETY: MPI runs, and `path` ends with a zero.
        let code = unsafe {
            ffi::MPI_File_open(communicator, path.as_ptr(), mode as c_int, info, &mut raw)
        };
        check("MPI_File_open", code)?;
        Ok(File { raw, session: self })
    }
}

impl File<'_> {
    pub(crate) fn len_bytes(&self) -> Result<u64> {
        let mut len: ffi::MPI_Offset = 0;
        // SAFETY: the session proves that MPI runs, and the file is open.
        check("MPI_File_get_size", unsafe { ffi::MPI_File_get_size(self.raw, &mut len) })?;
        Ok(u64::try_from(len).unwrap_or(0))
    }

    pub(crate) fn set_len_bytes(&mut self, len: u64) -> Result<()> {
        let len = ffi::MPI_Offset::try_from(len).unwrap_or(ffi::MPI_Offset::MAX);
        // SAFETY: the session proves that MPI runs, and the file is open.
        check("MPI_File_set_size", unsafe { ffi::MPI_File_set_size(self.raw, len) })
    }

    /// Writes the elements of a part, row by row. Returns whether all were written.
    pub(crate) fn write(&mut self, part: &FilePart, from: &[u8]) -> Result<bool> {
        self.view(part)?;
        let bytes = Bytes::new(self.session, from.len())?;
        let (memory, count) = (from.as_ptr().cast::<c_void>(), bytes.count());
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        let out = status.as_mut_ptr();
        // SAFETY: the session proves that MPI runs, the file is open, and `from` has as many bytes
        // as the datatype and the count say.
        let code =
            unsafe { ffi::MPI_File_write_all(self.raw, memory, count, bytes.datatype(), out) };
        check("MPI_File_write_all", code)?;
        // SAFETY: it was zeroed, which is a value of it: it consists of integers.
        bytes.are_all_in(&unsafe { status.assume_init() })
    }

    /// Reads the elements of a part, row by row. Returns whether the file had all.
    pub(crate) fn read(&mut self, part: &FilePart, to: &mut [u8]) -> Result<bool> {
        self.view(part)?;
        let bytes = Bytes::new(self.session, to.len())?;
        let (memory, count) = (to.as_mut_ptr().cast::<c_void>(), bytes.count());
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        let out = status.as_mut_ptr();
        // SAFETY: the session proves that MPI runs, the file is open, and `to` has room for as many
        // bytes as the datatype and the count say.
        let code =
            unsafe { ffi::MPI_File_read_all(self.raw, memory, count, bytes.datatype(), out) };
        check("MPI_File_read_all", code)?;
        // SAFETY: it was zeroed, which is a value of it: it consists of integers.
        bytes.are_all_in(&unsafe { status.assume_init() })
    }

    pub(crate) fn close(mut self) -> Result<()> {
        // SAFETY: the session proves that MPI runs, and the file is open: only this closes it, and
        // `drop` does if this was not called.
        check("MPI_File_close", unsafe { ffi::MPI_File_close(&mut self.raw) })
    }

    /// Makes the part all that the file shows to this process.
    fn view(&mut self, part: &FilePart) -> Result<()> {
        let element = Datatype::element(self.session, part.element_bytes)?;
        let shown = Datatype::part(self.session, part, &element)?;
        let shown = shown.as_ref().unwrap_or(&element);
        let info = constant!(RSMPI_INFO_NULL);
        // SAFETY: the session proves that MPI runs, the file is open, and the types are committed.
        // The file keeps them.
        let code = unsafe {
            ffi::MPI_File_set_view(self.raw, 0, element.0, shown.0, c"native".as_ptr(), info)
        };
        check("MPI_File_set_view", code)
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        if self.raw != constant!(RSMPI_FILE_NULL) && is_live() {
            // SAFETY: the session that this borrows proves that MPI runs; the file is open, since
            // closing one makes its handle null.
            unsafe { ffi::MPI_File_close(&mut self.raw) };
        }
    }
}

impl Datatype {
    /// The bytes of an element.
    fn element(_session: &Session, len_bytes: c_int) -> Result<Self> {
        let mut raw = byte();
        // SAFETY: the session proves that MPI runs.
        let code = unsafe { ffi::MPI_Type_contiguous(len_bytes, byte(), &mut raw) };
        check("MPI_Type_contiguous", code)?;
        Self(raw).committed()
    }

    /// The elements of a part, `None` if there are none.
    fn part(_session: &Session, part: &FilePart, element: &Self) -> Result<Option<Self>> {
        if part.part.is_empty() || part.part.iter().any(Range::is_empty) {
            return Ok(None);
        }
        let lengths: Vec<c_int> = part.part.iter().map(|range| range.end - range.start).collect();
        let starts: Vec<c_int> = part.part.iter().map(|range| range.start).collect();
        let (axes, order, mut raw) = (lengths.len(), ffi::MPI_ORDER_C as c_int, byte());
        assert_eq!(axes, part.shape.len(), "a part has a range for each axis");
        // SAFETY: the session proves that MPI runs. The three arrays have `axes` elements, and the
        // type is committed.
        let code = unsafe {
            ffi::MPI_Type_create_subarray(
                axes as c_int,
                part.shape.as_ptr(),
                lengths.as_ptr(),
                starts.as_ptr(),
                order,
                element.0,
                &mut raw,
            )
        };
        check("MPI_Type_create_subarray", code)?;
        Self(raw).committed().map(Some)
    }

    fn committed(mut self) -> Result<Self> {
        // SAFETY: MPI runs, since a session made this type.
        check("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(&mut self.0) })?;
        Ok(self)
    }
}

impl Drop for Datatype {
    fn drop(&mut self) {
        // SAFETY: MPI runs: a session made this type for a call that borrows it. Files keep types.
        unsafe { ffi::MPI_Type_free(&mut self.0) };
    }
}
