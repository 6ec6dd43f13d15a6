//! Exchanges and collective operations by NCCL: by what stands for it, between processes that have
//! a GPU of the stand-in driver each.

use std::time::{Duration, Instant};

use resident::ndarray::{Array2, Ix1, s};
use resident::{Device, DeviceArray, SmartArray, audit};
use resident_mpi::{Error, Mpi, Reduce, Side, Transport};
use resident_stand_in::Settings;
use rustix::process::{Signal, getpid, kill_process};

use crate::collectives::check_all_types;
use crate::exchange_random::random_cases;
use crate::launch::{Ended, Job, is_inside, start};
use crate::ring::{halos, ring};

/// Loads a driver with so many GPUs, and NCCL, before MPI is initialised, which looks for them.
fn load(gpus: u32) {
    let settings = Settings::new().devices(gpus);
    resident_stand_in::load(settings).expect("the stand-in driver loads");
    resident_stand_in_nccl::load().expect("what stands for NCCL loads");
}

/// Runs `body` in a job for each of these numbers of processes, which use NCCL.
#[track_caller]
fn run_each(jobs: &[usize], body: impl FnOnce(&Mpi)) {
    if is_inside() {
        load(8);
        let mpi = start();
        assert_eq!(mpi.transport(), Transport::Nccl, "{mpi:?}");
        assert_eq!(Device::current().unwrap(), Device::cuda(mpi.rank()).unwrap());
        body(&mpi);
        assert_eq!(resident_stand_in::take_hazards(), Vec::<String>::new());
        return;
    }
    jobs.iter().for_each(|processes| Job::new(*processes).expect_success());
}

/// Each of two processes is the other's neighbour on both sides of each axis.
#[test]
fn random_exchanges() {
    run_each(&[1, 2, 4], |mpi| {
        let gpu = |_seed| Device::current().unwrap();
        random_cases(mpi, 25, gpu, |_device| resident_stand_in::take_hazards());
    });
}

/// What a step of a torus moves and records, and that no message touches the host.
fn faces_go_from_gpu_to_gpu(mpi: &Mpi) {
    const STEPS: u64 = 10;
    let plate = mpi.grid([24, 24]).halo(1).periodic([true; 2]).build().unwrap();
    let stream = Device::current().unwrap().new_stream().unwrap();
    let value = |[i, j]: [usize; 2]| (100 * i + j) as f64;
    let mut now = plate.array(value).unwrap().named("plate");
    drop(now.gpu_mut_on(&stream).unwrap());
    let mut halo = plate.exchange(&now).unwrap();
    let before = mpi.traffic();
    let mut line = 0;
    let ((), report) = audit::capture(|| {
        for _ in 0..STEPS {
            line = line!() + 1;
            halo.start(&now, &stream).unwrap().finish(&mut now).unwrap();
        }
    });
    let [rows, columns] = plate.local_shape();
    // What a process has itself on the other side is copied, without a message.
    let sent_along = |axis: usize, cells: usize| {
        let sides = [Side::Low, Side::High].map(|side| plate.neighbour(axis, side));
        let count = sides.iter().filter(|side| **side != Some(mpi.rank())).count() as u64;
        (STEPS * count, STEPS * count * (cells * size_of::<f64>()) as u64)
    };
    let (along_rows, along_columns) = (sent_along(0, columns), sent_along(1, rows));
    let (count, faces) = (along_rows.0 + along_columns.0, along_rows.1 + along_columns.1);
    assert!(count >= 2 * STEPS);
    let moved = report.traffic();
    assert_eq!((moved.to_device.bytes, moved.to_host.bytes), (0, 0));
    let (sent, received) = (report.sent(), report.received());
    assert_eq!((sent.count, sent.bytes), (count, faces));
    assert_eq!((received.count, received.bytes), (count, faces));
    let after = mpi.traffic();
    assert_eq!(after.sent.bytes - before.sent.bytes, faces);
    assert_eq!(after.received.count - before.received.count, count);
    for site in report.sites().iter().filter(|site| site.cause == audit::Cause::Mpi) {
        assert!(
            site.location.file().ends_with("nccl.rs") && site.location.line() == line,
            "{site}"
        );
        assert_eq!(site.array, "plate");
        assert!(site.peer.is_some_and(|peer| (peer as usize) < mpi.size()), "{site}");
    }
    let mut expected = plate.array(value).unwrap().into_array().unwrap();
    let mut found = now.into_array().unwrap();
    for corner in [[0, 0], [0, columns + 1], [rows + 1, 0], [rows + 1, columns + 1]] {
        (expected[corner], found[corner]) = (0.0, 0.0);
    }
    assert_eq!(found, expected);
}

