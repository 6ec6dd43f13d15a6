//! Other arrays, shapes, parts, scalars, streams and devices at each replay.

use super::{Numbers, assert_no_hazards, devices, numbers, seen, twice};
use resident::{Chain, Temp};
use support::bodies::one;
use support::prelude::*;

#[test]
fn each_replay_may_have_other_arguments() {
    let (twice, devices) = (twice(), devices());
    let mut random = Random::new(7);
    let streams: Vec<Stream> =
        devices.iter().flat_map(|device| [device.stream(), device.new_stream().unwrap()]).collect();
    let mut arrays: Vec<(Numbers, u32)> = (1..14).map(|len| (numbers(len), 0)).collect();
    for _ in 0..sampled(200, 2000) {
        let index = random.below(arrays.len());
        let stream = &streams[random.below(streams.len())];
        let (count, k) = (random.below(3) as u64, random.below(5) as u32);
        let (array, added) = &mut arrays[index];
        let scratch = Temp::like(&*array);
        twice.repeat_on(stream, count, (k, &mut *array, scratch)).unwrap();
        *added += 2 * k * count as u32;
    }
    for (array, added) in &arrays {
        let expected: Vec<u32> = (0..array.len() as u32).map(|x| x + added).collect();
        assert_eq!(seen(array), expected);
    }
    devices.iter().for_each(assert_no_hazards);
}

#[test]
fn parts_of_one_array_are_arguments() {
    let shift = Kernel::<(In<u32, Ix2>, Out<u32, Ix2>)>::new("shift")
        .require("both have one shape", |_, (a, b)| a.shape() == b.shape())
        .host(|_, (a, mut b)| b.assign(&a.mapv(|x| x + 100)));
    let chain = Chain::<(In<u32, Ix2>, Out<u32, Ix2>, Temp<u32, Ix2>)>::record(
        "to the right",
        |r, (a, b, tmp)| {
            r.launch(&shift, one(), (a.read(), tmp.write()))?;
            r.copy(tmp.read(), b.write())
        },
    )
    .unwrap();
    let mut expected = Array2::from_shape_fn((6, 8), |(i, j)| (10 * i + j) as u32);
    for device in devices() {
        let [stream, other] = [(); 2].map(|()| device.new_stream().unwrap());
        let mut table = SmartArray::from(expected.clone());
        for (rows, columns) in [(s![..2, ..4], s![..2, 4..]), (s![1..;2, ..;2], s![1..;2, 1..;2])] {
            let (left, mut right) = table.multi_slice_mut((rows, columns));
            let scratch = Temp::like(&left);
            chain.launch_on(&stream, (&left, &mut right, scratch)).unwrap();
            chain.launch_on(&other, (&left, &mut right, Temp::like(&left))).unwrap();
            let moved = expected.slice(rows).mapv(|x| x + 100);
            expected.slice_mut(columns).assign(&moved);
        }
        assert_eq!(*table.host().unwrap(), expected, "{device}");
        assert_no_hazards(&device);
        expected = table.into_array().unwrap();
    }
}

#[test]
fn tiles_of_one_shape_share_what_is_kept() {
    let bump = Kernel::<(InOut<u32, Ix2>,)>::new("bump").host(|_, (mut a,)| a += 1);
    let chain = Chain::<(InOut<u32, Ix2>,)>::record("bump twice", |r, (a,)| {
        r.launch(&bump, one(), (a.read_write(),))?;
        r.launch(&bump, one(), (a.read_write(),))
    })
    .unwrap();
    for device in devices() {
        let stream = device.new_stream().unwrap();
        let mut table = SmartArray::<u32, Ix2>::zeros((16, 16));
        for round in 0..3 {
            for tile in 0..16 {
                let (row, column) = (4 * (tile / 4), 4 * (tile % 4));
                let mut part = table.slice_mut(s![row..row + 4, column..column + 4]);
                chain.launch_on(&stream, (&mut part,)).unwrap();
            }
            assert_eq!(table.host().unwrap().sum(), (round + 1) * 512, "{device}");
        }
        assert_no_hazards(&device);
    }
}

#[test]
fn device_arrays_are_arguments_on_their_device() {
    let (twice, [device, other, _]) = (twice(), devices());
    let mut array = DeviceArray::from_host_on(&device.stream(), &array![1_u32, 2, 3]).unwrap();
    let scratch = Temp::like(&array);
    twice.launch_on(&device.new_stream().unwrap(), (5, &mut array, scratch)).unwrap();
    let refused = twice.launch_on(&other.stream(), (5, &mut array, scratch)).unwrap_err();
    assert!(matches!(refused, Error::WrongDevice { .. }), "{refused}");
    assert_eq!(array.copy_to_host().unwrap(), array![11, 12, 13]);
    assert_no_hazards(&device);
}

/// Requirements are checked at the first replay with arguments of some shapes, and again if a
/// scalar changes.
#[test]
fn requirements_hold_for_shapes_and_scalars() {
    let first = Kernel::<(u32, In<u32>, Out<u32>)>::new("first")
        .require("there are as many elements", |_, (len, a, _)| a.len() == len as usize)
        .host(|_, (_, a, b)| b[0] = a[0]);
    let chain = Chain::<(u32, In<u32, Ix1>, Out<u32, Ix1>)>::record("first", |r, (len, a, b)| {
        r.launch(&first, one(), (len, a.read(), b.write()))
    })
    .unwrap();
    let stream = Device::cpu().stream();
    let (three, four, mut b) = (numbers(3), numbers(4), Numbers::uninit(1));
    for (len, a, is_allowed) in [
        (3, &three, true),
        (4, &three, false),
        (3, &three, true),
        (4, &four, true),
        (3, &four, false),
        (4, &four, true),
    ] {
        let line = line!() + 1;
        let outcome = chain.launch_on(&stream, (len, a, &mut b));
        match outcome {
            Ok(()) => assert!(is_allowed),
            Err(error @ Error::Requirement { .. }) => {
                let text = error.to_string();
                assert!(!is_allowed, "{text}");
                assert!(text.contains("kernel \"first\" (chain \"first\", recorded at"), "{text}");
                assert!(text.contains(&format!("shapes.rs:{line}:")), "{text}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn copies_need_arrays_of_one_shape() {
    let chain = Chain::<(In<u32, Ix1>, Out<u32, Ix1>)>::record("copy", |r, (a, b)| {
        r.copy(a.read(), b.write())
    })
    .unwrap();
    let stream = Device::cpu().stream();
    let mut b = Numbers::uninit(4);
    let refused = chain.launch_on(&stream, (&numbers(3), &mut b)).unwrap_err();
    assert!(matches!(refused, Error::Shape { .. }), "{refused}");
    assert!(refused.to_string().contains("in chain \"copy\""), "{refused}");
    chain.launch_on(&stream, (&numbers(4), &mut b)).unwrap();
    assert_eq!(seen(&b), [0, 1, 2, 3]);
}

#[test]
fn arrays_without_elements_are_arguments() {
    let chain = Chain::<(u32, In<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>::record(
        "nothing",
        |r, (k, a, b, tmp)| {
            r.fill(tmp.write(), k)?;
            r.copy(a.read(), b.write())?;
            r.copy(tmp.read(), b.write())
        },
    )
    .unwrap();
    for len in [0, 2, 0] {
        let (a, mut b) = (numbers(len), Numbers::uninit(len as usize));
        let scratch = Temp::like(&a);
        chain.launch_on(&Device::cpu().stream(), (9, &a, &mut b, scratch)).unwrap();
        assert_eq!(seen(&b), vec![9; len as usize]);
    }
}
