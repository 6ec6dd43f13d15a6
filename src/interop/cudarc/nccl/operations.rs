//! The operations, each with the check of its arguments.

use cudarc::nccl::{NcclType, ReduceOp};

use super::call::{Call, Checked, Kind};
use super::hand_over;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::element::Element;
use crate::error::Result;
use resident_core::Access;

pub(super) fn send<'a, T: Element>(
    call: Call<'a>,
    from: &'a impl AnyView<T>,
    to: usize,
) -> Result<Checked<'a, T>> {
    let kind = Kind::Send { peer: call.rank(to)? };
    Ok(Checked {
        call,
        kind,
        hand_over: hand_over::moving,
        from: Some(read(call, from)?),
        to: None,
    })
}

pub(super) fn recv<'a, T: Element>(
    call: Call<'a>,
    to: &'a mut impl AnyViewMut<T>,
    from: usize,
) -> Result<Checked<'a, T>> {
    let kind = Kind::Receive { peer: call.rank(from)? };
    let to = Some((written(call, to)?, Access::Overwrite));
    Ok(Checked { call, kind, hand_over: hand_over::moving, from: None, to })
}

pub(super) fn all_reduce<'a, T: Element + NcclType>(
    call: Call<'a>,
    from: &'a impl AnyView<T>,
    to: &'a mut impl AnyViewMut<T>,
    reduction: &'a ReduceOp,
) -> Result<Checked<'a, T>> {
    let (from, to) = (read(call, from)?, written(call, to)?);
    call.expect_len(&to, to.axes().len(), Some(from.axes().len()))?;
    let (from, to) = (Some(from), Some((to, Access::Overwrite)));
    Ok(Checked { call, kind: Kind::AllReduce(reduction), hand_over: hand_over::reducing, from, to })
}

pub(super) fn all_reduce_in_place<'a, T: Element + NcclType>(
    call: Call<'a>,
    array: &'a mut impl AnyViewMut<T>,
    reduction: &'a ReduceOp,
) -> Result<Checked<'a, T>> {
    let to = Some((written(call, array)?, Access::ReadWrite));
    Ok(Checked {
        call,
        kind: Kind::AllReduce(reduction),
        hand_over: hand_over::reducing,
        from: None,
        to,
    })
}

pub(super) fn reduce_in_place<'a, T: Element + NcclType>(
    call: Call<'a>,
    array: &'a mut impl AnyViewMut<T>,
    reduction: &'a ReduceOp,
    root: usize,
) -> Result<Checked<'a, T>> {
    let kind = Kind::Reduce { reduction, root: call.rank(root)? };
    // Elsewhere than on the root NCCL only reads, so that all copies stay valid.
    let (from, to) = if call.comm.rank() == root {
        (None, Some((written(call, array)?, Access::ReadWrite)))
    } else {
        (Some(read(call, &*array)?), None)
    };
    Ok(Checked { call, kind, hand_over: hand_over::reducing, from, to })
}

pub(super) fn broadcast_in_place<'a, T: Element>(
    call: Call<'a>,
    array: &'a mut impl AnyViewMut<T>,
    root: usize,
) -> Result<Checked<'a, T>> {
    let kind = Kind::Broadcast { root: call.rank(root)? };
    let access = if call.comm.rank() == root { Access::ReadWrite } else { Access::Overwrite };
    let to = Some((written(call, array)?, access));
    Ok(Checked { call, kind, hand_over: hand_over::moving, from: None, to })
}

pub(super) fn all_gather<'a, T: Element>(
    call: Call<'a>,
    from: &'a impl AnyView<T>,
    to: &'a mut impl AnyViewMut<T>,
) -> Result<Checked<'a, T>> {
    let (from, to) = (read(call, from)?, written(call, to)?);
    let all = from.axes().len().checked_mul(call.comm.world_size());
    call.expect_len(&to, to.axes().len(), all)?;
    let (from, to) = (Some(from), Some((to, Access::Overwrite)));
    Ok(Checked { call, kind: Kind::AllGather, hand_over: hand_over::moving, from, to })
}

pub(super) fn reduce_scatter<'a, T: Element + NcclType>(
    call: Call<'a>,
    from: &'a impl AnyView<T>,
    to: &'a mut impl AnyViewMut<T>,
    reduction: &'a ReduceOp,
) -> Result<Checked<'a, T>> {
    let (from, to) = (read(call, from)?, written(call, to)?);
    let (all, ranks) = (from.axes().len(), call.comm.world_size());
    call.expect_len(&from, all, Some(all.next_multiple_of(ranks)))?;
    call.expect_len(&to, to.axes().len(), Some(all / ranks))?;
    let (from, to) = (Some(from), Some((to, Access::Overwrite)));
    Ok(Checked {
        call,
        kind: Kind::ReduceScatter(reduction),
        hand_over: hand_over::reducing,
        from,
        to,
    })
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
