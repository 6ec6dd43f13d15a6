//! Two programs with host code between their launches, each written three times: with this library;
//! with cudarc by a careful programmer, who copies the rows and columns that host code needs; and
//! with cudarc in a hurry, so that whole arrays are copied for them (`gpu/programs`).
//!
//! `cargo bench --bench baselines` prints a table for each. It runs on the stand-in driver, which
//! counts copies and calls exactly, copies by `memcpy` and runs the kernels on the host. So the
//! bytes and calls are those on a GPU, and the measured times are not. The time on the link is
//! modelled: each copy takes 5 us, and 25 GB take 1 s.

use std::time::{Duration, Instant};

use resident::ndarray::Array2;
use resident::{Device, Link};
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::programs::{NAMES, exposures, photograph};
use resident_benches::gpu::stand_in::{self, Traffic};
use resident_stand_in::Settings;

const LINK: Link = Link { bytes_per_second: 25e9, latency: Duration::from_micros(5) };

/// Runs before the measured ones, which are not measured.
const WARM_UP: usize = 3;
const RUNS: usize = 51;

fn main() -> Outcome {
    // `cargo test --benches` passes `--test`: then each program runs, but nothing is measured.
    let runs = if std::env::args().any(|argument| argument == "--test") { 1 } else { RUNS };
    stand_in::load(Settings::new())?;
    let gpu = Device::cuda(0)?;
    let photo = photograph::portrait()?;
    compare("photograph", photograph::programs(&gpu, photo.dim())?, &photo, runs)?;
    let picture = Array2::zeros(exposures::SHAPE);
    compare("exposures", exposures::programs(&gpu)?, &picture, runs)
}

/// Counts one run of each program, measures the programs by turns, and prints both.
fn compare<Input: Clone, Output: PartialEq>(
    name: &str,
    programs: [impl Fn(Input) -> Outcome<Output>; 3],
    input: &Input,
    runs: usize,
) -> Outcome {
    let expected = programs[0](input.clone())?;
    let mut traffic = Vec::new();
    for program in &programs {
        for _ in 0..WARM_UP {
            program(input.clone())?;
        }
        stand_in::take_traffic();
        let output = program(input.clone())?;
        traffic.push(stand_in::take_traffic());
        if output != expected {
            return Err(Fault::new(format_args!("{name}: the programs' results differ")));
        }
    }
    let mut times = [(); 3].map(|()| Vec::with_capacity(runs));
    for run in 0..runs {
        for index in (0..3).map(|turn| (run + turn) % 3) {
            let input = input.clone();
            let started = Instant::now();
            let output = programs[index](input)?;
            times[index].push(started.elapsed().as_secs_f64() * 1e3);
            drop(output);
            stand_in::take_traffic();
        }
    }
    print(name, &traffic, times);
    Ok(())
}

fn print(name: &str, traffic: &[Traffic], times: [Vec<f64>; 3]) {
    println!("\n| {name} | bytes | copies | driver calls | link, modelled | in all, measured |");
    println!("|---|---|---|---|---|---|");
    for ((name, traffic), mut times) in NAMES.iter().zip(traffic).zip(times) {
        let Traffic { bytes, copies, calls } = traffic;
        let link_us = 1e6 * link_time(*traffic).as_secs_f64();
        times.sort_by(f64::total_cmp);
        let [quarter, half] = [4, 2].map(|part| times[times.len() / part]);
        println!(
            "| {name} | {bytes} | {copies} | {calls} | {link_us:.0} us | {half:.2} ms; a quarter \
             below {quarter:.2} |"
        );
    }
}

/// The latency of each copy, and the time for all bytes.
fn link_time(traffic: Traffic) -> Duration {
    let bytes = LINK.transfer_time(traffic.bytes) - LINK.latency;
    LINK.latency * u32::try_from(traffic.copies).unwrap_or(u32::MAX) + bytes
}
