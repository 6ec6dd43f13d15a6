//! What a launch of a compiled kernel costs beside one of a `.host` body.

use resident::{Device, Grid, InOut, Kernel, SmartArray};
use resident_benches::median;

use crate::seconds;

/// The launches of one round.
const LAUNCHES: usize = 2_000;

/// Prints the time of a launch of one thread with one array, until it has run.
pub(crate) fn report(rounds: usize) {
    let host = Kernel::<(InOut<f32>,)>::new("nothing").host(|_grid, (_x,)| ());
    // SAFETY: the kernel does nothing.
    let compiled = unsafe { Kernel::<(InOut<f32>,)>::new("nothing").cuda(crate::pairs::SOURCE) };
    let stream = Device::cpu().stream();
    let mut x = SmartArray::<f32, _>::ones(16);
    let mut launch = |kernel: &Kernel<(InOut<f32>,)>| {
        seconds(|| {
            for _ in 0..LAUNCHES {
                kernel.launch_on(&stream, Grid::new(1, 1), (&mut x,)).expect("launched");
            }
            stream.synchronize().expect("nothing failed");
        }) / LAUNCHES as f64
    };
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        let taken = [launch(&compiled), launch(&host)];
        if round > 0 {
            times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
        }
    }
    let [compiled, host] = times.map(|times| median(times) * 1e9);
    println!(
        "\n| launch | CUDA C, ns | `.host`, ns | more | target | met |\n|---|---|---|---|---|---|"
    );
    println!(
        "| one thread, until it has run | {compiled:.0} | {host:.0} | {:.0} | ≤ 1000 | {} |",
        compiled - host,
        if compiled - host <= 1000.0 { "yes" } else { "**no**" },
    );
}
