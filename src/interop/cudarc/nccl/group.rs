//! Operations that NCCL gets together.

use std::fmt;

use cudarc::nccl::{Comm, NcclType, ReduceOp, group_end, group_start};

use super::call::{Acquire, Call, Checked, HandOver, Kind, Queue};
use super::hand_over;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::element::Element;
use crate::error::Result;
use resident_core::Access;

/// Operations that NCCL queues together, so that none waits for another one of the group: sends and
/// receives between two ranks, as of a halo exchange, and operations of several communicators by
/// one thread need it. [`end`](Self::end) makes them; before, nothing is copied or queued, and a
/// group that is dropped does nothing.
///
/// The group borrows its arrays and views until it ends, so keep views in variables.
///
/// ```no_run
/// use resident::{Result, SmartArray, nccl, ndarray::{Ix2, s}};
///
/// /// Rows 0 and `n - 1` are the neighbours', the others are this rank's.
/// fn exchange_edges(comm: &nccl::Comm, a: &mut SmartArray<f32, Ix2>) -> Result<()> {
///     let n = a.shape()[0];
///     let (up, down) = (
///         (comm.rank() + comm.world_size() - 1) % comm.world_size(),
///         (comm.rank() + 1) % comm.world_size(),
///     );
///     let (mut top, own, mut bottom) =
///         a.multi_slice_mut((s![..1, ..], s![1..n - 1, ..], s![n - 1.., ..]));
///     let (first, last) = (own.slice(s![..1, ..]), own.slice(s![n - 3.., ..]));
///     let mut group = nccl::Group::new();
///     group.send(comm, &first, up)?;
///     group.recv(comm, &mut bottom, down)?;
///     group.send(comm, &last, down)?;
///     group.recv(comm, &mut top, up)?;
///     group.end()
/// }
/// ```
#[must_use = "`end` makes what the group consists of"]
#[derive(Default)]
pub struct Group<'a> {
    operations: Vec<Box<dyn Acquire<'a> + 'a>>,
    is_unrecorded: bool,
}

impl<'a> Group<'a> {
    /// A group without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// A group whose messages are in no report, since the caller records them itself: under the
    /// name of another array, or at another line.
    pub fn unrecorded() -> Self {
        Self { is_unrecorded: true, ..Self::default() }
    }

    /// [`send`](super::send), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`send`](super::send) that are about the arguments. The group stays as it was.
    #[track_caller]
    pub fn send<T: Element>(
        &mut self,
        comm: &'a Comm,
        from: &'a impl AnyView<T>,
        to: usize,
    ) -> Result<()> {
        let call = Call::new("nccl::send", comm);
        let kind = Kind::Send { peer: call.rank(to)? };
        self.add(call, kind, hand_over::moving, Some(read(call, from)?), None);
        Ok(())
    }

    /// [`recv`](super::recv), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`recv`](super::recv) that are about the arguments. The group stays as it was.
    #[track_caller]
    pub fn recv<T: Element>(
        &mut self,
        comm: &'a Comm,
        to: &'a mut impl AnyViewMut<T>,
        from: usize,
    ) -> Result<()> {
        let call = Call::new("nccl::recv", comm);
        let kind = Kind::Receive { peer: call.rank(from)? };
        let to = (written(call, to)?, Access::Overwrite);
        self.add(call, kind, hand_over::moving, None, Some(to));
        Ok(())
    }

    /// [`all_reduce`](super::all_reduce), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`all_reduce`](super::all_reduce) that are about the arguments. The group stays as
    /// it was.
    #[track_caller]
    pub fn all_reduce<T: Element + NcclType>(
        &mut self,
        comm: &'a Comm,
        from: &'a impl AnyView<T>,
        to: &'a mut impl AnyViewMut<T>,
        reduction: &'a ReduceOp,
    ) -> Result<()> {
        let call = Call::new("nccl::all_reduce", comm);
        let (from, to) = (read(call, from)?, written(call, to)?);
        call.expect_len(&to, to.axes().len(), Some(from.axes().len()))?;
        let (kind, to) = (Kind::AllReduce(reduction), (to, Access::Overwrite));
        self.add(call, kind, hand_over::reducing, Some(from), Some(to));
        Ok(())
    }

    /// [`all_reduce_in_place`](super::all_reduce_in_place), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`all_reduce_in_place`](super::all_reduce_in_place) that are about the arguments.
    /// The group stays as it was.
    #[track_caller]
    pub fn all_reduce_in_place<T: Element + NcclType>(
        &mut self,
        comm: &'a Comm,
        array: &'a mut impl AnyViewMut<T>,
        reduction: &'a ReduceOp,
    ) -> Result<()> {
        let call = Call::new("nccl::all_reduce_in_place", comm);
        let to = (written(call, array)?, Access::ReadWrite);
        self.add(call, Kind::AllReduce(reduction), hand_over::reducing, None, Some(to));
        Ok(())
    }

    /// [`reduce_in_place`](super::reduce_in_place), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`reduce_in_place`](super::reduce_in_place) that are about the arguments. The group
    /// stays as it was.
    #[track_caller]
    pub fn reduce_in_place<T: Element + NcclType>(
        &mut self,
        comm: &'a Comm,
        array: &'a mut impl AnyViewMut<T>,
        reduction: &'a ReduceOp,
        root: usize,
    ) -> Result<()> {
        let call = Call::new("nccl::reduce_in_place", comm);
        let kind = Kind::Reduce { reduction, root: call.rank(root)? };
        // Elsewhere than on the root NCCL only reads, so that all copies stay valid.
        let (from, to) = if comm.rank() == root {
            (None, Some((written(call, array)?, Access::ReadWrite)))
        } else {
            (Some(read(call, &*array)?), None)
        };
        self.add(call, kind, hand_over::reducing, from, to);
        Ok(())
    }

