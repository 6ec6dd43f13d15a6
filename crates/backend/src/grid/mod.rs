//! The grid of a launch: the number of blocks and the number of threads per block, as in CUDA.

mod limits;

pub use self::limits::GridLimits;

/// Threads per block of [`Grid::cover`], the usual choice for memory-bound kernels.
const COVER_THREADS: u32 = 256;

/// Extents along x, y and z, where x is the fastest axis: CUDA's `dim3`. Converts from a number, a
/// pair or a triple; missing extents are 1.
///
/// ```
/// let threads = resident::Extent3::from((32, 8));
/// assert_eq!((threads.x, threads.y, threads.z), (32, 8, 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent3 {
    /// Extent along the fastest axis.
    pub x: u32,
    /// Extent along the second axis.
    pub y: u32,
    /// Extent along the slowest axis.
    pub z: u32,
}

impl Extent3 {
    /// The product of all three extents; `u64::MAX` if it is larger.
    ///
    /// ```
    /// assert_eq!(resident::Extent3::from((4, 5)).count(), 20);
    /// ```
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from(self.x).saturating_mul(u64::from(self.y)).saturating_mul(u64::from(self.z))
    }

    /// Whether an axis has length 0.
    #[inline]
    fn is_empty(self) -> bool {
        self.x == 0 || self.y == 0 || self.z == 0
    }
}

impl From<u32> for Extent3 {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Extent3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Extent3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

/// The blocks and threads of one launch, and the dynamic shared memory of each block in bytes.
///
/// A host body runs once for the whole grid and may ignore it. Device code reads it as CUDA's
/// `gridDim` and `blockDim`.
///
/// ```
/// use resident::Grid;
///
/// assert_eq!(Grid::cover(1000).blocks().x, 4);          // blocks of 256 threads
/// let image = Grid::cover_2d((768, 1024), (8, 32));     // rows and columns; those of a block
/// assert_eq!((image.blocks().x, image.blocks().y), (32, 96));
/// assert_eq!((image.threads().x, image.threads().y), (32, 8));
/// assert_eq!((Grid::from(1000), Grid::from((768, 1024))), (Grid::cover(1000), image));
/// ```
///
/// A launch takes a grid, or what it covers: a number of elements, or a shape of two or three axes
/// in ndarray's order, in blocks of 256 threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    blocks: Extent3,
    threads: Extent3,
    shared_bytes: u32,
    shape: GridShape,
}

/// How the grid was specified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum GridShape {
    Given,
    /// The grid covers elements. `surplus`: how many more threads than elements the grid has along
    /// x, y and z.
    Cover {
        is_auto: bool,
        surplus: [u32; 3],
    },
    /// The grid needs more than `u32::MAX` blocks along an axis.
    TooLarge,
}

impl Grid {
    /// One thread for each of `len` elements, in blocks of 256. The last block may have surplus
    /// threads: device code must compare its index with the length. A `len` of 0 is a legal, empty
    /// launch, which queues nothing.
    #[must_use]
    #[inline]
    pub fn cover(len: usize) -> Self {
        Self::covering([1, 1, len], [1, 1, COVER_THREADS])
    }

    /// One thread for each element of `(rows, columns)`, in blocks of `(rows, columns)`; columns
    /// lie along x. Both pairs are in ndarray's order, rows first. The example of [`Grid`] shows
    /// its use.
    #[must_use]
    #[inline]
    pub fn cover_2d(
        (rows, columns): (usize, usize),
        (block_rows, block_columns): (u32, u32),
    ) -> Self {
        Self::covering([1, rows, columns], [1, block_rows, block_columns])
    }

    /// One thread for each element of `(depth, rows, columns)`, with blocks in the same order;
    /// columns lie along x.
    ///
    /// ```
    /// let volume = resident::Grid::cover_3d((64, 100, 300), (1, 8, 32));
    /// let blocks = volume.blocks();
    /// assert_eq!((blocks.x, blocks.y, blocks.z), (10, 13, 64));
    /// ```
    #[must_use]
    #[inline]
    pub fn cover_3d(
        (depth, rows, columns): (usize, usize, usize),
        (block_depth, block_rows, block_columns): (u32, u32, u32),
    ) -> Self {
        Self::covering([depth, rows, columns], [block_depth, block_rows, block_columns])
    }

