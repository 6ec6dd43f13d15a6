//! Eight launches on 64 elements on the embedded device: as launches, as a chain, as a chain that
//! repeats, and as one launch whose body loops. Prints the time of a step, from the first call to
//! the end of the work: `cargo bench -p resident-benches --bench chains`. With a part
//! of a name as its argument it runs the programs that have it in their names.

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
    let stream = &Device::cpu().new_stream()?;
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
        |a: &mut Numbers| (0..STEPS).try_for_each(|_| add.launch_on(stream, 1, (1.0, &mut *a)));
    print("eight launches", stream, CHAINS, || launches(&mut a))?;
    print("a chain of eight launches", stream, CHAINS, || chain.launch_on(stream, (1.0, &mut a)))?;
    print("the same, on two arrays in turn", stream, CHAINS, || {
        two.launch_on(stream, (1.0, &mut b, &mut c))
    })?;
    let mut k = 0.0;
    print("a chain whose scalar changes each time", stream, CHAINS, || {
        k += 1.0;
        chain.launch_on(stream, (k, &mut a))
    })?;
    print("the chain, repeated by one call", stream, 1, || {
        chain.repeat_on(stream, CHAINS as u64, (1.0, &mut a))
    })?;
    print("one launch whose body loops", stream, CHAINS, || {
        looped.launch_on(stream, 1, (1.0, &mut a))
    })
}

/// Prints the median time of a step, if `calls` calls queue [`CHAINS`] times [`STEPS`] of them.
fn print(
    what: &str,
    stream: &Stream,
    calls: usize,
    call: impl FnMut() -> Result<()>,
) -> Result<()> {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if filter.is_none_or(|filter| what.contains(&filter)) {
        println!("{what:<40} {:>8.1} ns a step", ns_per_step(stream, calls, call)?);
    }
    Ok(())
}

/// `x += k`.
fn add() -> Kernel<(f32, InOut<f32>)> {
    Kernel::<(f32, InOut<f32>)>::new("add").host(|_grid, (k, a)| add_to(a, k))
}

fn add_to(a: &mut [f32], k: f32) {
    a.iter_mut().for_each(|x| *x += k);
}

fn ns_per_step(stream: &Stream, calls: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = [0.0; ROUNDS];
    for time in &mut times {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        stream.synchronize()?;
        *time = start.elapsed().as_secs_f64() * 1e9 / (CHAINS * STEPS) as f64;
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}
