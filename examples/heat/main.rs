//! Heat in a cube that two devices share: each holds half of the planes, and only the two planes at
//! the cut travel between them. Two GPUs where there are two; one GPU holds both halves; without
//! any, the embedded device and an emulated one share the work.
//!
//! Jacobi's iteration with the walls at zero. What it starts from is a sum of standing waves, and
//! the iteration only makes each of them smaller, by a factor that is known exactly; so the result
//! can be checked to rounding after any number of steps, and a single plane that arrives late
//! shows.

use std::process::ExitCode;

use resident::audit::{self, Report};
use resident::ndarray::{Ix1, Ix3, s};
use resident::{Device, DeviceKind, Emulation, Grid, Result, SmartArray};
use resident_examples::heat::kernels::Kernels;
use resident_examples::heat::waves::{POINTS, WAVES, heat, shrinking};

/// Planes of one half: its own, and on each side one that belongs to the wall or to the other half.
const PLANES: usize = POINTS / 2 + 1;

const STEPS: usize = 400;
const STEPS_PER_RESIDUAL: usize = 100;

/// So far may rounding carry the result from the exact one.
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
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("heat: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the result is right, and no more has moved than had to.
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
    println!(
        "after {STEPS} steps the result is within {error:.1e} of the exact one; {TOLERANCE:.0e} is allowed"
    );
    Ok(moved_little(&report) && error < TOLERANCE)
}

/// The current device and the next of its kind.
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

/// Each half gets the outermost of the other's own planes.
fn exchange(lower: &mut Cube, upper: &mut Cube) -> Result<()> {
    lower.slice_mut(s![-1, .., ..]).assign(&upper.slice(s![1, .., ..]))?;
    upper.slice_mut(s![0, .., ..]).assign(&lower.slice(s![-2, .., ..]))
}

/// One number goes through both devices, and its eight bytes come down.
fn residual(kernels: &Kernels, lower: &Half, upper: &Half) -> Result<f64> {
    let mut largest = SmartArray::<f64, Ix1>::zeros(1).named("residual");
    for half in [lower, upper] {
        let inner = s![1..PLANES - 1, 1..POINTS - 1, 1..POINTS - 1];
        let arguments = (&half.current.slice(inner), &half.next.slice(inner), &mut largest);
        kernels.residual.launch_on(&half.device.stream(), half.grid(), arguments)?;
    }
    largest.get(0)
}

/// At most two planes a step between the devices, the residual's eight bytes on and down, and
/// nothing else. Devices that do not reach each other hand them on by way of the host.
fn moved_little(report: &Report) -> bool {
    let moved = report.traffic();
    let residuals = STEPS / STEPS_PER_RESIDUAL * size_of::<f64>();
    let faces = STEPS * 2 * POINTS * POINTS * size_of::<f64>();
    println!(
        "between the devices {} bytes; the faces of all steps are {faces}, the residuals {residuals}",
        moved.between_devices.bytes
    );
    println!("to the host {} bytes, from the host {}", moved.to_host.bytes, moved.to_device.bytes);
    let arrived = moved.between_devices.bytes + moved.to_device.bytes;
    arrived <= (faces + residuals) as u64
        && moved.to_host.bytes <= residuals as u64 + moved.to_device.bytes
}

impl Half {
    /// Both arrays start alike, made on the device: the walls of either are never written again.
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

    /// How far the planes of this half, those it has from the other included, are from the exact
    /// result.
    fn error(&self) -> Result<f64> {
        let waves =
            WAVES.map(|(counts, height)| (counts, height * shrinking(counts).powi(STEPS as i32)));
        let errors = self.current.host()?.indexed_iter().fold(
            0.0,
            |largest: f64, ((plane, row, column), value)| {
                largest.max((value - heat(&waves, [self.first_plane + plane, row, column])).abs())
            },
        );
        Ok(errors)
    }
}
