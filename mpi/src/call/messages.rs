//! Messages from process to process.

use std::ffi::c_void;

use mpi_sys as ffi;

use super::bytes::Bytes;
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
}
