//! Messages: memory of one part of an array, and the request that sends or receives it.
//!
//! [`Outgoing`] and [`Incoming`] can be used again and again, as exchanges do. They own their
//! memory by a [`Transfer`], so that dropping or forgetting them at any time is sound: what is in
//! flight then belongs to the world. They do not keep MPI alive.

use std::cell::RefMut;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Instant;

use resident::ndarray::{ArrayRef, Dimension};
use resident::{AsView, AsViewMut, Device, Element, Stream};

use crate::audit::{self, Direction};
use crate::call::{Outcome, Peer, Request};
use crate::error::{Error, Result};
use crate::packed::Packed;
pub(crate) use crate::packed::{Use, current_stream};
use crate::part::Part;
use crate::transfer::{Tested, Transfer};
use crate::world::{Awaited, World};

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
        Ok(Self { message: Message::new(world, shape, peer, used)? })
    }

    /// Queues the copy of `part`, which has the message's shape, to the message, where the part is
    /// newest: on `stream` if that is `stream`'s device. Borrows the part for this call only.
    /// Contents that are newest on the host are copied when this returns.
    #[track_caller]
    pub(crate) fn pack_on(&mut self, stream: &Stream, part: &impl AsView<T, D>) -> Result<()> {
        let part = part.as_view();
        self.message.memory("pack")?.pack_on(stream, &part)?;
        self.message.array = part.name();
        Ok(())
    }

    /// As [`pack_on`](Self::pack_on), for device arrays too.
    #[track_caller]
    pub(crate) fn pack_part(&mut self, stream: &Stream, part: &impl Part<T, D>) -> Result<()> {
        part.pack(&mut *self.message.memory("pack")?, stream)?;
        self.message.array = part.part_name();
        Ok(())
    }

    /// Copies elements of the host, of the array of this name.
    #[track_caller]
    pub(crate) fn pack_from_host(
        &mut self,
        array: &Arc<str>,
        elements: &ArrayRef<T, D>,
    ) -> Result<()> {
        self.message.array = Arc::clone(array);
        self.message.memory("pack")?.pack_from_host(elements)
    }

    /// Whether MPI may use memory of it.
    pub(crate) fn is_active(&self) -> bool {
        self.message.is_active()
    }

    /// Waits until the message is packed, not for later work of the stream.
    #[track_caller]
    pub(crate) fn ready(&self) -> Result<()> {
        self.message.memory("send")?.ready()?;
        Ok(())
    }

    /// Waits until the message is packed, not for later work of the stream, and hands it to MPI.
    /// The previous use of the message must be over.
    #[track_caller]
    pub(crate) fn start(&mut self) -> Result<()> {
        let address = self.message.memory("send")?.ready()?;
        // SAFETY: the elements of this memory are valid now. The transfer owns the array, so it
        // lives, at one address (`crate::packed`), until the transfer is complete, and nothing
        // accesses it before (`Transfer::start`).
        unsafe { self.begin(address) }
    }

    /// Hands elements of the array of this name to MPI. The previous use of the message must be
    /// over.
    ///
    /// # Safety
    ///
    /// Until the message is complete, there are as many valid elements at the address as it has,
    /// and nothing writes them.
    #[track_caller]
    pub(crate) unsafe fn start_from(&mut self, array: &Arc<str>, address: *const T) -> Result<()> {
        self.message.array = Arc::clone(array);
        // SAFETY: the caller's.
        unsafe { self.begin(address) }
    }

    /// # Safety
    ///
    /// As [`start_from`](Self::start_from).
    #[track_caller]
    unsafe fn begin(&mut self, address: *const T) -> Result<()> {
        let (site, address) = (Location::caller(), address.cast());
        let world = self.message.world("send")?;
        drop(self.message.memory("send")?);
        let (len_bytes, peer) = (self.message.len_bytes(), self.message.peer);
        world.start(&self.message.transfer, |session, _memory, request| {
            if !request.is_of(address) {
                *request = session.send_request(address, len_bytes, peer)?;
            }
            // SAFETY: the request is of this address, for whose memory the caller vouches.
            unsafe { request.start(session) }
        })?;
        self.message.record(&world, Direction::Sent, site);
        Ok(())
    }

    /// Waits until MPI is done with the message.
    pub(crate) fn wait(&self, awaited: &Awaited, deadline: Instant) -> Result<()> {
        self.message.complete(awaited, deadline).map(|_| ())
    }

    /// What the request uses, without its type.
    pub(crate) fn transfer(&self) -> Rc<dyn Tested> {
        Rc::clone(&self.message.transfer) as _
    }
}

