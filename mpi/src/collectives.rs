//! Operations of all processes at once.
//!
//! All processes call them in one order. None blocks in MPI: the calls test their requests until
//! the time-out.

use std::any::type_name;
use std::panic::Location;
use std::rc::Rc;

use resident::ndarray::Dimension;
use resident::{Element, Stream};

use crate::agreement::{Kind, Plan, agree, agree_on};
use crate::audit::{self, Direction};
use crate::call::{Number, Reduce, Request, Session};
use crate::description::Header;
use crate::error::Result;
use crate::message::current_stream;
use crate::packed::{Packed, Use};
use crate::part::PartMut;
use crate::transfer::Transfer;
use crate::world::{Awaited, Mpi, World};

/// MPI counts in an `int`, so that more elements take several operations.
const CHUNK: usize = 1 << 30;

impl Mpi {
    /// Waits until all processes have called it. Reports of the audit have it, and
    /// `resident-report merge` aligns the clocks of the processes by it.
    ///
    /// # Errors
    ///
    /// - [`TimedOut`](crate::Error::TimedOut) if one of them does not within the time-out.
    /// - [`Mismatch`](crate::Error::Mismatch) if one of them calls another collective operation.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        self.0.check()?;
        agree(&self.0, "barrier", "a barrier".into())?;
        self.0.counts().record_barrier();
        Ok(())
    }

    /// Reduces one number of each process to one, which all get.
    ///
    /// ```
    /// # use resident::SmartArray;
    /// # use resident_mpi::Reduce;
    /// # fn main() -> resident_mpi::Result<()> {
    /// # let mpi = resident_mpi::init()?;
    /// # let field = SmartArray::<f64, _>::zeros((100, 100));
    /// let hottest = mpi.all_reduce_value(Reduce::Max, field.max()?)?;
    /// # Ok(()) }
    /// ```
    ///
    /// Sums and products of floats may differ in the last digits between numbers of processes, as
    /// MPI chooses their order; all processes get the same. Which of `Min` and `Max` is a NaN is
    /// MPI's choice too.
    ///
    /// # Errors
    ///
    /// - [`Mismatch`](crate::Error::Mismatch) if another process reduces another type, in another
    ///   way, or calls another collective operation.
    /// - [`TimedOut`](crate::Error::TimedOut) if a process does not call it within the time-out.
    /// - [`Mpi`](crate::Error::Mpi) if MPI refuses.
    pub fn all_reduce_value<T: Number>(&self, reduce: Reduce, value: T) -> Result<T> {
        const OPERATION: &str = "all_reduce_value";
        self.0.check()?;
        let text = format!("{OPERATION} of {}: {reduce:?}", type_name::<T>());
        let plan = Plan { text, kind: Kind::Reduction, len_bytes: size_of::<T>() };
        agree_on(&self.0, OPERATION, plan)?;
        let transfer = Transfer::new((value, value), Request::null());
        let start = self.0.start(&transfer, |session, (own, result), request| {
            let (from, to) = (&raw const *own, &raw mut *result);
            // SAFETY: both are memory of the transfer: they live, where they are, until it is
            // complete, and nothing accesses them before (`Transfer::start`).
            unsafe { session.all_reduce(reduce, from, to, 1, request) }
        });
        start
            .and_then(|()| self.0.complete(&*transfer, &Awaited::all(OPERATION), self.0.deadline()))
            .map_err(|error| self.0.break_with(error))?;
        let (_, result) = *transfer.memory().expect("it is complete");
        Ok(result)
    }

    /// Reduces the elements at each index over all processes, and overwrites them with the results
    /// in all processes. The part may have any layout; all processes pass the same shape. Elements
    /// that are newest on a device are packed there, on the current device's stream, and results
    /// are written there.
    ///
    /// ```
    /// # use resident::SmartArray;
    /// # use resident_mpi::Reduce;
    /// # fn main() -> resident_mpi::Result<()> {
    /// # let mpi = resident_mpi::init()?;
    /// let mut histogram = SmartArray::<u64, _>::zeros(256);
    /// // .. each process counts its own samples ..
    /// mpi.all_reduce(Reduce::Sum, &mut histogram)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The part is unchanged then.
    ///
    /// - [`Mismatch`](crate::Error::Mismatch) if another process passes another type or shape, or
    ///   calls another collective operation.
    /// - [`TimedOut`](crate::Error::TimedOut) if a process does not call it within the time-out.
    /// - [`Resident`](crate::Error::Resident) if the elements cannot be read or written.
    /// - [`Mpi`](crate::Error::Mpi) if MPI refuses.
    #[track_caller]
    pub fn all_reduce<T: Number, D: Dimension + 'static>(
        &self,
        reduce: Reduce,
        part: &mut impl PartMut<T, D>,
    ) -> Result<()> {
        self.reduce("all_reduce", &current_stream()?, reduce, part)
    }

    /// As [`all_reduce`](Self::all_reduce), with copies on `stream`, if the elements are newest on
    /// its device.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce).
    #[track_caller]
    pub fn all_reduce_on<T: Number, D: Dimension + 'static>(
        &self,
        stream: &Stream,
        reduce: Reduce,
        part: &mut impl PartMut<T, D>,
    ) -> Result<()> {
        self.reduce("all_reduce_on", stream, reduce, part)
    }

    /// Copies the elements of the process `root` to the parts of all others, which have the same
    /// shape and any layout.
    ///
    /// # Errors
    ///
    /// The part is unchanged then.
    ///
    /// - [`Argument`](crate::Error::Argument) if there is no such rank.
    /// - [`Mismatch`](crate::Error::Mismatch) if another process passes another type, shape or
    ///   root, or calls another collective operation.
    /// - [`TimedOut`](crate::Error::TimedOut) if a process does not call it within the time-out.
    /// - [`Resident`](crate::Error::Resident) if the elements cannot be read or written.
    /// - [`Mpi`](crate::Error::Mpi) if MPI refuses.
    #[track_caller]
    pub fn broadcast<T: Element, D: Dimension + 'static>(
        &self,
        part: &mut impl PartMut<T, D>,
        root: usize,
    ) -> Result<()> {
        self.copy_to_all("broadcast", &current_stream()?, part, root)
    }

    /// As [`broadcast`](Self::broadcast), with copies on `stream`, if the part has a copy on its
    /// device.
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[track_caller]
    pub fn broadcast_on<T: Element, D: Dimension + 'static>(
        &self,
        stream: &Stream,
        part: &mut impl PartMut<T, D>,
        root: usize,
    ) -> Result<()> {
        self.copy_to_all("broadcast_on", stream, part, root)
    }

    #[track_caller]
    fn reduce<T: Number, D: Dimension + 'static>(
        &self,
        operation: &'static str,
        stream: &Stream,
        reduce: Reduce,
        part: &mut impl PartMut<T, D>,
    ) -> Result<()> {
        self.0.check()?;
        let shape = part.part_shape();
        let header = Header::of::<T>(shape.slice());
        let len_bytes = header.len_bytes();
        let text = format!("all_reduce of {header}: {reduce:?}");
        let plan = Plan { text, kind: Kind::Reduction, len_bytes };
        let nccl = self.0.nccl().filter(|nccl| nccl.reduces::<T>() && len_bytes > 0);
        if let Some(nccl) = nccl {
            let mut own = Packed::<T, D>::new(shape.clone(), Use::Once, nccl.reachable())?;
            part.pack(&mut own, stream)?;
            let mut result = Packed::new(shape, Use::Once, nccl.reachable())?;
            own.ready()?;
            agree_on(&self.0, operation, plan)?;
            let awaited = Awaited::all(operation);
            let queued = nccl.all_reduce(awaited, stream, reduce, &own, &mut result);
            self.complete(&awaited, queued)?;
            self.record([Direction::Sent, Direction::Received], part, None, Location::caller());
            return part.unpack(&mut result, stream);
        }
        let mut own = in_host_memory::<T, D>(&self.0, shape.clone())?;
        part.pack(&mut own, stream)?;
        let (len, mut result) = (shape.size(), in_host_memory::<T, D>(&self.0, shape)?);
        let (from, to) = (own.ready()?, result.overwrite(None)?);
        agree_on(&self.0, operation, plan)?;
        let transfer = Transfer::new((own, result), Request::null());
        in_chunks(&self.0, operation, len, &transfer, |session, first, count, request| {
            let (from, to) = (from.wrapping_add(first), to.wrapping_add(first));
            // SAFETY: both are the host memory of arrays of `len` elements that the transfer owns:
            // they live, at one address, until it is complete, and nothing accesses them before
            // (`Transfer::start`).
            unsafe { session.all_reduce(reduce, from, to, count, request) }
        })?;
        self.record([Direction::Sent, Direction::Received], part, None, Location::caller());
        let mut memory = transfer.memory().expect("it is complete");
        part.unpack(&mut memory.1, stream)
    }

    #[track_caller]
    fn copy_to_all<T: Element, D: Dimension + 'static>(
        &self,
        operation: &'static str,
        stream: &Stream,
        part: &mut impl PartMut<T, D>,
        root: usize,
    ) -> Result<()> {
        self.0.check()?;
        self.0.expect_rank(operation, root)?;
        let shape = part.part_shape();
        let header = Header::of::<T>(shape.slice());
        let (text, kind) = (format!("broadcast of {header} from rank {root}"), Kind::Broadcast);
        let len_bytes = header.len_bytes();
        let plan = Plan { text, kind, len_bytes };
        let is_root = root == self.rank();
        if let Some(nccl) = self.0.nccl().filter(|_| len_bytes > 0) {
            let mut memory = Packed::<T, D>::new(shape, Use::Once, nccl.reachable())?;
            if is_root {
                part.pack(&mut memory, stream)?;
                memory.ready()?;
            }
            agree_on(&self.0, operation, plan)?;
            let awaited = Awaited::all(operation);
            self.complete(&awaited, nccl.broadcast(awaited, stream, &mut memory, root))?;
            return self.broadcast_over(root, &mut memory, stream, part);
        }
        let mut memory = in_host_memory::<T, D>(&self.0, shape)?;
        let address = if is_root {
            part.pack(&mut memory, stream)?;
            memory.ready()?.cast_mut()
        } else {
            memory.overwrite(None)?
        };
        agree_on(&self.0, operation, plan)?;
        let transfer = Transfer::new(memory, Request::null());
        in_chunks(&self.0, operation, len_bytes, &transfer, |session, first, count, request| {
            let memory = address.cast::<u8>().wrapping_add(first);
            // SAFETY: the host memory of an array of `len_bytes` bytes that the transfer owns: it
            // lives, at one address, until it is complete, and nothing accesses it before
            // (`Transfer::start`). MPI only reads it in the process `root`.
            unsafe { session.broadcast(memory, count, root, request) }
        })?;
        let mut memory = transfer.memory().expect("it is complete");
        self.broadcast_over(root, &mut memory, stream, part)
    }

    /// Records a broadcast, and writes what has come.
    #[track_caller]
    fn broadcast_over<T: Element, D: Dimension + 'static>(
        &self,
        root: usize,
        memory: &mut Packed<T, D>,
        stream: &Stream,
        part: &mut impl PartMut<T, D>,
    ) -> Result<()> {
        if root == self.rank() {
            self.record([Direction::Sent], part, None, Location::caller());
            return Ok(());
        }
        self.record([Direction::Received], part, Some(root), Location::caller());
        part.unpack(memory, stream)
    }

    /// Waits for what NCCL was given. All processes have agreed on it, so that an error breaks the
    /// world.
    fn complete(&self, awaited: &Awaited, queued: Result<()>) -> Result<()> {
        let over = queued.and_then(|()| self.0.complete_nccl(awaited));
        over.map_err(|error| self.0.break_with(error))
    }
}

