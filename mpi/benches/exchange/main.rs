//! Exchanges and a whole program beside the same by hand, on MPI's functions and plain vectors.
//!
//! The program starts itself under `mpirun` (or `RESIDENT_MPIRUN`) with 1, 2 and 4 processes. Each
//! figure is the least over batches of the slowest process's time for a step, in microseconds, with
//! the ratio to that by hand. An argument, `heat`, `faces` or `messages`, chooses a part.

mod by_hand;
mod heat;

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use resident::ndarray::{Dim, Dimension};
use resident::{Device, SmartArray};
use resident_mpi::{Decomposition, Mpi, Reduce, Result, Side};

use by_hand::ByHand;

/// Says that this process is one of a job.
const INSIDE: &str = "RESIDENT_MPI_BENCH";
/// How long a batch takes, unless a step takes longer, and how many there are: on a shared machine
/// a short one may be undisturbed.
const BATCH: Duration = Duration::from_millis(2);
const BATCHES: usize = 50;

fn main() -> Result<()> {
    if env::var_os(INSIDE).is_some() {
        return measure();
    }
    [1, 2, 4].into_iter().for_each(start);
    Ok(())
}

/// With `RESIDENT_MPI4PY`, a Python that has mpi4py and NumPy, the same in Python too: `heat.py`.
fn start(processes: usize) {
    let mut command = launch(processes);
    let program = env::current_exe().expect("a program knows its file");
    run(command.arg(program).args(env::args().skip(1)).env(INSIDE, "1"));
    if let (Ok(python), ..=2) = (env::var("RESIDENT_MPI4PY"), processes) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/exchange/heat.py");
        run(launch(processes).arg(python).arg(script));
    }
}

