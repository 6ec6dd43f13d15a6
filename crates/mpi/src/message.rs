//! Messages: memory of one part of an array, and the request that sends or receives it.
//!
//! [`Outgoing`] and [`Incoming`] can be used again and again, as exchanges do. They own their
//! memory by a [`Flight`], so that dropping or forgetting them at any time is sound: what is in
//! flight then belongs to the world. They do not keep MPI alive.
//!
//! # Where the bytes are
//!
//! A message is an array of its own, contiguous in row-major order. To pack is to assign the part
//! to it, where the part's contents are newest, on the stream; what a device has packed then comes
//! down in the same stream. MPI reads and writes the array's host memory, whose address is constant
//! while the array lives. Nothing else accesses the array meanwhile, since its only owner, the
//! flight, gives no access.

use std::cell::RefMut;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::time::Instant;

use resident::ndarray::{ArrayRef, Dimension};
use resident::{
    AsView, AsViewMut, Element, PinnedArray, SmartArray, SmartView, SmartViewMut, Stream, Validity,
};

use crate::audit::{self, Direction};
use crate::call::{Outcome, Peer, Request, Session};
use crate::error::{Error, Result};
use crate::flight::{Flight, Tested};
use crate::world::{Awaited, World};

/// How often a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Its memory is ordinary, as pinning would take longer than it saves.
    Once,
    /// Its memory is pinned for the current device.
    Repeated,
}

/// A message that leaves this process.
pub(crate) struct Outgoing<T: Element, D: Dimension + 'static> {
    message: Message<T, D>,
}

/// A message that comes to this process.
pub(crate) struct Incoming<T: Element, D: Dimension + 'static> {
    message: Message<T, D>,
}

impl<T: Element, D: Dimension + 'static> Outgoing<T, D> {
    /// A message of elements in this shape, not packed and not started.
    pub(crate) fn new(world: &Rc<World>, shape: D, peer: Peer, used: Use) -> Result<Self> {
        let message = Message::new(world, shape, peer, used, |session, memory, len_bytes| {
            session.send_request(memory, len_bytes, peer)
        })?;
        Ok(Self { message })
    }

    /// Queues the copy of `part`, which has the message's shape, to the message, where the part is
    /// newest: on `stream` if that is `stream`'s device. Borrows the part for this call only.
    /// Contents that are newest on the host are copied when this returns.
    #[track_caller]
    pub(crate) fn pack_on(&mut self, stream: &Stream, part: &impl AsView<T, D>) -> Result<()> {
        let mut memory = self.message.memory("pack")?;
        let _here = stream.enter();
        memory.view_mut().assign(&part.as_view())?;
        memory.view().prefetch_host_on(stream)?;
        Ok(())
    }

    /// Packs elements of the host.
    pub(crate) fn pack_from_host(&mut self, elements: &ArrayRef<T, D>) -> Result<()> {
        self.message.memory("pack")?.view_mut().host_overwrite()?.assign(elements);
        Ok(())
    }

    /// Waits until the message is packed, not for later work of the stream.
    pub(crate) fn ready(&self) -> Result<()> {
        drop(self.message.memory("send")?.view().host()?);
        Ok(())
    }

    /// What the request uses, without its type.
    pub(crate) fn flight(&self) -> Rc<dyn Tested> {
        Rc::clone(&self.message.flight) as _
    }

    /// Waits until the message is packed, not for later work of the stream, and hands it to MPI.
    /// The previous use of the message must be over.
    #[track_caller]
    pub(crate) fn start(&mut self) -> Result<()> {
        let site = Location::caller();
        let world = self.message.world("send")?;
        world.start(&self.message.flight, |session, memory, request| {
            // Waits for the packed bytes; they stay valid here, as nothing writes the array.
            drop(memory.view().host()?);
            // SAFETY: the memory is the host memory of an array that the flight owns: it lives, at
            // one address, until the flight has landed, and nothing accesses it before
            // (`Flight::start`).
            unsafe { request.start(session) }
        })?;
        self.message.record(&world, Direction::Sent, site);
        Ok(())
    }

    /// Whether MPI is done with the message. Lets MPI progress; does not wait.
    pub(crate) fn is_done(&self) -> Result<bool> {
        Ok(self.message.poll()? != Outcome::Pending)
    }

    /// Waits until MPI is done with the message.
    pub(crate) fn wait(&self, awaited: &Awaited, deadline: Instant) -> Result<()> {
        self.message.land(awaited, deadline).map(|_| ())
    }
}

