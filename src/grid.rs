//! The grid of a launch: how many blocks of how many threads, as CUDA counts them.

/// Threads in a block of [`Grid::cover`], the usual choice for memory-bound kernels.
const COVER_THREADS: u32 = 256;

/// Extents along x, y and z, x being the fastest. Made from a number, a pair or a triple.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent3 {
    /// Along the fastest axis.
    pub x: u32,
    /// Along the second axis.
    pub y: u32,
    /// Along the slowest axis.
    pub z: u32,
}

impl Extent3 {
    /// The product of all three.
    ///
    /// ```
    /// assert_eq!(resident::Extent3::from((4, 5)).count(), 20);
    /// ```
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from(self.x) * u64::from(self.y) * u64::from(self.z)
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

/// Blocks and threads of one launch, and the shared memory of each block in bytes.
///
/// A host body is run once for the whole grid and may ignore it; device code finds it in CUDA's `gridDim` and `blockDim`.
///
/// ```
/// use resident::Grid;
///
/// assert_eq!(Grid::cover(1000).blocks().x, 4);                       // blocks of 256 threads
/// let image = Grid::cover_2d((768, 1024), (8, 32));                  // rows, columns; rows and columns of a block
/// assert_eq!((image.blocks().x, image.blocks().y), (32, 96));
/// assert_eq!((image.threads().x, image.threads().y), (32, 8));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    blocks: Extent3,
    threads: Extent3,
    shared_bytes: u32,
    shape: GridShape,
}

/// Where a grid's numbers come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum GridShape {
    Given,
    Cover {
        auto: bool,
    },
    /// More blocks than a grid can count.
    TooLarge,
}

impl Grid {
    /// One thread for each of `len` elements, in blocks of 256. A `len` of 0 is a legal, empty launch: nothing is queued.
    #[must_use]
    pub fn cover(len: usize) -> Self {
        Self::covering([1, 1, len], [1, 1, COVER_THREADS])
    }

    /// One thread for each of `(rows, columns)`, in blocks of `(rows, columns)`; columns lie along x.
    #[must_use]
    pub fn cover_2d((rows, columns): (usize, usize), (block_rows, block_columns): (u32, u32)) -> Self {
        Self::covering([1, rows, columns], [1, block_rows, block_columns])
    }

    /// One thread for each of `(depth, rows, columns)`, in blocks of the same order; columns lie along x.
    #[must_use]
    pub fn cover_3d((depth, rows, columns): (usize, usize, usize), (block_depth, block_rows, block_columns): (u32, u32, u32)) -> Self {
        Self::covering([depth, rows, columns], [block_depth, block_rows, block_columns])
    }

    /// So many blocks of so many threads: numbers, pairs or triples, x first as in CUDA. A zero is an error of the launch.
    #[must_use]
    pub fn new(blocks: impl Into<Extent3>, threads: impl Into<Extent3>) -> Self {
        Self { blocks: blocks.into(), threads: threads.into(), shared_bytes: 0, shape: GridShape::Given }
    }

    /// Dynamic shared memory of each block, in bytes.
    #[must_use]
    pub fn shared_bytes(self, len_bytes: u32) -> Self {
        Self { shared_bytes: len_bytes, ..self }
    }

    /// Lets a device that can tell choose the block size of a covering grid. The embedded device keeps the one given.
    #[must_use]
    pub fn auto(self) -> Self {
        match self.shape {
            GridShape::Cover { .. } => Self { shape: GridShape::Cover { auto: true }, ..self },
            GridShape::Given | GridShape::TooLarge => self,
        }
    }

    /// Blocks along each axis.
    #[must_use]
    pub fn blocks(&self) -> Extent3 {
        self.blocks
    }

    /// Threads of a block along each axis.
    #[must_use]
    pub fn threads(&self) -> Extent3 {
        self.threads
    }

    /// Dynamic shared memory of each block, in bytes.
    #[must_use]
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// A covering grid over nothing, which launches nothing.
    pub(crate) fn is_empty_cover(&self) -> bool {
        matches!(self.shape, GridShape::Cover { .. }) && self.blocks.count() == 0 && self.threads.count() != 0
    }

    /// What makes this grid impossible on any device, if anything does.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.shape == GridShape::TooLarge {
            Some("needs more blocks along an axis than 32 bits can count")
        } else if self.threads.count() == 0 {
            Some("has blocks of 0 threads")
        } else if self.blocks.count() == 0 && !self.is_empty_cover() {
            Some("has 0 blocks")
        } else {
            None
        }
    }

    /// Lengths and blocks are given slowest axis first, as ndarray counts.
    fn covering(len: [usize; 3], block: [u32; 3]) -> Self {
        let blocks = std::array::from_fn(|axis| u32::try_from(len[axis].div_ceil((block[axis] as usize).max(1))));
        let [z, y, x] = block;
        let threads = Extent3 { x, y, z };
        match blocks {
            [Ok(z), Ok(y), Ok(x)] => {
                Self { blocks: Extent3 { x, y, z }, threads, shared_bytes: 0, shape: GridShape::Cover { auto: false } }
            }
            _ => Self { blocks: Extent3 { x: u32::MAX, y: 1, z: 1 }, threads, shared_bytes: 0, shape: GridShape::TooLarge },
        }
    }
}
