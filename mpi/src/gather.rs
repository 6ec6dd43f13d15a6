//! A whole global array on one process: collected from all, or dealt to all.
//!
//! A part goes with a header before it. A process that cannot send its part sends the header of a
//! refusal, so that the other end need not wait for the time-out.

use std::rc::Rc;

use resident::ndarray::{Array, Dim, Dimension, Ix1};
use resident::{AsView, Element, SmartArray, SmartViewMut};

use crate::call::{Channel, Peer};
use crate::decomposition::Cells;
use crate::error::{Error, Result};
use crate::header::{self, Header};
use crate::local::{Decomposition, dim, reserve};
use crate::message::{Incoming, Outgoing, Use, current_stream};
use crate::world::{Awaited, World};

const GATHER: &str = "Decomposition::gather";
const SCATTER: &str = "Decomposition::scatter";

/// Below the tags of exchanges.
const GATHER_TAG: i32 = 0;
const SCATTER_TAG: i32 = 1;

impl<const N: usize> Decomposition<N>
where
    Dim<[usize; N]>: Dimension,
{
    /// The global array, of the own cells of all processes, on the process `root`; `None` on the
    /// others. All processes call it. Halos are not read, and only own cells are sent, packed where
    /// they are newest.
    ///
    /// The root receives one part after the other, so that it needs memory for the whole array and
    /// one part.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::Ix2};
    ///
    /// # fn main() -> resident_mpi::Result<()> {
    /// let mpi = resident_mpi::init()?;
    /// let plate = mpi.grid([400, 300]).halo(1).build()?;
    /// let now: SmartArray<f64, Ix2> = plate.array(|[i, j]| (i + j) as f64)?;
    /// if let Some(whole) = plate.gather(&now, 0)? {
    ///     assert_eq!((whole.dim(), whole[[399, 299]]), ((400, 300), 698.0));
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Argument`](Error::Argument) if there is no such rank, the array has another shape than
    ///   this process's part with its halo, or the root has no memory for the global array.
    /// - [`Mismatch`](Error::Mismatch) on the root if another process sent elements of another
    ///   type, or had an error.
    /// - [`TimedOut`](Error::TimedOut) if another process does not call it within the time-out.
    /// - [`Resident`](Error::Resident) if own cells cannot be read.
    #[track_caller]
    pub fn gather<T: Element>(
        &self,
        array: &impl AsView<T, Dim<[usize; N]>>,
        root: usize,
    ) -> Result<Option<Array<T, Dim<[usize; N]>>>> {
        let peer = self.peer(GATHER, root, GATHER_TAG)?;
        let own = self.check_shape(GATHER, array);
        if root == self.rank() {
            // What others send is received first, so that no message is left.
            let mut whole = self.collect::<T>()?;
            own?;
            let mut cells = self.global_cells(root).of_mut(&mut whole);
            cells.host_overwrite()?.assign(&*self.interior(array).host()?);
            return Ok(Some(whole.into_array()?));
        }
        let shape = dim(self.local_shape());
        let pack = |message: &mut Outgoing<T, _>| {
            own?;
            message.pack_on(&current_stream()?, &self.interior(array))
        };
        self.send_part(GATHER, shape, peer, pack)?;
        Ok(None)
    }

    /// This process's part of the global array that the process `root` has, with its halo: as by
    /// [`array`](Self::array) with the elements of `global` as values. All processes call it; the
    /// root passes `Some`, the others pass `None`.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::{Array2, Ix2}};
    ///
    /// # fn main() -> resident_mpi::Result<()> {
    /// let mpi = resident_mpi::init()?;
    /// let plate = mpi.grid([400, 300]).halo(1).build()?;
    /// let whole = (mpi.rank() == 0).then(|| Array2::<f64>::ones((400, 300)));
    /// let now: SmartArray<f64, Ix2> = plate.scatter(whole.as_ref(), 0)?;
    /// assert_eq!(now.shape(), plate.zeros::<f64>()?.shape());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Argument`](Error::Argument) if there is no such rank, or if the root has no array, or
    ///   one of another shape than the global array.
    /// - [`Mismatch`](Error::Mismatch) if the root sent elements of another type, or had an error.
    /// - [`TimedOut`](Error::TimedOut) if another process does not call it within the time-out.
    #[track_caller]
    pub fn scatter<T: Element>(
        &self,
        global: Option<&Array<T, Dim<[usize; N]>>>,
        root: usize,
    ) -> Result<SmartArray<T, Dim<[usize; N]>>> {
        let peer = self.peer(SCATTER, root, SCATTER_TAG)?;
        if root != self.rank() {
            let mut array = self.zeros::<T>()?;
            self.receive_part(SCATTER, &mut array.view_mut(), peer)?;
            return Ok(array);
        }
        let global = self.check_global(global);
        let part = |rank| -> Result<_> {
            let global = global.clone()?;
            self.part(SCATTER, rank, &mut |index| global[dim(index)])
        };
        let mut outcome = Ok(());
        for rank in (0..self.mpi().size()).filter(|rank| *rank != root) {
            let shape = dim(self.blocks().shape_with_halo(rank));
            let peer = self.peer(SCATTER, rank, SCATTER_TAG)?;
            let pack = |message: &mut Outgoing<T, _>| {
                message.pack_on(&current_stream()?, &SmartArray::from(part(rank)?))
            };
            outcome = outcome.and(self.send_part(SCATTER, shape, peer, pack));
        }
        outcome?;
        Ok(SmartArray::from(part(root)?))
    }

    /// The own cells of all others, in the global array.
    #[track_caller]
    fn collect<T: Element>(&self) -> Result<SmartArray<T, Dim<[usize; N]>>> {
        let shape = self.global_shape();
        let mut elements = reserve(GATHER, shape)?;
        elements.resize(shape.iter().product(), T::zeroed());
        let whole = Array::from_shape_vec(dim(shape), elements);
        let mut whole = SmartArray::from(whole.expect("one element for each index"));
        let mut outcome = Ok(());
        for rank in (0..self.mpi().size()).filter(|rank| *rank != self.rank()) {
            let peer = self.peer(GATHER, rank, GATHER_TAG)?;
            let mut cells = self.global_cells(rank).of_mut(&mut whole);
            let one = self.receive_part::<T>(GATHER, &mut cells, peer);
            outcome = outcome.and(one);
        }
        outcome.map(|()| whole)
    }

    /// Sends a header and the message that `pack` packs, or a refusal if it fails.
    #[track_caller]
    fn send_part<T: Element>(
        &self,
        operation: &'static str,
        shape: Dim<[usize; N]>,
        peer: Peer,
        pack: impl FnOnce(&mut Outgoing<T, Dim<[usize; N]>>) -> Result<()>,
    ) -> Result<()> {
        let world = &self.mpi().0;
        let (awaited, deadline) = (Awaited::from(operation, peer.rank), world.deadline());
        let mut message = Outgoing::new(world, shape, peer, Use::Once)?;
        let packed = pack(&mut message).and_then(|()| message.ready());
        let header = match &packed {
            Ok(()) => Header::of::<T>(shape.slice()),
            Err(_) => Header::refusal(),
        };
        let header = header::send(world, header, peer)?;
        if packed.is_ok() {
            // A header without its message would be followed by another header.
            message.start().map_err(|error| world.break_with(error))?;
            message.wait(&awaited, deadline)?;
        }
        header::wait(world, &header, &awaited, deadline)?;
        packed
    }

    /// Receives a header and, unless it is a refusal, a message, and copies its elements to `part`.
    #[track_caller]
    fn receive_part<T: Element>(
        &self,
        operation: &'static str,
        part: &mut SmartViewMut<'_, T, Dim<[usize; N]>>,
        peer: Peer,
    ) -> Result<()> {
        let world = &self.mpi().0;
        let (awaited, deadline) = (Awaited::from(operation, peer.rank), world.deadline());
        let expected = Header::of::<T>(part.shape());
        let mut message = Incoming::new(world, part.raw_dim(), peer, Use::Once)?;
        let header = header::receive(world, peer)?;
        // What comes next would be taken for the header that was not received.
        let found = header::wait(world, &header, &awaited, deadline)
            .map_err(|error| world.break_with(error))?;
        if found == expected {
            message.start(None).map_err(|error| world.break_with(error))?;
            message.wait(&awaited, deadline)?;
            return message.unpack_on(&current_stream()?, part);
        }
        if found != Header::refusal() {
            discard(world, found.len_bytes(), peer, &awaited)?;
        }
        let (expected, found) = (expected.to_string(), found.to_string());
        let (rank, axis, side) = (peer.rank, None, None);
        Err(Error::Mismatch { operation, rank, axis, side, expected, found })
    }

    fn peer(&self, operation: &'static str, rank: usize, tag: i32) -> Result<Peer> {
        let world: &World = &self.mpi().0;
        world.check()?;
        world.peer(operation, rank, tag, Channel::Faces)
    }

    /// The own cells of a process, in the global array.
    fn global_cells(&self, rank: usize) -> Cells<N> {
        Cells::new(self.blocks().cells(rank), [0; N])
    }

    /// Checks that an array has the shape of this process's part with its halo.
    pub(crate) fn check_shape<T: Element>(
        &self,
        operation: &'static str,
        array: &impl AsView<T, Dim<[usize; N]>>,
    ) -> Result<()> {
        let (expected, found) = (self.shape_with_halo(), array.as_view().raw_dim());
        if found == dim(expected) {
            return Ok(());
        }
        let text = format!(
            "an array of shape {:?}, expected {expected:?}: this process's part with its halo; \
             make arrays by `array` or `zeros` of the grid",
            found.slice()
        );
        Err(Error::Argument { operation, text })
    }

    /// The array to scatter.
    fn check_global<'a, T>(
        &self,
        global: Option<&'a Array<T, Dim<[usize; N]>>>,
    ) -> Result<&'a Array<T, Dim<[usize; N]>>> {
        let expected = self.global_shape();
        let text = match global {
            Some(global) if global.raw_dim() == dim(expected) => return Ok(global),
            Some(global) => {
                format!("an array of shape {:?}, expected {expected:?}: the grid's", global.shape())
            }
            None => "no array on the root; pass `Some(&array)` there".into(),
        };
        Err(Error::Argument { operation: SCATTER, text })
    }
}

/// Receives a message that is of no use, with its own length: MPI may write a longer one beyond the
/// memory that it is given.
fn discard(world: &Rc<World>, len_bytes: usize, peer: Peer, awaited: &Awaited) -> Result<()> {
    let message = Incoming::<u8, _>::new(world, Ix1(len_bytes), peer, Use::Once)
        .and_then(|mut message| message.start(None).map(|()| message))
        .map_err(|error| world.break_with(error))?;
    message.wait(awaited, world.deadline()).map(drop)
}
