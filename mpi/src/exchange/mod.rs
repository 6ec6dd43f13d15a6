//! Halos: each process's copies of its neighbours' cells, brought up to date.
//!
//! An [`Exchange`] owns the messages of all faces, and their requests. A [`Going`] is a borrow of
//! it only: dropping or forgetting one changes nothing.

mod agree;
mod fields;
mod messages;
mod on_host;
mod tags;

use std::fmt;
use std::rc::{Rc, Weak};

use resident::Stream;
use resident::ndarray::{Dim, Dimension};

pub use fields::{Elements, Field, FieldMut, Fields, FieldsMut};

use crate::error::{Error, Result};
use crate::local::Decomposition;
use crate::world::{Awaited, World};
use messages::Maker;
use tags::Tags;

/// The exchange of the halos of one or several arrays, described once and used for each step:
/// [`Decomposition::exchange`] makes it.
///
/// It owns the messages: memory that is pinned for the device that was current when it was made,
/// and requests of MPI. A step allocates no memory for them. `E` is a tuple of the element types:
/// the halo of one array of `f64` with two axes is an `Exchange<(f64,), 2>`.
///
/// ```
/// use resident::{Device, SmartArray, ndarray::Ix2};
/// use resident_mpi::Exchange;
///
/// let mpi = resident_mpi::init()?;
/// let plate = mpi.grid([12, 8]).halo(1).periodic([true; 2]).build()?;
/// let mut now: SmartArray<f64, Ix2> = plate.zeros()?;
/// plate.interior_mut(&mut now).fill(1.0)?;
/// let mut halo: Exchange<(f64,), 2> = plate.exchange(&now)?;
/// let going = halo.start(&now, &Device::cpu().stream())?;      // sends the faces
/// // .. work on the core ..
/// going.finish(&mut now)?;
/// let [rows, columns] = plate.local_shape();
/// let all_but_corners = rows * columns + 2 * (rows + columns);
/// assert_eq!(now.sum()?, all_but_corners as f64);
/// # Ok::<(), resident_mpi::Error>(())
/// ```
///
/// If it is dropped between [`start`](Self::start) and [`finish`](Going::finish), its memory stays
/// until its messages have arrived, or the job ends.
pub struct Exchange<E: Elements<N>, const N: usize> {
    world: Weak<World>,
    shape: [usize; N],
    messages: E::Messages,
    /// The other process, if there is only one.
    peer: Option<usize>,
    state: State,
}

/// What has been handed to MPI, or to NCCL.
enum State {
    /// Nothing, or receives, which the next start finds begun.
    Idle,
    /// All messages. What arrives is written on this stream.
    Going(Stream),
    /// MPI refused a message, so that the processes no longer agree.
    Failed(Error),
}

/// An exchange between its start and its end: borrows the [`Exchange`], not the arrays.
///
/// If it is dropped or forgotten, the messages travel on, and the halos keep what they hold. The
/// next [`start`](Exchange::start) is an error until [`unfinished`](Exchange::unfinished) has
/// given the exchange back and it is finished.
#[must_use = "the halos are written by `finish`"]
pub struct Going<'a, E: Elements<N>, const N: usize> {
    exchange: &'a mut Exchange<E, N>,
}

impl<const N: usize> Decomposition<N>
where
    Dim<[usize; N]>: Dimension,
{
    /// Describes the exchange of the halos of arrays like these: of one, `&now`, or of up to four
    /// of any element types, `(&u, &v)`. Each has the shape of this process's part with its halo.
    /// Nothing is read from the arrays; other arrays of these types may take part in the exchange.
    ///
    /// All processes call it, with the same types, in the same order as their other exchanges.
    /// Neighbours compare what they describe.
    ///
    /// # Errors
    ///
    /// - [`Argument`](Error::Argument) if an array has another shape.
    /// - [`Mismatch`](Error::Mismatch) if a neighbour describes another exchange: other element
    ///   types, another grid, or halos of another width.
    /// - [`TimedOut`](Error::TimedOut) if a neighbour describes none within the time-out.
    /// - [`Resident`](Error::Resident) if there is no memory for the messages.
    pub fn exchange<F: Fields<N>>(&self, like: F) -> Result<Exchange<F::Elements, N>> {
        const OPERATION: &str = "Decomposition::exchange";
        let world = &self.mpi().0;
        world.check()?;
        let shape = self.shape_with_halo();
        like.check(OPERATION, shape)?;
        let tags = Tags::new::<N>(world, OPERATION)?;
        agree::with_neighbours::<F::Elements, N>(self, &tags)?;
        let faces = self.faces();
        let mut others = faces.iter().map(|face| face.rank).filter(|rank| *rank != self.rank());
        let first = others.next();
        let peer = first.filter(|first| others.all(|other| other == *first));
        let messages = F::Elements::messages(&mut Maker::new(OPERATION, world, faces, &tags))?;
        let (world, state) = (Rc::downgrade(world), State::Idle);
        Ok(Exchange { world, shape, messages, peer, state })
    }
}

