//! Each call of the device fails, one in each run, when it is submitted and when it is executed: an
//! exchange then works when what failed is repeated.

use resident::ndarray::Ix2;
use resident::{Device, Emulation, Fault, Grid, Kernel, Out, SmartArray};
use resident_mpi::{Decomposition, Error, Exchange, Mpi, Result};

use crate::launch::run;

type Field = SmartArray<f64, Ix2>;

/// More runs than there are calls.
const RUNS: u64 = 400;

fn value([i, j]: [usize; 2], step: usize) -> f64 {
    (100 * i + 10 * j + 1000 * step) as f64
}

/// The result of an operation that is tried up to three times, as a fault may be reported late.
fn repeated<T>(mut operation: impl FnMut() -> Result<T>) -> T {
    for _ in 0..2 {
        match operation() {
            Ok(value) => return value,
            Err(Error::Resident(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    operation().expect("what failed once works when it is repeated")
}

/// Writes the own cells on the device.
fn write(plate: &Decomposition<2>, now: &mut Field, step: usize) -> Result<()> {
    let offset = plate.offset();
    let write = Kernel::<(Out<f64, Ix2>,)>::new("write").host(move |_grid, (mut own,)| {
        for ((i, j), x) in own.indexed_iter_mut() {
            *x = value([offset[0] + i, offset[1] + j], step);
        }
    });
    Ok(write.launch(Grid::new(1, 1), (&mut plate.interior_mut(now),))?)
}

/// Writes the cells, exchanges them, and reads the halo.
fn step(
    plate: &Decomposition<2>,
    halo: &mut Exchange<(f64,), 2>,
    now: &mut Field,
    step: usize,
) -> Result<Vec<f64>> {
    write(plate, now, step)?;
    let stream = Device::current()?.stream();
    drop(halo.start(&*now, &stream)?);
    repeated(|| halo.unfinished().map_or(Ok(()), |going| going.finish(&mut *now)));
    Ok(now.to_vec()?)
}

/// One run; returns whether the fault came.
fn is_survived(mpi: &Mpi, fault: Fault, nth: u64) -> bool {
    let device = Device::emulated(Emulation::new().fail(fault));
    let _here = device.enter();
    let grid = mpi.grid([6, 4]).halos([2, 1]).periodic([true; 2]).corners(true);
    let plate = grid.build().unwrap();
    let mut now: Field = plate.zeros().unwrap();
    let mut halo = repeated(|| plate.exchange(&now));
    for number in 0..2 {
        let found = repeated(|| step(&plate, &mut halo, &mut now, number));
        let expected: Field = plate.array(|index| value(index, number)).unwrap();
        assert_eq!(found, expected.to_vec().unwrap(), "call {nth}, step {number}");
    }
    let _reported_once = device.synchronize();
    device.emulation().unwrap().calls().len() as u64 >= nth
}

fn faults_are_survived(fault: fn(u64) -> Fault) {
    run(1, |mpi| {
        let survived = (1..RUNS).take_while(|nth| is_survived(mpi, fault(*nth), *nth)).count();
        assert!((20..RUNS as usize - 1).contains(&survived), "{survived} calls");
    });
}

#[test]
fn calls_that_fail_when_they_are_submitted() {
    faults_are_survived(Fault::nth);
}

#[test]
fn calls_that_fail_when_they_are_executed() {
    faults_are_survived(|nth| Fault::nth(nth).late());
}
