//! Arrays and parts of arrays, from one process to another.

use std::cell::RefMut;
use std::fmt;
use std::panic::Location;
use std::rc::{Rc, Weak};

use resident::ndarray::{Dimension, IntoDimension};
use resident::{Device, Element, SmartArray, Stream};

use crate::audit::{self, Direction};
use crate::call::{Channel, Outcome, Peer};
use crate::error::{Error, Result};
use crate::header::{self, Header};
use crate::inbox::Expected;
use crate::message::{Outgoing, Use, current_stream};
use crate::packed::Packed;
use crate::part::{Part, PartMut};
use crate::transfer::{Tested, Transfer};
use crate::world::{Awaited, Mpi, World};

impl Mpi {
    /// Sends an array, or a part of one, to the process `to`, which receives it with the same
    /// `tag`. Waits until the elements are out of the message's memory; a small message may then be
    /// still on its way. A message to this process itself is sent when it is packed.
    ///
    /// The elements are packed where they are newest, after the work that writes them, on the
    /// current device's stream; only they move. The host waits for them, not for later work.
    ///
    /// ```
    /// # use resident::{SmartArray, ndarray::{Ix2, s}};
    /// # fn main() -> resident_mpi::Result<()> {
    /// let mpi = resident_mpi::init()?;
    /// let last = mpi.size() - 1;
    /// let mut field = SmartArray::<f64, Ix2>::zeros((100, 100));
    /// if mpi.rank() == 0 {
    ///     mpi.send(&field.slice(s![.., 99]), last, 7)?;
    /// }
    /// if mpi.rank() == last {
    ///     mpi.recv(&mut field.slice_mut(s![.., 0]), 0, 7)?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Argument`] if there is no such rank or tag.
    /// - [`Error::TimedOut`] if the other process does not receive within the time-out.
    /// - [`Error::Resident`] if the elements cannot be read, as those that were never written.
    /// - [`Error::Mpi`] if MPI refuses.
    #[track_caller]
    pub fn send<T: Element, D: Dimension + 'static>(
        &self,
        part: &impl Part<T, D>,
        to: usize,
        tag: i32,
    ) -> Result<()> {
        self.post(None, part, self.peer("send", to, tag)?)?.sent("send")
    }

    /// As [`send`](Self::send), packed on `stream`, if the elements are newest on its device.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[track_caller]
    pub fn send_on<T: Element, D: Dimension + 'static>(
        &self,
        stream: &Stream,
        part: &impl Part<T, D>,
        to: usize,
        tag: i32,
    ) -> Result<()> {
        self.post(Some(stream), part, self.peer("send_on", to, tag)?)?.sent("send_on")
    }

    /// As [`send`](Self::send), but returns once the elements are packed and handed to MPI: the
    /// array may be written then.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[track_caller]
    pub fn isend<T: Element, D: Dimension + 'static>(
        &self,
        part: &impl Part<T, D>,
        to: usize,
        tag: i32,
    ) -> Result<Sending> {
        self.post(None, part, self.peer("isend", to, tag)?)
    }

    /// As [`isend`](Self::isend), packed on `stream`, if the elements are newest on its device.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[track_caller]
    pub fn isend_on<T: Element, D: Dimension + 'static>(
        &self,
        stream: &Stream,
        part: &impl Part<T, D>,
        to: usize,
        tag: i32,
    ) -> Result<Sending> {
        self.post(Some(stream), part, self.peer("isend_on", to, tag)?)
    }

    /// Receives what the process `from` sends with this tag, into an array or a part of one, of the
    /// same element type and shape, and any layout. Waits for it. The elements are then copied on
    /// the current device's stream, if the part has a copy on that device, else on the host.
    ///
    /// # Errors
    ///
    /// The part is unchanged then.
    ///
    /// - [`Error::Argument`] if there is no such rank or tag.
    /// - [`Error::Mismatch`] if elements of another type or shape were sent. They are thrown away.
    /// - [`Error::TimedOut`] if nothing arrives within the time-out.
    /// - [`Error::Mpi`] if MPI refuses; [`Error::Resident`] if the array cannot be written.
    #[track_caller]
    pub fn recv<T: Element, D: Dimension + 'static>(
        &self,
        part: &mut impl PartMut<T, D>,
        from: usize,
        tag: i32,
    ) -> Result<()> {
        self.receive("recv", None, part, from, tag)
    }

    /// As [`recv`](Self::recv), with copies on `stream`, if the part has a copy on its device.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    #[track_caller]
    pub fn recv_on<T: Element, D: Dimension + 'static>(
        &self,
        stream: &Stream,
        part: &mut impl PartMut<T, D>,
        from: usize,
        tag: i32,
    ) -> Result<()> {
        self.receive("recv_on", Some(stream), part, from, tag)
    }

    /// Begins to receive elements `T` in `shape` from the process `from`, and returns at once.
    ///
    /// ```
    /// # use resident::{SmartArray, ndarray::Ix2};
    /// # fn main() -> resident_mpi::Result<()> {
    /// # let mpi = resident_mpi::init()?;
    /// let receiving = mpi.irecv::<f64, Ix2>((100, 2), mpi.rank(), 0)?;
    /// mpi.send(&SmartArray::<f64, _>::ones((100, 2)), mpi.rank(), 0)?;
    /// // .. work ..
    /// let columns: SmartArray<f64, Ix2> = receiving.wait()?;
    /// assert_eq!(columns.sum()?, 200.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Argument`] if there is no such rank or tag, or if no array has so many elements.
    /// - [`Error::Mpi`] if MPI refuses; [`Error::Resident`] if the host has no memory for it.
    #[track_caller]
    pub fn irecv<T: Element, D: Dimension + 'static>(
        &self,
        shape: impl IntoDimension<Dim = D>,
        from: usize,
        tag: i32,
    ) -> Result<Receiving<T, D>> {
        self.expect("irecv", shape.into_dimension(), None, self.peer("irecv", from, tag)?)
    }

    #[track_caller]
    fn receive<T: Element, D: Dimension + 'static>(
        &self,
        operation: &'static str,
        stream: Option<&Stream>,
        part: &mut impl PartMut<T, D>,
        from: usize,
        tag: i32,
    ) -> Result<()> {
        let peer = self.peer(operation, from, tag)?;
        let stream = stream.cloned().map_or_else(current_stream, Ok)?;
        let device = Some(stream.device()).filter(|device| part.has_copy_on(device));
        self.expect(operation, part.part_shape(), device.as_ref(), peer)?
            .unpack(Some(&stream), part)
    }

    #[track_caller]
    fn post<T: Element, D: Dimension + 'static>(
        &self,
        stream: Option<&Stream>,
        part: &impl Part<T, D>,
        peer: Peer,
    ) -> Result<Sending> {
        let shape = part.part_shape();
        let mut body = Outgoing::new(&self.0, shape.clone(), peer, Use::Once)?;
        body.pack_part(&stream.cloned().map_or_else(current_stream, Ok)?, part)?;
        // Packed before the header goes, so that no header goes alone.
        body.ready()?;
        let beside = Peer { channel: Channel::Headers, ..peer };
        let header = header::send(&self.0, Header::of::<T>(shape.slice()), beside)?;
        // Without it, the receiver would take the next message for it.
        body.start().map_err(|error| self.0.break_with(error))?;
        Ok(Sending {
            world: Rc::downgrade(&self.0),
            transfers: [header, body.transfer()],
            to: peer.rank,
        })
    }

    #[track_caller]
    fn expect<T: Element, D: Dimension + 'static>(
        &self,
        operation: &'static str,
        shape: D,
        device: Option<&Device>,
        peer: Peer,
    ) -> Result<Receiving<T, D>> {
        expect_size::<T>(operation, shape.slice())?;
        let expected = Header::of::<T>(shape.slice());
        let mut memory = Packed::<T, D>::new(shape, Use::Once, self.0.reachable())?;
        let address = memory.overwrite(device)?.cast::<u8>();
        let transfer =
            Transfer::new(memory, Expected::new(self.0.inbox(), expected, address, peer));
        self.0.start(&transfer, |session, _memory, message| {
            // SAFETY: the address is that of memory of an array that the transfer owns, as it owns
            // `message`: both live, the memory at one address, until the transfer is complete, and
            // nothing accesses the memory before (`Transfer::start`).
            unsafe { message.post(session) }
        })?;
        let (world, from) = (Rc::downgrade(&self.0), peer.rank);
        Ok(Receiving { world, transfer, expected, operation, from })
    }

    fn peer(&self, operation: &'static str, rank: usize, tag: i32) -> Result<Peer> {
        self.0.check()?;
        self.0.peer(operation, rank, tag, Channel::Messages)
    }
}

