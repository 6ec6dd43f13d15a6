//! One scenario on the CUDA backend under many legal interleavings: a pipeline of pictures on four streams of two GPUs, and a plate cut in two whose halo
//! rows are exchanged by `assign`. Under a seed the stand-in driver runs nothing by itself: whoever waits runs ready work, in an order that is drawn. A
//! process has one seed and draws on: each run in it is another interleaving, and the same one in each process.
#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "common/driver.rs"]
mod child;

use std::collections::BTreeSet;

use child::{assert_success, code, in_a_process, take_ran};
use resident::ndarray::{Array2, ArrayView2, Axis, Ix2, concatenate, s};
use resident::{Device, Grid, In, InOut, Kernel, Out, Pending, Result, SmartArray, Stream};
use resident_stand_in::{self as driver, Settings};

/// Pictures that flow through the pipeline.
const PICTURES: u32 = 4;

/// Steps of the plate.
const STEPS: u32 = 3;

/// Processes, each with a seed of its own, and runs in each.
const SEEDS: u64 = 6;
const RUNS: usize = 60;

type Picture = SmartArray<u32, Ix2>;
type Change = (u32, InOut<u32, Ix2>);
type Transform = (u32, In<u32, Ix2>, Out<u32, Ix2>);

fn change(name: &'static str) -> Kernel<Change> {
    // SAFETY: what stands for it is a host function that touches the view's elements alone.
    unsafe { Kernel::<Change>::new(name).cuda(code(name)) }
}

fn transform(name: &'static str) -> Kernel<Transform> {
    let kernel = Kernel::<Transform>::new(name).require("both have one shape", |_grid, (_, x, y)| x.shape() == y.shape());
    // SAFETY: as for `change`; both views have one shape by the requirement.
    unsafe { kernel.cuda(code(name)) }
}

/// Each inner cell becomes a mix of itself and its neighbours above and below; the first and the last row are kept.
fn relaxed(from: ArrayView2<'_, u32>) -> Array2<u32> {
    let mut to = from.to_owned();
    for row in 1..from.nrows() - 1 {
        for column in 0..from.ncols() {
            let sum = from[[row - 1, column]].wrapping_add(from[[row, column]].wrapping_mul(3)).wrapping_add(from[[row + 1, column]]);
            to[[row, column]] = sum.wrapping_add(1);
        }
    }
    to
}

fn picture(number: u32) -> Array2<u32> {
    Array2::from_shape_fn((6, 5), |(row, column)| number * 1000 + (row * 5 + column) as u32)
}

/// What the pipeline makes of a picture, without this library.
fn processed(number: u32) -> Array2<u32> {
    let scaled = picture(number).mapv(|x| x.wrapping_mul(3).wrapping_add(number));
    let mut mirrored = scaled.slice(s![.., ..;-1]).to_owned();
    mirrored.slice_mut(s![..;2, 1..4]).mapv_inplace(|x| x.wrapping_add(7));
    mirrored.slice_mut(s![1..;2, ..]).mapv_inplace(|x| x.wrapping_mul(3).wrapping_add(100 + number));
    mirrored
}

/// Uploads, computing and downloads on a stream each; even rows are changed on the other device meanwhile, by the host for the last picture.
fn pipeline([up, one, down]: [&Stream; 3], other: &Stream) -> Result<Vec<Pending<Array2<u32>>>> {
    let (scale, mirror, add) = (change("scale"), transform("mirror"), change("add"));
    let mut answers = Vec::new();
    for number in 0..PICTURES {
        let (compute, aside) = if number % 2 == 0 { (one, other) } else { (other, one) };
        let (mut photo, mut soft) = (Picture::from(picture(number)), Picture::uninit((6, 5)));
        photo.prefetch(up)?;
        scale.launch_on(compute, Grid::cover(1), (number, &mut photo))?;
        mirror.launch_on(compute, Grid::cover(1), (number, &photo, &mut soft))?;
        let (mut even, mut odd) = soft.multi_slice_mut((s![..;2, 1..4], s![1..;2, ..]));
        scale.launch_on(compute, Grid::cover(1), (100 + number, &mut odd))?;
        if number + 1 == PICTURES {
            even.host_mut()?.mapv_inplace(|x| x.wrapping_add(7));
        } else {
            add.launch_on(aside, Grid::cover(1), (7, &mut even))?;
        }
        answers.push(soft.snapshot_on(down)?);
        // Both are dropped with work in flight.
    }
    Ok(answers)
}

