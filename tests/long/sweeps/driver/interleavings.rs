//! One scenario on the GPU backend under many legal interleavings. The scenario is a pipeline of
//! pictures on four streams of two GPUs, and a plate that is cut in two and whose halo rows
//! `assign` exchanges. Under a seed the stand-in driver runs work only when a thread waits, in an
//! order drawn from the seed. A process has one seed for all its runs. Its runs are different
//! interleavings, and another process with the same seed repeats them. Each of the two stand-ins,
//! `super::face`, has its own copy.

use std::collections::BTreeSet;

use crate::pictures::{PICTURES, Picture, Transform, cooled, heat, joined, picture, processed};

use super::kernels::{self, code, take_ran};
use super::{assert_nothing_left, driver};
use support::prelude::*;

/// The number of processes, each with its own seed, and the number of runs in each.
const SEEDS: u64 = 6;
const RUNS: usize = 60;

type Change = (u32, InOut<u32, Ix2>);

fn change(name: &'static str) -> Kernel<Change> {
    // SAFETY: a host function replaces it, which accesses only the view's elements.
    unsafe { Kernel::<Change>::new(name).cuda(code(name)) }
}

fn transform(name: &'static str) -> Kernel<Transform> {
    let kernel = Kernel::<Transform>::new(name)
        .require("both have one shape", |_grid, (_, x, y)| x.shape() == y.shape());
    // SAFETY: as for `change`; by the requirement both views have one shape.
    unsafe { kernel.cuda(code(name)) }
}

/// Uploads, computation and downloads, each on its own stream. Meanwhile even rows are changed on
/// the other device, or by the host for the last picture.
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
        // The two arrays are dropped while their work is in flight.
    }
    Ok(answers)
}

fn run(devices: &[Device]) -> Result<(Vec<Array2<u32>>, Array2<u32>)> {
    let stream = |device: usize| devices[device].new_stream();
    let ([up, compute, down], aside, plates) =
        ([stream(0)?, stream(0)?, stream(0)?], stream(1)?, [stream(0)?, stream(1)?]);
    let halves = heat(&transform("relax"), [&plates[0], &plates[1]])?;
    let answers = pipeline([&up, &compute, &down], &aside)?;
    let pictures = answers.into_iter().map(Pending::wait).collect::<Result<Vec<_>>>()?;
    let plate = joined(&halves)?;
    drop(halves);
    devices.iter().try_for_each(Device::synchronize)?;
    Ok((pictures, plate))
}

/// This variable gives a child process its seed.
const SEED: &str = "RESIDENT_TEST_SEED";

// A process has one driver and the driver one seed, so each seed needs a separate process. The test
// below starts this program again, with `--exact`, `--include-ignored` and the name of the next
// test.

#[test]
#[ignore = "run in processes of its own by the tests below"]
fn runs_under_a_seed() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let settings = driver::settings().devices(2).page_bytes(seed % 3 * 16).seed(seed);
    let devices = kernels::open(settings, 2);
    let expected: (Vec<Array2<u32>>, _) = ((0..PICTURES).map(processed).collect(), cooled());
    let mut orders = BTreeSet::new();
    for number in 0..RUNS {
        let seen = run(&devices).unwrap_or_else(|error| panic!("run {number}: {error}"));
        assert_eq!(seen, expected, "seed {seed}, run {number}");
        assert_nothing_left(&format!("seed {seed}, run {number}"));
        let order = take_ran();
        println!("order {order:?}");
        orders.insert(order);
    }
    assert!(orders.len() > RUNS / 2, "{} orders of kernels in {RUNS} runs", orders.len());
}

/// The orders in which kernels ran under a seed.
fn orders(seed: u64) -> Vec<String> {
    let output = own_process::run(test_name!(runs_under_a_seed), &[(SEED, &seed.to_string())]);
    assert_success(&output, &format!("seed {seed}"));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.starts_with("order"))
        .map(str::to_owned)
        .collect()
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
