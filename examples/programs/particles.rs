//! 100,000 particles: records on the device, whose fields are views. Every 20 steps the host sorts
//! them by the cell in which they are, for which only the positions come down.

use std::process::ExitCode;

use resident::ndarray::Ix1;
use resident::prelude::*;
use resident_example_programs::is_ready;

const COUNT: usize = 100_000;
const CELLS: f32 = 64.0;

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Particle {
    at: [f32; 2],
    velocity: [f32; 2],
}

/// A particle somewhere, by its number.
fn particle(number: usize) -> Particle {
    let random = |salt: usize| ((number * 7919 + salt) * 104_729 % 65_536) as f32 / 65_536.0;
    Particle { at: [random(1), random(2)], velocity: [random(3) - 0.5, random(4) - 0.5] }
}

fn cell([x, y]: [f32; 2]) -> u32 {
    (y * CELLS) as u32 * CELLS as u32 + (x * CELLS) as u32
}

fn main() -> Result<ExitCode> {
    let drift = Kernel::<(f32, InOut<f32, Ix1>, InOut<f32, Ix1>)>::new("drift")
        .require("a speed for each place", |_grid, (_, at, velocity)| at.len() == velocity.len());
    // SAFETY: it accesses elements inside the views only, which are equally long.
    let drift = unsafe { drift.cuda(include_str!("particles.cu")) };
    if !is_ready("particles", drift.prepare(&Device::current()?))? {
        return Ok(ExitCode::FAILURE);
    }
    let mut all = SmartArray::from((0..COUNT).map(particle).collect::<Vec<_>>()).named("particles");
    let (outcome, report) = audit::capture(|| -> Result<()> {
        for step in 1..=200 {
            let (mut x, mut y, mut right, mut down) =
                field_mut!(all, Particle, at[0], at[1], velocity[0], velocity[1]);
            drift.launch(Grid::cover(COUNT), (0.01, &mut x, &mut right))?;
            drift.launch(Grid::cover(COUNT), (0.01, &mut y, &mut down))?;
            if step % 50 == 0 {
                all.host_mut()?.as_slice_mut().expect("in order").sort_by_key(|one| cell(one.at));
            }
        }
        Ok(())
    });
    outcome?;
    println!("{report}");
    println!("the first particle is at {:?}", all.get(0)?.at);
    Ok(ExitCode::SUCCESS)
}
