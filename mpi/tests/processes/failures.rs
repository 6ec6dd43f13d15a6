//! What fails ends, and says why.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use resident::ndarray::Ix1;
use resident::{Emulation, SmartArray};
use resident_mpi::{Error, Mpi, Receiving, Reduce, Result};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

use crate::interposed;
use crate::launch::{Ended, Job, is_inside, memory_bytes, start};

/// Long after the time-outs of these tests.
const FAR: Duration = Duration::from_secs(50);
/// Jobs end within this, on a busy machine too.
const SOON: Duration = Duration::from_secs(25);

/// The job failed by itself, with this in its output.
#[track_caller]
fn expect_failed(ended: &Ended, texts: &[&str]) {
    assert!(!ended.is_success && ended.took < SOON, "{ended:#?}");
    for text in texts {
        assert!(ended.output.contains(text), "no {text:?} in {}", ended.output);
    }
}

/// The file in which the survivor of a job says what it was told, since launchers do not agree on
/// when they end if a process was killed, with which code, and what they print.
const TOLD: &str = "RESIDENT_MPI_TEST_TOLD";

/// Runs the job of two processes, one of which is killed. The other must be told by an error.
#[track_caller]
fn expect_survivor_told() {
    let (path, ended) = run_with_survivor();
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < SOON, "nothing was told: {ended:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::remove_file(path).expect("it exists");
}

/// As [`expect_survivor_told`], where libraries may end the process themselves: UCX does, if it
/// copies from the memory of a process that is gone.
#[track_caller]
fn expect_survivor_told_or_ended() {
    let (path, ended) = run_with_survivor();
    if ended.is_success || ended.output.contains("rank 0 was told: ") {
        std::fs::remove_file(path).expect("it exists");
    }
    assert!(ended.took < SOON, "{ended:#?}");
}

fn run_with_survivor() -> (PathBuf, Ended) {
    let name = format!("resident-mpi-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let job = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1.5").survivors();
    let ended = job.variable(TOLD, path.to_str().expect("a path")).run();
    (path, ended)
}

/// MPI may notice itself that a process is gone, and say so.
fn tell(error: &Error) {
    assert!(matches!(error, Error::TimedOut { .. } | Error::Mpi { .. }), "{error}");
    let path = std::env::var_os(TOLD).unwrap();
    std::fs::write(path, error.to_string()).unwrap();
    eprintln!("rank 0 was told: {error}");
}

