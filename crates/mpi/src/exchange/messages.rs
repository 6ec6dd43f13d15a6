//! The messages of one array's faces.

use std::rc::Rc;
use std::time::Instant;

use resident::ndarray::{Dim, Dimension};
use resident::{Element, SmartView, SmartViewMut, Stream};

use super::tags::Tags;
use crate::call::{Channel, Outcome, Peer};
use crate::decomposition::{Cells, Face};
use crate::error::{Error, Result};
use crate::local::dim;
use crate::message::{Incoming, Outgoing, Use};
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
    /// By messages to another process, and from it.
    Peer { sent: Outgoing<T, D>, received: Incoming<T, D>, state: State },
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
        if is_on_host(field) {
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

    #[track_caller]
    pub(crate) fn unpack(
        &mut self,
        field: &mut SmartViewMut<'_, T, Dim<[usize; N]>>,
        stream: &Stream,
        deadline: Instant,
    ) -> Result<()> {
        if is_on_host(&field.view()) {
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
            }
        }
        Ok(())
    }

    pub(crate) fn wait_sent(&self, operation: &'static str, deadline: Instant) -> Result<()> {
        self.faces.iter().try_for_each(|FaceMessages { face, link }| match link {
            Link::Itself { .. } => Ok(()),
            Link::Peer { sent, .. } => sent.wait(&awaited(operation, face), deadline),
        })
    }
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
