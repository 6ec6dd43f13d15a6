//! Launches over the tiles of a matrix: each reads a tile of one array with a border of one
//! element, and updates the tile of another. The next sweep swaps the two.

use resident::ndarray::{Ix2, s};
use resident::{CudaSource, Grid, In, InOut, Kernel, SmartArray, Stream};

use super::kernels::THREADS;
use super::ours::{Program, gpu};

const TILE: usize = 32;

/// Each view is an address, two lengths and two strides.
const PTX: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry tile(
.param .align 8 .b8 tile_param_0[40],
.param .align 8 .b8 tile_param_1[40]
)
{
ret;
}
";

type Matrix = SmartArray<f32, Ix2>;

struct Tiles {
    arrays: [Matrix; 2],
    kernel: Kernel<(In<f32, Ix2>, InOut<f32, Ix2>)>,
    streams: Vec<Stream>,
    order: Vec<usize>,
    per_side: usize,
    turn: usize,
}

/// A launch on the next tile, which uses the streams in turn.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn launch(count: usize, stream_count: usize, is_random: bool) -> Program {
    let device = gpu();
    let streams: Vec<Stream> =
        (0..stream_count).map(|_| device.new_stream().expect("a stream")).collect();
    let per_side = count.isqrt();
    let side = per_side * TILE;
    let arrays = std::array::from_fn(|_| {
        let mut matrix = Matrix::zeros((side, side));
        drop(matrix.gpu_mut_on(&streams[0]).expect("room"));
        matrix
    });
    // SAFETY: the free driver runs no code.
    let kernel = unsafe { Kernel::new("tile").cuda(CudaSource::ptx(PTX)) };
    let order = if is_random { scattered(count) } else { (0..count).collect() };
    let mut tiles = Tiles { arrays, kernel, streams, order, per_side, turn: 0 };
    // Two sweeps divide the states of both arrays into tiles.
    (0..2 * count).for_each(|_| tiles.launch());
    Box::new(move || tiles.launch())
}

impl Tiles {
    fn launch(&mut self) {
        let (count, side) = (self.order.len(), self.per_side * TILE);
        let (sweep, tile) = (self.turn / count, self.order[self.turn % count]);
        let stream = &self.streams[self.turn % self.streams.len()];
        self.turn += 1;
        let (row, column) = (tile / self.per_side * TILE, tile % self.per_side * TILE);
        let [first, second] = &mut self.arrays;
        let (from, to) = if sweep.is_multiple_of(2) { (first, second) } else { (second, first) };
        let (top, left) = (row.saturating_sub(1), column.saturating_sub(1));
        let (bottom, right) = ((row + TILE + 1).min(side), (column + TILE + 1).min(side));
        let read = from.slice(s![top..bottom, left..right]);
        let mut write = to.slice_mut(s![row..row + TILE, column..column + TILE]);
        let grid = Grid::new(1, THREADS);
        self.kernel.launch_on(stream, grid, (&read, &mut write)).expect("a launch");
    }
}

/// A fixed order of the numbers below `count` that looks random.
fn scattered(count: usize) -> Vec<usize> {
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