fn launch(processes: usize) -> Command {
    let launcher = env::var("RESIDENT_MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let version = Command::new(&launcher).arg("--version").output();
    let version = version.unwrap_or_else(|error| panic!("cannot start `{launcher}`: {error}"));
    let mut command = Command::new(&launcher);
    if !String::from_utf8_lossy(&version.stdout).contains("HYDRA") {
        command.args(["--oversubscribe", "--allow-run-as-root"]);
    }
    command.args(["-n", &processes.to_string()]);
    command
}

fn run(command: &mut Command) {
    let status = command.status().expect("the launcher started before");
    assert!(status.success(), "{command:?}: {status}");
}

fn measure() -> Result<()> {
    let mpi = resident_mpi::init()?;
    let wanted = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |part: &str| wanted.as_deref().is_none_or(|wanted| wanted == part);
    if is_wanted("heat") {
        title(&mpi, ["by hand", "in turn", "overlapping", ""]);
        heat::rows(&mpi)?;
    }
    if is_wanted("faces") {
        title(&mpi, ["by hand", "update", "start, finish", "on the device"]);
        plate(&mpi, 64)?;
        plate(&mpi, 1024)?;
    }
    if is_wanted("messages") {
        title(&mpi, ["by hand", "update", "start, finish", "on the device"]);
        let all = [3, 6, 9, 12, 15, 18, 21, 24, 26];
        for log_bytes in if mpi.size() == 4 { &all[7..] } else { &all[..] } {
            ring(&mpi, (1 << log_bytes) / size_of::<f64>())?;
        }
    }
    Ok(())
}

/// The halo of a square torus: two contiguous faces, and two strided ones.
fn plate(mpi: &Mpi, cells: usize) -> Result<()> {
    let plate = mpi.grid([cells; 2]).halo(1).periodic([true; 2]).build()?;
    let local = plate.local_shape();
    let sides = [(0, 1), (1, 1)].map(|(axis, _)| neighbours(&plate, axis));
    let mut by_hand = ByHand::new(local, sides);
    let bytes = 2 * (local[0] + local[1]) * size_of::<f64>();
    let start = |[i, j]: [usize; 2]| (i + j) as f64;
    row(mpi, &format!("4 faces, {bytes} B"), &plate, start, &mut || by_hand.exchange())
}

pub(crate) fn neighbours(plate: &Decomposition<2>, axis: usize) -> [i32; 2] {
    [Side::Low, Side::High].map(|side| plate.neighbour(axis, side).expect("a torus") as i32)
}

/// Two messages of `len` elements: to the next and to the last process.
fn ring(mpi: &Mpi, len: usize) -> Result<()> {
    let ring = mpi.grid([len * mpi.size()]).halo(len).periodic([true]).build()?;
    let sides = [Side::Low, Side::High].map(|side| ring.neighbour(0, side).expect("a ring") as i32);
    let mut by_hand = ByHand::line(len, sides);
    let name = format!("2 messages of {} B", len * size_of::<f64>());
    row(mpi, &name, &ring, |[i]| i as f64, &mut || by_hand.exchange())
}

/// The exchange of one array by hand, of one on the host in both ways, and of one on the device.
fn row<const N: usize>(
    mpi: &Mpi,
    name: &str,
    grid: &Decomposition<N>,
    start: impl Fn([usize; N]) -> f64,
    by_hand: &mut dyn FnMut(),
) -> Result<()>
where
    Dim<[usize; N]>: Dimension,
{
    let stream = Device::cpu().stream();
    let mut arrays: [SmartArray<f64, Dim<[usize; N]>>; 3] =
        [grid.array(&start)?, grid.array(&start)?, grid.array(&start)?];
    let like = &arrays[0];
    let mut halos = [grid.exchange(like)?, grid.exchange(like)?, grid.exchange(like)?];
    let [(a, b), (c, d), (e, f)] = {
        let [a, b, c] = &mut arrays;
        let [x, y, z] = &mut halos;
        [(a, x), (b, y), (c, z)]
    };
    let times = per_step(
        mpi,
        &mut [
            by_hand,
            &mut || b.update(&mut *a, &stream).expect("an exchange"),
            &mut || d.start(&*c, &stream).and_then(|going| going.finish(&mut *c)).expect("one"),
            &mut || {
                drop(e.gpu_mut_on(&stream).expect("a device"));
                f.start(&*e, &stream).and_then(|going| going.finish(&mut *e)).expect("one");
            },
        ],
    )?;
    print(mpi, name, &times);
    Ok(())
}

/// Microseconds for a step of each kind, of the slowest process: the least of the batches, in which
/// the kinds take turns.
pub(crate) fn per_step(mpi: &Mpi, kinds: &mut [&mut dyn FnMut()]) -> Result<Vec<f64>> {
    let device = Device::cpu();
    let batch = |step: &mut dyn FnMut(), count: u32| -> Result<f64> {
        mpi.barrier()?;
        let begin = Instant::now();
        (0..count).for_each(|_| step());
        // Launches are queued.
        device.synchronize()?;
        let time = begin.elapsed().as_secs_f64() / f64::from(count);
        mpi.all_reduce_value(Reduce::Max, time)
    };
    let mut steps = Vec::new();
    for step in kinds.iter_mut() {
        step();
        let one = batch(step, 1)?;
        steps.push((BATCH.as_secs_f64() / one).clamp(1.0, 10_000.0) as u32);
    }
    let mut least = vec![f64::INFINITY; kinds.len()];
    for _ in 0..BATCHES {
        for ((step, count), least) in kinds.iter_mut().zip(&steps).zip(&mut least) {
            *least = least.min(batch(step, *count)? * 1e6);
        }
    }
    Ok(least)
}

fn title(mpi: &Mpi, columns: [&str; 4]) {
    if mpi.rank() == 0 {
        let columns = columns.map(|column| format!("{column:>15}")).concat();
        println!("\n{:30}{columns}", format!("{} processes", mpi.size()));
    }
}

/// Microseconds, and what they are of the first.
pub(crate) fn print(mpi: &Mpi, name: &str, times: &[f64]) {
    if mpi.rank() == 0 {
        let text = |time: &f64| format!("{:>15}", format!("{time:.1} {:.2}", time / times[0]));
        println!("{name:30}{}", times.iter().map(text).collect::<String>());
    }
}