    /// This number of blocks with this number of threads each. Each may be a number, a pair or a
    /// triple, x first as in CUDA. If any number is zero, or larger than the device supports, the
    /// launch returns [`Error::Grid`](enum.Error.html#variant.Grid).
    ///
    /// ```
    /// use resident::Grid;
    ///
    /// let grid = Grid::new((16, 16), 256);
    /// assert_eq!((grid.blocks().count(), grid.threads().x), (256, 256));
    /// ```
    #[must_use]
    pub fn new(blocks: impl Into<Extent3>, threads: impl Into<Extent3>) -> Self {
        Self {
            blocks: blocks.into(),
            threads: threads.into(),
            shared_bytes: 0,
            shape: GridShape::Given,
        }
    }

    /// Requests dynamic shared memory for each block, in bytes: `extern __shared__` in CUDA C. The
    /// library opts in to more than 48 KiB if the GPU supports it. If it is more than the device
    /// has, the launch returns [`Error::Grid`](enum.Error.html#variant.Grid). Host bodies do not
    /// use it.
    ///
    /// ```
    /// let grid = resident::Grid::cover(10_000).shared_bytes(256 * 4);
    /// assert_eq!(grid.dynamic_shared_bytes(), 1024);
    /// ```
    #[must_use]
    pub fn shared_bytes(self, len_bytes: u32) -> Self {
        Self { shared_bytes: len_bytes, ..self }
    }

    /// Lets a GPU choose the block size of a covering grid by its occupancy calculator
    /// (`cuOccupancyMaxPotentialBlockSize`). The new grid covers the same elements, and the launch
    /// checks the requirements again for it. The embedded device
    /// ([`Device::cpu`](struct.Device.html#method.cpu)) keeps the given block size unless it is
    /// beyond its [limits](GridLimits). A grid made by [`new`](Self::new) is never changed.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// let double = Kernel::<(InOut<f32>,)>::new("double")
    ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let mut array = SmartArray::<f32, _>::ones(10_000);
    /// double.launch_on(&Device::cpu().stream(), Grid::cover(array.len()).auto(), (&mut array,))?;
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn auto(self) -> Self {
        match self.shape {
            GridShape::Cover { surplus, .. } => {
                Self { shape: GridShape::Cover { is_auto: true, surplus }, ..self }
            }
            GridShape::Given | GridShape::TooLarge => self,
        }
    }

    /// The number of blocks along each axis: CUDA's `gridDim`.
    #[must_use]
    #[inline]
    pub fn blocks(&self) -> Extent3 {
        self.blocks
    }

    /// The number of threads per block along each axis: CUDA's `blockDim`.
    #[must_use]
    #[inline]
    pub fn threads(&self) -> Extent3 {
        self.threads
    }

    /// Whether the grid has one thread for each element of this shape, which is in ndarray's order:
    /// the last axis lies along x. There may be surplus threads along its axes, but none along the
    /// others. `false` for more than three axes. A requirement of kernels whose threads write one
    /// element each.
    ///
    /// ```
    /// use resident::Grid;
    ///
    /// assert!(Grid::cover_2d((768, 1024), (8, 32)).covers(&[768, 1024]));
    /// assert!(!Grid::cover_2d((768, 1024), (8, 32)).covers(&[1024, 768]));
    /// assert!(!Grid::new((4, 2), 256).covers(&[1000]), "two threads for each element");
    /// ```
    #[must_use]
    pub fn covers(&self, shape: &[usize]) -> bool {
        let mut lens = shape.iter().rev().map(|len| *len as u64);
        let covers = |threads: u64| lens.next().map_or(threads == 1, |len| threads >= len);
        shape.len() <= 3
            && self.shape != GridShape::TooLarge
            && self.threads_along().into_iter().all(covers)
    }

    /// The dynamic shared memory of each block, in bytes, as set by
    /// [`shared_bytes`](Self::shared_bytes); 0 by default.
    #[must_use]
    #[inline]
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// The number of threads along each axis.
    #[doc(hidden)]
    #[inline]
    pub fn threads_along(&self) -> [u64; 3] {
        let (blocks, threads) = (self.blocks, self.threads);
        let pairs = [(blocks.x, threads.x), (blocks.y, threads.y), (blocks.z, threads.z)];
        pairs.map(|(blocks, threads)| u64::from(blocks) * u64::from(threads))
    }