/// An operation by its name in errors, the rank that its error names, and its call.
type Operation = (&'static str, Option<usize>, fn(&Mpi) -> Result<()>);

/// Operations of rank 0 that wait for rank 1.
const WAITING: [Operation; 8] = [
    ("recv", Some(1), |mpi| mpi.recv(&mut SmartArray::<u8, _>::ones(1), 1, 0)),
    ("irecv", Some(1), |mpi| mpi.irecv::<f64, Ix1>(1 << 20, 1, 0)?.wait().map(drop)),
    ("send", Some(1), |mpi| mpi.send(&SmartArray::<f64, _>::ones(1 << 20), 1, 0)),
    ("Sending::wait", Some(1), |mpi| mpi.isend(&SmartArray::<f64, _>::ones(1 << 20), 1, 0)?.wait()),
    ("barrier", Some(1), Mpi::barrier),
    ("all_reduce", Some(1), |mpi| {
        mpi.all_reduce(Reduce::Sum, &mut SmartArray::<f32, _>::ones((3, 4)))
    }),
    ("all_reduce_value", Some(1), |mpi| mpi.all_reduce_value(Reduce::Max, 1.0).map(drop)),
    ("broadcast", Some(1), |mpi| mpi.broadcast(&mut SmartArray::<f32, _>::ones(5), 1)),
];

/// Which of them a job tests.
const NUMBER: &str = "RESIDENT_MPI_TEST_NUMBER";

#[test]
fn a_silent_peer_in_each_operation() {
    if is_inside() {
        let number: usize = std::env::var(NUMBER).unwrap().parse().unwrap();
        return expect_timed_out(WAITING[number]);
    }
    for (number, (name, rank, _)) in WAITING.iter().enumerate() {
        let job = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1.5");
        let ended = job.variable(NUMBER, number.to_string()).run();
        let awaited = rank.map_or("another process".into(), |rank| format!("rank {rank}"));
        let reason = format!("`{name}`: {awaited} did not answer within 1.5s");
        let told = format!("rank 0 was told: {reason}");
        let ends = format!("rank 0 of 2 ends the job: {reason}");
        expect_failed(&ended, &[&told, &ends, "RESIDENT_MPI_TIMEOUT"]);
    }
}

/// Rank 0 calls `operation`, while rank 1 has stopped to answer.
fn expect_timed_out((_, rank, operation): Operation) {
    let mpi = start();
    if mpi.rank() == 1 {
        std::thread::sleep(FAR);
        return;
    }
    let begin = Instant::now();
    let error = operation(&mpi).unwrap_err();
    assert!(begin.elapsed() >= Duration::from_millis(1_400), "{:?}", begin.elapsed());
    assert!(matches!(error, Error::TimedOut { rank: whom, .. } if whom == rank), "{error}");
    // Later calls fail at once, with the same error.
    let begin = Instant::now();
    for later in [mpi.barrier(), mpi.send(&SmartArray::<u8, _>::ones(1), 0, 0), operation(&mpi)] {
        assert_eq!(later.unwrap_err().to_string(), error.to_string());
    }
    assert!(begin.elapsed() < Duration::from_millis(1_000), "{:?}", begin.elapsed());
    eprintln!("rank 0 was told: {error}");
}

/// Ranks 0 and 1 are at a barrier, rank 1 late; rank 2 waits for a message, rank 3 is silent.
#[test]
fn a_collective_operation_names_those_that_did_not_come() {
    if !is_inside() {
        let ended = Job::new(4).variable("RESIDENT_MPI_TIMEOUT", "1.5").run();
        let reason = "`barrier`: ranks 2, 3 did not answer within 1.5s; look at these processes";
        expect_failed(&ended, &[&format!("rank 0 was told: {reason}"), "rank 0 of 4 ends the job"]);
        return;
    }
    let mpi = start();
    mpi.barrier().unwrap();
    match mpi.rank() {
        0 => {
            let error = mpi.barrier().unwrap_err();
            let Error::TimedOut { rank: None, missing, .. } = &error else { panic!("{error}") };
            assert_eq!(*missing, [2, 3]);
            eprintln!("rank 0 was told: {error}");
        }
        1 => {
            std::thread::sleep(Duration::from_millis(1_200));
            let _ = mpi.barrier();
            std::thread::sleep(FAR);
        }
        2 => {
            std::thread::sleep(Duration::from_millis(600));
            let _ = mpi.recv(&mut SmartArray::<u8, _>::ones(1), 0, 0);
            std::thread::sleep(FAR);
        }
        _ => std::thread::sleep(FAR),
    }
}

#[test]
fn a_peer_that_does_not_start() {
    if !is_inside() {
        let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1.5").run();
        expect_failed(&ended, &["ends the process: `init`: another process did not answer"]);
        return;
    }
    // As launchers tell before MPI does.
    let mut ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].into_iter().filter_map(std::env::var_os);
    if ranks.next().expect("the launcher tells the rank") == "1" {
        std::thread::sleep(FAR);
    }
    let _ = start();
}

#[test]
fn a_silent_peer_at_the_end() {
    if !is_inside() {
        let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1").run();
        expect_failed(&ended, &["rank 0 of 2 ends the job: `Mpi::drop`: rank 1 did not"]);
        return;
    }
    let mpi = start();
    if mpi.rank() == 1 {
        std::thread::sleep(FAR);
    }
}

#[test]
fn a_message_that_nobody_receives() {
    if !is_inside() {
        let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1").run();
        // Whichever process is the first: that with the message, or the other one.
        expect_failed(&ended, &["ends the job: `Mpi::drop`: ", "within 1s"]);
        return;
    }
    let mpi = start();
    if mpi.rank() == 0 {
        drop(mpi.isend(&SmartArray::<f64, _>::ones(1 << 20), 1, 0).unwrap());
    }
}

/// Rank 1 is killed by `SIGKILL` before `operation`, and the launcher lets rank 0 live, if it can.
fn expect_ended_after_kill(operation: impl Fn(&Mpi) -> Result<()>) {
    if !is_inside() {
        expect_survivor_told();
        let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "1.5").run();
        expect_failed(&ended, &[]);
        return;
    }
    let mpi = start();
    mpi.barrier().unwrap();
    if mpi.rank() == 1 {
        kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    }
    // Until the process is gone, it looks like a slow one.
    std::thread::sleep(Duration::from_millis(300));
    let error = operation(&mpi).unwrap_err();
    if std::env::var_os(TOLD).is_some() {
        tell(&error);
    }
}

