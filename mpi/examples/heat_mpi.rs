//! Heat in a square plate with cold walls, divided among processes; each step computes the core of
//! its part while the faces travel. `mpirun -n 4 target/release/examples/heat_mpi [picture.png]`

use std::{env, f64::consts::PI, io, path::Path};

use resident::ndarray::{Ix2, s};
use resident::{Device, In, Out, Result, SmartArray, ops::Elementwise};
use resident_example_programs::live::picture::write_png;
use resident_mpi::Cells;

const POINTS: usize = 254;
const STEPS: i32 = 400;

type Field = SmartArray<f64, Ix2>;
type Mean = Elementwise<(In<f64>, In<f64>, In<f64>, In<f64>, Out<f64>)>;

/// The exact heat: standing waves of which each step shrinks each by a known factor.
fn heat([i, j]: [usize; 2], steps: i32) -> f64 {
    let angle = |waves: f64| PI * waves / (POINTS + 1) as f64;
    let wave = |p: f64, q: f64| {
        let decay = (angle(p).cos() + angle(q).cos()) / 2.0;
        decay.powi(steps) * (angle(p) * (i + 1) as f64).sin() * (angle(q) * (j + 1) as f64).sin()
    };
    wave(1.0, 1.0) / 8.0 + wave(3.0, 2.0) / 4.0 + wave(7.0, 5.0) / 4.0
}

/// Writes some cells: the means of their four neighbours.
fn step(mean: &Mean, cells: &Cells<2>, now: &Field, next: &mut Field) -> Result<()> {
    let (around, [r, c]) = (cells.with_halo().of(now), cells.shape());
    let (up, down) = (around.slice(s![..r, 1..=c]), around.slice(s![2.., 1..=c]));
    let (left, right) = (around.slice(s![1..=r, ..c]), around.slice(s![1..=r, 2..]));
    mean.apply((&up, &down, &left, &right, &mut cells.of_mut(next)))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (mpi, stream) = (resident_mpi::init()?, Device::current()?.stream());
    let plate = mpi.grid([POINTS; 2]).halo(1).build()?; // beyond its ends, halos are 0: the walls
    let (mut now, mut next): (Field, Field) = (plate.array(|at| heat(at, 0))?, plate.zeros()?);
    let mut halo = plate.exchange(&now)?;
    let mean = Mean::new("mean", "m = (u + d + l + r) / 4.0", ["u", "d", "l", "r", "m"])
        .host(|(u, d, l, r, m)| *m = (u + d + l + r) / 4.0);
    for _ in 0..STEPS {
        let going = halo.start(&now, &stream)?;
        step(&mean, &plate.core(), &now, &mut next)?;
        going.finish(&mut now)?;
        plate.rims().iter().try_for_each(|rim| step(&mean, rim, &now, &mut next))?;
        std::mem::swap(&mut now, &mut next);
    }
    let Some(plate) = plate.gather(&now, 0)? else { return Ok(()) };
    let error = |((i, j), x): ((usize, usize), &f64)| (x - heat([i, j], STEPS)).abs();
    let error = plate.indexed_iter().map(error).fold(0.0, f64::max);
    println!("{} processes: after {STEPS} steps the error is {error:.1e}", mpi.size());
    let path = env::args().nth(1).unwrap_or("heat_mpi.png".into());
    write_png(&plate.mapv(|x| x as f32), Path::new(&path))?;
    if error < 1e-12 { Ok(()) } else { Err(io::Error::other("the error is above 1e-12").into()) }
}
