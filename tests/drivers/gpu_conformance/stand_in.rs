//! The conformance suite on the CUDA backend, over the stand-in driver. Its kernels need a C++
//! compiler.
use crate::faces::cuda::rig::run;
use crate::faces::{is_poorer, reaches_pageable, run_on_one_memory, run_packed, run_poorer};
use crate::suite;
use crate::suite::prelude::*;
use resident_stand_in::{self as driver, Settings};

pub(crate) fn settings() -> Settings {
    let rich = Settings::new().devices(2).page_bytes(4096);
    if reaches_pageable() {
        return rich.reaches_pageable();
    }
    if !is_poorer() {
        return rich;
    }
    rich.without_pools()
        .page_bytes(0)
        .peers(false)
        .max_pitch(1000)
        .driver_version(11_040)
        .compute_capability(5, 0)
}

suite::conformance!(crate::faces::cuda::rig::run);

/// Takes the recorded calls, and counts those that copy to the host.
fn downloads() -> usize {
    driver::take_calls()
        .iter()
        .filter(|call| call.name.starts_with("cuMemcpy2D") || call.name.starts_with("cuMemcpyDtoH"))
        .count()
}

#[test]
fn gaps_are_downloaded_too_where_nothing_else_uses_them() {
    run(test_name!(), |lab| {
        let contents: Array2<u32> =
            Array2::from_shape_fn((40, 40), |(row, column)| (row * 40 + column) as u32);
        let mut array = SmartArray::from(contents.clone());
        drop(array.gpu_mut_on(&lab.stream())?);
        (0..40).try_for_each(|row| array.slice(s![row, 3..;7]).host().map(drop))?;
        downloads();
        assert_eq!(*array.host()?, contents);
        assert_eq!(downloads(), 1, "one call downloads all remaining boxes");
        drop(array.gpu_mut_on(&lab.stream())?);
        (0..20).try_for_each(|row| array.slice(s![row, row]).host().map(drop))?;
        downloads();
        assert_eq!(*array.slice(s![..20, ..]).host()?, contents.slice(s![..20, ..]));
        assert_eq!(downloads(), 1, "one call for a part too");
        drop(array.gpu_mut_on(&lab.stream())?);
        assert_eq!(*array.slice(s![.., ..;2]).host()?, contents.slice(s![.., ..;2]));
        let lines = driver::take_calls()
            .iter()
            .filter(|call| call.name.starts_with("cuMemcpyDtoH"))
            .count();
        assert_eq!(lines, 1, "one line for all short rows");
        // While this half is downloaded, another stream works on the other half, whose bytes the
        // download must not access.
        drop(array.gpu_mut_on(&lab.stream())?);
        let (mut left, right) = array.split_at_mut(Axis(1), 20);
        (0..20).try_for_each(|row| right.slice(s![row, row]).host().map(drop))?;
        downloads();
        let at_work = left.gpu_mut_on(&lab.new_stream()?)?;
        assert_eq!(*right.host()?, contents.slice(s![.., 20..]));
        let largest = driver::take_calls().iter().map(|call| call.len_bytes).max();
        assert!(
            largest <= Some(40 * 20 * 4),
            "{largest:?} bytes in one copy: more than the half has"
        );
        drop(at_work);
        drop(array);
        forget_calls(lab)
    });
}

/// Contents that the state has in several parts are one copy if they are read from one device.
#[test]
fn a_snapshot_joins_the_parts_that_one_device_has() {
    run(test_name!(), |lab| {
        let contents: Array2<u32> =
            Array2::from_shape_fn((40, 40), |(row, column)| (row * 40 + column) as u32);
        let Some([first, second]) = lab.pair() else { return Ok(()) };
        let mut array = SmartArray::from(contents.clone());
        drop(array.gpu_mut_on(&first.stream())?);
        // Another device has some columns too, without a copy on the host.
        drop(array.slice(s![.., 10..20]).gpu_on(&second.stream())?);
        downloads();
        let snapshot = array.snapshot_on(&first.stream())?.wait()?;
        assert_eq!(snapshot, contents);
        assert_eq!(downloads(), 1, "one call for all three parts");
        drop(array);
        second.synchronize()?;
        second.trim()?;
        forget_calls(lab)
    });
}

/// Frees everything and clears the record of calls. The suite compares the numbers of created and
/// destroyed objects in the record, of which this test has removed a part.
fn forget_calls(lab: &Lab) -> Result<()> {
    lab.device().synchronize()?;
    lab.device().trim()?;
    driver::take_calls();
    Ok(())
}

