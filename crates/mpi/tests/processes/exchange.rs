//! What exchanges move, what they refuse, and what becomes of those that are not finished.

use std::mem::{self, ManuallyDrop};

use resident::ndarray::{Ix1, Ix2};
use resident::{Device, Emulation, Grid, In, Kernel, Out, SmartArray, audit};
use resident_mpi::{Decomposition, Error, Exchange, Mpi, Side};

use crate::launch::{Job, is_inside, run};

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
    let [rows, columns] = plate.local_shape();
    let faces = (2 * (rows + columns) * size_of::<f64>()) as u64;
    let (after, moved) = (mpi.traffic(), report.traffic());
    let steps = STEPS as u64;
    assert_eq!(after.sent.bytes - before.sent.bytes, steps * faces);
    assert_eq!(after.received.bytes - before.received.bytes, steps * faces);
    assert_eq!(after.sent.count - before.sent.count, steps * 4);
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
fn steps_of_one_process_move_faces_only() {
    run(1, steps_move_faces_only);
}

#[test]
fn steps_of_two_processes_move_faces_only() {
    run(2, steps_move_faces_only);
}

#[test]
fn steps_of_four_processes_move_faces_only() {
    run(4, steps_move_faces_only);
}

#[test]
fn steps_of_six_processes_move_faces_only() {
    run(6, steps_move_faces_only);
}

/// A ring of which each cell holds its index, halo included.
fn ring(mpi: &Mpi) -> (Decomposition<1>, SmartArray<f64, Ix1>) {
    let ring = mpi.grid([12]).halo(1).periodic([true]).build().unwrap();
    let array = ring.array(|[i]| i as f64).unwrap();
    (ring, array)
}

/// Adds to the own cells only.
fn add(ring: &Decomposition<1>, array: &mut SmartArray<f64, Ix1>, value: f64) {
    ring.interior_mut(array).host_mut().unwrap().iter_mut().for_each(|x| *x += value);
}

fn halos(array: &SmartArray<f64, Ix1>) -> [f64; 2] {
    let cells = array.host().unwrap();
    [cells[0], cells[cells.len() - 1]]
}

#[test]
fn an_exchange_that_was_dropped_or_forgotten_can_be_finished() {
    run(3, |mpi| {
        let (ring, mut a) = ring(mpi);
        let mut halo = ring.exchange(&a).unwrap();
        let stream = Device::cpu().stream();
        let first = halos(&a);
        for (step, forget) in [(1.0, true), (2.0, false)] {
            let before = halos(&a);
            add(&ring, &mut a, 100.0);
            let going = halo.start(&a, &stream).unwrap();
            if forget {
                let _forgotten = ManuallyDrop::new(going);
            }
            assert_eq!(halos(&a), before, "nothing was received");
            let error = halo.start(&a, &stream).err().expect("an error").to_string();
            assert!(error.contains("started before and not finished"), "{error}");
            // What was sent is what the cells held at the start.
            add(&ring, &mut a, 1000.0);
            halo.unfinished().expect("one is not finished").finish(&mut a).unwrap();
            add(&ring, &mut a, -1000.0);
            assert_eq!(halos(&a), first.map(|x| x + 100.0 * step));
            assert!(halo.unfinished().is_none());
        }
        halo.start(&a, &stream).unwrap().finish(&mut a).unwrap();
    });
}

/// The world waits for the messages that are on their way.
#[test]
fn an_exchange_can_be_dropped_while_messages_travel() {
    run(4, |mpi| {
        let (ring, a) = ring(mpi);
        for _ in 0..10 {
            let mut halo = ring.exchange(&a).unwrap();
            drop(halo.start(&a, &Device::cpu().stream()).unwrap());
        }
        let mut halo = ring.exchange(&a).unwrap();
        let _forgotten = ManuallyDrop::new(halo.start(&a, &Device::cpu().stream()).unwrap());
        mem::forget(halo);
    });
}

#[test]
fn exchanges_in_another_order_do_not_mix() {
    run(3, |mpi| {
        let (ring, mut a) = ring(mpi);
        let mut b: SmartArray<f64, _> = ring.array(|[i]| -(i as f64)).unwrap();
        let (mut one, mut other) = (ring.exchange(&a).unwrap(), ring.exchange(&b).unwrap());
        let expected = (halos(&a), halos(&b));
        let stream = Device::cpu().stream();
        let (first, second) = if mpi.rank() == 1 {
            let second = other.start(&b, &stream).unwrap();
            (one.start(&a, &stream).unwrap(), second)
        } else {
            (one.start(&a, &stream).unwrap(), other.start(&b, &stream).unwrap())
        };
        for array in [&mut a, &mut b] {
            let len = array.len();
            array.set(0, 77.0).unwrap();
            array.set(len - 1, 77.0).unwrap();
        }
        second.finish(&mut b).unwrap();
        first.finish(&mut a).unwrap();
        assert_eq!((halos(&a), halos(&b)), expected);
    });
}

