//! Messages in device memory, which MPI reads and writes: that of the embedded device.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use resident::ndarray::{Array2, Ix1, Ix2, s};
use resident::{Device, DeviceArray, Grid, InOut, Kernel, SmartArray, Stream, Validity, audit};
use resident_mpi::{Error, Mpi, Transport};

use crate::launch::{Job, is_inside, start};

/// Runs `body` in a job for each of these numbers of processes, with messages in device memory.
#[track_caller]
fn run_on_device(jobs: &[usize], body: impl FnOnce(&Mpi, &Stream)) {
    if !is_inside() {
        let job = |processes: &usize| Job::new(*processes).variable("RESIDENT_MPI", "device");
        return jobs.iter().map(job).for_each(Job::expect_success);
    }
    let mpi = start();
    assert_eq!(mpi.transport(), Transport::Device);
    let stream = Device::cpu().new_stream().unwrap();
    let _here = stream.enter();
    body(&mpi, &stream);
}

/// The bytes that `body` moves between host and devices.
fn moved(body: impl FnOnce()) -> [u64; 2] {
    let ((), report) = audit::capture(body);
    [report.traffic().to_device.bytes, report.traffic().to_host.bytes]
}

/// Adds one, late.
fn slowly() -> Kernel<(InOut<f64, Ix2>,)> {
    Kernel::<(InOut<f64, Ix2>,)>::new("slowly").host(|_grid, (mut cells,)| {
        std::thread::sleep(Duration::from_millis(3));
        cells.iter_mut().for_each(|cell| *cell += 1.0);
    })
}

#[test]
fn the_environment_chooses() {
    if is_inside() {
        let expected = std::env::var("EXPECTED").unwrap();
        let text = resident_mpi::init()
            .map_or_else(|error| error.to_string(), |mpi| format!("{}: {mpi:?}", mpi.transport()));
        assert!(text.contains(&expected), "{text}");
        return;
    }
    let wrong =
        |value: &str| format!("RESIDENT_MPI is {value:?}, expected `host`, `device` or `nccl`");
    let cases = [
        ("host", "host memory: Mpi(rank 0 of 1, messages in host memory: RESIDENT_MPI is `host`;"),
        ("device", "messages in device memory: RESIDENT_MPI is `device`;"),
        (" Device ", "messages in device memory: RESIDENT_MPI is `device`;"),
        ("gpus", &wrong("gpus")),
        ("", "messages in host memory"),
    ];
    for (value, expected) in cases {
        let job = Job::new(1).variable("RESIDENT_MPI", value).variable("EXPECTED", expected);
        job.expect_success();
    }
}

fn faces_do_not_move(mpi: &Mpi, stream: &Stream) {
    let plate = mpi.grid([12, 12]).halo(1).periodic([true; 2]).build().unwrap();
    let value = |[i, j]: [usize; 2]| (12 * i + j) as f64;
    let mut now: SmartArray<f64, Ix2> = plate.array(value).unwrap();
    let mut halo = plate.exchange(&now).unwrap();
    drop(now.gpu_mut_on(stream).unwrap());
    let steps = 5;
    let slowly = slowly();
    let bytes = moved(|| {
        for _ in 0..steps {
            // The halo gets what the launch writes, not what was there before.
            let own = &mut plate.interior_mut(&mut now);
            slowly.launch_on(stream, Grid::new(1, 1), (own,)).unwrap();
            halo.start(&now, stream).unwrap().finish(&mut now).unwrap();
        }
    });
    assert_eq!(bytes, [0, 0]);
    let whole: SmartArray<f64, Ix2> = plate.array(|at| value(at) + f64::from(steps)).unwrap();
    let (mut expected, mut found) = (whole.into_array().unwrap(), now.into_array().unwrap());
    let [rows, columns] = plate.local_shape();
    for corner in [[0, 0], [0, columns + 1], [rows + 1, 0], [rows + 1, columns + 1]] {
        (expected[corner], found[corner]) = (0.0, 0.0);
    }
    assert_eq!(found, expected);
}

#[test]
fn faces_stay_on_the_device() {
    run_on_device(&[1, 4], faces_do_not_move);
}

#[test]
fn an_exchange_follows_its_arrays_from_host_to_device_and_back() {
    run_on_device(&[2], |mpi, stream| {
        let ring = mpi.grid([8]).halo(1).periodic([true]).build().unwrap();
        let mut now: SmartArray<f64, Ix1> = ring.zeros().unwrap();
        let mut halo = ring.exchange(&now).unwrap();
        for step in 0..12_u8 {
            let value = f64::from(step) + 0.5 * mpi.rank() as f64;
            match step / 2 % 3 {
                0 => ring.interior_mut(&mut now).host_mut().unwrap().fill(value),
                1 => ring.interior_mut(&mut now).fill_on(stream, value).unwrap(),
                _ => now = SmartArray::from(vec![value; 6]),
            }
            halo.start(&now, stream).unwrap().finish(&mut now).unwrap();
            let other = f64::from(step) + 0.5 * (1 - mpi.rank()) as f64;
            assert_eq!([now.get(0).unwrap(), now.get(5).unwrap()], [other; 2], "step {step}");
        }
    });
}

