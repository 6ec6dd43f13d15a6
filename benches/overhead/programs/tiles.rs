//! Launches over the tiles of a matrix.

use resident::{CudaSource, Grid, Kernel, Stream};

use super::kernels::THREADS;
use super::matrices::{Tiles, scattered};
use super::ours::{Program, gpu};

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

/// A launch on the next tile, which uses the streams in turn.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn launch(count: usize, stream_count: usize, is_random: bool) -> Program {
    let device = gpu();
    let streams: Vec<Stream> =
        (0..stream_count).map(|_| device.new_stream().expect("a stream")).collect();
    // SAFETY: the free driver runs no code.
    let kernel = unsafe { Kernel::new("tile").cuda(CudaSource::ptx(PTX)) };
    let mut tiles = Tiles::new(count, kernel, Grid::new(1, THREADS), &streams[0]);
    let order = if is_random { scattered(count) } else { (0..count).collect() };
    let mut turn = 0;
    let mut launch = move || {
        tiles.launch(turn / count, order[turn % count], &streams[turn % stream_count]);
        turn += 1;
    };
    // Two sweeps divide the states of both arrays into tiles.
    (0..2 * count).for_each(|_| launch());
    Box::new(launch)
}
