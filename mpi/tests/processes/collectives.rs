//! Operations of all processes at once.

use resident::ndarray::{Array, Array2, Ix2, ShapeBuilder, s};
use resident::{Device, DeviceArray, Emulation, SmartArray};
use resident_mpi::{Error, Mpi, Number, Reduce};

use crate::launch::{run, run_each};

/// The element of a rank at an index: small, so that products fit all types.
fn element(rank: usize, index: usize) -> u8 {
    (1 + (rank + index) % 3) as u8
}

fn expected(reduce: Reduce, processes: usize, index: usize) -> u8 {
    let elements = (0..processes).map(|rank| element(rank, index));
    match reduce {
        Reduce::Sum => elements.sum(),
        Reduce::Product => elements.product(),
        Reduce::Min => elements.min().expect("a process"),
        Reduce::Max => elements.max().expect("a process"),
    }
}

const ALL: [Reduce; 4] = [Reduce::Sum, Reduce::Product, Reduce::Min, Reduce::Max];

fn check_type<T: Number + From<u8> + std::fmt::Debug>(mpi: &Mpi) {
    check_with::<T>(mpi, |value| T::from(value));
}

fn check_with<T: Number + std::fmt::Debug>(mpi: &Mpi, of: impl Fn(u8) -> T + Copy) {
    for reduce in ALL {
        let own = Array::from_shape_fn(100, |index| of(element(mpi.rank(), index)));
        let mut array = SmartArray::from(own);
        mpi.all_reduce(reduce, &mut array).unwrap();
        let sums = Array::from_shape_fn(100, |index| of(expected(reduce, mpi.size(), index)));
        assert_eq!(*array.host().unwrap(), sums, "{reduce:?}");
        let value = mpi.all_reduce_value(reduce, of(element(mpi.rank(), 1))).unwrap();
        assert_eq!(value, of(expected(reduce, mpi.size(), 1)));
    }
}

pub(crate) fn check_all_types(mpi: &Mpi) {
    check_type::<f32>(mpi);
    check_type::<f64>(mpi);
    check_type::<u8>(mpi);
    check_type::<u16>(mpi);
    check_type::<u32>(mpi);
    check_type::<u64>(mpi);
    check_with::<i8>(mpi, |value| value as i8);
    check_type::<i16>(mpi);
    check_type::<i32>(mpi);
    check_type::<i64>(mpi);
}

#[test]
fn reductions_of_all_types() {
    run_each(&[1, 2, 3, 4], check_all_types);
}

#[test]
fn negative_and_fractional_numbers() {
    run(3, |mpi| {
        let own = mpi.rank() as f64 - 1.5;
        assert_eq!(mpi.all_reduce_value(Reduce::Sum, own).unwrap(), -1.5);
        assert_eq!(mpi.all_reduce_value(Reduce::Min, own).unwrap(), -1.5);
        let own = -(mpi.rank() as i64);
        assert_eq!(mpi.all_reduce_value(Reduce::Min, own).unwrap(), -2);
        assert_eq!(mpi.all_reduce_value(Reduce::Max, own).unwrap(), 0);
    });
}

#[test]
fn a_part_on_a_device_is_reduced_in_place() {
    run(3, |mpi| {
        let device = Device::emulated(Emulation::new());
        let _here = device.enter();
        let own = Array2::from_shape_fn((40, 30).f(), |(i, j)| (i * j * (mpi.rank() + 1)) as f64);
        let mut array = SmartArray::from(own.clone());
        drop(array.gpu_mut().unwrap());
        let before = device.traffic();
        mpi.all_reduce(Reduce::Sum, &mut array.slice_mut(s![1..39;2, ..5])).unwrap();
        let moved = device.traffic() - before;
        assert_eq!((moved.to_host.bytes, moved.to_device.bytes), (19 * 5 * 8, 19 * 5 * 8));
        let mut sums = own;
        let six = |(i, j): (usize, usize)| (6 * i * j) as f64;
        for i in (1..39).step_by(2) {
            (0..5).for_each(|j| sums[[i, j]] = six((i, j)));
        }
        assert_eq!(*array.host().unwrap(), sums);
        assert!(device.emulation().unwrap().hazards().is_empty());
    });
}

#[test]
fn a_device_array_is_reduced() {
    run(2, |mpi| {
        let device = Device::emulated(Emulation::new());
        let _here = device.enter();
        let mut array = DeviceArray::full(100, 3_i32 + mpi.rank() as i32).unwrap();
        mpi.all_reduce(Reduce::Product, &mut array).unwrap();
        assert_eq!(array.copy_to_host().unwrap(), Array::from_elem(100, 12));
    });
}

#[test]
fn seeds_and_streams() {
    run(2, |mpi| {
        for seed in 0..10 {
            let device = Device::emulated(Emulation::new().seed(seed));
            let (one, two) = (device.new_stream().unwrap(), device.new_stream().unwrap());
            let mut array = SmartArray::<f64, Ix2>::zeros((6, 6));
            array.slice_mut(s![.., 2]).fill_on(&one, seed as f64).unwrap();
            mpi.all_reduce_on(&two, Reduce::Sum, &mut array.slice_mut(s![.., 1..3])).unwrap();
            array.slice_mut(s![0, ..]).fill_on(&one, 7.0).unwrap();
            mpi.broadcast_on(&two, &mut array.slice_mut(s![.., 2..]), seed as usize % 2).unwrap();
            assert_eq!(array.get((3, 2)).unwrap(), 2.0 * seed as f64);
            assert_eq!(array.get((0, 2)).unwrap(), 7.0);
            assert!(device.emulation().unwrap().hazards().is_empty());
        }
    });
}

