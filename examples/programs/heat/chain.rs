//! Two steps in a whole cube as a chain of two launches, each of which writes the inner part of the
//! other array.

use std::time::Instant;

use resident::ndarray::{Ix3, s};
use resident::{Chain, Device, Grid, InOut, Result, SmartArray, Stream};
use resident_example_programs::heat::kernels::Kernels;
use resident_example_programs::heat::waves::POINTS;

use super::{BLOCK, Cube, STEPS};

/// The parameters: the cube before and after a step, and then after and before one.
type TwoSteps = Chain<(InOut<f64, Ix3>, InOut<f64, Ix3>)>;

fn record(kernels: &Kernels) -> Result<TwoSteps> {
    TwoSteps::record("two steps", |r, (a, b)| {
        let inner = s![1..POINTS - 1, 1..POINTS - 1, 1..POINTS - 1];
        r.launch(&kernels.jacobi, inner_grid(), (a.read(), b.slice(inner).write()))?;
        r.launch(&kernels.jacobi, inner_grid(), (b.read(), a.slice(inner).write()))
    })
}

fn inner_grid() -> Grid {
    Grid::cover_3d((POINTS - 2, POINTS - 2, POINTS - 2), BLOCK)
}

/// Iterates by launches and by a chain. Returns whether the results are equal.
pub(crate) fn compare() -> Result<bool> {
    let (kernels, stream) = (Kernels::new(), Device::current()?.new_stream()?);
    // The first one compiles the kernels.
    iterate(&kernels, &stream, "launches", by_launches)?;
    let launched = iterate(&kernels, &stream, "launches", by_launches)?;
    let chained = iterate(&kernels, &stream, "a chain", by_chain)?;
    Ok(*launched.host()? == *chained.host()?)
}

fn iterate(
    kernels: &Kernels,
    stream: &Stream,
    way: &str,
    by: fn(&Kernels, &Stream, &mut [Cube; 2]) -> Result<()>,
) -> Result<Cube> {
    let mut cubes = [(); 2].map(|()| SmartArray::uninit((POINTS, POINTS, POINTS)));
    for cube in &mut cubes {
        let grid = Grid::cover_3d((POINTS, POINTS, POINTS), BLOCK);
        kernels.start.launch_on(stream, grid, (0, cube))?;
    }
    stream.synchronize()?;
    let start = Instant::now();
    by(kernels, stream, &mut cubes)?;
    stream.synchronize()?;
    println!("{STEPS} steps by {way}: {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
    let [cube, _] = cubes;
    Ok(cube)
}

fn by_launches(kernels: &Kernels, stream: &Stream, [a, b]: &mut [Cube; 2]) -> Result<()> {
    let inner = s![1..POINTS - 1, 1..POINTS - 1, 1..POINTS - 1];
    for _ in 0..STEPS / 2 {
        kernels.jacobi.launch_on(stream, inner_grid(), (&*a, &mut b.slice_mut(inner)))?;
        kernels.jacobi.launch_on(stream, inner_grid(), (&*b, &mut a.slice_mut(inner)))?;
    }
    Ok(())
}

fn by_chain(kernels: &Kernels, stream: &Stream, [a, b]: &mut [Cube; 2]) -> Result<()> {
    record(kernels)?.repeat_on(stream, STEPS as u64 / 2, (a, b))
}