#[test]
fn arrays_of_another_shape_are_refused_and_nothing_is_lost() {
    run(2, |mpi| {
        let (ring, mut a) = ring(mpi);
        let mut small = SmartArray::<f64, Ix1>::zeros(3);
        let stream = Device::cpu().stream();
        assert!(matches!(ring.exchange(&small), Err(Error::Argument { .. })));
        let mut halo = ring.exchange(&a).unwrap();
        let error = halo.start(&small, &stream).err().expect("an error").to_string();
        let text = "`Exchange::start`: array 0 has shape [3], expected [8]: this process's part";
        assert!(error.starts_with(text), "{error}");
        let expected = halos(&a);
        let going = halo.start(&a, &stream).unwrap();
        a.set(0, 77.0).unwrap();
        assert!(matches!(going.finish(&mut small), Err(Error::Argument { .. })));
        halo.unfinished().expect("it is not finished").finish(&mut a).unwrap();
        assert_eq!(halos(&a), expected);
    });
}

/// What this process and its neighbours describe differently is told to both.
fn mismatch<const N: usize>(mpi: &Mpi, plate: &Decomposition<N>, outcome: Option<Error>) -> String {
    let Some(Error::Mismatch { operation, rank, axis, side, expected, found }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(operation, "Decomposition::exchange");
    assert_ne!(rank, mpi.rank());
    assert_eq!(plate.neighbour(axis.unwrap(), side.unwrap()), Some(rank));
    assert_ne!(expected, found);
    found
}

#[test]
fn halos_of_other_widths_are_told() {
    run(2, |mpi| {
        let plate = mpi.grid([8, 8]).halo(1 + mpi.rank()).build().unwrap();
        let a: Field = plate.zeros().unwrap();
        let found = mismatch(mpi, &plate, plate.exchange(&a).err());
        let width = 2 - mpi.rank();
        assert!(found.starts_with(&format!("halos [{width}, {width}] of f64")), "{found}");
    });
}

#[test]
fn other_types_numbers_and_corners_are_told() {
    run(2, |mpi| {
        let plate = mpi.grid([8, 8]).halo(1).build().unwrap();
        let (a, b) = (plate.zeros::<f64>().unwrap(), plate.zeros::<u64>().unwrap());
        let is_first = mpi.rank() == 0;
        let outcome = if is_first { plate.exchange(&a).err() } else { plate.exchange(&b).err() };
        mismatch(mpi, &plate, outcome);
        let outcome =
            if is_first { plate.exchange(&a).err() } else { plate.exchange((&a, &a)).err() };
        mismatch(mpi, &plate, outcome);
        let plate = mpi.grid([8, 8]).halo(1).corners(is_first).build().unwrap();
        mismatch(mpi, &plate, plate.exchange(&a).err());
        // A grid that all describe alike works after that.
        let (ring, mut a) = ring(mpi);
        let mut halo = ring.exchange(&a).unwrap();
        halo.start(&a, &Device::cpu().stream()).unwrap().finish(&mut a).unwrap();
    });
}

#[test]
fn grids_that_cannot_work_are_told() {
    run(2, |mpi| {
        let told = |error: Option<Error>| error.expect("an error").to_string();
        assert_eq!(
            told(mpi.grid([8, 8]).processes([3, 1]).build().err()),
            "`GridBuilder::build`: the grid has [3, 1] processes along its axes, but the job has 2 \
             processes; set numbers of which the product is 2 by `processes`, or start the job \
             with another number"
        );
        let error = told(mpi.grid([8]).halo(5).build().err());
        assert!(error.contains("halo of axis 0 is 5 cells wide"), "{error}");
        assert!(mpi.grid([8, 8]).processes([usize::MAX, 3]).build().is_err());
        assert!(mpi.grid([]).build().is_err());
        let plate = mpi.grid([usize::MAX / 4, 4]).processes([1, 2]).build().unwrap();
        assert!(matches!(plate.zeros::<f64>(), Err(Error::Argument { .. })));
        assert!(matches!(plate.array(|_| 0.0), Err(Error::Argument { .. })));
        let plate = mpi.grid([8, 8]).processes([1, 2]).build().unwrap();
        assert_eq!(plate.neighbour(0, Side::Low), None);
        assert_eq!(plate.neighbour(1, Side::High), (mpi.rank() == 0).then_some(1));
        assert_eq!(plate.neighbour(2, Side::High), None);
        assert_eq!((plate.processes(), plate.coordinates()), ([1, 2], [0, mpi.rank()]));
        assert_eq!((plate.local_shape(), plate.offset()), ([8, 4], [0, 4 * mpi.rank()]));
    });
}

/// A neighbour that never starts is named, with axis and side, and the job ends.
#[test]
fn a_neighbour_that_never_comes_is_named() {
    let body = |mpi: &Mpi| {
        let plate = mpi.grid([8, 8]).halo(1).processes([1, 2]).build().unwrap();
        let mut a: Field = plate.zeros().unwrap();
        let mut halo = plate.exchange(&a).unwrap();
        if mpi.rank() == 1 {
            // The other process ends the job.
            std::thread::sleep(std::time::Duration::from_secs(60));
            return;
        }
        let going = halo.start(&a, &Device::cpu().stream()).unwrap();
        let error = going.finish(&mut a).expect_err("nobody sends");
        println!("told: {error}");
        let Error::TimedOut { rank, axis, side, .. } = error else { panic!("{error}") };
        assert_eq!((rank, axis, side), (Some(1), Some(1), Some(Side::High)));
        assert_eq!(plate.interior(&a).sum().unwrap(), 0.0, "the array is usable");
        assert!(matches!(halo.unfinished().unwrap().finish(&mut a), Err(Error::TimedOut { .. })));
        println!("all was as expected");
    };
    if is_inside() {
        return body(&resident_mpi::init().unwrap());
    }
    let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "2").run();
    assert!(!ended.is_success, "{}", ended.output);
    let told = "told: `Going::finish`: rank 1, axis 1, high side did not answer within 2s;";
    assert!(ended.output.contains(told), "{}", ended.output);
    assert!(ended.output.contains("all was as expected"), "{}", ended.output);
    assert!(ended.took.as_secs() < 20, "{:?}", ended.took);
}

