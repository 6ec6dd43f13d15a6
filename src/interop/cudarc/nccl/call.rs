//! One operation of NCCL's: checked, then with guards of its arrays, then queued.

use std::fmt;

use cudarc::nccl::result::NcclError;
use cudarc::nccl::{Comm, ReduceOp};
use ndarray::IxDyn;

use crate::array::{Axes, DeviceMut, DeviceRef, Operand, OperandMut};
use crate::audit::Direction;
use crate::audit::recording::messages::{Transfer, record_transfer};
use crate::device::Stream;
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;

/// An operation, by its name, over a communicator.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) comm: &'a Comm,
    pub(super) site: CallSite,
}

/// What an operation does with its arrays.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Send { peer: i32 },
    Receive { peer: i32 },
    AllReduce(&'a ReduceOp),
    Reduce { reduction: &'a ReduceOp, root: i32 },
    Broadcast { root: i32 },
    AllGather,
    ReduceScatter(&'a ReduceOp),
}

/// An operation whose arguments fit, with its arrays.
pub(super) struct Checked<'a, T: Element> {
    pub(super) call: Call<'a>,
    pub(super) kind: Kind<'a>,
    pub(super) hand_over: HandOver<T>,
    pub(super) from: Option<Operand<'a, T>>,
    pub(super) to: Option<(OperandMut<'a, T>, Access)>,
}

/// An operation whose arrays are on the device, ordered on the communicator's stream.
pub(super) struct Acquired<'a, T: Element> {
    pub(super) call: Call<'a>,
    pub(super) kind: Kind<'a>,
    hand_over: HandOver<T>,
    pub(super) from: Option<DeviceRef<'a, T, IxDyn>>,
    pub(super) to: Option<DeviceMut<'a, T, IxDyn>>,
}

/// Hands an operation to NCCL: one for elements that it moves, or one for numbers that it reduces.
pub(super) type HandOver<T> = fn(&mut Acquired<'_, T>) -> Result<(), NcclError>;

/// [`Checked`], for any element.
pub(super) trait Acquire<'a> {
    /// Copies what is out of date, and makes the communicator's stream wait for earlier uses.
    fn acquire(self: Box<Self>) -> Result<Box<dyn Queue + 'a>>;
}

/// [`Acquired`], for any element.
pub(super) trait Queue {
    /// Hands the operation to NCCL.
    fn queue(&mut self) -> Result<()>;

    /// Once NCCL has accepted it: what it writes is lost if the communicator is aborted before it
    /// is over.
    fn end(&self) -> Result<()>;

    /// Records a message.
    fn record(&self);

    fn call(&self) -> Call<'_>;
}

impl<'a> Call<'a> {
    #[track_caller]
    pub(super) fn new(name: &'static str, comm: &'a Comm) -> Self {
        Self { name, comm, site: call_site() }
    }

    /// The number of a rank for NCCL, if the communicator has that rank.
    pub(super) fn rank(&self, rank: usize) -> Result<i32> {
        let ranks = self.comm.world_size();
        i32::try_from(rank).ok().filter(|_| rank < ranks).ok_or_else(|| Error::Foreign {
            call: self.site.into(),
            seen: format!("`{}` names rank {rank}", self.name),
            expected: format!("a rank of the communicator, which has {ranks}, counted from 0"),
        })
    }

    /// Rejects parts that NCCL cannot address, or whose elements it would take in another order.
    pub(super) fn expect_unbroken(&self, operand: &impl fmt::Display, axes: &Axes) -> Result<()> {
        if axes.strided().is_c_contiguous() {
            return Ok(());
        }
        Err(Error::NotContiguous {
            call: self.site.into(),
            array: operand.to_string(),
            parameter: format!("an argument of `{}`", self.name),
            layout: format!("strides {:?}", axes.strides()),
            instead: String::from(
                "pass a part whose rows lie in memory one after the other, or a copy: \
                 `to_contiguous`",
            ),
        })
    }

    /// Rejects a length other than the expected one.
    pub(super) fn expect_len(
        &self,
        operand: &impl fmt::Display,
        seen: usize,
        expected: Option<usize>,
    ) -> Result<()> {
        if Some(seen) == expected {
            return Ok(());
        }
        let expected =
            expected.map_or_else(|| String::from("more than fit"), |len| len.to_string());
        Err(Error::Shape {
            call: self.site.into(),
            operation: format!("`{}` of {} ranks", self.name, self.comm.world_size()),
            expected: format!("{expected} elements"),
            seen: format!("{seen} in {operand}"),
            instead: "pass an array or a part with as many".into(),
        })
    }

    /// The communicator's stream.
    fn stream(&self) -> Result<Stream> {
        Stream::adopt(self.comm.stream()).at(self.site)
    }

    /// The error for what NCCL returned.
    pub(super) fn error(&self, error: &NcclError) -> Error {
        let device = self.stream().map_or_else(
            |_| format!("GPU {}", self.comm.ordinal()),
            |stream| stream.device_ref().name(),
        );
        Error::Backend {
            call: self.site.into(),
            device,
            operation: format!("`{}`", self.name),
            cause: reason(error),
        }
    }

    /// Makes the communicator's context the calling thread's current one.
    fn bind(&self) -> Result<()> {
        self.comm.context().bind_to_thread().map_err(|error| Error::Backend {
            call: CalledAt::UNKNOWN,
            device: format!("GPU {}", self.comm.ordinal()),
            operation: format!("`{}`", self.name),
            cause: format!("the GPU's context is not usable: {error}"),
        })
    }
}

impl<'a, T: Element> Acquire<'a> for Checked<'a, T> {
    fn acquire(self: Box<Self>) -> Result<Box<dyn Queue + 'a>> {
        let Self { call, kind, hand_over, from, to } = *self;
        let (site, stream) = (call.site, call.stream()?);
        let from = from.map(|from| from.guard(&stream, call.name, site)).transpose()?;
        let to = to.map(|(to, access)| to.into_guard(access, &stream, call.name, site));
        Ok(Box::new(Acquired { call, kind, hand_over, from, to: to.transpose()? }))
    }
}

impl<T: Element> Queue for Acquired<'_, T> {
    fn queue(&mut self) -> Result<()> {
        let call = self.call;
        call.bind().at(call.site)?;
        (self.hand_over)(self).map_err(|error| call.error(&error))
    }

    fn end(&self) -> Result<()> {
        self.to.as_ref().map_or(Ok(()), |to| to.may_fail(self.call.site))
    }

    fn call(&self) -> Call<'_> {
        self.call
    }

    fn record(&self) {
        let (direction, peer) = match self.kind {
            Kind::Send { peer } => (Direction::Sent, peer.cast_unsigned()),
            Kind::Receive { peer } => (Direction::Received, peer.cast_unsigned()),
            _ => return,
        };
        let parts = [
            self.from.as_ref().map(|guard| &guard.part),
            self.to.as_ref().map(|guard| &guard.part),
        ];
        for part in parts.into_iter().flatten() {
            let bytes = (part.layout().len() * size_of::<T>()) as u64;
            let name = part.array_name();
            let transfer = match direction {
                Direction::Sent => Transfer::sent(bytes, &name, peer),
                _ => Transfer::received(bytes, &name, peer),
            };
            let device = part.stream_ref().device_ref();
            record_transfer(transfer.on(device).at(self.call.site));
        }
    }
}

/// What NCCL returned, in its words: `NCCL_DEBUG=WARN` makes it print more.
pub(super) fn reason(NcclError(code): &NcclError) -> String {
    format!("{code:?}; set NCCL_DEBUG=WARN to let NCCL print why")
}
