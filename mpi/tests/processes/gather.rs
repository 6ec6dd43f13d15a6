//! Whole arrays on one process: gathered, scattered, refused.

use resident::ndarray::{Array2, Array3, Ix1, Ix2, Ix3};
use resident::{Device, Emulation, SmartArray};
use resident_mpi::{Error, Mpi};

use crate::launch::{run, run_each};

fn value([i, j, k]: [usize; 3]) -> i32 {
    (10_000 * i + 100 * j + k) as i32 + 1
}

/// Each process is the root once. The parts differ in size, and some have no cells.
fn whole_arrays_come_and_go(mpi: &Mpi) {
    let device = Device::emulated(Emulation::new().seed(7));
    let _here = device.enter();
    for (shape, halos) in [([7, 6, 5], [1, 0, 2]), ([1, 2, 40], [0, 0, 1]), ([0, 3, 4], [0; 3])] {
        let grid = mpi.grid(shape).halos(halos).periodic([false, true, false]);
        let plate = grid.build().unwrap();
        let whole = Array3::from_shape_fn(shape, |(i, j, k)| value([i, j, k]));
        for root in 0..mpi.size() {
            let mut a: SmartArray<i32, Ix3> = plate.array(value).unwrap();
            if root % 2 == 0 {
                drop(a.gpu_mut().unwrap());
            }
            let gathered = plate.gather(&a, root).unwrap();
            assert_eq!(gathered, (mpi.rank() == root).then_some(whole.clone()));
            let global = (mpi.rank() == root).then_some(&whole);
            let scattered = plate.scatter(global, root).unwrap();
            assert_eq!(scattered.host().unwrap(), a.host().unwrap().view());
        }
    }
    device.synchronize().unwrap();
    assert_eq!(device.emulation().unwrap().hazards(), []);
}

#[test]
fn whole_arrays_come_and_go_on_each_process() {
    run_each(&[1, 3, 4], whole_arrays_come_and_go);
}

/// Of one process's error the others hear at once, and the next call works.
#[test]
fn a_process_with_an_error_keeps_none_waiting() {
    run(3, |mpi| {
        let line = mpi.grid([9]).halo(1).build().unwrap();
        let (good, bad) = (line.zeros::<f32>().unwrap(), SmartArray::<f32, Ix1>::zeros(2));
        let outcome = line.gather(if mpi.rank() == 1 { &bad } else { &good }, 0);
        match (mpi.rank(), outcome) {
            (0, Err(Error::Mismatch { rank: 1, found, .. })) => {
                assert!(found.starts_with("nothing, after an error"), "{found}");
            }
            (1, Err(Error::Argument { .. })) | (2, Ok(None)) => {}
            (_, other) => panic!("{other:?}"),
        }
        let outcome = line.scatter::<f32>(None, 2);
        match (mpi.rank(), outcome) {
            (2, Err(Error::Argument { text, .. })) => assert!(text.starts_with("no array")),
            (_, Err(Error::Mismatch { rank: 2, .. })) => {}
            (_, other) => panic!("{other:?}"),
        }
        assert!(matches!(line.gather(&good, 3), Err(Error::Argument { .. })));
        assert!(line.gather(&good, 0).is_ok_and(|whole| whole.is_some() == (mpi.rank() == 0)));
    });
}

#[test]
fn other_element_types_are_told() {
    run(2, |mpi| {
        let plate = mpi.grid([6, 4]).build().unwrap();
        let (a, b) = (plate.zeros::<f64>().unwrap(), plate.zeros::<u16>().unwrap());
        let outcome = match mpi.rank() {
            0 => plate.gather(&a, 0).map(drop),
            _ => plate.gather(&b, 0).map(drop),
        };
        match outcome {
            Err(Error::Mismatch { rank: 1, expected, found, .. }) => {
                assert_eq!((&*expected, &*found), ("f64 of shape [3, 4]", "u16 of shape [3, 4]"));
            }
            other => assert!(mpi.rank() == 1 && other.is_ok(), "{other:?}"),
        }
        let whole = (mpi.rank() == 0).then(|| Array2::<f64>::ones((6, 4)));
        let outcome = match mpi.rank() {
            0 => plate.scatter(whole.as_ref(), 0).map(drop),
            _ => plate.scatter::<u64>(None, 0).map(drop),
        };
        assert!(matches!((mpi.rank(), outcome), (0, Ok(())) | (1, Err(Error::Mismatch { .. }))));
        let a: SmartArray<f64, Ix2> = plate.scatter(whole.as_ref(), 0).unwrap();
        assert_eq!(a.sum().unwrap(), 12.0);
    });
}
