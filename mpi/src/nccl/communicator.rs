//! The communicator, and operations on its stream.

use std::any::{Any, TypeId};
use std::time::Duration;

use resident::nccl::{self, Comm, Id, ReduceOp};
use resident::ndarray::Dimension;
use resident::{Device, DeviceKind, Element, SmartArray, Stream};

use super::watch::Watch;
use super::wish::Gpu;
use crate::awaited::Awaited;
use crate::call::{Number, Reduce};
use crate::error::{Error, Result};
use crate::packed::Packed;
use crate::transport::{Reachable, Transport};

pub(super) const ID_BYTES: usize = 128;

/// Calls a macro with the types of numbers that MPI and NCCL both reduce.
macro_rules! numbers {
    ($with:ident) => {
        $with!(f32, f64, i8, i32, i64, u8, u32, u64)
    };
}

/// The GPU of this process, with the stream of the communicator to be.
pub(super) struct Own {
    stream: Stream,
}

/// One rank of NCCL's on this process's GPU. Its operations are on a stream of its own, so that all
/// processes queue them in one order, and that they overlap what other streams do.
pub(crate) struct Communicator {
    watch: Watch,
    stream: Stream,
    reachable: Reachable,
}

/// Messages that NCCL gets together: those of an exchange.
pub(crate) struct Group<'a> {
    messages: nccl::Group<'a>,
    comm: &'a Comm,
}

/// A new id, on the process that gives it to the others.
pub(super) fn new_id() -> std::result::Result<[u8; ID_BYTES], String> {
    let id = nccl::new_id().map_err(|error| error.to_string())?;
    Ok(id.internal().map(|byte| byte as u8))
}

impl Own {
    /// The current device, if it is a GPU for NCCL, or why not.
    pub(super) fn find() -> std::result::Result<(Self, Gpu), String> {
        let text = |error: resident::Error| format!("cannot use its GPU: {error}");
        let device = Device::current().map_err(text)?;
        if device.kind() != DeviceKind::Cuda {
            return Err(format!("uses {device}, which is no NVIDIA GPU"));
        }
        if !nccl::is_found() {
            return Err("finds no library of NCCL".into());
        }
        let context = device.cuda_context().map_err(text)?;
        let uuid = context.uuid().map_err(|error| format!("cannot use its GPU: {error}"))?;
        let stream = device.new_stream().map_err(text)?;
        Ok((Self { stream }, uuid.bytes.map(|byte| byte as u8)))
    }

    /// Waits until all processes have called it.
    pub(super) fn join(
        self,
        id: [u8; ID_BYTES],
        [rank, size]: [usize; 2],
        timeout: Duration,
    ) -> std::result::Result<Communicator, String> {
        let (id, stream) = (Id::uninit(id.map(|byte| byte as _)), self.stream);
        let comm = nccl::join(id, rank, size, &stream);
        let comm = comm.map_err(|error| error.to_string())?;
        let watch = Watch::start(comm, timeout)
            .map_err(|error| format!("the system gives no thread: {error}"))?;
        Ok(Communicator { watch, stream, reachable: Reachable::new(Transport::Device) })
    }
}

impl Communicator {
    /// The error of an operation that took too long, if one did. All later ones have it.
    pub(crate) fn error(&self) -> Option<Error> {
        self.watch.error()
    }

    /// Whether all operations are over.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.watch.is_idle()
    }

    /// Memory of messages: that of devices.
    pub(crate) fn reachable(&self) -> &Reachable {
        &self.reachable
    }

    /// Queues the messages that `add` adds of `messages`, once the work on `behind` is done that is
    /// there by now. Does not wait for other processes.
    pub(crate) fn exchange<M>(
        &self,
        awaited: Awaited,
        behind: &Stream,
        messages: &mut M,
        add: impl for<'a> FnOnce(&'a mut M, &mut Group<'a>) -> Result<()>,
    ) -> Result<()> {
        self.run(awaited, behind, |comm| {
            let mut group = Group { messages: nccl::Group::unrecorded(), comm };
            add(messages, &mut group)?;
            Ok(group.messages.end()?)
        })
    }

    /// Whether NCCL reduces elements of this type.
    pub(crate) fn reduces<T: Number>(&self) -> bool {
        macro_rules! is_one_of {
            ($($number:ty),*) => {
                [$(TypeId::of::<$number>()),*].contains(&TypeId::of::<T>())
            };
        }
        numbers!(is_one_of)
    }

    /// Queues a reduction, which writes `to`. NCCL reduces elements of this type.
    pub(crate) fn all_reduce<T: Number, D: Dimension + 'static>(
        &self,
        awaited: Awaited,
        behind: &Stream,
        reduce: Reduce,
        from: &Packed<T, D>,
        to: &mut Packed<T, D>,
    ) -> Result<()> {
        let (from, to): (&dyn Any, &mut dyn Any) = (from.array(), to.array_mut());
        let operation = operation_of(reduce);
        self.run(awaited, behind, |comm| {
            macro_rules! reduce {
                ($($number:ty),*) => {$(
                    if let (Some(from), Some(to)) = (
                        from.downcast_ref::<SmartArray<$number, D>>(),
                        to.downcast_mut::<SmartArray<$number, D>>(),
                    ) {
                        return Ok(nccl::all_reduce(comm, from, to, &operation)?);
                    }
                )*};
            }
            numbers!(reduce);
            unreachable!("the caller has asked whether NCCL reduces them")
        })
    }

    /// Queues a broadcast.
    pub(crate) fn broadcast<T: Element, D: Dimension>(
        &self,
        awaited: Awaited,
        behind: &Stream,
        memory: &mut Packed<T, D>,
        root: usize,
    ) -> Result<()> {
        self.run(awaited, behind, |comm| {
            Ok(nccl::broadcast_in_place(comm, memory.array_mut(), root)?)
        })
    }

    fn run(
        &self,
        awaited: Awaited,
        behind: &Stream,
        queue: impl FnOnce(&Comm) -> Result<()>,
    ) -> Result<()> {
        let behind = behind.record()?;
        self.watch.run(awaited, behind, |comm| {
            queue(comm)?;
            Ok(self.stream.record()?)
        })
    }
}

impl<'a> Group<'a> {
    /// Sends a message's elements. Messages to one process arrive in the order in which both have
    /// added them.
    pub(crate) fn send<T: Element, D: Dimension>(
        &mut self,
        memory: &'a Packed<T, D>,
        to: usize,
    ) -> Result<()> {
        Ok(self.messages.send(self.comm, memory.array(), to)?)
    }

    /// Receives a message of as many elements.
    pub(crate) fn receive<T: Element, D: Dimension>(
        &mut self,
        memory: &'a mut Packed<T, D>,
        from: usize,
    ) -> Result<()> {
        Ok(self.messages.recv(self.comm, memory.array_mut(), from)?)
    }
}

fn operation_of(reduce: Reduce) -> ReduceOp {
    match reduce {
        Reduce::Sum => ReduceOp::Sum,
        Reduce::Product => ReduceOp::Prod,
        Reduce::Min => ReduceOp::Min,
        Reduce::Max => ReduceOp::Max,
    }
}
