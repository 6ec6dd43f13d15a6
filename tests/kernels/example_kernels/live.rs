//! The kernels of `live`, and its steps with a watch, at small sizes.

use resident::ndarray::{Array2, Ix2, s};
use resident::{Grid, SmartArray};
use resident_example_programs::live::kernels::{Kernels, SPEED};
use resident_example_programs::live::picture;
use resident_example_programs::live::simulation::Simulation;

use crate::{Bench, pairs};

const SIZES: [(usize, usize); 6] = [(6, 8), (8, 6), (1, 1), (2, 9), (3, 3), (17, 33)];

fn heights(size: (usize, usize)) -> SmartArray<f32, Ix2> {
    let value = |(row, column)| ((row * 7 + column * 3) % 11) as f32;
    SmartArray::from(Array2::from_shape_fn(size, value))
}

fn grids(size: (usize, usize)) -> [Grid; 2] {
    [Grid::cover_2d(size, (8, 32)), Grid::cover_2d((size.0 + 20, size.1 + 40), (4, 16))]
}

#[test]
pub(crate) fn wave_survives_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.wave.prepare(device));
    for (one, other) in pairs(&SIZES) {
        for grid in grids(one) {
            let (now, before) = (&heights(one), &mut heights(other));
            bench.launch(one == other, &kernels.wave, grid, (now, before));
        }
    }
    bench.assert_counts(12, 60);
}

#[test]
pub(crate) fn drop_fills_any_size_and_leaves_the_border_at_zero() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.drop.prepare(device));
    for size in SIZES {
        for grid in grids(size) {
            let mut filled = SmartArray::uninit(size);
            bench.launch(true, &kernels.drop, grid, (1.0, 2.0, 3.0, &mut filled));
            let host = filled.host().expect("filled");
            assert_eq!(host.row(0).sum() + host.column(size.1 - 1).sum(), 0.0);
        }
    }
    bench.assert_counts(12, 0);
}

/// The reference: the same scheme, point by point.
fn stepped(now: &Array2<f32>, before: &Array2<f32>) -> Array2<f32> {
    let (rows, columns) = now.dim();
    let mut after = before.clone();
    for row in 1..rows - 1 {
        for column in 1..columns - 1 {
            let at = |down: usize, right: usize| now[[row + down - 1, column + right - 1]];
            let around = at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2) - 4.0 * at(1, 1);
            after[[row, column]] = 2.0 * at(1, 1) - before[[row, column]] + SPEED * around;
        }
    }
    after
}

#[test]
pub(crate) fn a_watched_run_shows_states_that_the_wave_had() {
    const SIZE: usize = 24;
    const STEPS: u64 = 200;
    let mut simulation = Simulation::new(SIZE).expect("a device");
    let start = simulation.heights().host().expect("computed").to_owned();
    let (mut states, mut now, mut before) = (vec![start.clone()], start.clone(), start);
    for _ in 0..STEPS {
        let after = stepped(&now, &before);
        (before, now) = (now, after);
        states.push(now.clone());
    }
    let live = simulation.watch_every(10).expect("it copies nothing");
    let looking = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while let Some(state) = live.changed().expect("no failure") {
            seen.push((2 * state.change(), state.to_owned()));
        }
        seen
    });
    let mut told = 0;
    simulation.run(STEPS, |done| told = done).expect("computed");
    assert_eq!(told, STEPS);
    drop(simulation);
    let seen = looking.join().expect("no panic");
    assert_eq!(seen.last().map(|(step, _)| *step), Some(STEPS), "the last state is seen");
    for (step, state) in &seen {
        let expected = &states[*step as usize];
        let difference = (state - expected).mapv(f32::abs);
        assert!(difference.iter().all(|d| *d < 1e-3), "step {step}");
    }
    println!("{} states of {STEPS} steps were seen", seen.len());
}

#[test]
fn pictures_have_the_size_that_was_asked_for() {
    let mut heights = Array2::<f32>::zeros((16, 16));
    heights.slice_mut(s![4..8, 4..8]).fill(0.2);
    let text = picture::text(&heights, 8, 3);
    assert_eq!((text.lines().count(), text.matches('▀').count()), (3, 18));
    assert_eq!(picture::text(&heights, 100, 100).lines().count(), 8);
    assert_eq!(picture::text(&heights, 0, 0), "");
    assert_eq!(picture::colour(0.0), [255, 255, 255]);
    let file = std::env::temp_dir().join(format!("resident-live-{}.png", std::process::id()));
    picture::write_png(&heights, &file).expect("written");
    let decoder = png_size(&file);
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!(decoder, (16, 16));
}

/// Width and height, from the header.
fn png_size(path: &std::path::Path) -> (u32, u32) {
    let bytes = std::fs::read(path).expect("readable");
    let number =
        |at: usize| bytes[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    assert_eq!(&bytes[1..4], b"PNG");
    (number(16), number(20))
}