/// A message that [`Mpi::isend`] has handed to MPI. It owns its memory. Dropping or forgetting it
/// does not stop the message: MPI is not finalised before it has been received.
#[must_use = "`wait` says whether the message was received"]
pub struct Sending {
    world: Weak<World>,
    transfers: [Rc<dyn Tested>; 2],
    to: usize,
}

impl Sending {
    /// Waits until MPI has taken the elements; a small message may then be still on its way.
    ///
    /// # Errors
    ///
    /// - [`Error::TimedOut`] if the other process does not receive within the time-out.
    /// - [`Error::Mpi`] if MPI fails.
    pub fn wait(self) -> Result<()> {
        self.wait_in("Sending::wait")
    }

    /// Whether [`wait`](Self::wait) would return at once. Lets MPI progress.
    ///
    /// # Errors
    ///
    /// [`Error::Mpi`] if MPI fails.
    pub fn is_done(&self) -> Result<bool> {
        let world = World::alive(&self.world, "Sending::is_done")?;
        let outcomes = [world.poll(&*self.transfers[0])?, world.poll(&*self.transfers[1])?];
        Ok(!outcomes.contains(&Outcome::Pending))
    }

    /// The end of `send`. What a process sends to itself it receives after this returns, so that
    /// there is nothing to wait for.
    fn sent(self, operation: &'static str) -> Result<()> {
        let world = World::alive(&self.world, operation)?;
        if self.to == world.rank() { Ok(()) } else { self.wait_in(operation) }
    }

