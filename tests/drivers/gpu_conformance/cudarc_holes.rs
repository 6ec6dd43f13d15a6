//! Errors that cudarc's own tracking makes and this library does not. The stand-in driver's tests
//! show that cudarc makes them: `tests/drivers/stand_in/driver/holes.rs`.
//!
//! The letter in a test's name gives the error: (a) one event for all readers, (b) pinned memory
//! whose event is not recorded, (c) registered memory that is treated as pageable, (d) frees
//! without a current context, (e) errors that the next call returns, (f) calls with zero bytes, (g)
//! events in a chain on one stream, (h) memory that was never written.
use std::thread;

use crate::faces::cuda::rig::run;
use crate::suite::prelude::*;
use resident::cudarc::driver::sys;
use resident_stand_in as driver;

const LEN: usize = 1000;

fn called(name: &str) -> usize {
    driver::calls().iter().filter(|call| call.name.starts_with(name)).count()
}

/// Copies the array on two streams. The first copy waits at the gate, and the second has run.
fn read_on_two_streams(
    lab: &Lab,
    gate: &Gate,
    array: &SmartArray<u32, Ix1>,
) -> Result<(SmartArray<u32, Ix1>, Stream)> {
    let [slow, fast] = lab.two_streams()?;
    let (mut seen_slowly, mut seen_fast) = (SmartArray::uninit(LEN), SmartArray::uninit(LEN));
    array.prefetch(&slow)?;
    lab.gated_copy(&slow, gate, array, &mut seen_slowly)?;
    lab.plus(&fast, 0, array, &mut seen_fast)?;
    fast.synchronize().map(|()| (seen_slowly, fast))
}

#[test]
fn a_writer_waits_for_every_reader_and_not_only_the_last() {
    run(test_name!(), |lab| {
        let (gate, mut array, writer) = (Gate::new(), numbers(LEN), lab.new_stream()?);
        let (seen_slowly, _) = read_on_two_streams(lab, &gate, &array)?;
        lab.add(&writer, 100, &mut array)?;
        assert!(!writer.is_idle()?);
        gate.open();
        assert_eq!(*seen_slowly.host()?, counting(LEN), "the contents before the write");
        assert_eq!(array.host()?[0], 100);
        Ok(())
    });
}

#[test]
fn a_memory_is_freed_behind_every_reader_and_not_only_the_last() {
    run(test_name!(), |lab| {
        let (gate, array) = (Gate::new(), numbers(LEN));
        let (seen_slowly, fast) = read_on_two_streams(lab, &gate, &array)?;
        drop(array);
        // The memory is freed, and its next owner overwrites it.
        let mut next = SmartArray::<u32, _>::full(LEN, 7);
        make_newest(&mut next, &fast)?;
        gate.open();
        assert_eq!(*seen_slowly.host()?, counting(LEN));
        Ok(())
    });
}

#[test]
fn b_pinned_memory_is_read_once_the_copy_has_arrived() {
    run(test_name!(), |lab| {
        let _here = lab.device().enter();
        let (gate, mut array) = (Gate::new(), numbers(LEN));
        array.page_lock()?;
        lab.gated(&lab.stream(), &gate, &mut array)?;
        array.prefetch_host()?;
        thread::scope(|scope| {
            let looking = scope.spawn(|| array.host().map(|host| host.to_owned()));
            gate.open();
            assert_eq!(looking.join().expect("no panic")?, counting(LEN) + 1, "no stale zeros");
            Ok(())
        })
    });
}

#[test]
fn b_pinned_memory_is_overwritten_once_the_copy_has_left() {
    run(test_name!(), |lab| {
        let _here = lab.device().enter();
        let (gate, mut held) = (Gate::new(), numbers(LEN));
        let (mut array, mut copy) = (numbers(LEN), SmartArray::<u32, _>::uninit(LEN));
        array.page_lock()?;
        lab.gated(&lab.stream(), &gate, &mut held)?;
        // The upload is queued after the kernel, which waits at the gate.
        copy.assign_on(&lab.stream(), &array)?;
        thread::scope(|scope| {
            let writing = scope.spawn(|| array.host_mut().map(|mut host| host.fill(9)));
            gate.open();
            writing.join().expect("no panic")
        })?;
        assert_eq!(*copy.host()?, counting(LEN), "the contents at the time of the call");
        Ok(())
    });
}