    /// [`broadcast_in_place`](super::broadcast_in_place), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`broadcast_in_place`](super::broadcast_in_place) that are about the arguments. The
    /// group stays as it was.
    #[track_caller]
    pub fn broadcast_in_place<T: Element>(
        &mut self,
        comm: &'a Comm,
        array: &'a mut impl AnyViewMut<T>,
        root: usize,
    ) -> Result<()> {
        let call = Call::new("nccl::broadcast_in_place", comm);
        let kind = Kind::Broadcast { root: call.rank(root)? };
        let access = if comm.rank() == root { Access::ReadWrite } else { Access::Overwrite };
        let to = (written(call, array)?, access);
        self.add(call, kind, hand_over::moving, None, Some(to));
        Ok(())
    }

    /// [`all_gather`](super::all_gather), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`all_gather`](super::all_gather) that are about the arguments. The group stays as
    /// it was.
    #[track_caller]
    pub fn all_gather<T: Element>(
        &mut self,
        comm: &'a Comm,
        from: &'a impl AnyView<T>,
        to: &'a mut impl AnyViewMut<T>,
    ) -> Result<()> {
        let call = Call::new("nccl::all_gather", comm);
        let (from, to) = (read(call, from)?, written(call, to)?);
        let all = from.axes().len().checked_mul(comm.world_size());
        call.expect_len(&to, to.axes().len(), all)?;
        let to = (to, Access::Overwrite);
        self.add(call, Kind::AllGather, hand_over::moving, Some(from), Some(to));
        Ok(())
    }

    /// [`reduce_scatter`](super::reduce_scatter), in the group.
    ///
    /// # Errors
    ///
    /// Those of [`reduce_scatter`](super::reduce_scatter) that are about the arguments. The group
    /// stays as it was.
    #[track_caller]
    pub fn reduce_scatter<T: Element + NcclType>(
        &mut self,
        comm: &'a Comm,
        from: &'a impl AnyView<T>,
        to: &'a mut impl AnyViewMut<T>,
        reduction: &'a ReduceOp,
    ) -> Result<()> {
        let call = Call::new("nccl::reduce_scatter", comm);
        let (from, to) = (read(call, from)?, written(call, to)?);
        let (all, ranks) = (from.axes().len(), comm.world_size());
        call.expect_len(&from, all, Some(all.next_multiple_of(ranks)))?;
        call.expect_len(&to, to.axes().len(), Some(all / ranks))?;
        let (kind, to) = (Kind::ReduceScatter(reduction), (to, Access::Overwrite));
        self.add(call, kind, hand_over::reducing, Some(from), Some(to));
        Ok(())
    }

    /// Adds an operation whose arguments fit.
    fn add<T: Element>(
        &mut self,
        call: Call<'a>,
        kind: Kind<'a>,
        hand_over: HandOver<T>,
        from: Option<Operand<'a, T>>,
        to: Option<(OperandMut<'a, T>, Access)>,
    ) {
        self.operations.push(Box::new(Checked { call, kind, hand_over, from, to }));
    }

    /// Makes the operations of the group: copies what is out of date to the GPUs, and queues all on
    /// the streams of their communicators. Does not wait for other ranks.
    ///
    /// # Errors
    ///
    /// - What [`gpu_on`](crate::SmartArray::gpu_on) returns for the arrays, and
    ///   [`Error::Foreign`](crate::Error::Foreign) if a communicator's stream is not one of its
    ///   GPU's primary context. Nothing was sent.
    /// - [`Error::Backend`](crate::Error::Backend) if NCCL refuses an operation. Arrays that should
    ///   have received something then have unspecified contents.
    pub fn end(self) -> Result<()> {
        let acquired: Result<Vec<_>> = self.operations.into_iter().map(Acquire::acquire).collect();
        let mut operations = acquired?;
        match operations.as_mut_slice() {
            [] => {}
            [alone] => alone.queue()?,
            together => queue_together(together)?,
        }
        operations.iter().try_for_each(|operation| {
            if !self.is_unrecorded {
                operation.record();
            }
            operation.end()
        })
    }
}

impl fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(of {} operations)", self.operations.len())
    }
}

/// Queues operations as one group of NCCL's, which is ended also after an error: the group is the
/// thread's, and would take up what comes next.
fn queue_together(operations: &mut [Box<dyn Queue + '_>]) -> Result<()> {
    let failed = |error| operations[0].call().error(&error);
    group_start().map_err(failed)?;
    let queued = operations.iter_mut().try_for_each(|operation| operation.queue());
    let ended = group_end().map_err(|error| operations[0].call().error(&error));
    queued.and(ended.map(drop))
}

/// An array or view that NCCL reads.
fn read<'a, T: Element>(call: Call<'_>, array: &'a impl AnyView<T>) -> Result<Operand<'a, T>> {
    let operand = Operand::of(array);
    call.expect_unbroken(&operand, operand.axes())?;
    Ok(operand)
}

/// An array or view that NCCL writes.
fn written<'a, T: Element>(
    call: Call<'_>,
    array: &'a mut impl AnyViewMut<T>,
) -> Result<OperandMut<'a, T>> {
    let operand = OperandMut::of(array);
    call.expect_unbroken(&operand, operand.axes())?;
    Ok(operand)
}