    /// Whether the device chooses the block size.
    #[doc(hidden)]
    #[inline]
    pub fn is_auto(&self) -> bool {
        matches!(self.shape, GridShape::Cover { is_auto: true, .. })
    }

    /// A covering grid over the same elements, in blocks of at most `threads_max` threads and at
    /// most `block_max` along each axis. A one-dimensional grid gets longer blocks. Another grid
    /// keeps the width of its blocks, which become as high or deep as possible. A grid that does
    /// not cover elements is returned unchanged.
    #[doc(hidden)]
    pub fn in_blocks_of(self, threads_max: u32, block_max: Extent3) -> Self {
        const WARP: u64 = 32;
        let GridShape::Cover { surplus, .. } = self.shape else { return self };
        let (given, blocks) = (self.threads, self.blocks);
        let covered = |blocks: u32, threads: u32, surplus: u32| {
            (u64::from(blocks) * u64::from(threads)).saturating_sub(u64::from(surplus))
        };
        let [columns, rows, depth] = [
            covered(blocks.x, given.x, surplus[0]),
            covered(blocks.y, given.y, surplus[1]),
            covered(blocks.z, given.z, surplus[2]),
        ];
        // The smallest of the wanted size, the device's limit and the extent to cover, but at least
        // 1.
        let within =
            |wanted: u32, max: u32, len: u64| u64::from(wanted.min(max)).min(len).max(1) as u32;
        let (is_line, is_plane) =
            (rows == 1 && depth == 1 && given.y == 1 && given.z == 1, depth == 1 && given.z == 1);
        let x = within(
            if is_line { threads_max } else { given.x.min(threads_max) },
            block_max.x,
            columns.next_multiple_of(WARP),
        );
        let left = threads_max / x;
        let y = within(if is_plane { left } else { given.y.min(left) }, block_max.y, rows);
        let z = within(left / y, block_max.z, depth);
        let lens = [depth, rows, columns].map(|len| usize::try_from(len).unwrap_or(usize::MAX));
        Self { shared_bytes: self.shared_bytes, ..Self::covering(lens, [z, y, x]) }
    }

    /// Whether this is a covering grid over no elements, for which nothing is launched.
    #[doc(hidden)]
    #[inline]
    pub fn is_empty_cover(&self) -> bool {
        matches!(self.shape, GridShape::Cover { .. })
            && self.blocks.is_empty()
            && !self.threads.is_empty()
    }

    /// Why no device can launch this grid, and what to do instead. The text completes "the grid
    /// ..., which ...".
    #[doc(hidden)]
    #[inline]
    pub fn fault(&self) -> Option<&'static str> {
        let is_usual = !self.blocks.is_empty()
            && !self.threads.is_empty()
            && !matches!(self.shape, GridShape::TooLarge);
        if is_usual { None } else { self.find_fault() }
    }

    fn find_fault(&self) -> Option<&'static str> {
        if self.shape == GridShape::TooLarge {
            Some("needs more blocks along an axis than 32 bits can count; use larger blocks")
        } else if self.threads.is_empty() {
            Some("has blocks of 0 threads; use `Grid::cover` or numbers above zero")
        } else if self.blocks.is_empty() && !self.is_empty_cover() {
            Some("has 0 blocks; use `Grid::cover` or numbers above zero")
        } else {
            None
        }
    }

    /// `len` and `block` have the slowest axis first, as in ndarray.
    #[inline]
    fn covering(len: [usize; 3], block: [u32; 3]) -> Self {
        let [z, y, x] = block;
        let threads = Extent3 { x, y, z };
        match (along(len[2], x), along(len[1], y), along(len[0], z)) {
            (Some((x, over_x)), Some((y, over_y)), Some((z, over_z))) => {
                let shape = GridShape::Cover { is_auto: false, surplus: [over_x, over_y, over_z] };
                Self { blocks: Extent3 { x, y, z }, threads, shared_bytes: 0, shape }
            }
            _ => Self {
                blocks: Extent3 { x: u32::MAX, y: 1, z: 1 },
                threads,
                shared_bytes: 0,
                shape: GridShape::TooLarge,
            },
        }
    }
}

/// [`Grid::cover`].
impl From<usize> for Grid {
    #[inline]
    fn from(len: usize) -> Self {
        Self::cover(len)
    }
}

/// [`Grid::cover_2d`] of `(rows, columns)`, in blocks of 8 by 32.
impl From<(usize, usize)> for Grid {
    #[inline]
    fn from(shape: (usize, usize)) -> Self {
        Self::cover_2d(shape, (8, 32))
    }
}

