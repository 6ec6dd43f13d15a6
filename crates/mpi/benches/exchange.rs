//! Exchanges beside the same by hand, on MPI's functions and plain vectors.
//!
//! The program starts itself under `mpirun` (or `RESIDENT_MPIRUN`) with 1, 2 and 4 processes. Each
//! figure is the median over batches of the slowest process's time for a step.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use mpi_sys as ffi;
use resident::ndarray::{Ix1, Ix2};
use resident::{Device, SmartArray};
use resident_mpi::{Mpi, Reduce, Result};

/// Says that this process is one of a job.
const INSIDE: &str = "RESIDENT_MPI_BENCH";
/// How long a batch takes, and how many there are.
const BATCH: Duration = Duration::from_millis(40);
const BATCHES: usize = 9;

fn main() -> Result<()> {
    if env::var_os(INSIDE).is_some() {
        return measure();
    }
    for processes in [1, 2, 4] {
        start(processes);
    }
    Ok(())
}

fn start(processes: usize) {
    let launcher = env::var("RESIDENT_MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let version = Command::new(&launcher).arg("--version").output();
    let version = version.unwrap_or_else(|error| panic!("cannot start `{launcher}`: {error}"));
    let mut command = Command::new(&launcher);
    if !String::from_utf8_lossy(&version.stdout).contains("HYDRA") {
        command.args(["--oversubscribe", "--allow-run-as-root"]);
    }
    let program = env::current_exe().expect("a program knows its file");
    command.args(["-n", &processes.to_string()]).arg(program).env(INSIDE, "1");
    let status = command.status().expect("it started before");
    assert!(status.success(), "{launcher}: {status}");
}

fn measure() -> Result<()> {
    let mpi = resident_mpi::init()?;
    if mpi.rank() == 0 {
        println!("\n{} processes", mpi.size());
        println!("{:28}{:>14}{:>14}{:>14}", "", "by hand", "host", "device");
    }
    plate(&mpi, 64)?;
    plate(&mpi, 1024)?;
    let all = [3, 6, 9, 12, 15, 18, 21, 24, 26];
    for log_bytes in if mpi.size() == 4 { &all[7..] } else { &all[..] } {
        ring(&mpi, (1 << log_bytes) / size_of::<f64>())?;
    }
    Ok(())
}

/// The halo of a square torus: two contiguous faces, and two strided ones.
fn plate(mpi: &Mpi, cells: usize) -> Result<()> {
    let plate = mpi.grid([cells; 2]).halo(1).periodic([true; 2]).build()?;
    let local = plate.local_shape();
    let sides = [(0, 1), (1, 1)].map(|(axis, _)| neighbours(&plate, axis));
    let mut by_hand = ByHand::new(local, sides);
    let hand = per_step(mpi, || by_hand.exchange())?;
    let mut times = [0.0; 2];
    for (time, is_on_device) in times.iter_mut().zip([false, true]) {
        let device = Device::cpu();
        let mut now: SmartArray<f64, Ix2> = plate.array(|[i, j]| (i + j) as f64)?;
        let mut halo = plate.exchange(&now)?;
        *time = per_step(mpi, || {
            if is_on_device {
                drop(now.gpu_mut_on(&device.stream()).expect("a device"));
            }
            let going = halo.start(&now, &device.stream()).expect("a start");
            going.finish(&mut now).expect("an end");
        })?;
    }
    let bytes = 2 * (local[0] + local[1]) * size_of::<f64>();
    print(mpi, &format!("4 faces, {bytes} B"), [hand, times[0], times[1]]);
    Ok(())
}

fn neighbours(plate: &resident_mpi::Decomposition<2>, axis: usize) -> [i32; 2] {
    [resident_mpi::Side::Low, resident_mpi::Side::High]
        .map(|side| plate.neighbour(axis, side).expect("a torus") as i32)
}

/// Two messages of `len` elements: to the next and to the last process.
fn ring(mpi: &Mpi, len: usize) -> Result<()> {
    let ring = mpi.grid([len * mpi.size()]).halo(len).periodic([true]).build()?;
    let sides = [resident_mpi::Side::Low, resident_mpi::Side::High]
        .map(|side| ring.neighbour(0, side).expect("a ring") as i32);
    let mut by_hand = ByHand::line(len, sides);
    let hand = per_step(mpi, || by_hand.exchange())?;
    let device = Device::cpu();
    let mut times = [0.0; 2];
    for (time, is_on_device) in times.iter_mut().zip([false, true]) {
        let mut now: SmartArray<f64, Ix1> = ring.array(|[i]| i as f64)?;
        let mut halo = ring.exchange(&now)?;
        *time = per_step(mpi, || {
            if is_on_device {
                drop(now.gpu_mut_on(&device.stream()).expect("a device"));
            }
            let going = halo.start(&now, &device.stream()).expect("a start");
            going.finish(&mut now).expect("an end");
        })?;
    }
    print(mpi, &format!("2 messages of {} B", len * 8), [hand, times[0], times[1]]);
    Ok(())
}

/// Microseconds for a step, of the slowest process.
fn per_step(mpi: &Mpi, mut step: impl FnMut()) -> Result<f64> {
    step();
    mpi.barrier()?;
    let begin = Instant::now();
    step();
    let one = mpi.all_reduce_value(Reduce::Max, begin.elapsed().as_secs_f64())?;
    let steps = (BATCH.as_secs_f64() / one).clamp(2.0, 10_000.0) as u32;
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        mpi.barrier()?;
        let begin = Instant::now();
        (0..steps).for_each(|_| step());
        let time = begin.elapsed().as_secs_f64() / f64::from(steps);
        times.push(mpi.all_reduce_value(Reduce::Max, time)? * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[BATCHES / 2])
}

fn print(mpi: &Mpi, name: &str, times: [f64; 3]) {
    if mpi.rank() == 0 {
        let [hand, host, device] = times.map(|time| format!("{time:.1} us"));
        println!("{name:28}{hand:>14}{host:>14}{device:>14}");
    }
}

/// A part with a halo of one cell, or of the whole part for a line, as a program by hand has it:
/// rows are sent from where they are, columns are packed.
struct ByHand {
    cells: Vec<f64>,
    faces: Vec<Face>,
}

/// What goes to one neighbour, and what comes from it.
struct Face {
    rank: i32,
    tags: [i32; 2],
    sent: Place,
    received: Place,
    packed: [Vec<f64>; 2],
}

/// Elements at one distance from each other.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    stride: usize,
    len: usize,
}