#[test]
fn faces_of_all_processes_go_from_gpu_to_gpu() {
    run_each(&[2, 4], faces_go_from_gpu_to_gpu);
}

fn collectives(mpi: &Mpi) {
    // Of 16 bits too, which go by MPI.
    check_all_types(mpi);
    let stream = Device::current().unwrap().new_stream().unwrap();
    let own = Array2::from_shape_fn((7, 5), |(i, j)| (i * j * (mpi.rank() + 1)) as f64);
    let mut array = SmartArray::from(own.clone());
    drop(array.gpu_mut_on(&stream).unwrap());
    let ((), report) = audit::capture(|| {
        mpi.all_reduce_on(&stream, Reduce::Sum, &mut array.slice_mut(s![1..;2, ..3])).unwrap();
    });
    let moved = report.traffic();
    assert_eq!((moved.to_device.bytes, moved.to_host.bytes), (0, 0));
    let ranks = (mpi.size() * (mpi.size() + 1) / 2) as f64 / (mpi.rank() + 1) as f64;
    let mut sums = own;
    sums.slice_mut(s![1..;2, ..3]).mapv_inplace(|x| x * ranks);
    assert!(array.host().unwrap().iter().zip(&sums).all(|(a, b)| (a - b).abs() < 1e-9));
    for root in 0..mpi.size() {
        let records = |rank: usize| [[rank as u16, 1], [7, 8], [root as u16, 3]];
        let mut array = SmartArray::from(records(mpi.rank()).to_vec());
        mpi.broadcast(&mut array, root).unwrap();
        assert_eq!(array.to_vec().unwrap(), records(root));
    }
    let mut array = DeviceArray::full(100, 3_i32 + mpi.rank() as i32).unwrap();
    mpi.all_reduce(Reduce::Max, &mut array).unwrap();
    assert_eq!(array.copy_to_host().unwrap()[99], 2 + mpi.size() as i32);
    let mut empty = SmartArray::<f32, _>::zeros((0, 4));
    mpi.all_reduce(Reduce::Sum, &mut empty).unwrap();
    mpi.broadcast(&mut empty, 0).unwrap();
    // Processes that differ are told, and what comes after works.
    let mut other = SmartArray::<f32, Ix1>::ones(3 + mpi.rank());
    if mpi.size() > 1 {
        let outcome = mpi.all_reduce(Reduce::Sum, &mut other);
        assert!(matches!(outcome, Err(Error::Mismatch { .. })), "{outcome:?}");
    }
    assert_eq!(mpi.all_reduce_value(Reduce::Sum, 1_u32).unwrap() as usize, mpi.size());
}

#[test]
fn collectives_of_all_processes() {
    run_each(&[1, 2, 4], collectives);
}

/// What `{:?}` of an `Mpi` must contain, or the error.
const EXPECTED: &str = "EXPECTED";

#[track_caller]
fn decides(gpus: u32, job: Job, expected: &str) {
    if is_inside() {
        load(gpus);
        let expected = std::env::var(EXPECTED).unwrap();
        let text = match resident_mpi::init() {
            Ok(mpi) => {
                let (_, mut a) = ring(&mpi);
                mpi.all_reduce(Reduce::Sum, &mut a).unwrap();
                format!("{mpi:?}")
            }
            Err(error) => error.to_string(),
        };
        assert!(text.contains(&expected), "{text}");
        return;
    }
    job.variable(EXPECTED, expected).expect_success();
}

#[test]
fn processes_that_share_a_gpu_use_messages() {
    decides(1, Job::new(2), "in host memory: the MPI library does not say that it uses device");
}

#[test]
fn processes_that_share_a_gpu_say_so() {
    decides(1, Job::new(2), "not by NCCL: ranks 0 and 1 use the same GPU)");
}

#[test]
fn processes_on_other_devices_use_messages() {
    let job = Job::new(2).variable("RESIDENT_DEVICE", "cpu");
    decides(2, job, "not by NCCL: rank 0 uses cpu:0, which is no NVIDIA GPU)");
}

