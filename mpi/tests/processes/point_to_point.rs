//! Messages from process to process.

use std::time::{Duration, Instant};

use resident::audit::{self, Implicit};
use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::{Array, Array2, Array3, Axis, Ix1, Ix2, Ix3, ShapeBuilder, arr0, s};
use resident::{Device, DeviceArray, Element, Emulation, PinnedArray, SmartArray};
use resident_mpi::{Error, Mpi};

use crate::launch::{Job, is_inside, resident_bytes, run};

/// A record.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[bytemuck(crate = "resident::bytemuck")]
struct Particle {
    position: [f32; 3],
    charge: i32,
}

fn emulated() -> Device {
    Device::emulated(Emulation::new())
}

fn expect_no_hazards(device: &Device) {
    assert!(device.emulation().expect("emulated").hazards().is_empty());
}

fn numbers(shape: (usize, usize)) -> Array2<f64> {
    Array2::from_shape_fn(shape, |(i, j)| (i * 1000 + j) as f64)
}

#[test]
fn a_ring_of_whole_arrays() {
    run(4, |mpi| {
        let (next, last) = ((mpi.rank() + 1) % 4, (mpi.rank() + 3) % 4);
        let own = SmartArray::from(vec![mpi.rank() as f64; 1000]);
        let mut other = SmartArray::<f64, _>::uninit(1000);
        let sending = mpi.isend(&own, next, 3).unwrap();
        mpi.recv(&mut other, last, 3).unwrap();
        sending.wait().unwrap();
        assert_eq!(other.to_vec().unwrap(), vec![last as f64; 1000]);
        let traffic = mpi.traffic();
        assert_eq!((traffic.sent.count, traffic.sent.bytes), (1, 8000));
        assert_eq!((traffic.received.count, traffic.received.bytes), (1, 8000));
    });
}

/// Sends `part` of rank 0's array to the part of rank 1's that `into` selects, which has another
/// layout, and compares.
fn check_layouts(mpi: &Mpi, is_on_device: bool) {
    let device = emulated();
    let _here = device.enter();
    let mut array = SmartArray::from(numbers((6, 8)));
    let mut target = SmartArray::from(Array2::<f64>::zeros((8, 6).f()));
    if is_on_device {
        drop(array.gpu_mut().unwrap());
        drop(target.gpu_mut().unwrap());
    }
    let all = numbers((6, 8));
    let send = |part: &resident::SmartView<'_, f64, Ix2>, tag| mpi.send(part, 1, tag).unwrap();
    if mpi.rank() == 0 {
        send(&array.view(), 0);
        send(&array.slice(s![1..4, 2..5]), 1);
        send(&array.slice(s![.., 7..8]), 2);
        send(&array.slice(s![..;-2, ..;3]), 3);
        send(&array.t(), 4);
        send(&array.slice(s![2..2, ..6]), 5);
    } else {
        mpi.recv(&mut target.view_mut().permuted_axes([1, 0]), 0, 0).unwrap();
        assert_eq!(*target.host().unwrap().t(), all);
        let mut part = |shape: (usize, usize), tag| {
            mpi.recv(&mut target.slice_mut(s![..shape.0, ..shape.1]), 0, tag).unwrap();
            target.slice(s![..shape.0, ..shape.1]).host().unwrap().to_owned()
        };
        assert_eq!(part((3, 3), 1), all.slice(s![1..4, 2..5]));
        assert_eq!(part((6, 1), 2), all.slice(s![.., 7..8]));
        assert_eq!(part((3, 3), 3), all.slice(s![..;-2, ..;3]));
        assert_eq!(part((8, 6), 4), all.t());
        assert_eq!(part((0, 6), 5).len(), 0);
    }
    expect_no_hazards(&device);
}

#[test]
fn parts_of_all_layouts_on_the_host() {
    run(2, |mpi| check_layouts(mpi, false));
}

#[test]
fn parts_of_all_layouts_on_devices() {
    run(2, |mpi| check_layouts(mpi, true));
}