/// Registers memory by direct driver calls, as another library of the process might.
fn register(array: &mut Array1<u32>) {
    let (start, len_bytes) = (array.as_mut_ptr(), 4 * array.len());
    // SAFETY: the memory is the array's, which outlives the registration: `unregister` is called
    // before it is dropped.
    let outcome = unsafe { sys::cuMemHostRegister_v2(start.cast(), len_bytes, 0) };
    assert_eq!(outcome, sys::CUresult::CUDA_SUCCESS);
}

fn unregister(array: &mut Array1<u32>) {
    // SAFETY: `register` registered the memory, and nothing uses it as registered memory any more.
    let outcome = unsafe { sys::cuMemHostUnregister(array.as_mut_ptr().cast()) };
    assert_eq!(outcome, sys::CUresult::CUDA_SUCCESS);
}

/// Uploads, overwrites, downloads and checks the memory while a kernel waits at a gate, so that all
/// asynchronous work of the driver runs late.
fn memory_that_others_registered(lab: &Lab) -> Result<()> {
    for asks in [false, true] {
        let _here = lab.device().enter();
        let (gate, mut held) = (Gate::new(), numbers(LEN));
        let mut contents = counting(LEN);
        // This makes cudarc's context of the device current.
        lab.device().synchronize()?;
        drop(numbers(4).gpu()?);
        register(&mut contents);
        let mut array = SmartArray::from(contents);
        let mut copy = SmartArray::<u32, _>::uninit(LEN);
        if asks {
            array.page_lock()?;
        }
        lab.gated(&lab.stream(), &gate, &mut held)?;
        copy.assign_on(&lab.stream(), &array)?;
        thread::scope(|scope| {
            let writing = scope.spawn(|| array.host_mut().map(|mut host| host.fill(9)));
            gate.open();
            writing.join().expect("no panic")
        })?;
        assert_eq!(*copy.host()?, counting(LEN));
        let gate = Gate::new();
        lab.gated(&lab.stream(), &gate, &mut array)?;
        gate.open();
        assert_eq!(*array.host()?, counting(LEN).mapv(|_| 10));
        // The library did not unregister memory that another library had registered.
        unregister(&mut array.into_array()?);
    }
    Ok(())
}

#[test]
fn c_memory_that_others_registered_is_copied_in_order() {
    run(test_name!(), memory_that_others_registered);
}

#[test]
fn c_memory_that_others_registered_is_copied_in_order_without_memory_of_our_own() {
    let output = own_process::run(
        test_name!(c_memory_that_others_registered_is_copied_in_order),
        &[("RESIDENT_PINNED_MAX", "0")],
    );
    assert_success(&output, "pinning is refused");
}

#[test]
fn d_frees_on_a_thread_without_a_context_free() {
    run(test_name!(), |lab| {
        let before = driver::memory_in_use(0);
        let array = numbers(LEN);
        drop(array.gpu_on(&lab.stream())?);
        assert!(driver::memory_in_use(0) > before);
        thread::spawn(move || drop(array)).join().expect("no panic");
        lab.device().synchronize()?;
        assert_eq!(driver::memory_in_use(0), before);
        // An unrelated call does not return an error either.
        drop(numbers(LEN).gpu_on(&lab.new_stream()?)?);
        Ok(())
    });
}

