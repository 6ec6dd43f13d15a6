//! Each MPI function that is used, with its return code checked. The only files that name
//! `mpi_sys`.
//!
//! A [`Session`] is the proof that MPI runs: `MPI_Init_thread` made it, its drop is the only caller
//! of `MPI_Finalize`, and it stays on the thread that initialised. So methods of it, and functions
//! that borrow it, may call MPI.

/// A constant of the C library.
macro_rules! constant {
    ($name:ident) => {{
        // SAFETY: nothing ever writes it.
        unsafe { mpi_sys::$name }
    }};
}

mod agent;
mod bytes;
mod collectives;
mod communicators;
mod element;
mod file;
mod messages;
mod request;
mod session;
mod support;

pub(crate) use agent::Agent;
pub use collectives::Reduce;
pub use element::Number;
pub(crate) use file::{Access, File, FilePart};
pub(crate) use messages::Peer;
pub(crate) use request::{Outcome, Request};
pub(crate) use session::{Channel, Session};
pub(crate) use support::says_it_uses_memory_of;

use std::ffi::c_int;

use mpi_sys as ffi;

use crate::error::{Error, Result};

/// `Err` unless `code`, which the function `call` returned, is `MPI_SUCCESS`.
fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    Err(Error::Mpi { call, code, text: text_of(code) })
}

/// MPI's text for an error code.
fn text_of(code: c_int) -> String {
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len: c_int = 0;
    // SAFETY: MPI writes at most MPI_MAX_ERROR_STRING characters, for which `text` has room. Codes
    // come from MPI, so it is initialised; only `Session` calls it after that, and not after
    // MPI_Finalize.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let len = usize::try_from(len).unwrap_or(0).min(text.len());
    String::from_utf8_lossy(&text[..len]).into_owned()
}

/// The class of an error code.
fn class_of(code: c_int) -> c_int {
    let mut class = 0;
    // SAFETY: as in `text_of`.
    unsafe { ffi::MPI_Error_class(code, &mut class) };
    class
}