#[test]
fn other_numbers_of_axes() {
    run(2, |mpi| {
        let cube = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (i * 100 + j * 10 + k) as u16);
        if mpi.rank() == 0 {
            let array = SmartArray::from(cube);
            mpi.send(&array.slice(s![.., 1..;2, ..;-1]), 1, 0).unwrap();
            mpi.send(&array.index_axis(Axis(1), 2), 1, 1).unwrap();
            mpi.send(&array.view().into_dyn(), 1, 2).unwrap();
            mpi.send(&SmartArray::from(arr0(7_u8)), 1, 3).unwrap();
        } else {
            let part = mpi.irecv::<u16, Ix3>((3, 2, 5), 0, 0).unwrap().wait().unwrap();
            assert_eq!(*part.host().unwrap(), cube.slice(s![.., 1..;2, ..;-1]));
            let plane = mpi.irecv::<u16, Ix2>((3, 5), 0, 1).unwrap().wait().unwrap();
            assert_eq!(*plane.host().unwrap(), cube.index_axis(Axis(1), 2));
            let mut whole = SmartArray::<u16, _>::zeros((3, 4, 5)).into_dyn();
            mpi.recv(&mut whole, 0, 2).unwrap();
            assert_eq!(*whole.host().unwrap(), cube.view().into_dyn());
            let mut number = SmartArray::<u8, _>::zeros(());
            mpi.recv(&mut number, 0, 3).unwrap();
            assert_eq!(number.get(()).unwrap(), 7);
        }
    });
}

fn check_type<T: Element + PartialEq + std::fmt::Debug>(mpi: &Mpi, value: impl Fn(usize) -> T) {
    let expected = Array::from_shape_fn(100, value);
    if mpi.rank() == 0 {
        mpi.send(&SmartArray::from(expected), 1, 9).unwrap();
    } else {
        let mut array = SmartArray::<T, Ix1>::uninit(100);
        mpi.recv(&mut array, 0, 9).unwrap();
        assert_eq!(*array.host().unwrap(), expected);
    }
}

#[test]
fn elements_of_all_types() {
    run(2, |mpi| {
        check_type(mpi, |n| n as f32 / 3.0);
        check_type(mpi, |n| n as f64 / 3.0);
        check_type(mpi, |n| n as u8);
        check_type(mpi, |n| n as i8 - 50);
        check_type(mpi, |n| n as i16 - 50);
        check_type(mpi, |n| n as u16 * 600);
        check_type(mpi, |n| n as i32 - 50);
        check_type(mpi, |n| n as u32 * 4_000_000);
        check_type(mpi, |n| n as i64 - 50);
        check_type(mpi, |n| u64::MAX - n as u64);
        check_type(mpi, |n| [n as u8; 3]);
        check_type(mpi, |n| Particle { position: [n as f32; 3], charge: -(n as i32) });
    });
}

#[test]
fn only_the_part_moves_between_host_and_device() {
    run(2, |mpi| {
        let device = emulated();
        let _here = device.enter();
        let mut field = SmartArray::from(numbers((64, 64)));
        drop(field.gpu_mut().unwrap());
        let before = device.traffic();
        // Its copies are asked for, not implied by an access.
        let _denied = audit::deny(Implicit::ALL);
        if mpi.rank() == 0 {
            mpi.send(&field.slice(s![.., 63]), 1, 0).unwrap();
            assert_eq!((device.traffic() - before).to_host.bytes, 64 * 8);
            assert_eq!((device.traffic() - before).to_device.bytes, 0);
        } else {
            mpi.recv(&mut field.slice_mut(s![.., 0]), 0, 0).unwrap();
            assert_eq!((device.traffic() - before).to_device.bytes, 64 * 8);
            assert_eq!((device.traffic() - before).to_host.bytes, 0);
            let _allowed = audit::allow(Implicit::ALL);
            let column = field.slice(s![.., 0]).to_vec().unwrap();
            assert_eq!(column, numbers((64, 64)).column(63).to_vec());
        }
        expect_no_hazards(&device);
    });
}

