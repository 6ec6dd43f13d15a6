//! The messages of one array's faces.

use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use resident::ndarray::{Dim, Dimension};
use resident::{Element, SmartView, SmartViewMut, Stream};

use super::tags::Tags;
use crate::audit::{self, Direction};
use crate::call::{Channel, Outcome, Peer};
use crate::decomposition::{Cells, Face};
use crate::error::{Error, Result};
use crate::local::dim;
use crate::message::{Incoming, Outgoing, Use};
use crate::nccl::Group;
use crate::packed::{Packed, is_on_host};
use crate::part::Part;
use crate::world::{Awaited, World};

pub(super) const FINISH: &str = "Going::finish";

/// What makes the messages of the arrays of an exchange, one array after the other.
pub(crate) struct Maker<'a, const N: usize> {
    operation: &'static str,
    world: &'a Rc<World>,
    faces: Vec<Face<N>>,
    tags: &'a Tags,
    /// The number of arrays before.
    field: i32,
}

/// The messages of the faces of one array.
pub struct FieldMessages<T: Element, const N: usize>
where
    Dim<[usize; N]>: Dimension,
{
    pub(super) faces: Vec<FaceMessages<T, N>>,
}

pub(super) struct FaceMessages<T: Element, const N: usize>
where
    Dim<[usize; N]>: Dimension,
{
    pub(super) face: Face<N>,
    pub(super) link: Link<T, Dim<[usize; N]>, N>,
}

/// How the cells of a face get there.
pub(super) enum Link<T: Element, D: Dimension + 'static, const N: usize> {
    /// The neighbour is this process: its cells are kept until the halo may be written.
    Itself { source: Cells<N>, memory: Packed<T, D> },
    /// By messages of MPI to another process, and from it.
    Peer { sent: Outgoing<T, D>, received: Incoming<T, D>, state: State },
    /// By NCCL to the GPU of another process, and from it.
    Gpu(GpuMessages<T, D>),
}

pub(super) struct GpuMessages<T: Element, D: Dimension> {
    sent: Packed<T, D>,
    received: Packed<T, D>,
    /// The name of the array that was packed last.
    array: Arc<str>,
    /// Whether `received` is not yet in the array.
    is_due: bool,
}

/// What became of what a neighbour sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It is in the array, or there was nothing yet.
    Unpacked,
    /// MPI receives it, or has, to the message's memory.
    Received,
    /// MPI receives it, or has, to the array.
    InPlace,
}

impl<'a, const N: usize> Maker<'a, N> {
    pub(crate) fn new(
        operation: &'static str,
        world: &'a Rc<World>,
        faces: Vec<Face<N>>,
        tags: &'a Tags,
    ) -> Self {
        Self { operation, world, faces, tags, field: 0 }
    }

    pub(crate) fn field<T: Element>(&mut self) -> Result<FieldMessages<T, N>>
    where
        Dim<[usize; N]>: Dimension,
    {
        let faces = self.faces.iter().map(|face| self.face(face.clone())).collect::<Result<_>>()?;
        self.field += 1;
        Ok(FieldMessages { faces })
    }

    fn face<T: Element>(&self, face: Face<N>) -> Result<FaceMessages<T, N>>
    where
        Dim<[usize; N]>: Dimension,
    {
        let received = dim(face.receive.shape());
        if let Some(source) = self.own_source(&face) {
            let memory = Packed::new(received, Use::Once, self.world.reachable())?;
            return Ok(FaceMessages { face, link: Link::Itself { source, memory } });
        }
        if let Some(nccl) = self.world.nccl() {
            let packed = |shape| Packed::new(shape, Use::Repeated, nccl.reachable());
            let (sent, received) = (packed(dim(face.send.shape()))?, packed(received)?);
            let messages = GpuMessages { sent, received, array: "".into(), is_due: false };
            return Ok(FaceMessages { face, link: Link::Gpu(messages) });
        }
        let (to, from) = (self.peer(&face, face.send_tag)?, self.peer(&face, face.receive_tag)?);
        let sent = Outgoing::new(self.world, dim(face.send.shape()), to, Use::Repeated)?;
        let received = Incoming::new(self.world, received, from, Use::Repeated)?;
        Ok(FaceMessages { face, link: Link::Peer { sent, received, state: State::Unpacked } })
    }

    /// The own cells that a face gets, if the neighbour is this process itself: those that it sends
    /// in the opposite direction.
    fn own_source(&self, face: &Face<N>) -> Option<Cells<N>> {
        let is_opposite = |other: &&Face<N>| other.send_tag == face.receive_tag;
        let opposite = self.faces.iter().find(is_opposite)?;
        (face.rank == self.world.rank()).then(|| opposite.send.clone())
    }

    fn peer(&self, face: &Face<N>, direction: usize) -> Result<Peer> {
        let tag = self.tags.direction(self.field, direction);
        self.world.peer(self.operation, face.rank, tag, Channel::Faces)
    }
}

