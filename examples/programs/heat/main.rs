//! Solves the heat equation in a cube that two devices share. Each device holds half of the planes;
//! only the two planes at the cut are copied between the devices. The program uses two GPUs if
//! there are two, and one GPU for both halves if there is one. Otherwise it uses the embedded
//! device, which is memory and threads of this process, and a second device of this kind.
//!
//! It iterates Jacobi's method with zeros on the walls. The initial heat is a sum of standing
//! waves. Each iteration shrinks a wave by an exactly known factor, so the result can be checked to
//! rounding after any number of steps. If a single plane is copied too late, the check fails.
//!
//! With `--chain` it also computes a whole cube on the first device, by launches and by a chain of
//! two steps, which is queued by one call; prints the times of both, and compares the results.

mod chain;

use std::process::ExitCode;

use resident::audit::{self, Report};
use resident::ndarray::{Ix1, Ix3, s};
use resident::{Device, DeviceKind, Emulation, Grid, Result, SmartArray};
use resident_example_programs::heat::kernels::Kernels;
use resident_example_programs::heat::waves::{POINTS, WAVES, decay, heat};

/// The number of planes that a device stores: half of the cube, which includes a wall, and one
/// plane of the other half.
const PLANES: usize = POINTS / 2 + 1;

const STEPS: usize = 400;
const STEPS_PER_RESIDUAL: usize = 100;

/// The largest accepted difference from the exact result, in absolute terms.
const TOLERANCE: f64 = 1e-12;

/// Planes, rows and columns of a block of threads.
const BLOCK: (u32, u32, u32) = (4, 4, 32);

type Cube = SmartArray<f64, Ix3>;

/// What one device holds.
struct Half {
    device: Device,
    first_plane: usize,
    current: Cube,
    next: Cube,
}

fn main() -> ExitCode {
    let by_chain = std::env::args().any(|argument| argument == "--chain");
    match if by_chain { chain::compare() } else { run() } {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heat: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the result is right and only the necessary bytes were copied.
fn run() -> Result<bool> {
    let kernels = Kernels::new();
    let (first, second) = devices()?;
    println!("the lower half is on {first}, the upper on {second}");
    let mut lower = Half::new(&kernels, first, 0, "lower half")?;
    let mut upper = Half::new(&kernels, second, POINTS - PLANES, "upper half")?;
    let (outcome, report) = audit::capture(|| iterate(&kernels, &mut lower, &mut upper));
    outcome?;
    println!("\n{report}");
    let error = lower.error()?.max(upper.error()?);
    println!("after {STEPS} steps the error is {error:.1e}; {TOLERANCE:.0e} is allowed");
    Ok(copied_no_more_than_needed(&report) && error < TOLERANCE)
}

/// The current device, and another of the same kind. If there is no second GPU, this is the same
/// GPU; beside the embedded device, it is an emulated one.
fn devices() -> Result<(Device, Device)> {
    let first = Device::current()?;
    if first.kind() == DeviceKind::Cpu {
        return Ok((first, Device::emulated(Emulation::new())));
    }
    let second =
        Device::all().into_iter().find(|device| device.kind() == first.kind() && *device != first);
    Ok((first.clone(), second.unwrap_or(first)))
}

fn iterate(kernels: &Kernels, lower: &mut Half, upper: &mut Half) -> Result<()> {
    for step in 1..=STEPS {
        lower.advance(kernels)?;
        upper.advance(kernels)?;
        if step % STEPS_PER_RESIDUAL == 0 {
            println!("step {step}: largest change {:.3e}", residual(kernels, lower, upper)?);
        }
        std::mem::swap(&mut lower.current, &mut lower.next);
        std::mem::swap(&mut upper.current, &mut upper.next);
        exchange(&mut lower.current, &mut upper.current)?;
    }
    Ok(())
}

/// Copies to each half the adjacent plane of the other half.
fn exchange(lower: &mut Cube, upper: &mut Cube) -> Result<()> {
    lower.slice_mut(s![-1, .., ..]).assign(&upper.slice(s![1, .., ..]))?;
    upper.slice_mut(s![0, .., ..]).assign(&lower.slice(s![-2, .., ..]))
}

/// The largest change in either half. Both devices update one number, whose eight bytes are then
/// downloaded.
fn residual(kernels: &Kernels, lower: &Half, upper: &Half) -> Result<f64> {
    let mut largest = SmartArray::<f64, Ix1>::zeros(1).named("residual");
    for half in [lower, upper] {
        let inner = s![1..PLANES - 1, 1..POINTS - 1, 1..POINTS - 1];
        let arguments = (&half.current.slice(inner), &half.next.slice(inner), &mut largest);
        kernels.residual.launch_on(&half.device.stream(), half.grid(), arguments)?;
    }
    largest.get(0)
}

/// Checks that only two planes per step were copied between the devices, and only the eight bytes
/// of each residual between the devices and to the host. Devices without peer access copy the
/// planes through the host.
fn copied_no_more_than_needed(report: &Report) -> bool {
    let moved = report.traffic();
    let residuals = STEPS / STEPS_PER_RESIDUAL * size_of::<f64>();
    let faces = STEPS * 2 * POINTS * POINTS * size_of::<f64>();
    println!(
        "between the devices {} bytes; all faces are {faces}, all residuals {residuals}",
        moved.between_devices.bytes
    );
    println!("to the host {} bytes, from the host {}", moved.to_host.bytes, moved.to_device.bytes);
    let arrived = moved.between_devices.bytes + moved.to_device.bytes;
    arrived <= (faces + residuals) as u64
        && moved.to_host.bytes <= residuals as u64 + moved.to_device.bytes
}

impl Half {
    /// Fills both arrays on the device with the same values. The walls are never written again.
    fn new(kernels: &Kernels, device: Device, first_plane: usize, name: &str) -> Result<Self> {
        let make = || SmartArray::uninit((PLANES, POINTS, POINTS)).named(name);
        let mut half = Self { device, first_plane, current: make(), next: make() };
        let (stream, grid) = (half.device.stream(), half.grid());
        kernels.start.launch_on(&stream, grid, (first_plane as u64, &mut half.current))?;
        kernels.start.launch_on(&stream, grid, (first_plane as u64, &mut half.next))?;
        Ok(half)
    }

    fn advance(&mut self, kernels: &Kernels) -> Result<()> {
        let inner = &mut self.next.slice_mut(s![1..PLANES - 1, 1..POINTS - 1, 1..POINTS - 1]);
        let grid = Grid::cover_3d((PLANES - 2, POINTS - 2, POINTS - 2), BLOCK);
        kernels.jacobi.launch_on(&self.device.stream(), grid, (&self.current, inner))
    }

    fn grid(&self) -> Grid {
        Grid::cover_3d((PLANES, POINTS, POINTS), BLOCK)
    }

    /// The largest error of this half's planes, including those copied from the other half.
    fn error(&self) -> Result<f64> {
        let waves =
            WAVES.map(|(counts, height)| (counts, height * decay(counts).powi(STEPS as i32)));
        let errors = self.current.host()?.indexed_iter().fold(
            0.0,
            |largest: f64, ((plane, row, column), value)| {
                largest.max((value - heat(&waves, [self.first_plane + plane, row, column])).abs())
            },
        );
        Ok(errors)
    }
}