#[test]
fn what_is_on_the_host_stays_there() {
    run(2, |mpi| {
        let device = emulated();
        let _here = device.enter();
        let mut field = SmartArray::from(numbers((16, 16)));
        if mpi.rank() == 0 {
            mpi.send(&field.slice(s![.., 3]), 1, 0).unwrap();
            mpi.send_on(&device.stream(), &field.slice(s![.., 3]), 1, 0).unwrap();
        } else {
            mpi.recv(&mut field.slice_mut(s![.., 0]), 0, 0).unwrap();
            mpi.recv_on(&device.stream(), &mut field.slice_mut(s![.., 1]), 0, 0).unwrap();
        }
        mpi.all_reduce(resident_mpi::Reduce::Max, &mut field.slice_mut(s![0, ..])).unwrap();
        mpi.broadcast(&mut field.slice_mut(s![1, ..]), 0).unwrap();
        let traffic = device.traffic();
        assert_eq!((traffic.to_device.count, traffic.to_host.count), (0, 0));
    });
}

#[test]
fn streams_of_emulated_devices_in_random_order() {
    run(2, |mpi| {
        for seed in 0..20 {
            let device = Device::emulated(Emulation::new().seed(seed));
            let (one, two) = (device.new_stream().unwrap(), device.new_stream().unwrap());
            let mut field = SmartArray::from(numbers((8, 8)));
            drop(field.gpu_mut_on(&one).unwrap());
            field.slice_mut(s![.., 3]).fill_on(&one, seed as f64).unwrap();
            if mpi.rank() == 0 {
                mpi.send_on(&two, &field.slice(s![.., 3]), 1, 0).unwrap();
            } else {
                mpi.recv_on(&two, &mut field.slice_mut(s![2, ..]), 0, 0).unwrap();
                let row = field.slice(s![2, ..]).to_vec().unwrap();
                assert_eq!(row, [seed as f64; 8]);
            }
            expect_no_hazards(&device);
        }
    });
}

#[test]
fn device_arrays_and_pinned_arrays() {
    run(2, |mpi| {
        let device = emulated();
        let _here = device.enter();
        let all = numbers((5, 7));
        if mpi.rank() == 0 {
            let array = DeviceArray::from_host(&all).unwrap();
            mpi.send(&array, 1, 0).unwrap();
            mpi.send(&array.slice(s![.., ..;2]), 1, 1).unwrap();
            mpi.send(&array.view().t(), 1, 2).unwrap();
            mpi.send(&PinnedArray::from_array(all).unwrap(), 1, 3).unwrap();
        } else {
            let mut array = DeviceArray::<f64, _>::zeros((5, 7)).unwrap();
            mpi.recv(&mut array, 0, 0).unwrap();
            assert_eq!(array.copy_to_host().unwrap(), all);
            mpi.recv(&mut array.slice_mut(s![.., ..4]), 0, 1).unwrap();
            assert_eq!(array.copy_to_host().unwrap().slice(s![.., ..4]), all.slice(s![.., ..;2]));
            let mut other = SmartArray::<f64, _>::uninit((7, 5));
            mpi.recv(&mut other, 0, 2).unwrap();
            assert_eq!(*other.host().unwrap(), all.t());
            let mut pinned = PinnedArray::<f64, _>::zeros((5, 7)).unwrap();
            mpi.recv(&mut pinned, 0, 3).unwrap();
            assert_eq!(*pinned.host().unwrap(), all);
        }
        expect_no_hazards(&device);
    });
}

#[test]
fn messages_to_itself() {
    run(1, |mpi| {
        for len in [0, 1, 1000, 4 << 20] {
            let own = SmartArray::from(Array::from_shape_fn(len, |n| n as f32));
            let mut other = SmartArray::<f32, _>::uninit(len);
            mpi.send(&own, 0, 0).unwrap();
            mpi.recv(&mut other, 0, 0).unwrap();
            assert!(*other.host().unwrap() == *own.host().unwrap());
            let receiving = mpi.irecv::<f32, Ix1>(len, 0, 1).unwrap();
            let sending = mpi.isend(&own, 0, 1).unwrap();
            assert!(*receiving.wait().unwrap().host().unwrap() == *own.host().unwrap());
            sending.wait().unwrap();
        }
    });
}