/// Kilobytes of memory that this process has.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
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
            after_warm_up = (resident_kb(), device.memory().in_use);
        }
    }
    let (kb, in_use) = (resident_kb(), device.memory().in_use);
    assert_eq!(in_use, after_warm_up.1);
    let first = after_warm_up.0;
    assert!(kb < first + 1024, "{first} kB after a fifth of the exchanges, {kb} kB after all");
}

#[test]
fn ten_thousand_exchanges_take_no_more_memory() {
    run(1, |mpi| exchanges_take_no_more_memory(mpi, 10_000));
}

#[test]
fn exchanges_of_two_processes_take_no_more_memory() {
    run(2, |mpi| exchanges_take_no_more_memory(mpi, 1500));
}

/// Cells that cannot be packed are an error of one process, which can start again.
#[test]
fn a_start_that_failed_can_be_repeated() {
    run(2, |mpi| {
        let device = Device::emulated(Emulation::new());
        let _here = device.enter();
        let (ring, mut a) = ring(mpi);
        let expected = halos(&a);
        let mut halo: Exchange<(f64,), 1> = ring.exchange(&a).unwrap();
        if mpi.rank() == 0 {
            let unwritten = SmartArray::<f64, Ix1>::uninit(a.len());
            let error = halo.start(&unwritten, &device.stream()).err().expect("an error");
            let is_uninitialised =
                matches!(error, Error::Resident(resident::Error::Uninitialised { .. }));
            assert!(is_uninitialised, "{error}");
            let lost = lost(a.len());
            let error = halo.start(&lost, &device.stream()).err().expect("an error");
            assert!(matches!(error, Error::Resident(resident::Error::Lost { .. })), "{error}");
            assert!(halo.unfinished().is_none());
            let _reported_once = device.synchronize();
        }
        let last = a.len() - 1;
        a.set(0, 77.0).unwrap();
        a.set(last, 77.0).unwrap();
        for _ in 0..2 {
            halo.start(&a, &device.stream()).unwrap().finish(&mut a).unwrap();
            assert_eq!(halos(&a), expected);
        }
    });
}

/// An array of which a kernel that panics was to write the cells.
fn lost(len: usize) -> SmartArray<f64, Ix1> {
    let mut array = SmartArray::zeros(len);
    let fail = Kernel::<(Out<f64, Ix1>,)>::new("fail").host(|_grid, _out| panic!("as planned"));
    fail.launch(Grid::new(1, 1), (&mut array,)).unwrap();
    array
}

/// Once MPI is finalised, what was made of it says so.
#[test]
fn exchanges_outlive_mpi_and_say_so() {
    let body = |mpi: Mpi| {
        let (ring, a) = ring(&mpi);
        let mut halo = ring.exchange(&a).unwrap();
        let stream = Device::cpu().stream();
        let mut a = a;
        halo.start(&a, &stream).unwrap().finish(&mut a).unwrap();
        drop((ring, mpi));
        let error = halo.start(&a, &stream).err().expect("an error").to_string();
        assert!(error.contains("MPI is finalised"), "{error}");
    };
    if is_inside() {
        return body(resident_mpi::init().unwrap());
    }
    let ended = Job::new(2).run();
    assert!(ended.is_success, "{}", ended.output);
}
