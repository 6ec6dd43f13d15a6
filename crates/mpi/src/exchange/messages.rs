//! The messages of one array's faces.

use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use resident::ndarray::{Dim, Dimension};
use resident::{Device, Element, SmartView, SmartViewMut, Stream};

use super::tags::Tags;
use crate::audit::{self, Direction};
use crate::call::{Channel, Outcome, Peer};
use crate::decomposition::Face;
use crate::error::{Error, Result};
use crate::local::dim;
use crate::message::{Incoming, Outgoing, Use};
use crate::nccl::Group;
use crate::packed::Packed;
use crate::part::Part;
use crate::world::{Awaited, World};

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
    faces: Vec<FaceMessages<T, N>>,
}

struct FaceMessages<T: Element, const N: usize>
where
    Dim<[usize; N]>: Dimension,
{
    face: Face<N>,
    way: Way<T, Dim<[usize; N]>>,
    state: State,
}

/// What carries the messages of a face.
enum Way<T: Element, D: Dimension + 'static> {
    Mpi {
        sent: Outgoing<T, D>,
        received: Incoming<T, D>,
    },
    Nccl {
        sent: Packed<T, D>,
        received: Packed<T, D>,
        /// The name of the array that was packed last.
        array: Arc<str>,
    },
}

/// What became of what a neighbour sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It is in the array, or there was nothing yet.
    Unpacked,
    /// MPI or NCCL receives it, or has.
    Received,
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
        let (sent, received) = (dim(face.send.shape()), dim(face.receive.shape()));
        let way = if let Some(nccl) = self.world.nccl() {
            let packed = |shape| Packed::new(shape, Use::Repeated, nccl.reachable());
            Way::Nccl { sent: packed(sent)?, received: packed(received)?, array: "".into() }
        } else {
            let to = self.peer(&face, face.send_tag)?;
            let from = self.peer(&face, face.receive_tag)?;
            Way::Mpi {
                sent: Outgoing::new(self.world, sent, to, Use::Repeated)?,
                received: Incoming::new(self.world, received, from, Use::Repeated)?,
            }
        };
        Ok(FaceMessages { face, way, state: State::Unpacked })
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
    /// Lets MPI receive what it does not receive already, since a call that failed has begun it.
    pub(crate) fn receive(
        &mut self,
        field: &SmartView<'_, T, Dim<[usize; N]>>,
        device: &Device,
    ) -> Result<()> {
        let device = Some(device).filter(|device| field.has_copy_on(device));
        for FaceMessages { way, state, .. } in &mut self.faces {
            if let (Way::Mpi { received, .. }, State::Unpacked) = (way, *state) {
                received.start(device)?;
                *state = State::Received;
            }
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn pack(
        &mut self,
        field: &SmartView<'_, T, Dim<[usize; N]>>,
        stream: &Stream,
    ) -> Result<()> {
        for FaceMessages { face, way, .. } in &mut self.faces {
            let cells = face.send.of(field);
            match way {
                Way::Mpi { sent, .. } => sent.pack_on(stream, &cells)?,
                Way::Nccl { sent, array, .. } => {
                    sent.pack_on(stream, &cells)?;
                    *array = cells.name();
                }
            }
        }
        Ok(())
    }

    /// Waits until the host may hand them to MPI. NCCL waits for packed messages on its stream.
    pub(crate) fn wait_packed(&self) -> Result<()> {
        self.faces.iter().try_for_each(|messages| match &messages.way {
            Way::Mpi { sent, .. } => sent.ready(),
            Way::Nccl { .. } => Ok(()),
        })
    }

    /// Hands the messages to MPI.
    #[track_caller]
    pub(crate) fn send(&mut self) -> Result<()> {
        for messages in &mut self.faces {
            if let Way::Mpi { sent, .. } = &mut messages.way {
                sent.start()?;
            }
        }
        Ok(())
    }

    /// Adds the messages to those that NCCL gets together. To and from one process, they are in the
    /// order of the tags of their directions of travel: faces are in that order, and what comes
    /// from a direction travels in the opposite one.
    pub(crate) fn add_to<'a>(&'a mut self, group: &mut Group<'a>) -> Result<()> {
        let mut incoming = Vec::with_capacity(self.faces.len());
        for FaceMessages { face, way, state } in &mut self.faces {
            if let Way::Nccl { sent, received, .. } = way {
                group.send(sent, face.rank)?;
                *state = State::Received;
                incoming.push((received, face));
            }
        }
        debug_assert!(incoming.is_sorted_by(|(_, one), (_, next)| one.send_tag < next.send_tag));
        debug_assert!(
            incoming.is_sorted_by(|(_, one), (_, next)| one.receive_tag > next.receive_tag)
        );
        let mut incoming = incoming.into_iter().rev();
        incoming.try_for_each(|(received, face)| group.receive(received, face.rank))
    }

    /// Records what NCCL sends.
    #[track_caller]
    pub(crate) fn record_sent(&self, world: &World) {
        let site = Location::caller();
        for FaceMessages { face, way, .. } in &self.faces {
            if let Way::Nccl { array, .. } = way {
                record(world, Direction::Sent, array, (face, size_of::<T>()), site);
            }
        }
    }

    #[track_caller]
    pub(crate) fn unpack(
        &mut self,
        field: &mut SmartViewMut<'_, T, Dim<[usize; N]>>,
        stream: &Stream,
        (world, deadline): (&World, Instant),
    ) -> Result<()> {
        for FaceMessages { face, way, state } in &mut self.faces {
            if *state == State::Unpacked {
                continue;
            }
            let mut cells = face.receive.of_mut(field);
            match way {
                Way::Mpi { received, .. } => {
                    if received.wait(&awaited(face), deadline)? != Outcome::Done {
                        return Err(other_length(face));
                    }
                    received.unpack_on(stream, &mut cells)?;
                }
                Way::Nccl { received, .. } => {
                    received.unpack_on(stream, &mut cells)?;
                    let (name, what) = (cells.name(), (&*face, size_of::<T>()));
                    record(world, Direction::Received, &name, what, Location::caller());
                }
            }
            *state = State::Unpacked;
        }
        Ok(())
    }

    pub(crate) fn wait_sent(&self, deadline: Instant) -> Result<()> {
        self.faces.iter().try_for_each(|messages| match &messages.way {
            Way::Mpi { sent, .. } => sent.wait(&awaited(&messages.face), deadline),
            Way::Nccl { .. } => Ok(()),
        })
    }
}

/// Records a face that NCCL carries.
fn record<const N: usize>(
    world: &World,
    direction: Direction,
    array: &str,
    (face, element_bytes): (&Face<N>, usize),
    site: &'static Location<'static>,
) {
    let cells = match direction {
        Direction::Sent => &face.send,
        Direction::Received => &face.receive,
    };
    let bytes = cells.shape().iter().product::<usize>() * element_bytes;
    let message = audit::Message { direction, bytes, array, peer: Some(face.rank), site };
    audit::record(world.counts(), &message);
}

const OPERATION: &str = "Going::finish";

fn awaited<const N: usize>(face: &Face<N>) -> Awaited {
    let (axis, side) = face.place();
    Awaited::face(OPERATION, face.rank, axis, side)
}

/// Neighbours agreed on the faces when the exchange was made; so these are of two exchanges.
fn other_length<const N: usize>(face: &Face<N>) -> Error {
    let (axis, side) = face.place();
    Error::Mismatch {
        operation: OPERATION,
        rank: face.rank,
        axis: Some(axis),
        side: Some(side),
        expected: format!("a face of shape {:?}", face.receive.shape()),
        found: "a message of another length; describe exchanges in the same order in all processes"
            .into(),
    }
}
