//! Messages from process to process.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use mpi_sys as ffi;

use super::bytes::{Bytes, byte};
use super::check;
use super::request::{Request, request_null};
use super::session::{Channel, Session};
use crate::error::Result;

/// The other end of a message. Rank and tag are valid: `World::peer` has checked them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) rank: usize,
    pub(crate) tag: i32,
    pub(crate) channel: Channel,
}

impl Session {
    /// A request, not started, that sends `len_bytes` bytes at `from`.
    pub(crate) fn send_request(
        &self,
        from: *const u8,
        len_bytes: usize,
        peer: Peer,
    ) -> Result<Request> {
        let bytes = Bytes::new(self, len_bytes)?;
        let mut raw = request_null();
        let (rank, communicator) = (peer.rank as i32, self.communicator(peer.channel));
        let (memory, count, datatype) = (from.cast::<c_void>(), bytes.count(), bytes.datatype());
        // SAFETY: this session proves that MPI runs. Nothing is read before the request is started,
        // for which its caller vouches.
        let code = unsafe {
            ffi::MPI_Send_init(memory, count, datatype, rank, peer.tag, communicator, &mut raw)
        };
        check("MPI_Send_init", code)?;
        Ok(Request::persistent(raw, from, None))
    }

    /// A request, not started, that receives `len_bytes` bytes to `to`.
    pub(crate) fn receive_request(
        &self,
        to: *mut u8,
        len_bytes: usize,
        peer: Peer,
    ) -> Result<Request> {
        let bytes = Bytes::new(self, len_bytes)?;
        let mut raw = request_null();
        let (rank, communicator) = (peer.rank as i32, self.communicator(peer.channel));
        let (memory, count, datatype) = (to.cast::<c_void>(), bytes.count(), bytes.datatype());
        // SAFETY: this session proves that MPI runs. Nothing is written before the request is
        // started, for which its caller vouches.
        let code = unsafe {
            ffi::MPI_Recv_init(memory, count, datatype, rank, peer.tag, communicator, &mut raw)
        };
        check("MPI_Recv_init", code)?;
        Ok(Request::persistent(raw, to, Some(bytes)))
    }

    /// Takes a number that has arrived, from whichever process, and the rank of that. Messages of
    /// this tag are numbers. Does not wait.
    pub(crate) fn take_number(&self, channel: Channel, tag: i32) -> Result<Option<(usize, u64)>> {
        let (any, communicator) = (constant!(RSMPI_ANY_SOURCE), self.communicator(channel));
        let (mut flag, mut status) = (0, MaybeUninit::<ffi::MPI_Status>::zeroed());
        // SAFETY: this session proves that MPI runs.
        let code =
            unsafe { ffi::MPI_Iprobe(any, tag, communicator, &mut flag, status.as_mut_ptr()) };
        check("MPI_Iprobe", code)?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: it was zeroed, which is a value of it: it consists of integers.
        let rank = unsafe { status.assume_init() }.MPI_SOURCE;
        let mut number = 0_u64;
        let (memory, len_bytes) = ((&raw mut number).cast::<c_void>(), size_of::<u64>() as i32);
        let ignored = constant!(RSMPI_STATUS_IGNORE);
        // SAFETY: this session proves that MPI runs. The message has arrived, so the call does not
        // wait; it has as many bytes as the number.
        let code =
            unsafe { ffi::MPI_Recv(memory, len_bytes, byte(), rank, tag, communicator, ignored) };
        check("MPI_Recv", code)?;
        Ok(Some((rank as usize, number)))
    }
}
