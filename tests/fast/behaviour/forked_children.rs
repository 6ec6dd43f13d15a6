//! Children of `fork`. A child has its parent's memory, and none of its threads: what the parent's
//! devices would have to do for it is an error that says so, and nothing hangs. Devices that the
//! child opens work. Each test has a process of its own, whose child is ended if it hangs.

use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use resident::ops;
use support::bodies::{Gate, one};
use support::panics::text_of;
use support::prelude::*;

/// How long a child may take. One that hangs is ended by a signal.
const SECONDS_MAX: u32 = 60;

/// Runs something in a forked child, which ends with `exit`. Panics with the message of the child's
/// panic, or if the child hangs.
fn in_child(run: impl FnOnce()) {
    let mut ends = [0; 2];
    // SAFETY: the call writes two numbers.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: this does not follow the advice for processes with several threads: the child
    // allocates, which the C library allows, and uses the library, which is what these tests test.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the system refuses a process");
    if child == 0 {
        // SAFETY: the default action of the signal ends the process.
        unsafe { libc::alarm(SECONDS_MAX) };
        let outcome = catch_unwind(AssertUnwindSafe(run));
        let text = match outcome {
            Ok(()) => String::from("passed"),
            Err(payload) => text_of(&*payload).unwrap_or("it panicked").to_owned(),
        };
        // SAFETY: nothing else owns this end of the pipe.
        let mut pipe = unsafe { std::fs::File::from_raw_fd(ends[1]) };
        pipe.write_all(text.as_bytes()).expect("the parent reads");
        drop(pipe);
        std::process::exit(0);
    }
    // SAFETY: only the child writes.
    unsafe { libc::close(ends[1]) };
    // SAFETY: nothing else owns this end of the pipe.
    let mut pipe = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    let (mut text, mut status) = (String::new(), 0);
    pipe.read_to_string(&mut text).expect("text");
    // SAFETY: the call writes one number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(text, "passed", "the child ended with {status}, {} is a hang", libc::SIGALRM);
    assert_eq!(status, 0, "the child ended with another status, {} is a hang", libc::SIGALRM);
}

/// Asserts that a call says that this process is a forked child, and what to do.
#[track_caller]
fn assert_refused<T>(outcome: Result<T>) {
    let text = outcome.err().expect("a child cannot do this").to_string();
    assert!(text.contains("forked child") && text.contains("std::process::Command"), "{text}");
}

fn ones(len: usize) -> SmartArray<f32, Ix1> {
    SmartArray::ones(len)
}

fn add() -> Kernel<(InOut<f32>,)> {
    Kernel::new("add").host(|_, (x,): (&mut [f32],)| x.iter_mut().for_each(|x| *x += 1.0))
}

/// Uses all threads that the library starts: those of streams, of `ops`, of copies, of kernels in
/// CUDA C, and that of host functions.
fn use_all_threads(device: &Device) -> Result<()> {
    let stream = device.stream();
    let many = SmartArray::from(vec![1.0_f32; 4 << 20]);
    let mut sum = SmartArray::<f32, _>::zeros(());
    ops::sum_on(&stream, &many, &mut sum)?;
    assert_eq!(sum.to_vec()?, [(4 << 20) as f32]);
    let large = SmartArray::from(vec![1_u8; 40 << 20]);
    large.prefetch(&stream)?;
    assert_eq!(stream.launch_host_function(|| 3)?.wait()?, 3);
    // SAFETY: each thread adds to its own element, of which there are as many as threads.
    let cuda = unsafe {
        Kernel::<(InOut<f32>,)>::new("cuda")
            .cuda("extern \"C\" __global__ void cuda(float *x) { x[resident::thread()] += 1; }")
    };
    if cuda.prepare(device).is_ok() {
        let mut many = ones(256 * 256);
        cuda.launch_on(&stream, Grid::new(256, 256), (&mut many,))?;
        assert_eq!(many.to_vec()?, vec![2.0; 256 * 256]);
    }
    device.synchronize()
}

#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_after_all_threads_were_used() {
    use_all_threads(&Device::cpu()).expect("in the parent");
    let (many, stream) = (SmartArray::from(vec![1.0_f32; 4 << 20]), Device::cpu().stream());
    in_child(|| {
        assert_refused(use_all_threads(&Device::cpu()));
        assert_refused(stream.launch_host_function(|| 3).and_then(|function| function.wait()));
        assert_refused(ops::sum_on(&stream, &many, &mut SmartArray::zeros(())));
        // What needs no device works.
        assert_eq!(many.host().expect("it is on the host").len(), 4 << 20);
        // So do devices of this process.
        use_all_threads(&Device::emulated(Emulation::new())).expect("in the child");
        use_all_threads(&Device::emulated(Emulation::new().seed(1))).expect("in the child");
    });
    use_all_threads(&Device::cpu()).expect("in the parent");
}