#[test]
fn e_an_error_of_a_drop_is_not_returned_by_the_next_call() {
    run(test_name!(), |lab| {
        const UNKNOWN: u32 = 999;
        for name in [
            "cuStreamDestroy_v2",
            "cuMemFreeAsync",
            "cuEventDestroy_v2",
            "cuMemFreeHost",
            "cuMemHostUnregister",
        ] {
            driver::fail_nth(name, 1, UNKNOWN);
            let _here = lab.device().enter();
            let stream = lab.new_stream()?;
            let array = numbers(LEN);
            array.page_lock()?;
            drop(array.gpu_on(&stream)?);
            drop((array, stream));
            lab.device().synchronize()?;
            lab.device().trim()?;
            // Calls before which cudarc would check for an error stored in its context.
            let (stream, mut other) = (lab.new_stream()?, numbers(LEN));
            lab.add(&stream, 1, &mut other)?;
            assert_eq!(
                (other.host()?[1], lab.device().capacity()?.total),
                (2, 1 << 30),
                "after {name}"
            );
            driver::forget_faults();
        }
        // Memory that an earlier test could not free must not affect this test.
        lab.device().synchronize()?;
        lab.device().trim()?;
        driver::take_calls();
        Ok(())
    });
}

#[test]
fn f_zero_bytes_are_no_call() {
    run(test_name!(), |lab| {
        driver::take_calls();
        let mut array = SmartArray::<u32, _>::zeros(0);
        drop(array.gpu_mut_on(&lab.stream())?);
        array.fill_on(&lab.stream(), 1)?;
        array.assign_on(&lab.stream(), &SmartArray::<u32, _>::zeros(0))?;
        array.prefetch(&lab.stream())?;
        assert_eq!(array.snapshot_on(&lab.stream())?.wait()?.len(), 0);
        let mut full = numbers(8);
        drop(full.slice_mut(s![3..3]).gpu_mut_on(&lab.stream())?);
        assert_eq!((full.slice(s![8..]).host()?.len(), array.into_array()?.len()), (0, 0));
        assert_eq!(driver::take_calls(), [], "no driver call");
        Ok(())
    });
}

/// Recording an event, waiting for one, allocating and freeing would each break a capture.
#[test]
fn g_a_chain_on_one_stream_has_nothing_in_it_but_its_launches() {
    run(test_name!(), |lab| {
        let stream = lab.new_stream()?;
        let (mut here, mut there) = (numbers(LEN), SmartArray::<u32, _>::uninit(LEN));
        for turn in 0..20 {
            if turn == 2 {
                driver::take_calls();
            }
            lab.plus(&stream, 1, &here, &mut there)?;
            lab.add(&stream, 1, &mut there)?;
            std::mem::swap(&mut here, &mut there);
        }
        let calls = driver::take_calls();
        assert_eq!(calls.iter().filter(|call| call.name == "cuLaunchKernel").count(), 36);
        let others: Vec<_> = calls
            .iter()
            .filter(|call| !["cuLaunchKernel", "cuCtxGetCurrent"].contains(&call.name.as_str()))
            .collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(here.host()?[0], 40);
        // The suite counts only later calls.
        drop((here, there, stream));
        lab.device().synchronize()?;
        lab.device().trim()?;
        driver::take_calls();
        Ok(())
    });
}

#[test]
fn h_a_download_that_fails_shows_no_memory_that_was_never_written() {
    run(test_name!(), |lab| {
        const UNKNOWN: u32 = 999;
        let expected = numbered::<u64, _>((40, 50), 1);
        let mut array = SmartArray::from(expected.clone());
        make_newest(&mut array, &lab.stream())?;
        let mut computed = SmartArray::<u64, _>::uninit((40, 50));
        computed.assign_on(&lab.stream(), &array)?;
        for outcome in 0..3 {
            driver::fail_nth("cuMemcpyDtoHAsync_v2", 1, UNKNOWN);
            let refused = match outcome {
                0 => computed.host().map(drop),
                1 => {
                    array.snapshot_on(&lab.stream()).and_then(|snapshot| snapshot.wait().map(drop))
                }
                _ => array.get((3, 3)).map(drop),
            };
            assert!(matches!(refused, Err(Error::Backend { .. })), "{refused:?}");
            driver::forget_faults();
        }
        assert!(called("cuMemcpyDtoHAsync_v2") >= 3);
        assert_eq!((&*computed.host()?, array.get((3, 3))?), (&*expected, expected[[3, 3]]));
        Ok(())
    });
}