impl<T: Element, D: Dimension + 'static> Incoming<T, D> {
    /// A message of elements in this shape, not started.
    pub(crate) fn new(world: &Rc<World>, shape: D, peer: Peer, used: Use) -> Result<Self> {
        Ok(Self { message: Message::new(world, shape, peer, used)? })
    }

    /// Lets MPI receive it. The previous use of the message must be over; what was received by it
    /// is overwritten, once queued work that unpacks it is done. It goes to memory of `device`, if
    /// MPI can use that, else to the host's.
    #[track_caller]
    pub(crate) fn start(&mut self, device: Option<&Device>) -> Result<()> {
        let address = self.message.memory("receive")?.overwrite(device)?;
        // SAFETY: as in `Outgoing::start`. Queued copies that read the memory are done.
        unsafe { self.start_to(address) }
    }

    /// Lets MPI receive it to memory elsewhere. The previous use of the message must be over.
    ///
    /// # Safety
    ///
    /// Until the message is complete, there is room at the address for as many elements as it has,
    /// and nothing reads or writes them.
    pub(crate) unsafe fn start_to(&mut self, address: *mut T) -> Result<()> {
        let address = address.cast::<u8>();
        let world = self.message.world("receive")?;
        drop(self.message.memory("receive")?);
        let (len_bytes, peer) = (self.message.len_bytes(), self.message.peer);
        world.start(&self.message.transfer, |session, _memory, request| {
            if !request.is_of(address) {
                *request = session.receive_request(address, len_bytes, peer)?;
            }
            // SAFETY: the request is of this address, for whose memory the caller vouches.
            unsafe { request.start(session) }
        })
    }

    /// Whether MPI may use memory of it.
    pub(crate) fn is_active(&self) -> bool {
        self.message.is_active()
    }

    /// Waits until it has arrived; `Outcome::OtherLength` if it was longer or shorter than this.
    pub(crate) fn wait(&self, awaited: &Awaited, deadline: Instant) -> Result<Outcome> {
        self.message.complete(awaited, deadline)
    }

    /// Copies what has arrived to `part`, which has the message's shape: on `stream` if the part
    /// has a copy on its device, else on the host. The message must have arrived.
    #[track_caller]
    pub(crate) fn unpack_on(
        &mut self,
        stream: &Stream,
        part: &mut impl AsViewMut<T, D>,
    ) -> Result<()> {
        let mut part = part.as_view_mut();
        self.message.memory("unpack")?.unpack_on(stream, &mut part)?;
        self.message.array = part.name();
        self.record(Location::caller())
    }

    /// Copies what has arrived to elements of the host, in the message's shape, of the array of
    /// this name. The message must have arrived.
    #[track_caller]
    pub(crate) fn unpack_to_host(
        &mut self,
        array: &Arc<str>,
        elements: &mut ArrayRef<T, D>,
    ) -> Result<()> {
        self.message.memory("unpack")?.unpack_to_host(elements)?;
        self.record_for(array)
    }

    /// Records that it has arrived in the array of this name.
    #[track_caller]
    pub(crate) fn record_for(&mut self, array: &Arc<str>) -> Result<()> {
        self.message.array = Arc::clone(array);
        self.record(Location::caller())
    }

    fn record(&self, site: &'static Location<'static>) -> Result<()> {
        let world = self.message.world("receive")?;
        self.message.record(&world, Direction::Received, site);
        Ok(())
    }
}

/// What both have.
struct Message<T: Element, D: Dimension + 'static> {
    world: Weak<World>,
    transfer: Rc<Transfer<Packed<T, D>>>,
    shape: D,
    peer: Peer,
    /// The name of the array that was packed or unpacked last.
    array: Arc<str>,
}

impl<T: Element, D: Dimension + 'static> Message<T, D> {
    /// The request is made when it starts, of the address that the memory has then.
    fn new(world: &Rc<World>, shape: D, peer: Peer, used: Use) -> Result<Self> {
        world.check()?;
        let memory = Packed::new(shape.clone(), used, world.reachable())?;
        let transfer = Transfer::new(memory, Request::null());
        Ok(Self { world: Rc::downgrade(world), transfer, shape, peer, array: "".into() })
    }

    fn is_active(&self) -> bool {
        self.transfer.memory().is_none()
    }

    fn len_bytes(&self) -> usize {
        self.shape.size() * size_of::<T>()
    }

    fn world(&self, operation: &'static str) -> Result<Rc<World>> {
        World::alive(&self.world, operation)
    }

    fn memory(&self, operation: &'static str) -> Result<RefMut<'_, Packed<T, D>>> {
        self.transfer.memory().ok_or_else(|| Error::Argument {
            operation,
            text: format!(
                "the message of shape {:?} with rank {} and tag {} is in flight; wait for it",
                self.shape.slice(),
                self.peer.rank,
                self.peer.tag
            ),
        })
    }

    fn complete(&self, awaited: &Awaited, deadline: Instant) -> Result<Outcome> {
        self.world(awaited.operation)?.complete(&*self.transfer, awaited, deadline)
    }

    fn record(&self, world: &World, direction: Direction, site: &'static Location<'static>) {
        let bytes = self.len_bytes();
        let (array, peer) = (&*self.array, Some(self.peer.rank));
        audit::record(world.counts(), &audit::Message { direction, bytes, array, peer, site });
    }
}