#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_before_anything_was_used() {
    in_child(|| use_all_threads(&Device::cpu()).expect("in the child"));
    use_all_threads(&Device::cpu()).expect("in the parent");
    in_child(|| assert_refused(use_all_threads(&Device::cpu())));
}

/// A kernel that writes its second array once the gate is open.
fn gated(gate: &Gate) -> Kernel<(In<f32>, Out<f32>)> {
    let gate = gate.clone();
    Kernel::new("gated").host(move |_, (x, y): (&[f32], &mut [f32])| {
        gate.pass();
        y.copy_from_slice(x);
    })
}

/// Something of each kind that waits for work that never ends in a child.
struct InFlight {
    gate: Gate,
    stream: Stream,
    array: SmartArray<f32, Ix1>,
    device_array: DeviceArray<f32, Ix1>,
    pinned: PinnedArray<f32, Ix1>,
    mapped: MappedArray<f32, Ix1>,
}

fn in_flight(device: &Device) -> InFlight {
    let (gate, stream, _here) = (Gate::default(), device.stream(), device.enter());
    let mut flying = InFlight {
        array: SmartArray::uninit(1 << 16),
        device_array: DeviceArray::zeros_on(&stream, 1 << 16).expect("allocated"),
        pinned: PinnedArray::zeros(1 << 16).expect("allocated"),
        mapped: MappedArray::zeros(1 << 16).expect("allocated"),
        gate,
        stream,
    };
    let from = SmartArray::from(vec![1.0_f32; 1 << 16]);
    let kernel = gated(&flying.gate);
    kernel.launch_on(&flying.stream, one(), (&from, &mut flying.array)).expect("queued");
    kernel.launch_on(&flying.stream, one(), (&from, &mut flying.device_array)).expect("queued");
    kernel.launch_on(&flying.stream, one(), (&from, &mut flying.mapped)).expect("queued");
    flying.device_array.copy_to_pinned_on(&flying.stream, &mut flying.pinned).expect("queued");
    flying
}

/// Every way of waiting, of queueing, and of making something on a device.
fn assert_all_refused(flying: &mut InFlight) {
    let InFlight { stream, array, device_array, pinned, mapped, .. } = flying;
    let device = stream.device().clone();
    assert_refused(array.host().map(drop));
    assert_refused(array.get(3));
    assert_refused(array.to_vec());
    assert_refused(array.slice(s![..9]).host().map(drop));
    assert_refused(array.fill_on(stream, 3.0));
    assert_refused(array.prefetch_host());
    assert_refused(array.snapshot_on(stream).and_then(|pending| pending.wait()));
    assert_refused(array.try_clone());
    assert_refused(array.release_on(&device));
    assert_refused(device_array.copy_to_host());
    let mut host = Array1::<f32>::zeros(1 << 16);
    assert_refused(device_array.copy_to_host_into(&mut host));
    assert_refused(device_array.copy_from_host_on(stream, &host));
    assert_refused(pinned.host().map(drop));
    assert_refused(mapped.host().map(drop));
    assert_refused(add().launch_on(stream, one(), (&mut ones(9),)));
    assert_refused(DeviceArray::<f32, Ix1>::zeros_on(stream, 9));
    assert_refused(stream.synchronize());
    assert_refused(device.synchronize());
    assert_refused(device.new_stream());
    assert_refused(device.trim());
    assert_refused(stream.record().and_then(|event| event.synchronize()));
    assert_refused(stream.launch_host_function(|| 3).and_then(|function| function.wait()));
    assert_refused(ones(9).prefetch(stream));
    let _here = device.enter();
    assert_refused(array.sum());
    assert_refused(with_pinned(&mut host, |lent| lent.fill_on(stream, 3.0)));
    assert_refused(with_mapped(&mut host, |lent| lent.fill_on(stream, 3.0)));
}

#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_while_work_is_in_flight() {
    for device in [Device::cpu(), Device::emulated(Emulation::new())] {
        let mut flying = in_flight(&device);
        in_child(|| {
            assert_all_refused(&mut flying);
            // What was in flight is dropped, and the process ends.
            let InFlight { array, device_array, pinned, mapped, .. } = flying;
            assert_refused(array.into_array());
            assert_refused(pinned.into_array());
            drop((device_array, mapped));
        });
    }
}

