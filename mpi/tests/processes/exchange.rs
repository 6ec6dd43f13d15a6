//! What exchanges move, what overlaps them, and how much memory they take.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use resident::ndarray::Ix2;
use resident::{Device, Emulation, Grid, In, Kernel, Out, SmartArray, audit};
use resident_mpi::{Decomposition, Mpi};

use crate::launch::{resident_bytes, run, run_each};

type Field = SmartArray<f64, Ix2>;
type Blur = Kernel<(In<f64, Ix2>, Out<f64, Ix2>)>;

fn torus(mpi: &Mpi, cells: usize) -> Decomposition<2> {
    mpi.grid([cells; 2]).halo(1).periodic([true; 2]).build().unwrap()
}

/// A step that reads all neighbours within the halo of one cell.
fn blur() -> Blur {
    Blur::new("blur").host(|_grid, (now, mut next)| {
        for ((i, j), x) in next.indexed_iter_mut() {
            *x = 0.5 * now[[i + 1, j + 1]] + 0.125 * (now[[i, j + 1]] + now[[i + 2, j + 1]]);
            *x += 0.125 * (now[[i + 1, j]] + now[[i + 1, j + 2]]);
        }
    })
}

/// The steps of one process, without MPI.
fn alone(cells: usize, steps: usize) -> Vec<f64> {
    let mut now: Vec<f64> = (0..cells * cells).map(|at| start([at / cells, at % cells])).collect();
    let at = |i: usize, j: usize| (i % cells) * cells + j % cells;
    for _ in 0..steps {
        let next = (0..cells * cells).map(|own| {
            let (i, j) = (own / cells + cells, own % cells + cells);
            let mut x = 0.5 * now[at(i, j)] + 0.125 * (now[at(i - 1, j)] + now[at(i + 1, j)]);
            x += 0.125 * (now[at(i, j - 1)] + now[at(i, j + 1)]);
            x
        });
        now = next.collect();
    }
    now
}

fn start([i, j]: [usize; 2]) -> f64 {
    ((7 * i + 13 * j) % 17) as f64
}

/// The bytes of an array that went up, down, and between devices.
fn moved_of(array: &Field) -> [u64; 3] {
    let traffic = array.traffic();
    [traffic.to_device, traffic.to_host, traffic.between_devices].map(|flow| flow.bytes)
}

/// Steps of which the core overlaps the exchange: exactly what one process computes, and only
/// faces move.
fn steps_move_faces_only(mpi: &Mpi) {
    const CELLS: usize = 24;
    const STEPS: usize = 20;
    let device = Device::emulated(Emulation::new().seed(mpi.rank() as u64));
    let _here = device.enter();
    let (stream, grid, blur) = (device.stream(), Grid::new(1, 1), blur());
    let plate = torus(mpi, CELLS);
    let mut now: Field = plate.array(start).unwrap();
    let mut next: Field = plate.zeros().unwrap();
    // Newest on the device, so that all is packed there.
    drop((now.gpu_mut_on(&stream).unwrap(), next.gpu_mut_on(&stream).unwrap()));
    let mut halo = plate.exchange(&now).unwrap();
    let (before, own) = (mpi.traffic(), [moved_of(&now), moved_of(&next)]);
    let (_, report) = audit::capture(|| {
        for _ in 0..STEPS {
            let going = halo.start(&now, &stream).unwrap();
            for part in [plate.core()].into_iter().filter(|part| !part.is_empty()) {
                let arguments = (&part.with_halo().of(&now), &mut part.of_mut(&mut next));
                blur.launch_on(&stream, grid, arguments).unwrap();
            }
            going.finish(&mut now).unwrap();
            for part in plate.rims() {
                let arguments = (&part.with_halo().of(&now), &mut part.of_mut(&mut next));
                blur.launch_on(&stream, grid, arguments).unwrap();
            }
            mem::swap(&mut now, &mut next);
        }
    });
    // Along an axis with one process, cells go nowhere.
    let [rows, columns] = plate.local_shape();
    let axes = plate.processes().into_iter().zip([columns, rows]);
    let sent: Vec<u64> = axes.filter(|(n, _)| *n > 1).map(|(_, cells)| 16 * cells as u64).collect();
    let faces: u64 = sent.iter().sum();
    let (after, moved) = (mpi.traffic(), report.traffic());
    let steps = STEPS as u64;
    assert_eq!(after.sent.bytes - before.sent.bytes, steps * faces);
    assert_eq!(after.received.bytes - before.received.bytes, steps * faces);
    assert_eq!(after.sent.count - before.sent.count, steps * 2 * sent.len() as u64);
    assert_eq!((moved.to_host.bytes, moved.to_device.bytes), (steps * faces, steps * faces));
    assert_eq!(moved.between_devices.bytes, 0);
    // An even number of swaps: these are the same arrays. Only messages moved.
    assert_eq!([moved_of(&now), moved_of(&next)], own);
    let whole = plate.gather(&now, 0).unwrap();
    assert!(whole.is_none_or(|whole| whole.into_raw_vec_and_offset().0 == alone(CELLS, STEPS)));
    device.synchronize().unwrap();
    assert_eq!(device.emulation().unwrap().hazards(), []);
}