/// In each direction there is one call for all boxes if the driver is new enough, else one call per
/// box.
#[test]
fn many_small_boxes_go_in_one_call() {
    run(test_name!(), |lab| {
        let mut array = SmartArray::from(Array2::<u32>::zeros((300, 2000)));
        drop(array.gpu_mut_on(&lab.stream())?);
        let places: Vec<(usize, usize)> =
            (0..30).map(|turn| (turn * 10, (turn * 61) % 1900)).collect();
        let boxes = |array: &SmartArray<u32, _>| {
            places.iter().try_for_each(|(row, column)| {
                array.slice(s![*row, *column..*column + 4]).host().map(drop)
            })
        };
        boxes(&array)?;
        places.iter().try_for_each(|(row, column)| {
            array.slice_mut(s![*row, *column..*column + 4]).into_host_mut()?.fill(7);
            Ok(())
        })?;
        let copies = |calls: &[driver::Call]| {
            calls.iter().filter(|call| call.name.starts_with("cuMemcpy") && call.code == 0).count()
        };
        driver::take_calls();
        drop(array.gpu_on(&lab.stream())?);
        let up = copies(&driver::take_calls());
        assert_eq!(up, if is_poorer() { 30 } else { 1 }, "uploads");
        let expected = |(row, column): (usize, usize)| {
            if places.iter().any(|(x, y)| row == *x && (*y..*y + 4).contains(&column)) {
                7
            } else {
                0
            }
        };
        assert_eq!(*array.host()?, Array2::from_shape_fn((300, 2000), expected));
        drop(array);
        forget_calls(lab)
    });
}

/// `set_memory_limit` trims the pool once. Later the pool keeps freed memory, and trimming it would
/// not help. If each allocation waited for the device and trimmed the pool, the pool would save
/// nothing.
#[test]
fn at_a_limit_no_allocation_waits_for_the_device() {
    run(test_name!(), |lab| {
        drop(SmartArray::<u8, _>::full(1 << 22, 1).gpu_on(&lab.stream())?);
        lab.device().synchronize()?;
        driver::take_calls();
        suite::memory::a_limit_is_kept_and_copies_give_way(lab)?;
        let calls = driver::take_calls();
        let waits = calls
            .iter()
            .filter(|call| ["cuCtxSynchronize", "cuMemPoolTrimTo"].contains(&call.name.as_str()));
        assert_eq!(waits.count(), usize::from(!is_poorer()));
        forget_calls(lab)
    });
}

/// An array that several streams read last is freed on a stream for which no other work waits.
#[test]
fn arrays_of_several_streams_are_freed_without_a_wait() {
    const BYTES: usize = 1 << 16;
    const COUNT: usize = 300;
    run(test_name!(), |lab| {
        let [up, one, other] = [lab.new_stream()?, lab.new_stream()?, lab.new_stream()?];
        let mut most = 0;
        for turn in 0..COUNT {
            // The array is a constant, so it needs no upload. An upload could complete finished
            // work if there is no pinned memory.
            let array = SmartArray::<u8, _>::full(BYTES, 1);
            array.prefetch(&up)?;
            drop((array.gpu_on(&one)?, array.gpu_on(&other)?));
            drop(array);
            most = most.max(driver::memory_in_use(0));
            if turn % 20 == 0 {
                // Waits for the program's own streams from time to time, so that they become idle
                // even on a slow machine. The stream for frees is not one of them.
                [&up, &one, &other].into_iter().try_for_each(Stream::synchronize)?;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
        assert!(most < (COUNT * BYTES * 3 / 4) as u64, "{most} bytes were in use at once");
        forget_calls(lab)
    });
}

fn uploads(stream: &Stream, count: usize) -> Result<()> {
    (0..count).try_for_each(|_| SmartArray::from(vec![1_u8; 40_000]).prefetch(stream))
}

#[test]
fn a_program_that_never_waits_pins_no_more_than_is_in_flight() {
    run(test_name!(), |lab| {
        uploads(&lab.stream(), 2000)?;
        let locked =
            driver::take_calls().iter().filter(|call| call.name == "cuMemHostAlloc").count();
        assert!(locked < 1000, "{locked} blocks for 2000 uploads, most of which are long over");
        forget_calls(lab)
    });
}

#[test]
fn dropped_streams_are_destroyed_without_a_wait() {
    run(test_name!(), |lab| {
        (0..400).try_for_each(|_| uploads(&lab.new_stream()?, 1))?;
        let calls = driver::calls();
        let count = |name: &str| calls.iter().filter(|call| call.name == name).count();
        assert!(
            count("cuStreamDestroy_v2") > 200,
            "{} of {}",
            count("cuStreamDestroy_v2"),
            count("cuStreamCreate")
        );
        Ok(())
    });
}

/// Runs the suite again, without memory pools and peer access, with small pitches and the oldest
/// driver.
#[test]
fn on_a_poorer_machine() {
    run_poorer(&["stand_in::", "--skip", "on_a_poorer_machine", "--skip", "on_one_memory"]);
}

/// Runs the suite again on devices that reach the host's memory.
#[test]
fn on_one_memory() {
    let counting = ["gaps_are", "a_snapshot_joins", "at_a_limit", "many_small_boxes"];
    let skips = counting.into_iter().flat_map(|counting| ["--skip", counting]);
    run_on_one_memory(&std::iter::once("stand_in::").chain(skips).collect::<Vec<_>>());
}

#[test]
fn with_short_rows_packed() {
    run_packed("stand_in");
}