impl<T: Element, D: Dimension + 'static> Incoming<T, D> {
    /// A message of elements in this shape, not started.
    pub(crate) fn new(world: &Rc<World>, shape: D, peer: Peer, used: Use) -> Result<Self> {
        let message = Message::new(world, shape, peer, used, |session, memory, len_bytes| {
            session.receive_request(memory, len_bytes, peer)
        })?;
        Ok(Self { message })
    }

    /// Lets MPI receive it. The previous use of the message must be over; what was received by it
    /// is overwritten, once queued work that unpacks it is done.
    pub(crate) fn start(&mut self) -> Result<()> {
        let world = self.message.world("receive")?;
        world.start(&self.message.flight, |session, memory, request| {
            // Waits for copies that read the array, and makes the host's copy the newest.
            drop(memory.view_mut().host_overwrite()?);
            // SAFETY: as in `Outgoing::start`.
            unsafe { request.start(session) }
        })
    }

    /// Whether it has arrived. Lets MPI progress; does not wait.
    pub(crate) fn is_done(&self) -> Result<bool> {
        Ok(self.message.poll()? != Outcome::Pending)
    }

    /// Waits until it has arrived; `Outcome::OtherLength` if it was longer or shorter than this.
    pub(crate) fn wait(&self, awaited: &Awaited, deadline: Instant) -> Result<Outcome> {
        self.message.land(awaited, deadline)
    }

    /// Copies what has arrived to `part`, which has the message's shape: on `stream` if the part
    /// has a copy on its device, else on the host. The message must have arrived.
    #[track_caller]
    pub(crate) fn unpack_on(
        &mut self,
        stream: &Stream,
        part: &mut impl AsViewMut<T, D>,
    ) -> Result<()> {
        let site = Location::caller();
        let memory = self.message.memory("unpack")?;
        let mut part = part.as_view_mut();
        if part.residency().on(&stream.device()) == Validity::Absent {
            part.assign(&memory.view())?;
        } else {
            part.assign_on(stream, &memory.view())?;
        }
        drop(memory);
        self.message.record(&*self.message.world("unpack")?, Direction::Received, site);
        Ok(())
    }

    /// As [`unpack_on`](Self::unpack_on), by `copy`, from the host's memory.
    #[track_caller]
    pub(crate) fn unpack_from_host(
        &mut self,
        copy: impl FnOnce(&ArrayRef<T, D>) -> Result<()>,
    ) -> Result<()> {
        let site = Location::caller();
        copy(&self.message.memory("unpack")?.view().host()?)?;
        self.message.record(&*self.message.world("unpack")?, Direction::Received, site);
        Ok(())
    }

    /// What has arrived, as an array: of a message that is used once. The message must have
    /// arrived.
    #[track_caller]
    pub(crate) fn into_array(self) -> Result<SmartArray<T, D>> {
        let site = Location::caller();
        let empty = SmartArray::uninit(D::zeros(self.message.shape.ndim()));
        let memory =
            std::mem::replace(&mut *self.message.memory("receive")?, Memory::Ordinary(empty));
        self.message.record(&*self.message.world("receive")?, Direction::Received, site);
        match memory {
            Memory::Ordinary(array) => Ok(array),
            Memory::Pinned(array) => Ok(SmartArray::from(array.into_array()?)),
        }
    }
}

/// What both have.
struct Message<T: Element, D: Dimension + 'static> {
    world: Weak<World>,
    flight: Rc<Flight<Memory<T, D>>>,
    shape: D,
    peer: Peer,
}

impl<T: Element, D: Dimension + 'static> Message<T, D> {
    /// Allocates the memory, and makes the request of its address.
    fn new(
        world: &Rc<World>,
        shape: D,
        peer: Peer,
        used: Use,
        request: impl FnOnce(&Session, *mut u8, usize) -> Result<Request>,
    ) -> Result<Self> {
        world.check()?;
        let mut memory = Memory::<T, D>::new(shape.clone(), used)?;
        let len_bytes = memory.view().len() * size_of::<T>();
        let address = memory.view_mut().host_overwrite()?.as_mut_ptr().cast::<u8>();
        let request = request(world.session(), address, len_bytes)?;
        let flight = Flight::new(memory, request);
        Ok(Self { world: Rc::downgrade(world), flight, shape, peer })
    }

    fn world(&self, operation: &'static str) -> Result<Rc<World>> {
        World::alive(&self.world, operation)
    }

    fn memory(&self, operation: &'static str) -> Result<RefMut<'_, Memory<T, D>>> {
        self.flight.memory().ok_or_else(|| Error::Argument {
            operation,
            text: format!(
                "the message of shape {:?} with rank {} and tag {} is in flight; wait for it",
                self.shape.slice(),
                self.peer.rank,
                self.peer.tag
            ),
        })
    }

    fn poll(&self) -> Result<Outcome> {
        self.world("message")?.poll(&*self.flight)
    }

    fn land(&self, awaited: &Awaited, deadline: Instant) -> Result<Outcome> {
        self.world(awaited.operation)?.land(&*self.flight, awaited, deadline)
    }

    fn record(&self, world: &World, direction: Direction, site: &'static Location<'static>) {
        let bytes = self.shape.size() * size_of::<T>();
        audit::record(world, &audit::Message { direction, bytes, peer: self.peer.rank, site });
    }
}

/// The array of a message.
enum Memory<T: Element, D: Dimension + 'static> {
    Ordinary(SmartArray<T, D>),
    Pinned(PinnedArray<T, D>),
}

impl<T: Element, D: Dimension + 'static> Memory<T, D> {
    fn new(shape: D, used: Use) -> Result<Self> {
        Ok(match used {
            Use::Once => Self::Ordinary(SmartArray::uninit(shape).named("message")),
            Use::Repeated => Self::Pinned(PinnedArray::uninit(shape)?.named("message")),
        })
    }

    fn view(&self) -> SmartView<'_, T, D> {
        match self {
            Self::Ordinary(array) => array.view(),
            Self::Pinned(array) => array.view(),
        }
    }

    fn view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        match self {
            Self::Ordinary(array) => array.view_mut(),
            Self::Pinned(array) => array.view_mut(),
        }
    }
}

/// The stream of calls that name none.
pub(crate) fn current_stream() -> Result<Stream> {
    // The guard of an array without elements, for which nothing is allocated or moved.
    Ok(SmartArray::<u8, _>::uninit(0).gpu()?.stream())
}
