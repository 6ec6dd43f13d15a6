//! One process's part of a global array.

use std::fmt;

use resident::ndarray::{Array, Dim, Dimension, Slice};
use resident::{AsView, AsViewMut, Element, SmartArray, SmartView, SmartViewMut};

use crate::decomposition::{Blocks, Cells, Face, Reach};
use crate::error::{Error, Result, Side};
use crate::world::Mpi;

/// A global array with `N` axes, divided among all processes in blocks: [`Mpi::grid`] describes it.
///
/// Each process has the cells of its block, and around them a halo: copies of its neighbours'
/// cells, which [`exchange`](Self::exchange) keeps up to date. Both are one array, so the first own
/// cell has the widths of the halo as its index.
///
/// ```
/// use resident::{SmartArray, ndarray::Ix2};
///
/// let mpi = resident_mpi::init()?;
/// let plate = mpi.grid([40, 30]).halo(1).build()?;
/// let now: SmartArray<f64, Ix2> = plate.array(|[i, j]| (100 * i + j) as f64)?;
/// let [rows, columns] = plate.local_shape();
/// assert_eq!(now.shape(), [rows + 2, columns + 2]);
/// let [i, j] = plate.offset();
/// assert_eq!(plate.interior(&now).get((0, 0))?, (100 * i + j) as f64);
/// # Ok::<(), resident_mpi::Error>(())
/// ```
#[derive(Clone)]
pub struct Decomposition<const N: usize> {
    mpi: Mpi,
    blocks: Blocks<N>,
    reach: Reach,
}

impl<const N: usize> Decomposition<N> {
    pub(crate) fn new(mpi: Mpi, blocks: Blocks<N>, reach: Reach) -> Self {
        Self { mpi, blocks, reach }
    }

    /// This process.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.mpi.rank()
    }

    /// The processes among which the array is divided.
    #[must_use]
    pub fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// The shape of the global array.
    #[must_use]
    pub fn global_shape(&self) -> [usize; N] {
        self.blocks.shape()
    }

    /// The number of processes along each axis.
    #[must_use]
    pub fn processes(&self) -> [usize; N] {
        self.blocks.processes()
    }

    /// Where this process is among them. Ranks are in row-major order of these.
    #[must_use]
    pub fn coordinates(&self) -> [usize; N] {
        self.blocks.coordinates(self.rank())
    }

    /// The width of the halo in cells, on both sides of each axis.
    #[must_use]
    pub fn halos(&self) -> [usize; N] {
        self.blocks.halos()
    }

    /// The number of this process's own cells along each axis, without the halo.
    #[must_use]
    pub fn local_shape(&self) -> [usize; N] {
        self.blocks.local_shape(self.rank())
    }

    /// The global index of this process's first own cell.
    #[must_use]
    pub fn offset(&self) -> [usize; N] {
        self.blocks.offset(self.rank())
    }

    /// The process that has the cells beyond one side of an axis: `None` at the end of the domain,
    /// and if there is no such axis. On a periodic axis with one process it is the process itself.
    #[must_use]
    pub fn neighbour(&self, axis: usize, side: Side) -> Option<usize> {
        self.blocks.neighbour(self.rank(), axis, side)
    }

    /// This process's own cells.
    #[must_use]
    pub fn own(&self) -> Cells<N> {
        self.blocks.own(self.rank())
    }

    /// The own cells that are farther from each neighbour than the halo is wide. A stencil can
    /// write them while messages travel: what it reads, [`with_halo`](Cells::with_halo), has no
    /// cell that an exchange fills.
    #[must_use]
    pub fn core(&self) -> Cells<N> {
        self.blocks.core(self.rank())
    }

    /// The other own cells, which a stencil can write once the halo has arrived: up to two boxes
    /// for each axis, which have no cell in common.
    #[must_use]
    pub fn rims(&self) -> Vec<Cells<N>> {
        self.blocks.rims(self.rank())
    }

    pub(crate) fn blocks(&self) -> &Blocks<N> {
        &self.blocks
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn faces(&self) -> Vec<Face<N>> {
        self.blocks.faces(self.rank(), self.reach)
    }

    /// The shape of this process's array, with its halo.
    pub(crate) fn shape_with_halo(&self) -> [usize; N] {
        self.blocks.shape_with_halo(self.rank())
    }
}

