//! Runs one scenario under hundreds of legal interleavings: four streams on one device and two on
//! another, a pipeline of pictures with uploads, computation and downloads on separate streams, and
//! a plate cut in two whose halo rows `assign` exchanges.
//!
//! The tests of the embedded device prove that the race check finds unordered accesses. They cannot
//! be provoked here, because the safe interface always orders work.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::environment::asked;
use crate::pictures::{
    PICTURES, Picture, Transform, cooled, heat, joined, picture, processed, relaxed,
};
use support::prelude::*;

/// `RESIDENT_SWEEP_SEEDS` sets another number.
const SEEDS: u64 = 300;

type Ran = Arc<Mutex<Vec<u32>>>;

/// Kernels that record the tags that they get, in the order in which they run.
struct Kernels {
    scale: Kernel<(u32, InOut<u32>)>,
    rows: Kernel<(u32, InOut<u32, Ix2>)>,
    raise: Kernel<(u32, InOut<u32, Ix2>)>,
    mirror: Kernel<Transform>,
    relax: Kernel<Transform>,
}

impl Kernels {
    fn new(ran: &Ran) -> Self {
        let note = |ran: &Ran| {
            let ran = Arc::clone(ran);
            move |tag| ran.lock().expect("no body panics").push(tag)
        };
        let (scale, rows, raise) = (note(ran), note(ran), note(ran));
        let (mirror, relax) = (note(ran), note(ran));
        Self {
            scale: Kernel::<(u32, InOut<u32>)>::new("scale").host(move |_grid, (tag, x)| {
                scale(tag);
                x.iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(tag));
            }),
            rows: Kernel::<(u32, InOut<u32, Ix2>)>::new("rows").host(move |_grid, (tag, mut x)| {
                rows(tag);
                x.mapv_inplace(|x| x.wrapping_mul(3).wrapping_add(tag));
            }),
            raise: Kernel::<(u32, InOut<u32, Ix2>)>::new("raise").host(
                move |_grid, (by, mut x)| {
                    raise(by);
                    x.mapv_inplace(|x| x.wrapping_add(by));
                },
            ),
            mirror: Kernel::<Transform>::new("mirror").host(move |_grid, (tag, from, mut to)| {
                mirror(tag);
                to.assign(&from.slice(s![.., ..;-1]));
            }),
            relax: Kernel::<Transform>::new("relax").host(move |_grid, (tag, from, mut to)| {
                relax(tag);
                to.assign(&relaxed(from));
            }),
        }
    }
}

/// Uploads, computation and downloads, each on its own stream. Meanwhile even rows are changed on
/// the other device, or by the host for the last picture. Only the host's own access waits; the
/// results are still in flight at the end.
fn pipeline(
    kernels: &Kernels,
    [up, one, down]: [&Stream; 3],
    other: &Stream,
) -> Result<Vec<Pending<Array2<u32>>>> {
    let mut answers = Vec::new();
    for number in 0..PICTURES {
        let (compute, aside) = if number % 2 == 0 { (one, other) } else { (other, one) };
        let mut photo: Picture = SmartArray::from(picture(number)).named(format!("photo {number}"));
        let mut soft = Picture::uninit((6, 5)).named(format!("soft {number}"));
        photo.prefetch(up)?;
        kernels.scale.launch_on(compute, Grid::cover(1), (number, &mut photo))?;
        kernels.mirror.launch_on(compute, Grid::cover(1), (number, &photo, &mut soft))?;
        let (mut even, mut odd) = soft.multi_slice_mut((s![..;2, 1..4], s![1..;2, ..]));
        kernels.rows.launch_on(compute, Grid::cover(1), (100 + number, &mut odd))?;
        if number + 1 == PICTURES {
            even.host_mut()?.mapv_inplace(|x| x.wrapping_add(7));
        } else {
            kernels.raise.launch_on(aside, Grid::cover(1), (7, &mut even))?;
        }
        answers.push(soft.snapshot_on(down)?);
        // The two arrays are dropped while their work is in flight.
    }
    Ok(answers)
}

/// The results of a run, the order in which bodies ran, and the calls of each device as text.
struct Run {
    pictures: Vec<Array2<u32>>,
    plate: Array2<u32>,
    order: Vec<u32>,
    calls: Vec<String>,
}

fn run(seed: u64) -> Result<Run> {
    let devices = [0, 1].map(|_| Device::emulated(Emulation::new().seed(seed).poison(true)));
    let three = || {
        Ok::<_, Error>([
            devices[0].new_stream()?,
            devices[0].new_stream()?,
            devices[0].new_stream()?,
        ])
    };
    let ([up, compute, down], aside) = (three()?, devices[1].new_stream()?);
    let plates = [devices[0].new_stream()?, devices[1].new_stream()?];
    let ran = Ran::default();
    let kernels = Kernels::new(&ran);
    let halves = heat(&kernels.relax, [&plates[0], &plates[1]])?;
    let answers = pipeline(&kernels, [&up, &compute, &down], &aside)?;
    let pictures = answers.into_iter().map(Pending::wait).collect::<Result<Vec<_>>>()?;
    let plate = joined(&halves)?;
    drop(halves);
    support::watched::assert_nothing_left(&devices);
    let calls =
        devices.iter().flat_map(|device| device.emulation().expect("an emulated device").calls());
    let calls = calls.map(|call| call.to_string()).collect();
    let order = ran.lock().expect("no body panics").clone();
    Ok(Run { pictures, plate, order, calls })
}

#[test]
fn seeds_of_interleavings_give_the_results_of_plain_ndarray_without_a_hazard() -> Result<()> {
    let (pictures, plate): (Vec<_>, _) = ((0..PICTURES).map(processed).collect(), cooled());
    let (mut orders, seeds) = (BTreeSet::new(), asked("RESIDENT_SWEEP_SEEDS", SEEDS));
    for seed in 0..seeds {
        let run = run(seed)?;
        assert_eq!(run.pictures, pictures, "seed {seed}");
        assert_eq!(run.plate, plate, "seed {seed}");
        orders.insert(run.order);
    }
    assert!(orders.len() as u64 > seeds / 2, "{} orders of bodies in {seeds} runs", orders.len());
    Ok(())
}

#[test]
fn one_seed_gives_the_same_calls_and_the_same_order_each_time() -> Result<()> {
    let mut programs = BTreeSet::new();
    for seed in 0..50 {
        let (one, again) = (run(seed)?, run(seed)?);
        assert_eq!(one.calls, again.calls, "seed {seed}");
        assert_eq!(one.order, again.order, "seed {seed}");
        programs.insert(one.order);
    }
    assert!(programs.len() > 1, "all seeds gave one order");
    Ok(())
}