/// [`Grid::cover_3d`] of `(depth, rows, columns)`, in blocks of 1 by 8 by 32.
impl From<(usize, usize, usize)> for Grid {
    #[inline]
    fn from(shape: (usize, usize, usize)) -> Self {
        Self::cover_3d(shape, (1, 8, 32))
    }
}

/// The number of blocks that cover `len` elements along an axis, and how many threads more than
/// elements they have. `None` if there are more than `u32::MAX` blocks.
#[inline]
fn along(len: usize, block: u32) -> Option<(u32, u32)> {
    let blocks = u32::try_from(len.div_ceil(block.max(1) as usize)).ok()?;
    Some((blocks, (u64::from(blocks) * u64::from(block)).saturating_sub(len as u64) as u32))
}

#[cfg(test)]
mod tests {
    use super::{Extent3, Grid};

    const BLOCK_MAX: Extent3 = Extent3 { x: 1024, y: 1024, z: 64 };

    fn triple(extent: Extent3) -> (u32, u32, u32) {
        (extent.x, extent.y, extent.z)
    }

    /// Blocks and threads of this grid after a device chose blocks of `threads_max` threads.
    fn chosen(grid: Grid, threads_max: u32) -> [(u32, u32, u32); 2] {
        let grid = grid.auto().in_blocks_of(threads_max, BLOCK_MAX);
        assert!(!grid.is_auto() && grid.fault().is_none(), "{grid:?}");
        [triple(grid.blocks()), triple(grid.threads())]
    }

    #[test]
    fn a_line_is_covered_by_longer_or_shorter_blocks() {
        assert_eq!(chosen(Grid::cover(10_000), 1024), [(10, 1, 1), (1024, 1, 1)]);
        assert_eq!(chosen(Grid::cover(10_000), 64), [(157, 1, 1), (64, 1, 1)]);
        assert_eq!(chosen(Grid::cover(1025), 1024), [(2, 1, 1), (1024, 1, 1)]);
        assert_eq!(
            chosen(Grid::cover(100), 1024),
            [(1, 1, 1), (128, 1, 1)],
            "no more warps than there is work for"
        );
    }

    #[test]
    fn a_plane_keeps_its_width_and_a_cube_its_rows() {
        assert_eq!(chosen(Grid::cover_2d((768, 1000), (8, 32)), 1024), [(32, 24, 1), (32, 32, 1)]);
        assert_eq!(chosen(Grid::cover_2d((3, 1000), (8, 32)), 1024), [(32, 1, 1), (32, 3, 1)]);
        assert_eq!(chosen(Grid::cover_3d((30, 20, 100), (1, 4, 32)), 512), [(4, 5, 8), (32, 4, 4)]);
        assert_eq!(
            chosen(Grid::cover_3d((1000, 1, 1), (1, 1, 1)), 1024),
            [(1, 1, 16), (1, 1, 64)],
            "64 along z is the most"
        );
    }

    #[test]
    fn every_element_stays_covered_and_no_block_is_idle() {
        for len in [1_usize, 31, 32, 33, 255, 256, 257, 4097] {
            for threads_max in [1, 32, 96, 1024] {
                let grid = Grid::cover(len).auto().in_blocks_of(threads_max, BLOCK_MAX);
                let (blocks, threads) = (u64::from(grid.blocks().x), u64::from(grid.threads().x));
                assert!(
                    threads <= u64::from(threads_max)
                        && blocks * threads >= len as u64
                        && (blocks - 1) * threads < len as u64,
                    "{grid:?}"
                );
            }
        }
    }

    #[test]
    fn a_product_beyond_64_bits_saturates() {
        let all = Extent3::from((u32::MAX, u32::MAX, u32::MAX));
        assert_eq!(all.count(), u64::MAX);
        assert!(Grid::new(all, all).fault().is_none(), "a device will refuse it");
    }

    #[test]
    fn a_given_grid_keeps_its_numbers() {
        let given = Grid::new(4, 128).auto();
        assert!(!given.is_auto());
        assert_eq!(given.in_blocks_of(1024, BLOCK_MAX), given);
        let shared = Grid::cover(5000).shared_bytes(4096).auto().in_blocks_of(512, BLOCK_MAX);
        assert_eq!(shared.dynamic_shared_bytes(), 4096);
    }
}