#[test]
fn a_killed_peer_in_recv() {
    expect_ended_after_kill(|mpi| mpi.recv(&mut SmartArray::<u8, _>::ones(1), 1, 0));
}

#[test]
fn a_killed_peer_in_send() {
    expect_ended_after_kill(|mpi| mpi.send(&SmartArray::<f64, _>::ones(1 << 20), 1, 0));
}

#[test]
fn a_killed_peer_in_a_barrier() {
    expect_ended_after_kill(Mpi::barrier);
}

#[test]
fn a_killed_peer_in_a_reduction() {
    expect_ended_after_kill(|mpi| mpi.all_reduce_value(Reduce::Max, 1.0).map(drop));
}

#[test]
fn a_peer_killed_amid_a_message() {
    if !is_inside() {
        expect_survivor_told_or_ended();
        return;
    }
    let mpi = start();
    let array = SmartArray::<f64, _>::ones(1 << 20);
    if mpi.rank() == 1 {
        // Its header arrives.
        let _sending = mpi.isend(&array, 0, 0).unwrap();
        mpi.barrier().unwrap();
        kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    }
    mpi.barrier().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut part = array;
    let error = mpi.recv(&mut part, 1, 0).unwrap_err();
    assert_eq!(part.sum().unwrap(), (1 << 20) as f64, "the part is as it was");
    tell(&error);
}

#[test]
fn a_panic_ends_the_job() {
    if !is_inside() {
        let ended = Job::new(3).run();
        let reason = "rank 1 of 3 ends the job: a panic unwinds through the last handle of MPI";
        expect_failed(&ended, &[reason, "the reason for the panic"]);
        // Not by the time-out.
        assert!(ended.took < Duration::from_secs(18), "{ended:#?}");
        return;
    }
    let mpi = start();
    if mpi.rank() == 1 {
        panic!("the reason for the panic");
    }
    drop(mpi.recv(&mut SmartArray::<u8, _>::ones(1), 1, 0));
}

#[test]
fn a_panic_with_messages_in_flight_ends_the_job() {
    if !is_inside() {
        let ended = Job::new(2).run();
        expect_failed(&ended, &["ends the job: a panic unwinds"]);
        return;
    }
    let mpi = start();
    let array = SmartArray::<f64, _>::ones(1 << 20);
    let _sending = mpi.isend(&array, 1 - mpi.rank(), 0).unwrap();
    let _receiving = mpi.irecv::<f64, Ix1>(1 << 20, 1 - mpi.rank(), 1).unwrap();
    mpi.barrier().unwrap();
    panic!("in all processes");
}

#[test]
fn a_panic_that_is_caught_ends_nothing() {
    crate::launch::run(2, |mpi| {
        let other = 1 - mpi.rank();
        let array = SmartArray::<f64, _>::ones(1 << 16);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _sending = mpi.isend(&array, other, 0).unwrap();
            let _receiving = mpi.irecv::<f64, Ix1>(1 << 16, other, 0).unwrap();
            panic!("caught");
        }));
        assert!(caught.is_err());
        mpi.barrier().unwrap();
    });
}

/// `error` is that of all later calls too, at once: none waits until the time-out.
fn expect_broken(mpi: &Mpi, error: &Error, later: Receiving<u8, Ix1>) {
    let begin = Instant::now();
    for result in [later.wait().map(drop), mpi.barrier()] {
        assert_eq!(result.unwrap_err().to_string(), error.to_string());
    }
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    eprintln!("rank {} was told: {error}", mpi.rank());
}

#[test]
fn a_header_that_cannot_be_received_breaks_later_receives() {
    if !is_inside() {
        let ended = Job::new(1).run();
        expect_failed(&ended, &["rank 0 was told: ", "rank 0 of 1 ends the job: ", "MPI_Test"]);
        return;
    }
    let mpi = start();
    let [first, second] = [1, 1].map(|len| mpi.irecv::<u8, Ix1>(len, 0, 0).unwrap());
    interposed::fail_once();
    let error = first.is_done().unwrap_err();
    assert!(matches!(error, Error::Mpi { .. }), "{error}");
    drop(first);
    expect_broken(&mpi, &error, second);
}

