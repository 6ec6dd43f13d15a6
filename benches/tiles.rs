//! Launches over the tiles of a matrix: each reads a tile of one array with a border of one
//! element, and updates the tile of another. The next sweep swaps the two.

use resident::ndarray::{Ix2, s};
use resident::{Grid, In, InOut, Kernel, SmartArray, Stream};

/// The rows and the columns of a tile.
pub const TILE: usize = 32;

pub type Matrix = SmartArray<f32, Ix2>;

/// Two matrices whose copies on the device are the newest, and a kernel that does nothing.
pub struct Tiles {
    pub arrays: [Matrix; 2],
    kernel: Kernel<(In<f32, Ix2>, InOut<f32, Ix2>)>,
    grid: Grid,
    pub per_side: usize,
}

impl Tiles {
    /// As many tiles as fit a square.
    ///
    /// # Panics
    ///
    /// If there is not enough memory.
    pub fn new(
        count: usize,
        kernel: Kernel<(In<f32, Ix2>, InOut<f32, Ix2>)>,
        grid: Grid,
        stream: &Stream,
    ) -> Self {
        let per_side = count.isqrt();
        let side = per_side * TILE;
        let arrays = std::array::from_fn(|_| {
            let mut matrix = Matrix::zeros((side, side));
            drop(matrix.gpu_mut_on(stream).expect("room"));
            matrix
        });
        Self { arrays, kernel, grid, per_side }
    }

    /// The first row and the first column of a tile.
    pub fn corner(&self, tile: usize) -> (usize, usize) {
        (tile / self.per_side * TILE, tile % self.per_side * TILE)
    }

    /// Launches on a tile.
    ///
    /// # Panics
    ///
    /// If the launch is refused.
    pub fn launch(&mut self, sweep: usize, tile: usize, stream: &Stream) {
        let (side, (row, column)) = (self.per_side * TILE, self.corner(tile));
        let [first, second] = &mut self.arrays;
        let (from, to) = if sweep.is_multiple_of(2) { (first, second) } else { (second, first) };
        let (top, left) = (row.saturating_sub(1), column.saturating_sub(1));
        let (bottom, right) = ((row + TILE + 1).min(side), (column + TILE + 1).min(side));
        let read = from.slice(s![top..bottom, left..right]);
        let mut write = to.slice_mut(s![row..row + TILE, column..column + TILE]);
        self.kernel.launch_on(stream, self.grid, (&read, &mut write)).expect("launched");
    }
}

/// A fixed order of the numbers below `count` that looks random.
pub fn scattered(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    for last in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}
