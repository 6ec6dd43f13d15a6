//! Heat in a cube that two devices share: each holds half of the planes, and only the two planes at the cut travel between them. Two GPUs where there
//! are two; one GPU holds both halves; without any, the embedded device and an emulated one share the work.
//!
//! Jacobi's iteration with the walls at zero. What it starts from is a sum of standing waves, and the iteration only makes each of them
//! smaller, by a factor that is known exactly; so the result can be checked to rounding after any number of steps, and a single plane
//! that arrives late shows.

use std::f64::consts::PI;
use std::process::ExitCode;

use resident::audit::{self, Report};
use resident::ndarray::{ArrayView3, ArrayViewMut3, Ix1, Ix3, Zip, s};
use resident::{CudaSource, Device, DeviceKind, Emulation, Grid, In, InOut, Kernel, Out, Result, Signature, SmartArray};

/// Grid points along each axis, walls included.
const POINTS: usize = 66;

/// Planes of one half: its own, and on each side one that belongs to the wall or to the other half.
const PLANES: usize = POINTS / 2 + 1;

const STEPS: usize = 400;
const STEPS_PER_RESIDUAL: usize = 100;

/// Half waves along each axis, and the height, of the waves that the cube starts with.
const WAVES: [([usize; 3], f64); 3] = [([1, 1, 1], 1.0), ([2, 1, 3], 0.5), ([3, 5, 2], -0.25)];

/// So far may rounding carry the result from the exact one.
const TOLERANCE: f64 = 1e-12;

/// Planes, rows and columns of a block of threads.
const BLOCK: (u32, u32, u32) = (4, 4, 32);

type Cube = SmartArray<f64, Ix3>;

/// The first plane's number in the whole cube; the planes to fill.
type Start = Kernel<(u64, Out<f64, Ix3>)>;
/// A half as it was; the inner part of the half as it will be.
type Jacobi = Kernel<(In<f64, Ix3>, Out<f64, Ix3>)>;
/// The inner parts of both, and the largest change so far.
type Residual = Kernel<(In<f64, Ix3>, In<f64, Ix3>, InOut<f64>)>;

struct Kernels {
    start: Start,
    jacobi: Jacobi,
    residual: Residual,
}

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
    println!("after {STEPS} steps the result is within {error:.1e} of the exact one; {TOLERANCE:.0e} is allowed");
    Ok(moved_little(&report) && error < TOLERANCE)
}

/// The current device and the next of its kind.
fn devices() -> Result<(Device, Device)> {
    let first = Device::current()?;
    if first.kind() == DeviceKind::Cpu {
        return Ok((first, Device::emulated(Emulation::new())));
    }
    let second = Device::all().into_iter().find(|device| device.kind() == first.kind() && *device != first);
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

/// At most two planes a step between the devices, the residual's eight bytes on and down, and nothing else. Devices that do not reach each other
/// hand them on by way of the host.
fn moved_little(report: &Report) -> bool {
    let moved = report.traffic();
    let residuals = STEPS / STEPS_PER_RESIDUAL * size_of::<f64>();
    let faces = STEPS * 2 * POINTS * POINTS * size_of::<f64>();
    println!("between the devices {} bytes; the faces of all steps are {faces}, the residuals {residuals}", moved.between_devices.bytes);
    println!("to the host {} bytes, from the host {}", moved.to_host.bytes, moved.to_device.bytes);
    let arrived = moved.between_devices.bytes + moved.to_device.bytes;
    arrived <= (faces + residuals) as u64 && moved.to_host.bytes <= residuals as u64 + moved.to_device.bytes
}

impl Kernels {
    fn new() -> Self {
        Self {
            start: on_gpus(Start::new("start").host(|_grid, (first_plane, planes)| start(first_plane, planes))),
            jacobi: on_gpus(
                Jacobi::new("jacobi")
                    .require("a wall or a neighbour's plane on each side", |_grid, (now, inner)| {
                        now.shape().iter().zip(inner.shape()).all(|(all, inner)| *all == *inner + 2)
                    })
                    .host(|_grid, (now, inner)| jacobi(now, inner)),
            ),
            residual: on_gpus(
                Residual::new("residual")
                    .require("before and after have one shape", |_grid, (before, after, _)| before.shape() == after.shape())
                    .require("one largest change", |_grid, (_, _, largest)| largest.len() == 1)
                    .host(|_grid, (before, after, largest)| {
                        largest[0] =
                            before.iter().zip(after).fold(largest[0], |largest, (before, after)| largest.max((after - before).abs()));
                    }),
            ),
        }
    }
}

/// Gives one of the kernels above its device body.
fn on_gpus<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function there has the signature of the kernel that is called like it. It looks at elements of its views alone, by the shape of one of
    // them, to which the requirements tie the other's; the residual is one number by its requirement.
    unsafe { kernel.cuda(CudaSource::c(include_str!("heat.cu"))) }
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

    /// How far the planes of this half, those it has from the other included, are from the exact result.
    fn error(&self) -> Result<f64> {
        let waves = WAVES.map(|(counts, height)| (counts, height * shrinking(counts).powi(STEPS as i32)));
        let errors = self.current.host()?.indexed_iter().fold(0.0, |largest: f64, ((plane, row, column), value)| {
            largest.max((value - heat(&waves, [self.first_plane + plane, row, column])).abs())
        });
        Ok(errors)
    }
}

fn start(first_plane: u64, mut planes: ArrayViewMut3<'_, f64>) {
    for ((plane, row, column), value) in planes.indexed_iter_mut() {
        *value = heat(&WAVES, [first_plane as usize + plane, row, column]);
    }
}

/// The mean of the six neighbours. The windows of `now` are as many as `inner` has points.
fn jacobi(now: ArrayView3<'_, f64>, inner: ArrayViewMut3<'_, f64>) {
    Zip::from(inner).and(now.windows((3, 3, 3))).for_each(|value, around| {
        let (planes, rows) = (around[[0, 1, 1]] + around[[2, 1, 1]], around[[1, 0, 1]] + around[[1, 2, 1]]);
        *value = (planes + rows + around[[1, 1, 0]] + around[[1, 1, 2]]) / 6.0;
    });
}

/// The sum of some waves at a point; all of them are exactly zero on the walls.
fn heat(waves: &[([usize; 3], f64)], point: [usize; 3]) -> f64 {
    if point.iter().any(|&index| index == 0 || index == POINTS - 1) {
        return 0.0;
    }
    let along = |(index, count): (usize, usize)| (PI * (count * index) as f64 / (POINTS - 1) as f64).sin();
    waves.iter().map(|(counts, height)| height * point.into_iter().zip(*counts).map(along).product::<f64>()).sum()
}

/// What one step makes of a wave: the mean of six neighbours is the wave itself, this much smaller.
fn shrinking(counts: [usize; 3]) -> f64 {
    counts.iter().map(|&count| (PI * count as f64 / (POINTS - 1) as f64).cos()).sum::<f64>() / 3.0
}