/// Handles that the parent made are waited for in the child.
#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_with_handles_to_wait_for() {
    let flying = in_flight(&Device::cpu());
    let InFlight { gate, stream, array, .. } = &flying;
    let function = stream.launch_host_function(|| 3).expect("queued");
    let again = stream.launch_host_function(|| 3).expect("queued");
    let event = stream.record().expect("recorded");
    let pending = array.snapshot_on(stream).expect("queued");
    let awaited = array.snapshot_on(stream).expect("queued");
    let mut watched = ones(9);
    let watch = watched.watch().expect("a watch");
    gated(gate).launch_on(stream, one(), (&ones(9), &mut watched)).expect("queued");
    let guard = array.gpu_on(stream).expect("queued");
    in_child(move || {
        assert_refused(function.wait());
        assert_refused(block_on(again));
        assert_refused(event.is_complete());
        assert_refused(event.synchronize());
        assert_refused(pending.wait());
        assert_refused(block_on(awaited));
        assert_refused(watch.changed().map(drop));
        drop(guard);
        drop((watched, watch));
    });
}

/// A function of the host that has not returned, behind work that is over.
#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_while_a_host_function_runs() {
    let (gate, stream) = (Gate::default(), Device::cpu().stream());
    let closed = gate.clone();
    let function = stream.launch_host_function(move || closed.pass()).expect("queued");
    in_child(move || {
        assert_refused(function.wait());
        assert_refused(stream.launch_host_function(|| 3).and_then(|function| function.wait()));
    });
    gate.open();
}

/// The ends of loans in a child: the borrow is over, and no work is.
#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_in_a_loan() {
    let (gate, stream) = (Gate::default(), Device::cpu().stream());
    let from = ones(1 << 16);
    let mut host = Array1::<f32>::zeros(1 << 16);
    let mut is_child = false;
    let lent = with_mapped(&mut host, |lent| {
        gated(&gate).launch_on(&stream, one(), (&from, &mut *lent))?;
        // SAFETY: as in `in_child`.
        let child = unsafe { libc::fork() };
        is_child = child == 0;
        if is_child {
            // SAFETY: as in `in_child`.
            unsafe { libc::alarm(SECONDS_MAX) };
        } else {
            let mut status = 0;
            // SAFETY: the call writes one number.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0, "{} is a hang", libc::SIGALRM);
            gate.open();
        }
        Ok(())
    });
    if is_child {
        assert_refused(lent);
        host[0] = 5.0;
        std::process::exit(0);
    }
    lent.expect("in the parent");
    assert_eq!(host[9], 1.0);
}

#[test]
#[ignore = "forks: run in processes of its own by the test below"]
fn forks_in_a_capture() {
    let device = Device::cpu();
    let (array, report) = audit::capture(|| {
        let array = SmartArray::from(vec![1.0_f32; 9]).named("moved");
        array.prefetch(&device.stream()).expect("queued");
        in_child(|| assert_refused(use_all_threads(&device)));
        array
    });
    assert_eq!((array.len(), report.traffic().to_device.bytes), (9, 36));
}

#[test]
fn a_forked_child_gets_errors_and_does_not_hang() {
    for test in [
        test_name!(forks_after_all_threads_were_used),
        test_name!(forks_before_anything_was_used),
        test_name!(forks_while_work_is_in_flight),
        test_name!(forks_with_handles_to_wait_for),
        test_name!(forks_while_a_host_function_runs),
        test_name!(forks_in_a_loan),
        test_name!(forks_in_a_capture),
    ] {
        assert_success(&own_process::run(test, &[]), test);
    }
}

/// A child has its parent's capture for `RESIDENT_AUDIT`, and leaves the report to the parent.
#[test]
fn a_forked_child_writes_no_report_of_its_parents() {
    let file = std::env::temp_dir().join(format!("resident-forked-{}.json", std::process::id()));
    let value = format!("json:{}", file.display());
    let test = test_name!(forks_in_a_capture);
    assert_success(&own_process::run(test, &[("RESIDENT_AUDIT", &value)]), test);
    let report = std::fs::read_to_string(&file).expect("the parent wrote it");
    assert!(report.contains("moved"), "{report}");
    std::fs::remove_file(file).expect("it is there");
}