fn plate() -> Array2<u32> {
    Array2::from_shape_fn((12, 4), |(row, column)| (row * row + 3 * column) as u32)
}

/// The plate in two halves that overlap by two rows, each on a device of its own.
fn heat(streams: [&Stream; 2]) -> Result<[Picture; 2]> {
    let (relax, whole) = (transform("relax"), plate());
    let half = |rows: std::ops::Range<usize>| Picture::from(whole.slice(s![rows, ..]).to_owned());
    let mut now = [half(0..7), half(5..12)];
    let mut next = [Picture::uninit((7, 4)), Picture::uninit((7, 4))];
    for step in 0..STEPS {
        for side in 0..2 {
            relax.launch_on(streams[side], Grid::cover(1), (1000 * (step + 1) + side as u32, &now[side], &mut next[side]))?;
        }
        std::mem::swap(&mut now, &mut next);
        let [upper, lower] = &mut now;
        upper.slice_mut(s![6, ..]).assign(&lower.slice(s![1, ..]))?;
        lower.slice_mut(s![0, ..]).assign(&upper.slice(s![5, ..]))?;
    }
    Ok(now)
}

fn run(devices: &[Device]) -> Result<(Vec<Array2<u32>>, Array2<u32>)> {
    let stream = |device: usize| devices[device].new_stream();
    let ([up, compute, down], aside, plates) = ([stream(0)?, stream(0)?, stream(0)?], stream(1)?, [stream(0)?, stream(1)?]);
    let halves = heat([&plates[0], &plates[1]])?;
    let answers = pipeline([&up, &compute, &down], &aside)?;
    let pictures = answers.into_iter().map(Pending::wait).collect::<Result<Vec<_>>>()?;
    let (upper, lower) = (halves[0].slice(s![..6, ..]).host()?, halves[1].slice(s![1.., ..]).host()?);
    let plate = concatenate(Axis(0), &[upper.view(), lower.view()]).expect("rows of one length");
    drop((upper, lower));
    drop(halves);
    devices.iter().try_for_each(Device::synchronize)?;
    Ok((pictures, plate))
}

/// Says to a process which seed is its own.
const SEED: &str = "RESIDENT_TEST_SEED";

#[test]
#[ignore = "run in processes of its own by the tests below"]
fn runs_under_a_seed() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let devices = child::open(Settings::new().devices(2).seed(seed), 2);
    let expected: (Vec<Array2<u32>>, _) =
        ((0..PICTURES).map(processed).collect(), (0..STEPS).fold(plate(), |plate, _| relaxed(plate.view())));
    let mut orders = BTreeSet::new();
    for number in 0..RUNS {
        let seen = run(&devices).unwrap_or_else(|error| panic!("run {number}: {error}"));
        assert_eq!(seen, expected, "seed {seed}, run {number}");
        assert_eq!(driver::take_hazards(), Vec::<String>::new(), "seed {seed}, run {number}");
        assert_eq!(driver::take_notes(), Vec::<String>::new(), "seed {seed}, run {number}");
        assert_eq!([0, 1].map(driver::memory_in_use), [0, 0], "seed {seed}, run {number}");
        let order = take_ran();
        println!("order {order:?}");
        orders.insert(order);
    }
    assert!(orders.len() > RUNS / 2, "{} orders of kernels in {RUNS} runs", orders.len());
}

/// The orders of kernels that the runs under a seed had.
fn orders(seed: u64) -> Vec<String> {
    let output = in_a_process("runs_under_a_seed", &[(SEED, &seed.to_string())]);
    assert_success(&output, &format!("seed {seed}"));
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("order")).map(str::to_owned).collect()
}

#[test]
fn hundreds_of_interleavings_give_the_results_of_plain_ndarray_without_a_hazard() {
    let all: BTreeSet<String> = (0..SEEDS).flat_map(orders).collect();
    assert!(all.len() > SEEDS as usize * RUNS / 2, "{} orders of kernels", all.len());
}

#[test]
fn one_seed_gives_the_same_orders_each_time() {
    let (one, again) = (orders(3), orders(3));
    assert_eq!(one.len(), RUNS);
    let differing = one.iter().zip(&again).position(|(one, again)| one != again);
    assert!(differing.is_none() && again.len() == RUNS, "run {differing:?} of {}", again.len());
}
