//! Launches over the tiles of a matrix: each reads a tile of one array with a border of one
//! element, and updates the tile of another. The sizes are numbers of tiles.

use std::time::Instant;

use resident::ndarray::{Ix2, s};
use resident::{Device, Grid, In, InOut, Kernel, SmartArray, Stream};

use crate::gate::Gate;
use crate::{Line, scattered};

const TILE: usize = 32;
const COUNTS: &[usize] = &[4, 64, 256, 4_096, 16_384];

pub const LINES: &[Line] = &[
    Line {
        name: "launch on a tile with its border, one stream, tiles in order",
        sizes: COUNTS,
        operation: |tiles| launch(tiles, 1, false),
    },
    Line {
        name: "launch on a tile with its border, one stream, tiles in random order",
        sizes: COUNTS,
        operation: |tiles| launch(tiles, 1, true),
    },
    Line {
        name: "launch on a tile with its border, four streams, tiles in order",
        sizes: COUNTS,
        operation: |tiles| launch(tiles, 4, false),
    },
    Line {
        name: "launch on a tile with its border, four streams, tiles in random order",
        sizes: COUNTS,
        operation: |tiles| launch(tiles, 4, true),
    },
    Line {
        name: "launch on a tile with its border, and host() of the tile",
        sizes: COUNTS,
        operation: launch_and_look,
    },
];

type Matrix = SmartArray<f32, Ix2>;

/// Two matrices whose copies on the device are the newest, and a kernel that does nothing.
struct Tiles {
    arrays: [Matrix; 2],
    kernel: Kernel<(In<f32, Ix2>, InOut<f32, Ix2>)>,
    per_side: usize,
}

impl Tiles {
    fn new(count: usize, stream: &Stream) -> Self {
        let per_side = count.isqrt();
        let side = per_side * TILE;
        let arrays = std::array::from_fn(|_| {
            let mut matrix = Matrix::zeros((side, side));
            drop(matrix.gpu_mut_on(stream).expect("room"));
            matrix
        });
        let kernel = Kernel::new("tile").host(|_grid, (_tile, _out)| ());
        Self { arrays, kernel, per_side }
    }

    fn launch(&mut self, sweep: usize, tile: usize, stream: &Stream) {
        let side = self.per_side * TILE;
        let (row, column) = (tile / self.per_side * TILE, tile % self.per_side * TILE);
        let [first, second] = &mut self.arrays;
        let (from, to) = if sweep.is_multiple_of(2) { (first, second) } else { (second, first) };
        let (top, left) = (row.saturating_sub(1), column.saturating_sub(1));
        let (bottom, right) = ((row + TILE + 1).min(side), (column + TILE + 1).min(side));
        let read = from.slice(s![top..bottom, left..right]);
        let mut write = to.slice_mut(s![row..row + TILE, column..column + TILE]);
        self.kernel.launch_on(stream, Grid::cover(1), (&read, &mut write)).expect("launched");
    }
}

/// Queues sweeps over all tiles, at least 4,096 launches, while no work runs. The launches of the
/// first two sweeps are not timed.
fn launch(count: usize, stream_count: usize, is_random: bool) -> f64 {
    let device = Device::cpu();
    let streams: Vec<Stream> =
        (0..stream_count).map(|_| device.new_stream().expect("a stream")).collect();
    let mut tiles = Tiles::new(count, &streams[0]);
    let order = if is_random { scattered(count) } else { (0..count).collect() };
    let sweep = |tiles: &mut Tiles, number: usize| {
        for (turn, tile) in order.iter().enumerate() {
            tiles.launch(number, *tile, &streams[turn % stream_count]);
        }
    };
    sweep(&mut tiles, 0);
    sweep(&mut tiles, 1);
    streams.iter().for_each(|stream| stream.synchronize().expect("nothing failed"));
    let sweeps = (4_096 / count).max(2);
    let mut times: Vec<f64> = (0..5)
        .map(|batch| {
            let gate = Gate::new();
            let elapsed = gate.time_queueing(&streams[0], 1, || {
                for number in 0..sweeps {
                    sweep(&mut tiles, 2 * batch + number);
                }
            });
            streams.iter().for_each(|stream| stream.synchronize().expect("nothing failed"));
            elapsed / (sweeps * count) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn launch_and_look(count: usize) -> f64 {
    let stream = Device::cpu().new_stream().expect("a stream");
    let mut tiles = Tiles::new(count, &stream);
    let mut times: Vec<f64> = scattered(count.max(512))
        .into_iter()
        .map(|turn| {
            let tile = turn % count;
            tiles.launch(0, tile, &stream);
            let (row, column) = (tile / tiles.per_side * TILE, tile % tiles.per_side * TILE);
            let start = Instant::now();
            let part = tiles.arrays[1].slice(s![row..row + TILE, column..column + TILE]);
            std::hint::black_box(&*part.host().expect("copied"));
            start.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
