//! The messages of one array's faces.

use std::rc::Rc;
use std::time::Instant;

use resident::ndarray::{Dim, Dimension};
use resident::{Device, Element, SmartView, SmartViewMut, Stream};

use super::tags::Tags;
use crate::call::{Channel, Outcome, Peer};
use crate::decomposition::Face;
use crate::error::{Error, Result};
use crate::local::dim;
use crate::message::{Incoming, Outgoing, Use};
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
    sent: Outgoing<T, Dim<[usize; N]>>,
    received: Incoming<T, Dim<[usize; N]>>,
    state: State,
}

/// What became of what a neighbour sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It is in the array, or there was nothing yet.
    Unpacked,
    /// MPI receives it, or has.
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
        let (to, from) = (self.peer(&face, face.send_tag)?, self.peer(&face, face.receive_tag)?);
        let (sent, received) = (dim(face.send.shape()), dim(face.receive.shape()));
        Ok(FaceMessages {
            face,
            sent: Outgoing::new(self.world, sent, to, Use::Repeated)?,
            received: Incoming::new(self.world, received, from, Use::Repeated)?,
            state: State::Unpacked,
        })
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
        for FaceMessages { received, state, .. } in &mut self.faces {
            if *state == State::Unpacked {
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
        for FaceMessages { face, sent, .. } in &mut self.faces {
            sent.pack_on(stream, &face.send.of(field))?;
        }
        Ok(())
    }

    pub(crate) fn wait_packed(&self) -> Result<()> {
        self.faces.iter().try_for_each(|messages| messages.sent.ready())
    }

    #[track_caller]
    pub(crate) fn send(&mut self) -> Result<()> {
        for messages in &mut self.faces {
            messages.sent.start()?;
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
        for FaceMessages { face, received, state, .. } in &mut self.faces {
            if *state == State::Unpacked {
                continue;
            }
            if received.wait(&awaited(face), deadline)? != Outcome::Done {
                return Err(other_length(face));
            }
            received.unpack_on(stream, &mut face.receive.of_mut(field))?;
            *state = State::Unpacked;
        }
        Ok(())
    }

    pub(crate) fn wait_sent(&self, deadline: Instant) -> Result<()> {
        let mut faces = self.faces.iter();
        faces.try_for_each(|messages| messages.sent.wait(&awaited(&messages.face), deadline))
    }
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