#[test]
fn broadcasts_from_each_process() {
    run(4, |mpi| {
        for root in 0..4 {
            let own = Array2::from_shape_fn((5, 6), |(i, j)| (100 * mpi.rank() + i * j) as u32);
            // Each process has another layout.
            let mut array = SmartArray::from(own);
            let mut wide = SmartArray::<u32, _>::zeros((5, 12));
            let mut reversed = wide.slice_mut(s![.., ..;2]);
            if mpi.rank() == root || mpi.rank() % 2 == 0 {
                mpi.broadcast(&mut array, root).unwrap();
                reversed.assign(&array).unwrap();
            } else {
                mpi.broadcast(&mut reversed, root).unwrap();
            }
            let sent = Array2::from_shape_fn((5, 6), |(i, j)| (100 * root + i * j) as u32);
            assert_eq!(*reversed.host().unwrap(), sent);
        }
    });
}

#[test]
fn an_unwritten_array_receives_a_broadcast() {
    run(2, |mpi| {
        let mut array = match mpi.rank() {
            1 => SmartArray::<[u16; 3], _>::full((2, 2), [1, 2, 3]),
            _ => SmartArray::uninit((2, 2)),
        };
        mpi.broadcast(&mut array, 1).unwrap();
        assert_eq!(array.get((1, 1)).unwrap(), [1, 2, 3]);
        let mut empty = SmartArray::<f32, _>::zeros((0, 4));
        mpi.broadcast(&mut empty, 0).unwrap();
        mpi.all_reduce(Reduce::Sum, &mut empty).unwrap();
    });
}

#[track_caller]
fn expect_mismatch(result: resident_mpi::Result<()>, from: usize, expected: &str, found: &str) {
    let error = result.unwrap_err();
    let Error::Mismatch { rank, expected: ours, found: theirs, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*rank, ours.as_str(), theirs.as_str()), (from, expected, found));
}

#[test]
fn processes_that_do_not_do_the_same_are_told() {
    run(3, |mpi| {
        let mut floats = SmartArray::<f32, _>::ones(10);
        let mut doubles = SmartArray::<f64, _>::ones(5);
        let sum = "all_reduce of f32 of shape [10]: Sum";
        let other = "all_reduce of f64 of shape [5]: Sum";
        let is_last = mpi.rank() == 2;
        if is_last {
            expect_mismatch(mpi.all_reduce(Reduce::Sum, &mut doubles), 0, other, sum);
        } else {
            expect_mismatch(mpi.all_reduce(Reduce::Sum, &mut floats), 2, sum, other);
        }
        if is_last {
            let copy = "broadcast of f32 of shape [10] from rank 2";
            expect_mismatch(mpi.broadcast(&mut floats, 2), 0, copy, "a barrier");
        } else {
            let copy = "broadcast of f32 of shape [10] from rank 2";
            expect_mismatch(mpi.barrier(), 2, "a barrier", copy);
        }
        let reduce = if is_last { Reduce::Max } else { Reduce::Min };
        assert!(mpi.all_reduce(reduce, &mut floats).is_err());
        assert!(mpi.all_reduce_value(reduce, 1_u8).is_err());
        // The arrays are as they were, and what comes after works.
        assert_eq!(floats.sum().unwrap(), 10.0);
        mpi.all_reduce(Reduce::Sum, &mut floats).unwrap();
        assert_eq!(floats.sum().unwrap(), 30.0);
    });
}

#[test]
fn messages_and_collectives_do_not_mix() {
    run(3, |mpi| {
        let (next, last) = ((mpi.rank() + 1) % 3, (mpi.rank() + 2) % 3);
        let own = SmartArray::from(vec![mpi.rank() as u64; 1000]);
        for tag in 0..20 {
            let receiving = mpi.irecv::<u64, _>(1000, last, tag).unwrap();
            let sending = mpi.isend(&own, next, tag).unwrap();
            assert_eq!(mpi.all_reduce_value(Reduce::Sum, 1_u32).unwrap(), 3);
            mpi.barrier().unwrap();
            assert_eq!(receiving.wait().unwrap().get(999).unwrap(), last as u64);
            sending.wait().unwrap();
        }
    });
}

#[test]
fn more_elements_than_one_operation_takes() {
    if std::env::var_os("RESIDENT_LARGE").is_none() {
        println!("skipped: set RESIDENT_LARGE=1 for collectives of more than 1 GiB");
        return;
    }
    run(2, |mpi| {
        let len = (1 << 30) + 3;
        let mut array = SmartArray::from(vec![mpi.rank() as u8; len]);
        array.set(len - 1, 7).unwrap();
        mpi.all_reduce(Reduce::Sum, &mut array).unwrap();
        let last = |array: &SmartArray<u8, _>| {
            [0, (1 << 30) - 1, 1 << 30, len - 1].map(|index| array.get(index).unwrap())
        };
        assert_eq!(last(&array), [1, 1, 1, 14]);
        array.set(1 << 30, 5 + mpi.rank() as u8).unwrap();
        mpi.broadcast(&mut array, 1).unwrap();
        assert_eq!(last(&array), [1, 1, 6, 14]);
    });
}
