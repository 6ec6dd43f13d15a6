//! Ranks, each with a stream on a device of its own.

use std::ffi::c_void;
use std::sync::Arc;

use resident::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use resident::cudarc::nccl::result::{self, NcclError};
use resident::cudarc::nccl::sys::{self, ncclResult_t};
use resident::cudarc::nccl::{Id, NcclType};

use crate::shared::context;

/// Loads both stand-ins.
pub(super) fn load() {
    crate::shared::load();
    resident_stand_in_nccl::load().expect("what stands for NCCL loads");
}

pub(super) struct Rank {
    pub(super) comm: sys::ncclComm_t,
    pub(super) stream: Arc<CudaStream>,
}

/// The code of what NCCL refused.
#[track_caller]
pub(super) fn code<T>(outcome: Result<T, NcclError>) -> ncclResult_t {
    outcome.map(drop).expect_err("it is refused").0
}

pub(super) fn new_id() -> sys::ncclUniqueId {
    load();
    sys::ncclUniqueId { internal: *Id::new().expect("an id").internal() }
}

/// So many ranks of a new communicator, on the first devices.
pub(super) fn ranks<const RANKS: usize>() -> [Rank; RANKS] {
    let id = new_id();
    std::array::from_fn(|rank| Rank::join(id, rank, RANKS).expect("it joins"))
}

impl Rank {
    /// A rank on the device with its number.
    pub(super) fn join(id: sys::ncclUniqueId, rank: usize, of: usize) -> Result<Self, NcclError> {
        Self::join_on(rank, id, rank, of)
    }

    pub(super) fn join_on(
        device: usize,
        id: sys::ncclUniqueId,
        rank: usize,
        of: usize,
    ) -> Result<Self, NcclError> {
        let stream = context(device).new_stream().expect("a stream");
        stream.context().bind_to_thread().expect("it is current");
        let mut comm = std::ptr::null_mut();
        // SAFETY: NCCL writes one handle.
        unsafe { result::comm_init_rank(&raw mut comm, of as i32, id, rank as i32) }?;
        Ok(Self { comm, stream })
    }

    pub(super) fn upload<T: resident::cudarc::driver::DeviceRepr>(
        &self,
        numbers: &[T],
    ) -> CudaSlice<T> {
        self.stream.clone_htod(numbers).expect("memory")
    }

    #[track_caller]
    pub(super) fn download<T: resident::cudarc::driver::DeviceRepr>(
        &self,
        slice: &CudaSlice<T>,
    ) -> Vec<T> {
        self.stream.clone_dtoh(slice).expect("nothing failed")
    }

    pub(super) fn send<T: NcclType>(
        &self,
        from: &CudaSlice<T>,
        to: usize,
    ) -> Result<(), NcclError> {
        let (address, _after) = from.device_ptr(&self.stream);
        let (comm, stream) = (self.comm, self.stream.cu_stream().cast());
        // SAFETY: the memory has as many elements, and lives until the stream is over.
        unsafe {
            result::send(
                address as *const c_void,
                from.len(),
                T::as_nccl_type(),
                to as i32,
                comm,
                stream,
            )
        }
        .map(drop)
    }

    pub(super) fn receive<T: NcclType>(
        &self,
        to: &mut CudaSlice<T>,
        from: usize,
    ) -> Result<(), NcclError> {
        let len = to.len();
        let (address, _after) = to.device_ptr_mut(&self.stream);
        let (comm, stream) = (self.comm, self.stream.cu_stream().cast());
        // SAFETY: as for `send`.
        unsafe {
            result::recv(address as *mut c_void, len, T::as_nccl_type(), from as i32, comm, stream)
        }
        .map(drop)
    }

    /// The asynchronous error.
    pub(super) fn error(&self) -> ncclResult_t {
        let mut error = ncclResult_t::ncclSuccess;
        // SAFETY: NCCL writes one code.
        let outcome = unsafe { sys::ncclCommGetAsyncError(self.comm, &raw mut error) };
        assert_eq!(outcome, ncclResult_t::ncclSuccess);
        error
    }

    pub(super) fn abort(&self) -> Result<(), NcclError> {
        // SAFETY: the stand-in's communicators are numbers, which it looks up.
        unsafe { result::comm_abort(self.comm) }.map(drop)
    }

    /// Whether all work on the stream is over.
    pub(super) fn is_over(&self) -> bool {
        let stream = self.stream.cu_stream();
        // SAFETY: the stream is alive.
        unsafe { resident::cudarc::driver::sys::cuStreamQuery(stream) }.result().is_ok()
    }
}