impl<E: Elements<N>, const N: usize> Exchange<E, N> {
    /// Packs the own cells that neighbours need, on the device where they are newest, after the
    /// work that writes them, and hands them to MPI. The host waits for that work and for the
    /// packed cells, not for later work on `stream`. What arrives will be written on `stream`.
    ///
    /// With NCCL ([`Transport::Nccl`](crate::Transport)) the faces are handed to it, and the host
    /// waits for nothing.
    ///
    /// The arrays are borrowed for this call only. Until [`Going::finish`] their halos hold what
    /// they held; work on the [`core`](Decomposition::core) overlaps the exchange.
    ///
    /// # Errors
    ///
    /// - [`Argument`](Error::Argument) if an array has another shape, or the exchange was started
    ///   before and not finished: see [`unfinished`](Self::unfinished).
    /// - [`Resident`](Error::Resident) if the cells cannot be packed. It may be called again.
    /// - [`TimedOut`](Error::TimedOut) if an earlier call has timed out.
    /// - [`Mpi`](Error::Mpi) if MPI refuses a message. The exchange cannot be used any more.
    #[track_caller]
    pub fn start<F: Fields<N, Elements = E>>(
        &mut self,
        fields: F,
        stream: &Stream,
    ) -> Result<Going<'_, E, N>> {
        self.begin("Exchange::start", &fields, stream)?;
        Ok(Going { exchange: self })
    }

    #[track_caller]
    fn begin<F: Fields<N, Elements = E>>(
        &mut self,
        operation: &'static str,
        fields: &F,
        stream: &Stream,
    ) -> Result<()> {
        let world = World::alive(&self.world, operation)?;
        fields.check(operation, self.shape)?;
        self.expect_idle(operation)?;
        fields.prepare(&mut self.messages, stream)?;
        if world.nccl().is_none() {
            E::wait_packed(&self.messages)?;
        }
        // MPI may refuse one message after it has taken another.
        if let Err(error) = self.send(operation, &world, stream) {
            self.state = State::Failed(error.clone());
            return Err(error);
        }
        self.state = State::Going(stream.clone());
        Ok(())
    }

    #[track_caller]
    fn send(&mut self, operation: &'static str, world: &World, stream: &Stream) -> Result<()> {
        let Some(nccl) = world.nccl() else { return E::send(&mut self.messages) };
        let awaited = Awaited { rank: self.peer, ..Awaited::all(operation) };
        nccl.exchange(awaited, stream, &mut self.messages, E::add_to)?;
        E::record_sent(&self.messages, world);
        Ok(())
    }

    /// [`start`](Self::start) and [`finish`](Going::finish) in one call, for programs that compute
    /// nothing meanwhile. Of arrays that are on the host only, MPI reads and writes the cells where
    /// they are, if they are contiguous, so that nothing is copied.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::Ix2};
    ///
    /// let mpi = resident_mpi::init()?;
    /// let plate = mpi.grid([12, 8]).halo(1).periodic([true; 2]).build()?;
    /// let mut now: SmartArray<f64, Ix2> = plate.zeros()?;
    /// plate.interior_mut(&mut now).host_mut()?.fill(1.0);
    /// plate.exchange(&now)?.update(&mut now, &Device::cpu().stream())?;
    /// let [rows, columns] = plate.local_shape();
    /// assert_eq!(now.sum()?, (rows * columns + 2 * (rows + columns)) as f64);
    /// # Ok::<(), resident_mpi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As `start` and `finish`. If MPI still uses cells of an array when the call would have to
    /// return an error, as [`TimedOut`](Error::TimedOut), the job ends instead, and the reason is
    /// written to standard error.
    #[track_caller]
    pub fn update<F: FieldsMut<N, Elements = E>>(
        &mut self,
        mut fields: F,
        stream: &Stream,
    ) -> Result<()> {
        const OPERATION: &str = on_host::UPDATE;
        let world = World::alive(&self.world, OPERATION)?;
        // With NCCL, neighbours use it wherever their arrays are.
        if world.nccl().is_some() || !fields.are_on_host() {
            self.begin(OPERATION, &fields, stream)?;
            return Going { exchange: self }.finish(fields);
        }
        fields.check(OPERATION, self.shape)?;
        self.expect_idle(OPERATION)?;
        let outcome = fields.update(&world, &mut self.messages, world.deadline());
        if let Err(error) = &outcome {
            // A neighbour may have got a message, and others none.
            self.state = State::Failed(error.clone());
        }
        outcome
    }

    /// The exchange that was started and not finished, if there is one: because its [`Going`] was
    /// dropped or forgotten, or because `finish` returned an error.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::Ix1};
    ///
    /// let mpi = resident_mpi::init()?;
    /// let ring = mpi.grid([8]).halo(1).periodic([true]).build()?;
    /// let mut a: SmartArray<f32, Ix1> = ring.array(|[i]| i as f32)?;
    /// let mut halo = ring.exchange(&a)?;
    /// let stream = Device::cpu().stream();
    /// drop(halo.start(&a, &stream)?);
    /// assert!(halo.start(&a, &stream).is_err(), "the first one is not finished");
    /// if let Some(going) = halo.unfinished() {
    ///     going.finish(&mut a)?;
    /// }
    /// halo.start(&a, &stream)?.finish(&mut a)?;
    /// # Ok::<(), resident_mpi::Error>(())
    /// ```
    pub fn unfinished(&mut self) -> Option<Going<'_, E, N>> {
        matches!(self.state, State::Going(_)).then_some(Going { exchange: self })
    }

    fn expect_idle(&self, operation: &'static str) -> Result<()> {
        match &self.state {
            State::Idle => Ok(()),
            State::Going(_) => {
                let text = "the exchange was started before and not finished; finish it: \
                            `if let Some(going) = exchange.unfinished() { going.finish(..)? }`";
                Err(Error::Argument { operation, text: text.into() })
            }
            State::Failed(error) => Err(error.clone()),
        }
    }
}