#[test]
fn steps_move_only_faces() {
    run_each(&[1, 2, 4, 6], steps_move_faces_only);
}

/// Neither `start` nor `finish` waits for work on the cells that need no halo.
#[test]
fn the_core_overlaps_the_exchange() {
    run(2, |mpi| {
        // Nothing runs before something waits for it.
        let device = Device::emulated(Emulation::new().seed(3));
        let _here = device.enter();
        let (plate, stream) = (torus(mpi, 16), device.stream());
        let mut now: Field = plate.array(start).unwrap();
        let mut next: Field = plate.zeros().unwrap();
        let mut halo = plate.exchange(&now).unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let count = Blur::new("count").host(move |_grid, (now, mut next)| {
            counted.fetch_add(1, Ordering::SeqCst);
            next.fill(now[[1, 1]]);
        });
        for step in 0..3 {
            drop(now.gpu_mut_on(&stream).unwrap());
            let going = halo.start(&now, &stream).unwrap();
            let core = plate.core();
            let arguments = (&core.with_halo().of(&now), &mut core.of_mut(&mut next));
            count.launch_on(&stream, Grid::new(1, 1), arguments).unwrap();
            going.finish(&mut now).unwrap();
            assert_eq!(runs.load(Ordering::SeqCst), step);
            device.synchronize().unwrap();
            assert_eq!(runs.load(Ordering::SeqCst), step + 1);
        }
        assert_eq!(device.emulation().unwrap().hazards(), []);
    });
}

/// After the first fifth of the exchanges, the others take no more memory.
fn exchanges_take_no_more_memory(mpi: &Mpi, exchanges: usize) {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let plate = torus(mpi, 64);
    let mut now: Field = plate.array(start).unwrap();
    let mut halo = plate.exchange(&now).unwrap();
    let mut after_warm_up = (0, 0);
    for step in 0..exchanges {
        let going = halo.start(&now, &device.stream()).unwrap();
        going.finish(&mut now).unwrap();
        if step == exchanges / 5 {
            after_warm_up = (resident_bytes(), device.memory().in_use);
        }
    }
    let (bytes, in_use) = (resident_bytes(), device.memory().in_use);
    assert_eq!(in_use, after_warm_up.1);
    let first = after_warm_up.0;
    assert!(bytes < first + (1 << 20), "{first} bytes after a fifth, {bytes} after all");
}

#[test]
fn ten_thousand_exchanges_take_no_more_memory() {
    run(1, |mpi| exchanges_take_no_more_memory(mpi, 10_000));
}

#[test]
fn exchanges_of_two_processes_take_no_more_memory() {
    run(2, |mpi| exchanges_take_no_more_memory(mpi, 1500));
}