#[test]
fn the_environment_may_forbid_it() {
    let job = Job::new(2).variable("RESIDENT_MPI", "host");
    decides(2, job, "not by NCCL: RESIDENT_MPI chooses another transport on rank 0)");
}

#[test]
fn the_environment_may_demand_it() {
    let job = Job::new(2).variable("RESIDENT_MPI", "nccl");
    decides(2, job, "exchanges and collective operations by NCCL)");
}

#[test]
fn what_is_demanded_and_cannot_be_is_an_error_everywhere() {
    let job = Job::new(2).variable("RESIDENT_MPI", "nccl").variable("RESIDENT_DEVICE", "cpu");
    decides(2, job, "`init`: RESIDENT_MPI is `nccl` on rank 0, but rank 0 uses cpu:0");
}

/// Long after the time-outs of these tests.
const FAR: Duration = Duration::from_secs(50);

#[track_caller]
fn expect_ended(ended: &Ended, texts: &[&str]) {
    assert!(!ended.is_success && ended.took < Duration::from_secs(25), "{ended:#?}");
    for text in texts {
        assert!(ended.output.contains(text), "no {text:?} in {}", ended.output);
    }
}

/// Rank 1 stops to answer by `stop`, after a first exchange. What its messages were to write is
/// lost, the rest is as it was, and each later call has the error.
fn a_neighbour_stops(stop: impl FnOnce()) {
    load(2);
    let mpi = resident_mpi::init().unwrap();
    let (ring, mut a) = ring(&mpi);
    let stream = Device::current().unwrap().new_stream().unwrap();
    let mut halo = ring.exchange(&a).unwrap();
    drop(a.gpu_mut_on(&stream).unwrap());
    halo.start(&a, &stream).unwrap().finish(&mut a).unwrap();
    let expected = halos(&a);
    mpi.barrier().unwrap();
    if mpi.rank() == 1 {
        stop();
        return;
    }
    drop(a.gpu_mut_on(&stream).unwrap());
    let begin = Instant::now();
    halo.start(&a, &stream).unwrap().finish(&mut a).unwrap();
    assert!(begin.elapsed() < Duration::from_millis(1400), "neither waits for the other process");
    let lost = a.get(0).unwrap_err();
    assert!(begin.elapsed() >= Duration::from_millis(1400), "{:?}", begin.elapsed());
    let text = "rank 1 did not answer within 1.5s";
    assert!(matches!(lost, resident::Error::Lost { .. }), "{lost}");
    assert!(lost.to_string().contains(text), "{lost}");
    assert_eq!(expected, [11.0, 6.0]);
    assert_eq!(ring.interior(&a).to_vec().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let told = halo.start(&a, &stream).unwrap_err();
    assert!(matches!(told, Error::TimedOut { rank: Some(1), .. }), "{told}");
    assert_eq!(mpi.barrier().unwrap_err().to_string(), told.to_string());
    println!("rank 0 was told: {told}");
}

#[test]
fn a_neighbour_that_never_comes() {
    if is_inside() {
        return a_neighbour_stops(|| std::thread::sleep(FAR));
    }
    let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1.5").run();
    let reason = "`Exchange::start`: rank 1 did not answer within 1.5s";
    let ends = format!("rank 0 of 2 ends the job: {reason}");
    expect_ended(&ended, &[&format!("rank 0 was told: {reason}"), &ends]);
}

#[test]
fn a_neighbour_that_is_killed() {
    if is_inside() {
        return a_neighbour_stops(|| {
            kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
        });
    }
    let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1.5").run();
    expect_ended(&ended, &[]);
}

/// Messages that nobody receives, of an exchange that was dropped.
#[test]
fn nothing_is_left_waiting_at_the_end() {
    if !is_inside() {
        let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1").run();
        expect_ended(&ended, &["of 2 ends the job: `", "did not answer within 1s"]);
        return;
    }
    load(2);
    let mpi = resident_mpi::init().unwrap();
    let (ring, a) = ring(&mpi);
    let mut halo = ring.exchange(&a).unwrap();
    let stream = Device::current().unwrap().stream();
    if mpi.rank() == 0 {
        drop(halo.start(&a, &stream).unwrap());
    }
}
