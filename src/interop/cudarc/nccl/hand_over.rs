//! How operations are handed to NCCL: with the numbers that it reduces, or with any elements, which
//! it moves.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use cudarc::nccl::NcclType;
use cudarc::nccl::result::NcclError;
use ndarray::IxDyn;

use super::call::{Acquired, Kind};
use crate::array::DevicePart;
use crate::element::Element;

/// The memory of a guard as numbers, on the guard's stream, which is the communicator's.
struct Numbers<'g, N> {
    address: CUdeviceptr,
    len: usize,
    stream: &'g Arc<CudaStream>,
    number: PhantomData<N>,
}

impl<'g, N> Numbers<'g, N> {
    fn of<T>(part: &'g DevicePart<'_, IxDyn>) -> Self {
        Self {
            address: part.lowest_address::<T>(),
            len: part.layout().len() * size_of::<T>() / size_of::<N>(),
            stream: part.cudarc_stream(),
            number: PhantomData,
        }
    }
}

impl<N> DeviceSlice<N> for Numbers<'_, N> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.stream
    }
}

/// The guard keeps the order.
impl<N> DevicePtr<N> for Numbers<'_, N> {
    fn device_ptr<'a>(&'a self, _stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}

impl<N> DevicePtrMut<N> for Numbers<'_, N> {
    fn device_ptr_mut<'a>(&'a mut self, _stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.address, SyncOnDrop::Sync(None))
    }
}

/// An operation that moves elements: as the numbers that they are, for the other rank may use
/// cudarc's methods, or else as bytes.
pub(super) fn moving<T: Element>(operation: &mut Acquired<'_, T>) -> Result<(), NcclError> {
    macro_rules! as_numbers {
        ($($number:ty),*) => {$(
            if TypeId::of::<T>() == TypeId::of::<$number>() {
                return moving_as::<T, $number>(operation);
            }
        )*};
    }
    as_numbers!(f32, f64, i8, i32, i64, u32, u64);
    moving_as::<T, u8>(operation)
}

fn moving_as<T: Element, N: NcclType>(operation: &mut Acquired<'_, T>) -> Result<(), NcclError> {
    let Acquired { call, kind, from, to, .. } = operation;
    let from = from.as_ref().map(|guard| Numbers::<N>::of::<T>(&guard.part));
    let mut to = to.as_ref().map(|guard| Numbers::<N>::of::<T>(&guard.part));
    match (*kind, from.as_ref(), to.as_mut()) {
        (Kind::Send { peer }, Some(from), _) => call.comm.send(from, peer),
        (Kind::Receive { peer }, _, Some(to)) => call.comm.recv(to, peer).map(drop),
        (Kind::Broadcast { root }, _, Some(to)) => call.comm.broadcast_in_place(to, root).map(drop),
        (Kind::AllGather, Some(from), Some(to)) => call.comm.all_gather(from, to).map(drop),
        _ => unreachable!("`Group` makes each operation with its arrays"),
    }
}

/// An operation that reduces numbers.
pub(super) fn reducing<T: Element + NcclType>(
    operation: &mut Acquired<'_, T>,
) -> Result<(), NcclError> {
    let Acquired { call, kind, from, to, .. } = operation;
    let comm = call.comm;
    let outcome = match (*kind, from.as_ref(), to.as_mut()) {
        (Kind::AllReduce(reduction), Some(from), Some(to)) => comm.all_reduce(from, to, reduction),
        (Kind::AllReduce(reduction), None, Some(to)) => comm.all_reduce_in_place(to, reduction),
        (Kind::Reduce { reduction, root }, None, Some(to)) => {
            comm.reduce_in_place(to, reduction, root)
        }
        (Kind::Reduce { reduction, root }, Some(from), to) => {
            comm.reduce(from, to, reduction, root)
        }
        (Kind::ReduceScatter(reduction), Some(from), Some(to)) => {
            comm.reduce_scatter(from, to, reduction)
        }
        _ => unreachable!("`Group` makes each operation with its arrays"),
    };
    outcome.map(drop)
}