#[test]
fn messages_of_all_parts_stay_on_the_device() {
    run_on_device(&[2], |mpi, stream| {
        let numbers = Array2::from_shape_fn((300, 200), |(i, j)| (200 * i + j) as f64);
        let mut field = SmartArray::from(numbers.clone());
        let mut array = DeviceArray::from_host_on(stream, &numbers).unwrap();
        let (other, slowly) = (1 - mpi.rank(), slowly());
        drop(field.gpu_mut_on(stream).unwrap());
        let bytes = moved(|| {
            slowly
                .launch_on(stream, Grid::new(1, 1), (&mut field.slice_mut(s![.., 100..]),))
                .unwrap();
            let sending = mpi.isend(&field.slice(s![.., 100..]), other, 0).unwrap();
            mpi.recv(&mut field.slice_mut(s![.., ..100]), other, 0).unwrap();
            sending.wait().unwrap();
            let sending = mpi.isend(&array.slice(s![..;2, ..]), other, 1).unwrap();
            mpi.recv(&mut array.slice_mut(s![1..;2, ..]), other, 1).unwrap();
            sending.wait().unwrap();
        });
        assert_eq!(bytes, [0, 0]);
        let right = &numbers.slice(s![.., 100..]) + 1.0;
        assert_eq!(*field.slice(s![.., ..100]).host().unwrap(), right);
        let odd = array.slice(s![1..;2, ..]).copy_to_host().unwrap();
        assert_eq!(odd, numbers.slice(s![..;2, ..]));
        // What nobody said the place of comes to the host.
        let receiving = mpi.irecv::<f64, Ix2>((300, 100), other, 2).unwrap();
        mpi.send(&field.slice(s![.., 100..]), other, 2).unwrap();
        let received = receiving.wait().unwrap();
        assert_eq!(received.residency().host(), Validity::Valid);
        assert_eq!(received.into_array().unwrap(), right);
    });
}

#[test]
fn a_kernel_that_fails_sends_nothing_of_a_device() {
    run_on_device(&[2], |mpi, stream| {
        if mpi.rank() == 1 {
            let found = mpi.irecv::<f64, Ix1>(4, 0, 0).unwrap().wait().unwrap();
            assert_eq!(found.to_vec().unwrap(), [7.0; 4]);
            return;
        }
        let fails = Kernel::<(InOut<f64>,)>::new("fails").host(|_grid, (_cells,)| {
            std::thread::sleep(Duration::from_millis(3));
            panic!("as it should")
        });
        let mut field = SmartArray::<f64, Ix1>::zeros(4);
        fails.launch_on(stream, Grid::new(1, 1), (&mut field,)).unwrap();
        let error = mpi.send(&field, 1, 0).unwrap_err();
        assert!(matches!(error, Error::Resident(resident::Error::Lost { .. })), "{error}");
        // The failure is still the program's to see.
        assert!(stream.synchronize().is_err());
        mpi.send(&SmartArray::from(vec![7.0; 4]), 1, 0).unwrap();
    });
}

/// A library that stands before MPI: `tested_library.c`.
fn tested_library() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes/tested_library.c");
    let name = format!("resident_mpi_tested_{}.so", std::process::id());
    let library = std::env::temp_dir().join(name);
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(command.status().expect("a C compiler").success());
    library
}

#[test]
fn device_memory_is_used_if_a_test_of_it_succeeds() {
    if is_inside() {
        let mpi = resident_mpi::init().unwrap();
        let expected = std::env::var("EXPECTED").unwrap();
        assert!(format!("{mpi:?}").contains(&expected), "{mpi:?}");
        // The program goes on, whatever became of the test.
        assert_eq!(mpi.all_reduce_value(resident_mpi::Reduce::Sum, 1_u32).unwrap(), 2);
        return;
    }
    let library = tested_library();
    let failed = "a process could not send itself a message of device memory";
    let cases = [
        ("", "device memory: a message of device memory to itself arrived"),
        ("crash", "host memory: a message of device memory to itself ended its process"),
        ("hang", "host memory: a message of device memory to itself did not arrive in time"),
        ("contents", "host memory: a message of device memory arrived with other contents"),
        ("error", failed),
        ("exit", failed),
    ];
    for (how, expected) in cases {
        let mut job = Job::new(2).variable("EXPECTED", expected).variable("TESTED_LIBRARY", how);
        job = job.variable("LD_PRELOAD", library.to_str().unwrap()).without("RESIDENT_MPI");
        if how == "hang" {
            job = job.variable("RESIDENT_MPI_TIMEOUT", "6");
        }
        let ended = job.run();
        assert!(ended.is_success, "{how}: {}", ended.output);
    }
    std::fs::remove_file(library).unwrap();
}

#[test]
fn a_library_that_says_nothing_of_device_memory_gets_none() {
    if is_inside() {
        let mpi = resident_mpi::init().unwrap();
        assert_eq!(mpi.transport(), Transport::Host);
        assert!(format!("{mpi:?}").contains("does not say that it uses device memory"), "{mpi:?}");
        return;
    }
    Job::new(1).without("RESIDENT_MPI").expect_success();
}