impl<E: Elements<N>, const N: usize> Going<'_, E, N> {
    /// Waits for the messages of all neighbours, and queues the copies of what has arrived to the
    /// halos, on the stream of [`start`](Exchange::start); copies to arrays that have no memory on
    /// its device are made on the host, at once. Launches on these arrays come after. Then waits
    /// until MPI has sent this process's own messages.
    ///
    /// With NCCL it only queues the copies, behind the messages. If a neighbour does not come, the
    /// halos are lost ([`Error::Lost`](resident::Error::Lost)), and the next call times out.
    ///
    /// # Errors
    ///
    /// The exchange is not finished then: see [`unfinished`](Exchange::unfinished).
    ///
    /// - [`TimedOut`](Error::TimedOut) if a neighbour does not answer within the time-out; it names
    ///   the rank, axis and side. The job ends with the last handle of MPI.
    /// - [`Argument`](Error::Argument) if an array has another shape; nothing is written.
    /// - [`Resident`](Error::Resident) if a device refuses a copy.
    #[track_caller]
    pub fn finish<F: FieldsMut<N, Elements = E>>(self, mut fields: F) -> Result<()> {
        const OPERATION: &str = messages::FINISH;
        let Exchange { world, shape, messages, state, .. } = self.exchange;
        let world = World::alive(world, OPERATION)?;
        fields.check(OPERATION, *shape)?;
        let State::Going(stream) = state else {
            unreachable!("a `Going` is of a started exchange")
        };
        fields.unpack(messages, stream, &world)?;
        *state = State::Idle;
        Ok(())
    }
}

impl<E: Elements<N>, const N: usize> fmt::Debug for Exchange<E, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Idle => "idle",
            State::Going(_) => "started",
            State::Failed(_) => "failed",
        };
        write!(f, "Exchange({state}, parts of shape {:?}, {})", self.shape, E::description())
    }
}

impl<E: Elements<N>, const N: usize> fmt::Debug for Going<'_, E, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Going").field(&self.exchange).finish()
    }
}