impl<T: Element, const N: usize> FieldMessages<T, N>
where
    Dim<[usize; N]>: Dimension,
{
    /// Queues the copies of what is sent, and lets MPI receive what it does not receive already,
    /// since a call that failed has begun it.
    #[track_caller]
    pub(crate) fn prepare(
        &mut self,
        field: &SmartView<'_, T, Dim<[usize; N]>>,
        stream: &Stream,
    ) -> Result<()> {
        if is_on_host(field) && !self.is_by_nccl() {
            return self.prepare_on_host(field);
        }
        let device = Some(stream.device()).filter(|device| field.has_copy_on(device));
        for FaceMessages { face, link } in &mut self.faces {
            match link {
                Link::Itself { source, memory } => memory.keep_on(stream, &source.of(field))?,
                Link::Peer { sent, received, state } => {
                    if *state == State::Unpacked {
                        received.start(device.as_ref())?;
                        *state = State::Received;
                    }
                    sent.pack_on(stream, &face.send.of(field))?;
                }
                Link::Gpu(GpuMessages { sent, array, .. }) => {
                    let cells = face.send.of(field);
                    sent.keep_on(stream, &cells)?;
                    *array = cells.name();
                }
            }
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn wait_packed(&self) -> Result<()> {
        for face in &self.faces {
            match &face.link {
                Link::Itself { memory, .. } => memory.wait()?,
                Link::Peer { sent, .. } => sent.ready()?,
                // NCCL's stream waits.
                Link::Gpu(_) => {}
            }
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn send(&mut self) -> Result<()> {
        for face in &mut self.faces {
            if let Link::Peer { sent, .. } = &mut face.link {
                sent.start()?;
            }
        }
        Ok(())
    }

    /// Whether NCCL carries faces of it.
    fn is_by_nccl(&self) -> bool {
        self.faces.iter().any(|face| matches!(face.link, Link::Gpu(_)))
    }

    /// Adds the messages to those that NCCL gets together. To and from one process, they are in the
    /// order of the tags of their directions of travel: faces are in that order, and what comes
    /// from a direction travels in the opposite one.
    pub(crate) fn add_to<'a>(&'a mut self, group: &mut Group<'a>) -> Result<()> {
        let mut incoming = Vec::with_capacity(self.faces.len());
        for FaceMessages { face, link } in &mut self.faces {
            if let Link::Gpu(GpuMessages { sent, received, is_due, .. }) = link {
                group.send(sent, face.rank)?;
                *is_due = true;
                incoming.push((received, face.rank));
            }
        }
        let mut incoming = incoming.into_iter().rev();
        incoming.try_for_each(|(received, rank)| group.receive(received, rank))
    }

    /// Records what NCCL sends.
    #[track_caller]
    pub(crate) fn record_sent(&self, world: &World) {
        let site = Location::caller();
        for FaceMessages { face, link } in &self.faces {
            if let Link::Gpu(GpuMessages { array, .. }) = link {
                let bytes = bytes_of::<T, N>(&face.send);
                let (direction, peer) = (Direction::Sent, Some(face.rank));
                let message = audit::Message { direction, bytes, array, peer, site };
                audit::record(world.counts(), &message);
            }
        }
    }

    #[track_caller]
    pub(crate) fn unpack(
        &mut self,
        field: &mut SmartViewMut<'_, T, Dim<[usize; N]>>,
        stream: &Stream,
        world: &World,
        deadline: Instant,
    ) -> Result<()> {
        if is_on_host(&field.view()) && !self.is_by_nccl() {
            return self.unpack_on_host(field, deadline);
        }
        for FaceMessages { face, link } in &mut self.faces {
            match link {
                Link::Itself { memory, .. } => {
                    memory.unpack_on(stream, &mut face.receive.of_mut(field))?;
                }
                Link::Peer { state: State::Unpacked, .. } => {}
                Link::Peer { received, state, .. } => {
                    if received.wait(&awaited(FINISH, face), deadline)? != Outcome::Done {
                        return Err(other_length(FINISH, face));
                    }
                    received.unpack_on(stream, &mut face.receive.of_mut(field))?;
                    *state = State::Unpacked;
                }
                Link::Gpu(GpuMessages { received, is_due, .. }) if *is_due => {
                    let mut cells = face.receive.of_mut(field);
                    received.unpack_on(stream, &mut cells)?;
                    *is_due = false;
                    let (bytes, name) = (bytes_of::<T, N>(&face.receive), cells.name());
                    let (direction, peer) = (Direction::Received, Some(face.rank));
                    let site = Location::caller();
                    let message = audit::Message { direction, bytes, array: &name, peer, site };
                    audit::record(world.counts(), &message);
                }
                Link::Gpu(_) => {}
            }
        }
        Ok(())
    }

    pub(crate) fn wait_sent(&self, operation: &'static str, deadline: Instant) -> Result<()> {
        self.faces.iter().try_for_each(|FaceMessages { face, link }| match link {
            Link::Itself { .. } | Link::Gpu(_) => Ok(()),
            Link::Peer { sent, .. } => sent.wait(&awaited(operation, face), deadline),
        })
    }
}

fn bytes_of<T, const N: usize>(cells: &Cells<N>) -> usize {
    cells.shape().iter().product::<usize>() * size_of::<T>()
}

pub(super) fn awaited<const N: usize>(operation: &'static str, face: &Face<N>) -> Awaited {
    let (axis, side) = face.place();
    Awaited::face(operation, face.rank, axis, side)
}

/// Neighbours agreed on the faces when the exchange was made; so these are of two exchanges.
pub(super) fn other_length<const N: usize>(operation: &'static str, face: &Face<N>) -> Error {
    let (axis, side) = face.place();
    Error::Mismatch {
        operation,
        rank: face.rank,
        axis: Some(axis),
        side: Some(side),
        expected: format!("a face of shape {:?}", face.receive.shape()),
        found: "a message of another length; describe exchanges in the same order in all processes"
            .into(),
    }
}