#[test]
fn a_message_too_long_to_be_thrown_away_breaks_later_receives() {
    const LEN: usize = 256 << 20;
    if !is_inside() {
        let ended = Job::new(2).run();
        expect_failed(&ended, &["rank 0 was told: ", "no memory to throw away 268435456 bytes"]);
        return;
    }
    let mpi = start();
    if mpi.rank() == 1 {
        let array = SmartArray::<u8, _>::ones(LEN);
        let _ = mpi.send(&array, 0, 0);
        return;
    }
    let [first, second] = [1, 1].map(|len| mpi.irecv::<u8, Ix1>(len, 1, 0).unwrap());
    let current = Some((memory_bytes(0) + LEN / 2) as u64);
    setrlimit(Resource::As, Rlimit { current, maximum: None }).expect("less than before");
    let error = first.wait().map(drop).unwrap_err();
    assert!(matches!(error, Error::Argument { .. }), "{error}");
    expect_broken(&mpi, &error, second);
}

#[test]
fn a_kernel_that_fails_sends_nothing() {
    use resident::{Device, Grid, Kernel, Out};
    crate::launch::run(2, |mpi| {
        let device = Device::emulated(Emulation::new());
        let _here = device.enter();
        let fails = Kernel::<(Out<f64>,)>::new("fails").host(|_, _| panic!("the body fails"));
        let mut array = SmartArray::<f64, _>::uninit(100);
        if mpi.rank() == 0 {
            fails.launch(Grid::cover(100), (&mut array,)).unwrap();
            let error = mpi.send(&array, 1, 0).unwrap_err();
            assert!(matches!(error, Error::Resident(resident::Error::Lost { .. })), "{error}");
            let _ = device.synchronize();
            array.fill(1.0).unwrap();
            mpi.send(&array, 1, 0).unwrap();
        } else {
            mpi.recv(&mut array, 0, 0).unwrap();
            assert_eq!(array.sum().unwrap(), 100.0);
        }
    });
}

#[test]
fn one_process_ends_while_others_go_on() {
    if !is_inside() {
        let ended = Job::new(2).run();
        // Whichever process is the first to say so.
        expect_failed(&ended, &["rank ", " sent ", "a barrier", "the end of MPI"]);
        return;
    }
    let mpi = start();
    if mpi.rank() == 0 {
        mpi.barrier().unwrap();
    }
}

#[test]
fn a_forgotten_handle_does_not_hang_the_job() {
    if !is_inside() {
        let ended = Job::new(2).variable("RESIDENT_MPI_TIMEOUT", "2").run();
        assert!(ended.took < SOON, "{ended:#?}");
        return;
    }
    let mpi = start();
    mpi.barrier().unwrap();
    if mpi.rank() == 1 {
        std::mem::forget(mpi);
    }
}

#[test]
fn mpi_starts_once() {
    if !is_inside() {
        return Job::new(2).expect_success();
    }
    let mpi = start();
    let error = resident_mpi::init().unwrap_err();
    assert!(error.to_string().contains("once in a process"), "{error}");
    mpi.barrier().unwrap();
    drop(mpi);
    assert!(matches!(resident_mpi::init().unwrap_err(), Error::Argument { .. }));
}

#[test]
fn settings_that_cannot_be_used() {
    if !is_inside() {
        for value in ["0", "-3", "soon", "NaN", "inf"] {
            let job = Job::new(1).variable("RESIDENT_MPI_TIMEOUT", value);
            job.variable("EXPECTED", "RESIDENT_MPI_TIMEOUT is").expect_success();
        }
        let job = Job::new(1).variable("RESIDENT_DEVICE", "cuda:77");
        return job.variable("EXPECTED", "cuda:77").expect_success();
    }
    let error = resident_mpi::init().unwrap_err();
    let expected = std::env::var("EXPECTED").unwrap();
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn ranks_devices_and_time_outs() {
    crate::launch::run(3, |mpi| {
        assert!(mpi.rank() < 3);
        // All processes of the test share a node.
        assert_eq!(mpi.node_rank(), mpi.rank());
        assert_eq!(mpi.timeout(), Duration::from_secs(20));
        let sum = mpi.all_reduce_value(Reduce::Sum, mpi.rank() as u32).unwrap();
        assert_eq!(sum, 3);
        assert!(format!("{mpi:?}").starts_with(&format!("Mpi(rank {} of 3, ", mpi.rank())));
        let again = mpi.clone();
        again.barrier().unwrap();
    });
}