    fn wait_in(self, operation: &'static str) -> Result<()> {
        let world = World::alive(&self.world, operation)?;
        let (awaited, deadline) = (Awaited::from(operation, self.to), world.deadline());
        for transfer in &self.transfers {
            world.complete(&**transfer, &awaited, deadline)?;
        }
        Ok(())
    }
}

/// A message that [`Mpi::irecv`] expects. It owns its memory, which nobody can read before the
/// message has arrived. If it is dropped or forgotten, the message is received and thrown away.
#[must_use = "`wait` and `into_part` give what was received"]
pub struct Receiving<T: Element, D: Dimension + 'static> {
    world: Weak<World>,
    transfer: Rc<Transfer<Packed<T, D>, Expected>>,
    expected: Header,
    operation: &'static str,
    from: usize,
}

impl<T: Element, D: Dimension + 'static> Receiving<T, D> {
    /// Waits for the message, and returns its elements, which are on the host.
    ///
    /// # Errors
    ///
    /// As [`Mpi::recv`].
    #[track_caller]
    pub fn wait(self) -> Result<SmartArray<T, D>> {
        let (world, site) = (self.complete()?, Location::caller());
        let empty = D::zeros(D::NDIM.unwrap_or(0));
        let empty = Packed::new(empty, Use::Once, world.reachable())?;
        let array = std::mem::replace(&mut *self.memory(), empty).into_array()?;
        self.record(&world, &array.name(), site);
        Ok(array)
    }

    /// Waits for the message, and copies its elements to an array or a part of one, as
    /// [`Mpi::recv`] does.
    ///
    /// # Errors
    ///
    /// As [`Mpi::recv`], and [`Error::Mismatch`] if the part has another shape than the message.
    #[track_caller]
    pub fn into_part(self, part: &mut impl PartMut<T, D>) -> Result<()> {
        self.unpack(None, part)
    }

    /// As [`into_part`](Self::into_part), with copies on `stream`, if the part has a copy on its
    /// device.
    ///
    /// # Errors
    ///
    /// As [`into_part`](Self::into_part).
    #[track_caller]
    pub fn into_part_on(self, stream: &Stream, part: &mut impl PartMut<T, D>) -> Result<()> {
        self.unpack(Some(stream), part)
    }

    /// Whether the message has arrived. Lets MPI progress.
    ///
    /// # Errors
    ///
    /// [`Error::Mpi`] if MPI fails.
    pub fn is_done(&self) -> Result<bool> {
        let world = World::alive(&self.world, "Receiving::is_done")?;
        Ok(world.poll(&*self.transfer)? != Outcome::Pending)
    }

    #[track_caller]
    fn unpack(self, stream: Option<&Stream>, part: &mut impl PartMut<T, D>) -> Result<()> {
        let given = Header::of::<T>(part.part_shape().slice());
        let (world, site) = (self.complete()?, Location::caller());
        if given != self.expected {
            let (given, found) = (format!("{given} (the part)"), self.expected.to_string());
            return Err(mismatch(self.operation, self.from, given, found));
        }
        let stream = stream.cloned().map_or_else(current_stream, Ok)?;
        part.unpack(&mut self.memory(), &stream)?;
        self.record(&world, &part.part_name(), site);
        Ok(())
    }

    /// Waits until the message has arrived. If it is another one than expected, it has arrived too.
    fn complete(&self) -> Result<Rc<World>> {
        let world = World::alive(&self.world, self.operation)?;
        let awaited = Awaited::from(self.operation, self.from);
        let outcome = world.complete(&*self.transfer, &awaited, world.deadline())?;
        if outcome == Outcome::Done {
            return Ok(world);
        }
        let (expected, found) = (self.expected, self.transfer.operation().found());
        Err(mismatch(self.operation, self.from, expected.to_string(), found.to_string()))
    }

    /// What has arrived, after `complete`.
    fn memory(&self) -> RefMut<'_, Packed<T, D>> {
        self.transfer.memory().expect("it is complete")
    }

    fn record(&self, world: &World, array: &str, site: &'static Location<'static>) {
        let (direction, bytes) = (Direction::Received, self.expected.len_bytes());
        let peer = Some(self.from);
        audit::record(world.counts(), &audit::Message { direction, bytes, array, peer, site });
    }
}

/// Prints the process to which it goes.
impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sending(to rank {})", self.to)
    }
}

/// Prints what is expected from which process.
impl<T: Element, D: Dimension + 'static> fmt::Debug for Receiving<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiving({} from rank {})", self.expected, self.from)
    }
}

/// `Ok` if an array can have this shape.
fn expect_size<T>(operation: &'static str, shape: &[usize]) -> Result<()> {
    // As ndarray counts: axes of length 0 do not hide others.
    let axes = shape.iter().filter(|len| **len > 0);
    let bytes = axes.copied().chain([size_of::<T>().max(1)]).try_fold(1_usize, usize::checked_mul);
    if bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
        return Ok(());
    }
    let text = format!("shape {shape:?} has more elements than memory has addresses");
    Err(Error::Argument { operation, text })
}

fn mismatch(operation: &'static str, rank: usize, expected: String, found: String) -> Error {
    Error::Mismatch { operation, rank, axis: None, side: None, expected, found }
}
