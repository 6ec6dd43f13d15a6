//! What exchanges and grids refuse, and what they say of neighbours.

use resident::ndarray::{Ix1, Ix2};
use resident::{Device, SmartArray};
use resident_mpi::{Decomposition, Error, Mpi, Side};

use crate::launch::{Job, is_inside, run};
use crate::ring::{halos, ring};

type Field = SmartArray<f64, Ix2>;

#[test]
fn arrays_of_another_shape_are_refused_and_nothing_is_lost() {
    run(2, |mpi| {
        let (ring, mut a) = ring(mpi);
        let mut small = SmartArray::<f64, Ix1>::zeros(3);
        let stream = Device::cpu().stream();
        assert!(matches!(ring.exchange(&small), Err(Error::Argument { .. })));
        let mut halo = ring.exchange(&a).unwrap();
        let error = halo.start(&small, &stream).expect_err("an error").to_string();
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

/// A job of two processes of which the second never does what the first waits for. The first checks
/// the error, and ends the job.
fn one_never_comes(told: &str, first: fn(&Decomposition<2>, Field), second: fn(&Decomposition<2>)) {
    let body = |mpi: &Mpi| {
        let plate = mpi.grid([8, 8]).halo(1).processes([1, 2]).build().unwrap();
        if mpi.rank() == 0 {
            first(&plate, plate.zeros().unwrap());
            println!("all was as expected");
            return;
        }
        second(&plate);
        std::thread::sleep(std::time::Duration::from_secs(60));
    };
    if is_inside() {
        return body(&resident_mpi::init().unwrap());
    }
    let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "2").run();
    assert!(!ended.is_success, "{}", ended.output);
    assert!(ended.output.contains("all was as expected"), "{}", ended.output);
    assert!(ended.output.contains(told), "{}", ended.output);
    assert!(ended.took.as_secs() < 20, "{:?}", ended.took);
}

fn is_of_the_second(error: Error) {
    println!("told: {error}");
    let Error::TimedOut { rank, axis, side, .. } = error else { panic!("{error}") };
    assert_eq!((rank, axis, side), (Some(1), Some(1), Some(Side::High)));
}

#[test]
fn a_neighbour_that_never_starts_is_named() {
    one_never_comes(
        "told: `Going::finish`: rank 1, axis 1, high side did not answer within 2s;",
        |plate, mut a| {
            let mut halo = plate.exchange(&a).unwrap();
            let going = halo.start(&a, &Device::cpu().stream()).unwrap();
            is_of_the_second(going.finish(&mut a).unwrap_err());
            assert_eq!(plate.interior(&a).sum().unwrap(), 0.0, "the array is usable");
            is_of_the_second(halo.unfinished().unwrap().finish(&mut a).unwrap_err());
        },
        |plate| drop(plate.exchange(&plate.zeros::<f64>().unwrap()).unwrap()),
    );
}

/// MPI may still write the halo of an array that the program would get back.
#[test]
fn a_neighbour_that_never_updates_ends_the_job() {
    one_never_comes(
        "rank 0 of 2 ends the job: `Exchange::update`: rank 1, axis 1, high side did not answer",
        |plate, _| {
            println!("all was as expected");
            let mut a: Field = plate.array(|[i, j]| (i * j) as f64).unwrap();
            let _ = plate.exchange(&a).unwrap().update(&mut a, &Device::cpu().stream());
            println!("told: an error");
        },
        |plate| drop(plate.exchange(&plate.zeros::<f64>().unwrap()).unwrap()),
    );
}

#[test]
fn a_neighbour_that_describes_no_exchange_is_named() {
    one_never_comes(
        "told: `Decomposition::exchange`: rank 1, axis 1, high side did not answer within 2s;",
        |plate, a| is_of_the_second(plate.exchange(&a).unwrap_err()),
        |_plate| {},
    );
}
