//! Steps of the heat equation on a square torus, whole: the exchange and the means of neighbours.

use std::mem;

use resident::ndarray::Ix2;
use resident::{Device, Grid, In, Kernel, Out, SmartArray};
use resident_mpi::{Decomposition, Mpi, Result};

use crate::by_hand::ByHand;
use crate::{neighbours, per_step, print};

/// Along each axis: of a process's part where all have as many, and of the whole plate.
const CELLS_OF_PART: usize = 1024;
const CELLS_OF_PLATE: usize = 2048;

type Field = SmartArray<f64, Ix2>;

pub(crate) fn rows(mpi: &Mpi) -> Result<()> {
    let part = CELLS_OF_PART;
    let grown = match mpi.size() {
        1 => [part, part],
        2 => [2 * part, part],
        _ => [2 * part, 2 * part],
    };
    row(mpi, &format!("heat, {part} x {part} cells each"), grown)?;
    let plate = CELLS_OF_PLATE;
    row(mpi, &format!("heat, {plate} x {plate} cells in all"), [plate; 2])
}

fn row(mpi: &Mpi, name: &str, shape: [usize; 2]) -> Result<()> {
    let plate = mpi.grid(shape).halo(1).periodic([true; 2]).build()?;
    let [rows, columns] = plate.local_shape();
    let width = columns + 2;
    let mut now = ByHand::new([rows, columns], [0, 1].map(|axis| neighbours(&plate, axis)));
    let mut next = now.cells.clone();
    let mut by_hand = || {
        now.exchange();
        let mut outs = next.chunks_exact_mut(width).skip(1);
        for (row, out) in (1..=rows).zip(&mut outs) {
            let line = |row: usize| &now.cells[row * width..][..width];
            means([line(row - 1), line(row), line(row + 1)], &mut out[1..=columns]);
        }
        mem::swap(&mut now.cells, &mut next);
    };
    let (mut in_turn, mut overlapping) = (Run::new(&plate)?, Run::new(&plate)?);
    let times = per_step(
        mpi,
        &mut [&mut by_hand, &mut || step_in_turn(&mut in_turn).expect("a step"), &mut || {
            step_overlapping(&mut overlapping).expect("one");
        }],
    )?;
    print(mpi, name, &times);
    Ok(())
}

type Step = Kernel<(In<f64, Ix2>, Out<f64, Ix2>)>;
type Halo = resident_mpi::Exchange<(f64,), 2>;

/// What a step needs.
struct Run<'a> {
    plate: &'a Decomposition<2>,
    halo: Halo,
    step: Step,
    now: Field,
    next: Field,
}

impl<'a> Run<'a> {
    fn new(plate: &'a Decomposition<2>) -> Result<Self> {
        let now: Field = plate.array(|[i, j]| ((i + j) % 7) as f64)?;
        let (next, halo) = (plate.zeros()?, plate.exchange(&now)?);
        let step = Step::new("heat").host(|_grid, (now, mut next)| {
            for (row, mut out) in next.rows_mut().into_iter().enumerate() {
                let line = |row| now.row(row).to_slice().expect("a row");
                let lines = [row, row + 1, row + 2].map(line);
                means(lines, out.as_slice_mut().expect("a row"));
            }
        });
        Ok(Self { plate, halo, step, now, next })
    }
}

fn step_in_turn(run: &mut Run<'_>) -> Result<()> {
    let stream = Device::cpu().stream();
    run.halo.update(&mut run.now, &stream)?;
    let out = &mut run.plate.interior_mut(&mut run.next);
    run.step.launch_on(&stream, Grid::new(1, 1), (&run.now, out))?;
    mem::swap(&mut run.now, &mut run.next);
    Ok(())
}

fn step_overlapping(run: &mut Run<'_>) -> Result<()> {
    let stream = Device::cpu().stream();
    let going = run.halo.start(&run.now, &stream)?;
    let core = run.plate.core();
    let mut launch = |cells: &resident_mpi::Cells<2>, now: &Field| -> Result<()> {
        let arguments = (&cells.with_halo().of(now), &mut cells.of_mut(&mut run.next));
        Ok(run.step.launch_on(&stream, Grid::new(1, 1), arguments)?)
    };
    launch(&core, &run.now)?;
    going.finish(&mut run.now)?;
    run.plate.rims().iter().try_for_each(|rim| launch(rim, &run.now))?;
    mem::swap(&mut run.now, &mut run.next);
    Ok(())
}

/// The means of the four neighbours of the cells of a row, all but its ends.
fn means([above, row, below]: [&[f64]; 3], out: &mut [f64]) {
    let sides = row.iter().zip(&row[2..]).map(|(left, right)| left + right);
    let ends = above[1..].iter().zip(&below[1..]).map(|(above, below)| above + below);
    for ((out, sides), ends) in out.iter_mut().zip(sides).zip(ends) {
        *out = 0.25 * (sides + ends);
    }
}
