//! Reads and writes of elements whose places are given.

use std::sync::Barrier;
use std::thread;

use ndarray::{Array2, s};
use resident::{Device, DeviceArray, Emulation, Error, Fault, Result, SmartArray, ops};

use crate::part::Random;
use crate::{PARALLEL_LEN_MIN, devices, rust};

#[test]
fn elements_are_read_in_row_major_order_whatever_the_layout() -> Result<()> {
    for (_, _here) in devices() {
        let table = Array2::from_shape_fn((4, 6), |(i, j)| (10 * i + j) as i32);
        let ours = SmartArray::from(table.clone());
        let index = Array2::from_shape_vec((2, 3), vec![0_u64, 5, 11, 3, 3, 8]).expect("six");
        for (view, part) in [
            (table.view(), ours.view()),
            (table.t(), ours.t()),
            (table.slice(s![1.., ..;2]), ours.slice(s![1.., ..;2])),
            (table.slice(s![..;-1, 2..]), ours.slice(s![..;-1, 2..])),
        ] {
            let elements: Vec<i32> = view.iter().copied().collect();
            let bounded = index.mapv(|place| place % elements.len() as u64);
            let mut out = SmartArray::<i32, _>::uninit((2, 3));
            ops::gather(&part, &SmartArray::from(bounded.clone()), &mut out)?;
            assert_eq!(out.host()?.view(), bounded.mapv(|place| elements[place as usize]));
            let mut turned = SmartArray::<i32, _>::uninit((3, 2));
            ops::gather(&part, &SmartArray::from(bounded.clone()).t(), &mut turned)?;
            assert_eq!(turned.host()?.view(), bounded.t().mapv(|place| elements[place as usize]));
        }
    }
    Ok(())
}

#[test]
fn the_last_of_several_writes_wins() -> Result<()> {
    for (_, _here) in devices() {
        for len in [10, 5000] {
            let mut random = Random::new(3);
            let index: Vec<u64> = (0..len).map(|_| random.below(64) as u64).collect();
            let mut expected = vec![-1_i64; 64];
            index.iter().zip(0..).for_each(|(place, n)| expected[*place as usize] = n);
            let values = SmartArray::from((0..len as i64).collect::<Vec<_>>());
            let mut out = SmartArray::<i64, _>::full((8, 8), -1);
            ops::scatter(&values, &SmartArray::from(index), &mut out)?;
            assert_eq!(out.to_vec()?, expected);
        }
    }
    Ok(())
}

#[test]
fn a_part_is_written_and_nothing_beside() -> Result<()> {
    for (_, _here) in devices() {
        let mut table = SmartArray::<u8, _>::zeros((4, 6));
        let index = SmartArray::from([0_u64, 3, 5]);
        ops::scatter(&SmartArray::full(1, 7_u8), &index, &mut table.slice_mut(s![..;2, 1..4]))?;
        let mut expected = Array2::<u8>::zeros((4, 6));
        (expected[(0, 1)], expected[(2, 1)], expected[(2, 3)]) = (7, 7, 7);
        assert_eq!(table.host()?.view(), expected);
        let mut turned = table.view_mut().reversed_axes();
        ops::scatter(&SmartArray::from([9_u8]), &SmartArray::from([1_u64]), &mut turned)?;
        assert_eq!(table.get((1, 0))?, 9);
    }
    Ok(())
}

#[test]
fn large_reads_and_writes_use_all_cores() -> Result<()> {
    let _here = rust().enter();
    let len = PARALLEL_LEN_MIN + 3;
    let values = SmartArray::from((0..len as u32).collect::<Vec<_>>());
    let backwards = SmartArray::from((0..len as u64).rev().collect::<Vec<_>>());
    let mut out = SmartArray::<u32, _>::uninit(len);
    ops::gather(&values, &backwards, &mut out)?;
    assert!(out.to_vec()?.into_iter().eq((0..len as u32).rev()));
    let mut again = SmartArray::<u32, _>::zeros(len);
    ops::scatter(&out, &backwards, &mut again)?;
    assert!(again.to_vec()?.into_iter().eq(0..len as u32));
    let mut wrong = backwards.to_vec()?;
    wrong[len - 2] = u64::MAX;
    let refused = ops::gather(&values, &SmartArray::from(wrong), &mut out);
    assert!(refused.is_err_and(|error| error.to_string().contains(&format!("at {}", len - 2))));
    Ok(())
}

