//! Launches on the tiles of a matrix, each with its border. The sizes are numbers of tiles.

use std::time::Instant;

use resident::ndarray::s;
use resident::{Device, Grid, Kernel, Stream};
use resident_benches::median;
use resident_benches::tiles::{TILE, Tiles, scattered};

use crate::gate::Gate;
use crate::{Line, Operation};

const COUNTS: &[usize] = &[4, 64, 256, 4_096, 16_384];

pub const LINES: &[Line] = &[
    line("launch on a tile with its border, one stream, tiles in order", |tiles| {
        launch(tiles, 1, false)
    }),
    line("launch on a tile with its border, one stream, tiles in random order", |tiles| {
        launch(tiles, 1, true)
    }),
    line("launch on a tile with its border, four streams, tiles in order", |tiles| {
        launch(tiles, 4, false)
    }),
    line("launch on a tile with its border, four streams, tiles in random order", |tiles| {
        launch(tiles, 4, true)
    }),
    line("launch on a tile with its border, and host() of the tile", launch_and_look),
];

const fn line(name: &'static str, operation: Operation) -> Line {
    Line { name, sizes: COUNTS, operation }
}

fn new(count: usize, stream: &Stream) -> Tiles {
    let kernel = Kernel::new("tile").host(|_grid, (_tile, _out)| ());
    Tiles::new(count, kernel, Grid::cover(1), stream)
}

/// Queues sweeps over all tiles, at least 4,096 launches, while no work runs. The launches of the
/// first two sweeps are not timed.
fn launch(count: usize, stream_count: usize, is_random: bool) -> f64 {
    let device = Device::cpu();
    let streams: Vec<Stream> =
        (0..stream_count).map(|_| device.new_stream().expect("a stream")).collect();
    let mut tiles = new(count, &streams[0]);
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
    let time = |batch: usize| {
        let elapsed = Gate::new().time_queueing(&streams[0], 1, || {
            (0..sweeps).for_each(|number| sweep(&mut tiles, 2 * batch + number));
        });
        streams.iter().for_each(|stream| stream.synchronize().expect("nothing failed"));
        elapsed / (sweeps * count) as f64
    };
    median((0..5).map(time).collect())
}

fn launch_and_look(count: usize) -> f64 {
    let stream = Device::cpu().new_stream().expect("a stream");
    let mut tiles = new(count, &stream);
    let time = |turn: usize| {
        let tile = turn % count;
        tiles.launch(0, tile, &stream);
        let (row, column) = tiles.corner(tile);
        let start = Instant::now();
        let part = tiles.arrays[1].slice(s![row..row + TILE, column..column + TILE]);
        std::hint::black_box(&*part.host().expect("copied"));
        start.elapsed().as_nanos() as f64
    };
    median(scattered(count.max(512)).into_iter().map(time).collect())
}