impl ByHand {
    fn new([rows, columns]: [usize; 2], [rank_rows, rank_columns]: [[i32; 2]; 2]) -> Self {
        let width = columns + 2;
        let row = |i: usize| Place { first: i * width + 1, stride: 1, len: columns };
        let column = |j: usize| Place { first: width + j, stride: width, len: rows };
        let faces = vec![
            Face::new(rank_rows[0], [0, 1], row(1), row(0)),
            Face::new(rank_rows[1], [1, 0], row(rows), row(rows + 1)),
            Face::new(rank_columns[0], [2, 3], column(1), column(0)),
            Face::new(rank_columns[1], [3, 2], column(columns), column(columns + 1)),
        ];
        Self { cells: vec![1.0; (rows + 2) * width], faces }
    }

    fn line(len: usize, ranks: [i32; 2]) -> Self {
        let part = |index: usize| Place { first: index * len, stride: 1, len };
        let faces = vec![
            Face::new(ranks[0], [0, 1], part(1), part(0)),
            Face::new(ranks[1], [1, 0], part(1), part(2)),
        ];
        Self { cells: vec![1.0; 3 * len], faces }
    }

    fn exchange(&mut self) {
        let mut requests = Vec::with_capacity(2 * self.faces.len());
        for face in &mut self.faces {
            let memory = face.memory(&mut self.cells, face.received, 1);
            requests.push(receive(memory, face.received.len, face.rank, face.tags[1]));
        }
        for face in &mut self.faces {
            if face.sent.stride > 1 {
                let Place { first, stride, .. } = face.sent;
                let packed = face.packed[0].iter_mut().enumerate();
                packed.for_each(|(at, x)| *x = self.cells[first + at * stride]);
            }
            let memory = face.memory(&mut self.cells, face.sent, 0);
            requests.push(send(memory, face.sent.len, face.rank, face.tags[0]));
        }
        wait(&mut requests);
        for face in self.faces.iter().filter(|face| face.received.stride > 1) {
            let Place { first, stride, .. } = face.received;
            let packed = face.packed[1].iter().enumerate();
            packed.for_each(|(at, x)| self.cells[first + at * stride] = *x);
        }
    }
}

impl Face {
    fn new(rank: i32, tags: [i32; 2], sent: Place, received: Place) -> Self {
        let packed = [vec![0.0; sent.len], vec![0.0; received.len]];
        Self { rank, tags, sent, received, packed }
    }

    /// Where MPI reads or writes.
    fn memory(&mut self, cells: &mut [f64], place: Place, packed: usize) -> *mut f64 {
        match place {
            Place { first, stride: 1, len } => cells[first..first + len].as_mut_ptr(),
            _ => self.packed[packed].as_mut_ptr(),
        }
    }
}

fn receive(to: *mut f64, len: usize, rank: i32, tag: i32) -> ffi::MPI_Request {
    // SAFETY: constants of the C library.
    let (mut request, world) = unsafe { (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_COMM_WORLD) };
    // SAFETY: as above.
    let double = unsafe { ffi::RSMPI_DOUBLE };
    // SAFETY: MPI runs; `to` has room for `len` elements until `wait`.
    unsafe { ffi::MPI_Irecv(to.cast(), len as i32, double, rank, tag, world, &mut request) };
    request
}

fn send(from: *const f64, len: usize, rank: i32, tag: i32) -> ffi::MPI_Request {
    // SAFETY: constants of the C library.
    let (mut request, world) = unsafe { (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_COMM_WORLD) };
    // SAFETY: as above.
    let double = unsafe { ffi::RSMPI_DOUBLE };
    // SAFETY: MPI runs; `from` has `len` elements that nothing writes until `wait`.
    unsafe { ffi::MPI_Isend(from.cast(), len as i32, double, rank, tag, world, &mut request) };
    request
}

fn wait(requests: &mut [ffi::MPI_Request]) {
    // SAFETY: a constant of the C library.
    let ignore = unsafe { ffi::RSMPI_STATUSES_IGNORE };
    // SAFETY: MPI runs, and the requests are of it.
    unsafe { ffi::MPI_Waitall(requests.len() as i32, requests.as_mut_ptr(), ignore) };
}