#[test]
fn messages_of_one_tag_stay_in_order() {
    run(3, |mpi| {
        if mpi.rank() > 0 {
            for n in 0..100 {
                let len = if n % 10 == 0 { 100_000 } else { 10 };
                let array = SmartArray::from(vec![mpi.rank() * 1000 + n; len]);
                drop(mpi.isend(&array, 0, 5).unwrap());
            }
            return;
        }
        for n in 0..100 {
            for rank in [2, 1] {
                let len = if n % 10 == 0 { 100_000 } else { 10 };
                let array = mpi.irecv::<usize, Ix1>(len, rank, 5).unwrap().wait().unwrap();
                assert_eq!(array.get(len - 1).unwrap(), rank * 1000 + n);
            }
        }
    });
}

/// Rank 1 expects elements `T` in `shape`, and gets `found`.
fn check_mismatch<T: Element>(mpi: &Mpi, len: usize, expected: &str, found: &str) {
    let error = mpi.irecv::<T, Ix1>(len, 0, 0).unwrap().wait().map(drop).unwrap_err();
    let Error::Mismatch { rank: 0, expected: ours, found: theirs, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((ours.as_str(), theirs.as_str()), (expected, found));
}

#[test]
fn other_types_and_shapes_are_mismatches() {
    run(2, |mpi| {
        let (small, large) = (SmartArray::<f64, _>::ones(10), SmartArray::<f64, _>::ones(1 << 20));
        if mpi.rank() == 0 {
            for array in [&small, &small, &small, &large, &large, &small] {
                mpi.send(array, 1, 0).unwrap();
            }
            mpi.send(&SmartArray::<f64, _>::ones((2, 5)), 1, 0).unwrap();
            mpi.send(&small, 1, 0).unwrap();
        } else {
            let (ten, many) = ("f64 of shape [10]", "f64 of shape [1048576]");
            check_mismatch::<i64>(mpi, 10, "i64 of shape [10]", ten);
            check_mismatch::<f64>(mpi, 9, "f64 of shape [9]", ten);
            check_mismatch::<f64>(mpi, 1 << 20, many, ten);
            check_mismatch::<f64>(mpi, 10, ten, many);
            check_mismatch::<f32>(mpi, 1 << 20, "f32 of shape [1048576]", many);
            let mut part = SmartArray::<f64, _>::zeros(11);
            let receiving = mpi.irecv::<f64, Ix1>(10, 0, 0).unwrap();
            let error = receiving.into_part(&mut part).unwrap_err();
            assert!(error.to_string().contains("f64 of shape [11] (the part)"), "{error}");
            check_mismatch::<f64>(mpi, 10, ten, "f64 of shape [2, 5]");
            // What comes after a mismatch arrives.
            mpi.recv(&mut part.slice_mut(s![..10]), 0, 0).unwrap();
            assert_eq!(part.sum().unwrap(), 10.0);
        }
    });
}

#[test]
fn ranks_and_tags_that_there_are_not() {
    run(2, |mpi| {
        let mut array = SmartArray::<f64, _>::zeros(3);
        let is_argument = |result: resident_mpi::Result<()>, part: &str| {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Argument { .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        };
        is_argument(mpi.send(&array, 2, 0), "rank 2, but there are 2 processes: name 0 to 1");
        is_argument(mpi.recv(&mut array, 2, 0), "rank 2");
        is_argument(mpi.broadcast(&mut array, 9), "rank 9");
        is_argument(mpi.send(&array, 0, -1), "tag -1, but tags are 0 to");
        is_argument(mpi.isend(&array, 0, i32::MIN).map(drop), "tag -2147483648");
        is_argument(mpi.irecv::<u8, Ix1>(3, 0, -7).map(drop), "tag -7");
        mpi.barrier().unwrap();
    });
}

#[test]
fn elements_never_written_are_not_sent() {
    run(2, |mpi| {
        let mut array = SmartArray::<f64, _>::uninit(3);
        if mpi.rank() == 0 {
            let error = mpi.send(&array, 1, 0).unwrap_err();
            assert!(matches!(error, Error::Resident(resident::Error::Uninitialised { .. })));
            // The line is that of the call here.
            assert!(error.to_string().contains("tests/processes/point_to_point.rs"), "{error}");
            array.fill(2.0).unwrap();
            mpi.send(&array, 1, 0).unwrap();
        } else {
            mpi.recv(&mut array, 0, 0).unwrap();
            assert_eq!(array.sum().unwrap(), 6.0);
        }
    });
}

#[test]
fn a_message_is_of_the_time_of_its_call() {
    run(2, |mpi| {
        let mut array = SmartArray::<u32, _>::ones(1 << 20);
        if mpi.rank() == 0 {
            let sending = mpi.isend(&array, 1, 0).unwrap();
            array.fill(2).unwrap();
            drop(array);
            sending.wait().unwrap();
        } else {
            mpi.recv(&mut array, 0, 0).unwrap();
            assert_eq!(array.sum().unwrap(), 1 << 20);
        }
    });
}

#[test]
fn forgotten_and_dropped_messages_arrive() {
    run(2, |mpi| {
        let array = SmartArray::<u32, _>::ones(1 << 20);
        if mpi.rank() == 0 {
            std::mem::forget(mpi.isend(&array, 1, 0).unwrap());
            drop(mpi.isend(&array, 1, 1).unwrap());
            // Received and thrown away.
            std::mem::forget(mpi.irecv::<u32, Ix1>(1 << 20, 1, 2).unwrap());
            drop(mpi.irecv::<u32, Ix1>(1 << 20, 1, 3).unwrap());
            return;
        }
        for tag in [2, 3] {
            std::mem::forget(mpi.isend(&array, 0, tag).unwrap());
        }
        for tag in [1, 0] {
            let received = mpi.irecv::<u32, Ix1>(1 << 20, 0, tag).unwrap().wait().unwrap();
            assert_eq!(received.sum().unwrap(), 1 << 20);
        }
    });
}

#[test]
fn messages_outlive_the_last_handle() {
    if !is_inside() {
        return Job::new(1).expect_success();
    }
    let mpi = resident_mpi::init().unwrap();
    let array = SmartArray::<u32, _>::ones(10);
    let sending = mpi.isend(&array, 0, 0).unwrap();
    let receiving = mpi.irecv::<u32, Ix1>(10, 0, 0).unwrap();
    drop(mpi);
    let error = sending.wait().unwrap_err();
    assert!(error.to_string().contains("MPI is finalised"), "{error}");
    assert!(receiving.wait().is_err());
}

#[test]
fn ten_thousand_messages_take_no_memory() {
    run(2, |mpi| {
        let array = SmartArray::<u8, _>::ones(10_000);
        let other = 1 - mpi.rank();
        let exchange = |count: usize| {
            let receive = || mpi.irecv::<u8, Ix1>(10_000, other, 0).unwrap();
            let receiving: Vec<_> = (0..count).map(|_| receive()).collect();
            (0..count).for_each(|_| drop(mpi.isend(&array, other, 0).unwrap()));
            for received in receiving {
                assert_eq!(received.wait().unwrap().get(9_999).unwrap(), 1);
            }
        };
        (0..20).for_each(|_| exchange(50));
        let before = resident_bytes();
        (0..200).for_each(|_| exchange(50));
        let grown = resident_bytes().saturating_sub(before);
        // The messages had 100 MB in each direction.
        assert!(grown < 4 << 20, "{grown} bytes more than before");
    });
}

/// Rank 1 calls nothing of MPI until rank 0 says, in a file, that its message is gone.
#[test]
fn a_large_message_arrives_while_its_receiver_computes() {
    const SENT: &str = "RESIDENT_MPI_TEST_SENT";
    if !is_inside() {
        let path = std::env::temp_dir().join(format!("resident-mpi-sent-{}", std::process::id()));
        Job::new(2).variable(SENT, path.to_str().expect("a path")).expect_success();
        std::fs::remove_file(path).expect("rank 0 wrote it");
        return;
    }
    let (mpi, path) = (resident_mpi::init().unwrap(), std::env::var(SENT).unwrap());
    let len = 64 << 20;
    if mpi.rank() == 0 {
        let sending = mpi.isend(&SmartArray::<u8, _>::ones(len), 1, 0).unwrap();
        sending.wait().unwrap();
        std::fs::write(path, "sent").unwrap();
        return;
    }
    let receiving = mpi.irecv::<u8, Ix1>(len, 0, 0).unwrap();
    let begin = Instant::now();
    while !std::fs::exists(&path).unwrap() {
        assert!(begin.elapsed() < Duration::from_secs(15), "it does not arrive by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(receiving.wait().unwrap().get(len - 1).unwrap(), 1);
}

#[test]
fn messages_of_more_bytes_than_an_int_counts() {
    if std::env::var_os("RESIDENT_LARGE").is_none() {
        println!("skipped: set RESIDENT_LARGE=1 for messages of more than 2 GiB");
        return;
    }
    run(1, |mpi| {
        let len = (1 << 31) + 5;
        let mut array = SmartArray::from(vec![1_u8; len]);
        array.set(len - 1, 7).unwrap();
        let receiving = mpi.irecv::<u8, Ix1>(len, 0, 0).unwrap();
        mpi.send(&array, 0, 0).unwrap();
        drop(array);
        let received = receiving.wait().unwrap();
        assert_eq!((received.get(len - 2).unwrap(), received.get(len - 1).unwrap()), (1, 7));
    });
}

#[test]
fn shapes_that_no_array_has() {
    run(1, |mpi| {
        for shape in [(usize::MAX, 2), (1 << 62, 1), (usize::MAX, 0)] {
            let error = mpi.irecv::<f64, Ix2>(shape, 0, 0).unwrap_err();
            assert!(error.to_string().contains("more elements than"), "{error}");
        }
        let error = mpi.irecv::<u8, Ix1>(1 << 60, 0, 0).unwrap_err();
        assert!(matches!(error, Error::Resident(resident::Error::OutOfMemory { .. })), "{error}");
        let receiving = mpi.irecv::<f64, Ix2>((2, 3), 0, 0).unwrap();
        assert_eq!(format!("{receiving:?}"), "Receiving(f64 of shape [2, 3] from rank 0)");
        let sending = mpi.isend(&SmartArray::<f64, _>::ones((2, 3)), 0, 0).unwrap();
        assert_eq!(format!("{sending:?}"), "Sending(to rank 0)");
        assert_eq!(receiving.wait().unwrap().sum().unwrap(), 6.0);
    });
}

#[test]
fn whether_a_message_is_done() {
    run(2, |mpi| {
        let array = SmartArray::<f64, _>::ones(1 << 20);
        if mpi.rank() == 0 {
            let sending = mpi.isend(&array, 1, 0).unwrap();
            assert!(!sending.is_done().unwrap(), "it is too large to be on its way");
            mpi.barrier().unwrap();
            while !sending.is_done().unwrap() {
                std::thread::yield_now();
            }
            sending.wait().unwrap();
            mpi.send(&array.slice(s![..10]), 1, 1).unwrap();
        } else {
            let receiving = mpi.irecv::<f64, Ix1>(10, 0, 1).unwrap();
            assert!(!receiving.is_done().unwrap(), "nobody has sent it");
            mpi.barrier().unwrap();
            let other = mpi.irecv::<f64, Ix1>(1 << 20, 0, 0).unwrap();
            while !other.is_done().unwrap() {
                std::thread::yield_now();
            }
            assert_eq!(other.wait().unwrap().sum().unwrap(), (1 << 20) as f64);
            assert_eq!(receiving.wait().unwrap().sum().unwrap(), 10.0);
        }
    });
}
