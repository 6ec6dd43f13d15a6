//! Global arrays in files.

use std::path::PathBuf;

use resident::ndarray::{Ix1, Ix2, Ix3};
use resident::{Device, Emulation, SmartArray};
use resident_mpi::{Error, Mpi};

use crate::launch::{run, run_each};

/// A path of this test, the same in all its processes.
fn path(name: &str) -> PathBuf {
    let test = std::thread::current().name().unwrap().replace("::", "-");
    std::env::temp_dir().join(format!("resident-mpi-{test}-{name}"))
}

/// Removes it once all processes are done with it.
fn remove(mpi: &Mpi, path: &PathBuf) {
    mpi.barrier().unwrap();
    if mpi.rank() == 0 {
        std::fs::remove_file(path).unwrap();
    }
}

fn value([i, j, k]: [usize; 3]) -> u16 {
    (1000 * i + 50 * j + k) as u16
}

/// The file has the elements in row-major order and nothing else, whatever was in it before.
fn files_hold_global_arrays(mpi: &Mpi) {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let path = path("array");
    if mpi.rank() == 0 {
        std::fs::write(&path, vec![255; 10_000]).unwrap();
    }
    mpi.barrier().unwrap();
    for (shape, halos) in [([5, 7, 9], [1, 0, 2]), ([2, 1, 3], [0; 3]), ([4, 0, 3], [0; 3])] {
        let plate = mpi.grid(shape).halos(halos).build().unwrap();
        let mut a: SmartArray<u16, Ix3> = plate.array(value).unwrap();
        drop(a.gpu_mut().unwrap());
        plate.write(&a, &path).unwrap();
        mpi.barrier().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let [planes, rows, columns] = shape;
        let cells = (0..planes * rows * columns)
            .map(|at| [at / (rows * columns), at / columns % rows, at % columns]);
        let expected: Vec<u8> = cells.flat_map(|cell| value(cell).to_ne_bytes()).collect();
        assert_eq!(bytes, expected);
        let again: SmartArray<u16, Ix3> = plate.read(&path).unwrap();
        assert_eq!(again.shape(), a.shape());
        let own = |array| plate.interior(array).to_vec().unwrap();
        assert_eq!(own(&again), own(&a));
        assert_eq!(again.to_vec().unwrap().iter().map(|x| u64::from(*x)).sum::<u64>(), {
            own(&a).iter().map(|x| u64::from(*x)).sum::<u64>()
        });
    }
    remove(mpi, &path);
}

#[test]
fn files_hold_global_arrays_of_all_processes() {
    run_each(&[1, 4, 6], files_hold_global_arrays);
}

#[test]
fn files_that_cannot_be_used_are_told_to_all() {
    run(2, |mpi| {
        let line = mpi.grid([10]).halo(1).build().unwrap();
        let path = path("line");
        let a: SmartArray<f64, Ix1> = line.array(|[i]| i as f64).unwrap();
        let missing = path.join("missing").join("folder");
        for outcome in [line.write(&a, &missing), line.read::<f64>(&missing).map(drop)] {
            let Err(Error::Mpi { call: "MPI_File_open", text, .. }) = outcome else {
                panic!("{outcome:?}")
            };
            assert!(text.contains("missing/folder") && text.contains("MPI-IO"), "{text}");
        }
        line.write(&a, &path).unwrap();
        let error = line.read::<f32>(&path).expect_err("another type").to_string();
        assert!(error.contains("has 80 bytes, expected 40: elements of f32 in shape [10]"));
        // One process has another array, or another path: no file is touched.
        let small = SmartArray::<f64, Ix1>::zeros(3);
        let outcome = line.write(if mpi.rank() == 0 { &a } else { &small }, &path);
        match (mpi.rank(), outcome) {
            (0, Err(Error::Mismatch { rank: 1, found, .. })) => {
                assert!(found.contains("which failed") && found.contains("shape [3]"), "{found}");
            }
            (1, Err(Error::Argument { .. })) => {}
            other => panic!("{other:?}"),
        }
        let other = path.with_extension(mpi.rank().to_string());
        assert!(matches!(line.write(&a, other), Err(Error::Mismatch { .. })));
        assert!(matches!(line.write(&a, "zero\0"), Err(Error::Argument { .. })));
        let again: SmartArray<f64, Ix1> = line.read(&path).unwrap();
        assert_eq!(line.interior(&again).to_vec().unwrap(), line.interior(&a).to_vec().unwrap());
        let plate = mpi.grid([2, 2]).build().unwrap();
        let units: SmartArray<(), Ix2> = plate.zeros().unwrap();
        plate.write(&units, &path).unwrap();
        assert_eq!(plate.read::<()>(&path).unwrap().len(), plate.own().len());
        remove(mpi, &path);
    });
}