#[test]
fn the_first_bad_index_is_named_and_nothing_is_written() -> Result<()> {
    for (device, _here) in devices() {
        let values = SmartArray::from([1.0_f32, 2.0, 3.0]);
        let index = SmartArray::from(ndarray::arr2(&[[0_u64, 2], [3, 77]]));
        let mut out = SmartArray::<f32, _>::full((2, 2), -1.0);
        let Err(Error::Shape { expected, seen, .. }) = ops::gather(&values, &index, &mut out)
        else {
            panic!("3 is beyond the end")
        };
        assert!(expected.contains("below 3") && seen.contains("3, the index at 2"), "{seen}");
        assert_eq!(out.to_vec()?, [-1.0; 4]);
        let mut line = DeviceArray::<f32, _>::full(3, 5.0)?;
        let four = SmartArray::<f32, _>::ones((2, 2));
        let refused = ops::scatter(&four, &index, &mut line);
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
        assert_eq!(line.copy_to_host()?.to_vec(), [5.0; 3]);
        device.synchronize()?;
    }
    Ok(())
}

#[test]
fn a_check_that_fails_or_runs_late_lets_no_bad_index_pass() -> Result<()> {
    for (nth, is_late) in (1..12).flat_map(|nth| [(nth, false), (nth, true)]) {
        let fault = Fault::nth(nth);
        let fault = if is_late { fault.late() } else { fault };
        let device = Device::emulated(Emulation::new().seed(nth).fail(fault));
        let _here = device.enter();
        let values = SmartArray::from([1.0_f32, 2.0, 3.0]);
        let mut out = SmartArray::<f32, _>::full(2, -1.0);
        let bad = SmartArray::from([0_u64, 3]);
        assert!(ops::gather(&values, &bad, &mut out).is_err(), "call {nth}, late: {is_late}");
        let good = SmartArray::from([2_u64, 0]);
        let is_right = |out: Vec<f32>| out == [3.0, 1.0];
        if ops::gather(&values, &good, &mut out).is_ok() {
            assert!(out.to_vec().map_or(true, is_right), "call {nth}, late: {is_late}");
        }
        let _ = device.synchronize();
        ops::gather(&values, &good, &mut out)?;
        assert!(is_right(out.to_vec()?), "call {nth}, late: {is_late}");
    }
    Ok(())
}

/// More than there are places for the outcomes of checks.
#[test]
fn a_hundred_threads_at_once_learn_of_their_own_bad_index() {
    const THREADS: usize = 100;
    let device = rust();
    let ready = Barrier::new(THREADS);
    let run = &|thread: usize| -> Result<()> {
        let stream = device.new_stream()?;
        let values = SmartArray::<u32, _>::ones(THREADS);
        let mut index = vec![0_u64; THREADS];
        index[thread] = 1000 + thread as u64;
        let index = SmartArray::from(index);
        let mut out = SmartArray::<u32, _>::zeros(THREADS);
        ready.wait();
        for _ in 0..20 {
            let refused = ops::gather_on(&stream, &values, &index, &mut out);
            let words = format!("{}, the index at {thread} of", 1000 + thread);
            assert!(refused.is_err_and(|error| error.to_string().contains(&words)));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().for_each(|one| one.join().expect("no panic").expect("no error"));
    });
}

#[test]
fn nothing_may_be_read_from_nothing() -> Result<()> {
    let _here = rust().enter();
    let none = SmartArray::<u32, _>::zeros(0);
    let mut out = SmartArray::<u32, _>::uninit(0);
    ops::gather(&none, &SmartArray::<u64, _>::zeros(0), &mut out)?;
    ops::scatter(&out, &SmartArray::<u64, _>::zeros(0), &mut SmartArray::<u32, _>::zeros(3))?;
    let mut one = SmartArray::<u32, _>::uninit(1);
    assert!(ops::gather(&none, &SmartArray::<u64, _>::zeros(1), &mut one).is_err());
    Ok(())
}