impl Mpi {
    /// Records the elements of a part, sent to or received from `peer` or all.
    fn record<T: Element, D: Dimension + 'static>(
        &self,
        directions: impl IntoIterator<Item = Direction>,
        part: &impl PartMut<T, D>,
        peer: Option<usize>,
        site: &'static Location<'static>,
    ) {
        let (bytes, name) = (part.part_shape().size() * size_of::<T>(), part.part_name());
        for direction in directions {
            let message = audit::Message { direction, bytes, array: &name, peer, site };
            audit::record(self.0.counts(), &message);
        }
    }
}

/// Memory for elements of this shape. Libraries that can send device memory need not be able to
/// compute with it, nor to do so without blocking.
fn in_host_memory<T: Element, D: Dimension>(world: &World, shape: D) -> Result<Packed<T, D>> {
    Packed::new(shape, Use::Once, &world.reachable().host_only())
}

/// Starts an operation of `len` elements or bytes by `begin`, which gets where it begins and how
/// many it has: as many at once as MPI takes. Waits for each. All processes have agreed on it, so
/// that an error in one of them breaks its world.
fn in_chunks<M: 'static>(
    world: &World,
    operation: &'static str,
    len: usize,
    transfer: &Rc<Transfer<M>>,
    begin: impl Fn(&Session, usize, usize, &mut Request) -> Result<()>,
) -> Result<()> {
    for first in (0..len).step_by(CHUNK) {
        let count = CHUNK.min(len - first);
        let awaited = Awaited::all(operation);
        world
            .start(transfer, |session, _memory, request| begin(session, first, count, request))
            .and_then(|()| world.complete(&**transfer, &awaited, world.deadline()))
            .map_err(|error| world.break_with(error))?;
    }
    Ok(())
}
