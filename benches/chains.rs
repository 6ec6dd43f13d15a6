//! Eight launches on 64 elements on the embedded device: as launches, as a chain, as a chain that
//! repeats, and as one launch whose body loops. Prints the time of a step, from the first call to
//! the end of the work: `cargo bench -p resident-benches --bench chains`.

use std::time::Instant;

use resident::ndarray::Ix1;
use resident::{Chain, Device, InOut, Kernel, Result, SmartArray, Stream};

/// Launches of a chain.
const STEPS: usize = 8;
/// Chains between two waits of the host, and such rounds. The median of the rounds is printed.
const CHAINS: usize = 500;
const ROUNDS: usize = 101;
const LEN: usize = 64;

type Numbers = SmartArray<f32, Ix1>;

fn main() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let [mut a, mut b, mut c] = [(); 3].map(|()| Numbers::zeros(LEN));
    let add = add();
    let chain = Chain::<(f32, InOut<f32, Ix1>)>::record("eight", |r, (k, a)| {
        (0..STEPS).try_for_each(|_| r.launch(&add, 1, (k, a.read_write())))
    })?;
    let two = Chain::<(f32, InOut<f32, Ix1>, InOut<f32, Ix1>)>::record("two", |r, (k, a, b)| {
        (0..STEPS / 2).try_for_each(|_| {
            r.launch(&add, 1, (k, a.read_write()))?;
            r.launch(&add, 1, (k, b.read_write()))
        })
    })?;
    let looped = Kernel::<(f32, InOut<f32>)>::new("looped").host(|_grid, (k, a)| {
        for _ in 0..STEPS {
            add_to(std::hint::black_box(&mut *a), k);
        }
    });
    let launches =
        |a: &mut Numbers| (0..STEPS).try_for_each(|_| add.launch_on(&stream, 1, (1.0, &mut *a)));
    print("eight launches", ns_per_step(&stream, CHAINS, || launches(&mut a))?);
    print(
        "a chain of eight launches",
        ns_per_step(&stream, CHAINS, || chain.launch_on(&stream, (1.0, &mut a)))?,
    );
    print(
        "the same, on two arrays in turn",
        ns_per_step(&stream, CHAINS, || two.launch_on(&stream, (1.0, &mut b, &mut c)))?,
    );
    print(
        "a chain whose scalar changes each time",
        ns_per_step(&stream, CHAINS, {
            let mut k = 0.0;
            let (stream, chain, a) = (&stream, &chain, &mut a);
            move || {
                k += 1.0;
                chain.launch_on(stream, (k, &mut *a))
            }
        })?,
    );
    let repeated =
        ns_per_step(&stream, 1, || chain.repeat_on(&stream, CHAINS as u64, (1.0, &mut a)))?;
    print("the chain, repeated by one call", repeated / CHAINS as f64);
    print(
        "one launch whose body loops",
        ns_per_step(&stream, CHAINS, || looped.launch_on(&stream, 1, (1.0, &mut a)))?,
    );
    Ok(())
}

fn print(what: &str, ns: f64) {
    println!("{what:<40} {ns:>8.1} ns a step");
}

/// `x += k`.
fn add() -> Kernel<(f32, InOut<f32>)> {
    Kernel::<(f32, InOut<f32>)>::new("add").host(|_grid, (k, a)| add_to(a, k))
}

fn add_to(a: &mut [f32], k: f32) {
    a.iter_mut().for_each(|x| *x += k);
}

/// The median time of a step, if `call` queues [`STEPS`] of them.
fn ns_per_step(stream: &Stream, calls: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = [0.0; ROUNDS];
    for time in &mut times {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        stream.synchronize()?;
        *time = start.elapsed().as_secs_f64() * 1e9 / (calls * STEPS) as f64;
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}