impl<const N: usize> Decomposition<N>
where
    Dim<[usize; N]>: Dimension,
{
    /// This process's part of a global array, with its halo. `value` gives the value of the cell
    /// with a global index; halo cells inside the domain get theirs too, those outside hold zeros.
    /// On a periodic axis the halo has the cells of the other end.
    ///
    /// # Errors
    ///
    /// [`Argument`](Error::Argument) if the host has no memory for the part.
    #[track_caller]
    pub fn array<T: Element>(
        &self,
        mut value: impl FnMut([usize; N]) -> T,
    ) -> Result<SmartArray<T, Dim<[usize; N]>>> {
        Ok(SmartArray::from(self.part("Decomposition::array", self.rank(), &mut value)?))
    }

    /// The part of a process with its halo, of which each cell in the domain has its `value`.
    pub(crate) fn part<T: Element>(
        &self,
        operation: &'static str,
        rank: usize,
        value: &mut impl FnMut([usize; N]) -> T,
    ) -> Result<Array<T, Dim<[usize; N]>>> {
        let shape = self.blocks.shape_with_halo(rank);
        let mut cells = reserve(operation, shape)?;
        let mut local = [0; N];
        for _ in 0..shape.iter().product() {
            let global = self.blocks.global_index(rank, local);
            cells.push(global.map_or_else(T::zeroed, &mut *value));
            advance(&mut local, shape);
        }
        Ok(Array::from_shape_vec(dim(shape), cells).expect("one cell for each index"))
    }

    /// An array of zeros with the shape of this process's part and its halo. It has no memory until
    /// it is used.
    ///
    /// # Errors
    ///
    /// [`Argument`](Error::Argument) if the part has more bytes than an address space.
    #[track_caller]
    pub fn zeros<T: Element>(&self) -> Result<SmartArray<T, Dim<[usize; N]>>> {
        check_len::<T, N>("Decomposition::zeros", self.shape_with_halo())?;
        Ok(SmartArray::zeros(dim(self.shape_with_halo())))
    }

    /// This process's own cells of an array, without the halo.
    ///
    /// # Panics
    ///
    /// As slicing does, if the array has another shape than this process's part with its halo.
    #[track_caller]
    pub fn interior<'a, T: Element>(
        &self,
        array: &'a impl AsView<T, Dim<[usize; N]>>,
    ) -> SmartView<'a, T, Dim<[usize; N]>> {
        self.own().of(array)
    }

    /// This process's own cells of an array, to be written.
    ///
    /// # Panics
    ///
    /// As [`interior`](Self::interior).
    #[track_caller]
    pub fn interior_mut<'a, T: Element>(
        &self,
        array: &'a mut impl AsViewMut<T, Dim<[usize; N]>>,
    ) -> SmartViewMut<'a, T, Dim<[usize; N]>> {
        self.own().of_mut(array)
    }
}

impl<const N: usize> Cells<N>
where
    Dim<[usize; N]>: Dimension,
{
    /// These cells of an array.
    ///
    /// # Panics
    ///
    /// As slicing does, if the array is too small to have them.
    #[track_caller]
    pub fn of<'a, T: Element>(
        &self,
        array: &'a impl AsView<T, Dim<[usize; N]>>,
    ) -> SmartView<'a, T, Dim<[usize; N]>> {
        array.as_view().slice_each_axis_move(|axis| self.slice(axis.axis.index()))
    }

    /// These cells of an array, to be written.
    ///
    /// # Panics
    ///
    /// As [`of`](Self::of).
    #[track_caller]
    pub fn of_mut<'a, T: Element>(
        &self,
        array: &'a mut impl AsViewMut<T, Dim<[usize; N]>>,
    ) -> SmartViewMut<'a, T, Dim<[usize; N]>> {
        array.as_view_mut().slice_each_axis_move(|axis| self.slice(axis.axis.index()))
    }

    fn slice(&self, axis: usize) -> Slice {
        Slice::from(self.ranges()[axis].clone())
    }
}

impl<const N: usize> fmt::Debug for Decomposition<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decomposition")
            .field("rank", &self.rank())
            .field("offset", &self.offset())
            .field("local_shape", &self.local_shape())
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

/// Checks that memory can have as many elements as this shape has.
fn check_len<T, const N: usize>(operation: &'static str, shape: [usize; N]) -> Result<usize> {
    let mut nonzero = shape.iter().map(|len| (*len).max(1));
    let bytes = nonzero.try_fold(size_of::<T>(), usize::checked_mul);
    if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
        let text = format!(
            "an array of shape {shape:?} has more bytes than memory can; divide the global array \
             among more processes"
        );
        return Err(Error::Argument { operation, text });
    }
    Ok(shape.iter().product())
}

/// Memory for the elements of this shape.
pub(crate) fn reserve<T, const N: usize>(
    operation: &'static str,
    shape: [usize; N],
) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(check_len::<T, N>(operation, shape)?).map_err(|error| {
        let text = format!(
            "no memory for an array of shape {shape:?}: {error}; divide the global array among \
             more processes"
        );
        Error::Argument { operation, text }
    })?;
    Ok(elements)
}

/// The next index of a row-major array.
fn advance<const N: usize>(index: &mut [usize; N], shape: [usize; N]) {
    for axis in (0..N).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return;
        }
        index[axis] = 0;
    }
}

/// A shape, as `ndarray` takes it.
pub(crate) fn dim<const N: usize>(shape: [usize; N]) -> Dim<[usize; N]>
where
    Dim<[usize; N]>: Dimension,
{
    let mut dim = Dim::<[usize; N]>::zeros(N);
    dim.slice_mut().copy_from_slice(&shape);
    dim
}
