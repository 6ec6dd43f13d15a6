//! The memory of a device.

use super::prelude::*;
use std::sync::Barrier;
use std::thread;

const MIB: usize = 1 << 20;

pub(crate) fn live_arrays_are_in_use_and_dropped_ones_are_not(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let before = device.memory().in_use;
    let array = SmartArray::<u8, _>::zeros(MIB);
    assert_eq!(device.memory().in_use, before, "an array has memory where it was used");
    drop(array.gpu_on(&lab.stream())?);
    let constant = SmartArray::<u32, _>::ones(1000);
    drop(constant.gpu_on(&lab.new_stream()?)?);
    assert_eq!(device.memory().in_use, before + MIB as u64 + 4000);
    drop(array);
    assert_eq!(device.memory().in_use, before + 4000);
    drop(constant.into_array()?);
    assert_eq!(device.memory().in_use, before);
    Ok(())
}

pub(crate) fn memory_is_used_again(lab: &Lab) -> Result<()> {
    let device = lab.device();
    for turn in 0..30 {
        let mut array = SmartArray::<u8, _>::full(8 * MIB, turn);
        make_newest(&mut array, &lab.stream())?;
        assert_eq!(array.get(8 * MIB - 1)?, turn);
    }
    device.synchronize()?;
    assert!(device.memory().pooled <= 96 * MIB as u64, "{:?}", device.memory());
    Ok(())
}

pub(crate) fn what_is_kept_is_given_back(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let mut array = SmartArray::<u8, _>::full(5 * MIB, 1);
    make_newest(&mut array, &lab.stream())?;
    drop(array);
    device.trim()?;
    assert_eq!(device.memory().pooled, 0, "{:?}", device.memory());
    Ok(())
}

/// The device has memory for two arrays, and three arrays are read, then written alternately.
/// Copies with guards are not evicted.
pub(crate) fn a_limit_is_kept_and_copies_give_way(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    device.synchronize()?;
    let limit = device.memory().in_use + (2 * MIB + MIB / 2) as u64;
    device.set_memory_limit(Some(limit))?;
    assert_eq!(device.memory_limit(), Some(limit));
    let outcome = use_in_turn(lab).and_then(|()| write_in_turn(lab)).and_then(|()| {
        let mut newest = [0, 1].map(|value| SmartArray::<u8, _>::full(MIB, value));
        newest.iter_mut().try_for_each(|array| make_newest(array, &stream))?;
        let guards = newest.each_mut().map(|array| array.gpu_mut_on(&stream));
        assert!(guards.iter().all(Result::is_ok), "both are there");
        let third = SmartArray::<u8, _>::full(MIB, 9);
        let refused = third.gpu_on(&stream).map(drop);
        let Err(Error::OutOfMemory { .. }) = &refused else { panic!("{refused:?}") };
        let text = refused.map_or_else(|error| error.to_string(), |()| String::new());
        assert!(text.contains("1048576 bytes") && text.contains(&limit.to_string()), "{text}");
        drop(guards);
        drop(third.gpu_on(&stream)?);
        let memory = device.memory();
        assert!(memory.in_use + memory.pooled <= limit, "{memory:?} of {limit}");
        newest.iter().zip([0, 1]).try_for_each(|(array, value)| {
            assert_eq!(array.get(MIB - 1)?, value);
            Ok(())
        })
    });
    device.set_memory_limit(None)?;
    outcome
}

fn use_in_turn(lab: &Lab) -> Result<()> {
    let arrays = [0, 1, 2].map(|value| SmartArray::from(vec![value; MIB]));
    for _ in 0..3 {
        for array in &arrays {
            array.prefetch(&lab.stream())?;
            assert_eq!(array.residency().on(&lab.device()), Valid);
        }
    }
    assert!(
        arrays
            .iter()
            .zip([0_u8, 1, 2])
            .all(|(array, value)| array.host().is_ok_and(|host| host.iter().all(|x| *x == value)))
    );
    Ok(())
}

/// What only the device has is written back.
fn write_in_turn(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let mut arrays = [0, 1, 2].map(|value| SmartArray::<u8, _>::from(vec![value; MIB]));
    let before = device.traffic().to_host.count;
    for _ in 0..3 {
        for array in &mut arrays {
            make_newest(array, &lab.stream())?;
        }
    }
    assert_eq!(device.traffic().to_host.count - before, 7, "all but the two that are there");
    for (value, array) in arrays.iter().enumerate() {
        assert!(array.host()?.iter().all(|element| *element == value as u8));
    }
    Ok(())
}

/// Runs `work` with memory for `len_bytes` more than is in use.
fn with_room_for(lab: &Lab, len_bytes: usize, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let device = lab.device();
    device.synchronize()?;
    device.set_memory_limit(Some(device.memory().in_use + len_bytes as u64))?;
    let outcome = work();
    device.set_memory_limit(None)?;
    outcome
}

pub(crate) fn device_arrays_stay_on_a_full_device(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    with_room_for(lab, 3 * MIB, || {
        let mut explicit = [
            DeviceArray::<u8, _>::uninit_on(&stream, MIB / 2)?,
            DeviceArray::<u8, _>::full_on(&stream, MIB / 2, 7)?,
        ];
        let address = |array: &DeviceArray<u8, _>| array.gpu_on(&stream).map(|gpu| gpu.address());
        let before = address(&explicit[1])?;
        use_in_turn(lab)?;
        let refused = DeviceArray::<u8, _>::uninit_on(&stream, 2 * MIB + 1);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
        let others = DeviceArray::<u8, _>::zeros_on(&stream, 2 * MIB)?;
        explicit[0].fill_on(&stream, 5)?;
        assert_eq!(address(&explicit[1])?, before);
        let [first, second] = &explicit;
        assert_eq!((first.copy_to_host()?[0], second.copy_to_host()?[0]), (5, 7));
        drop(others);
        Ok(())
    })
}

/// Each thread uses one of seven arrays at a time, and there is room for one more than there are
/// threads.
pub(crate) fn threads_that_need_room_at_once_find_it(lab: &Lab) -> Result<()> {
    const THREADS: usize = 4;
    const LEN: usize = 1 << 16;
    let arrays: Vec<_> = (0..7_u8).map(|value| SmartArray::from(vec![value; LEN])).collect();
    let work = |thread: usize| {
        let stream = lab.new_stream()?;
        for round in 0..40 {
            let array = &arrays[(3 * thread + 5 * round) % 7];
            drop(array.gpu_on(&stream)?);
            array.slice(s![..LEN / 2]).prefetch(&stream)?;
        }
        stream.synchronize()
    };
    with_room_for(lab, (THREADS + 1) * LEN, || {
        thread::scope(|scope| {
            let work = &work;
            let threads = [0, 1, 2, 3].map(|thread| scope.spawn(move || work(thread)));
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })
    })
}

pub(crate) fn threads_that_first_use_parts_allocate_the_array_once(lab: &Lab) -> Result<()> {
    let before = lab.device().memory().in_use;
    with_room_for(lab, MIB + MIB / 2, || {
        for _ in 0..20 {
            let (array, wall) = (SmartArray::from(vec![1_u8; MIB]), Barrier::new(2));
            let work = |half: usize| {
                let stream = lab.new_stream()?;
                wall.wait();
                array.slice(s![half * MIB / 2..(half + 1) * MIB / 2]).gpu_on(&stream).map(drop)
            };
            thread::scope(|scope| {
                let work = &work;
                let threads = [0, 1].map(|half| scope.spawn(move || work(half)));
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })?;
            lab.device().synchronize()?;
            assert_eq!(lab.device().memory().in_use, before + MIB as u64);
        }
        Ok(())
    })
}

pub(crate) fn a_device_reports_its_capacity(lab: &Lab) -> Result<()> {
    let before = lab.device().capacity()?;
    assert!(before.free <= before.total && before.total > 0, "{before:?}");
    Ok(())
}

pub(crate) fn an_array_larger_than_the_device(lab: &Lab) -> Result<()> {
    let device = lab.device();
    device.trim()?;
    let total = device.capacity()?.total;
    let Ok(len) = usize::try_from(total.saturating_add(1)) else { return Ok(()) };
    if total >= isize::MAX as u64 {
        println!("not done: the device says that it has no limit");
        return Ok(());
    }
    let kept = SmartArray::<u8, _>::ones(MIB);
    drop(kept.gpu_on(&lab.stream())?);
    let mut array = SmartArray::<u8, _>::full(len, 3).named("huge");
    let refused = array.gpu_on(&lab.stream()).map(drop);
    let Err(Error::OutOfMemory { shortage, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(shortage.requested, total + 1);
    assert!(shortage.free <= total && shortage.in_use >= MIB as u64, "{shortage:?}");
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("\"huge\"")
            && text.contains(&device.name())
            && text.contains(&(total + 1).to_string()),
        "{text}"
    );
    assert_eq!(array.residency().on(&device), Absent);
    assert_eq!(array.get(len - 1)?, 3, "it works as before");
    array.fill(4)?;
    assert_eq!(kept.host()?[7], 1);
    Ok(())
}

/// Allocates two thirds of the memory twice: the second allocation succeeds after the work in
/// flight is complete and the first allocation is freed.
pub(crate) fn memory_freed_in_flight_is_found_when_there_is_no_room(lab: &Lab) -> Result<()> {
    let device = lab.device();
    device.trim()?;
    let capacity = device.capacity()?;
    if capacity.total > 4 << 30 {
        println!("not done: the device has more memory than a test should take");
        return Ok(());
    }
    let len = usize::try_from(capacity.free / 3 * 2).expect("fits");
    let gate = Gate::new();
    let mut small = numbers(64);
    let mut large = SmartArray::<u8, _>::uninit(len);
    lab.gated(&lab.stream(), &gate, &mut small)?;
    drop(large.gpu_overwrite_on(&lab.stream())?);
    drop(large);
    gate.open();
    let mut again = SmartArray::<u8, _>::uninit(len);
    drop(again.gpu_overwrite_on(&lab.new_stream()?)?);
    assert_eq!(small.host()?[0], 1);
    Ok(())
}

/// A program that never waits keeps no more memory than it uses.
pub(crate) fn many_arrays_come_and_go_without_waiting(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let before = device.memory().in_use;
    for turn in 0..300_u32 {
        let array = numbers(10_000);
        let stream = if turn % 2 == 0 { lab.stream() } else { lab.new_stream()? };
        array.prefetch(&stream)?;
    }
    assert_eq!(device.memory().in_use, before);
    Ok(())
}

/// An array of four times the memory, of which the parts that one launch uses fit. A device that
/// has no memory for parts refuses them.
pub(crate) fn parts_of_an_array_larger_than_the_memory_are_used_in_turn(lab: &Lab) -> Result<()> {
    const LEN: usize = 12 * MIB;
    const TILE: usize = MIB;
    let (device, stream) = (lab.device(), lab.stream());
    let (mut array, before) = (numbers(LEN), device.memory().in_use);
    with_room_for(lab, LEN, || {
        for tile in (0..2 * LEN / TILE).map(|number| number * TILE % LEN) {
            // The pages at both ends are shared with other tiles.
            let mut part = array.slice_mut(s![tile + 5..tile + TILE - 5]);
            match lab.add(&stream, 3, &mut part) {
                Err(Error::OutOfMemory { .. }) if tile == 0 => return Ok(()),
                outcome => outcome?,
            }
            assert!(device.memory().in_use <= before + LEN as u64);
        }
        let is_right = |(index, value): (usize, &u32)| {
            let is_changed = (5..TILE - 5).contains(&(index % TILE));
            *value == index as u32 + if is_changed { 6 } else { 0 }
        };
        assert!(array.host()?.iter().enumerate().all(is_right));
        Ok(())
    })?;
    drop(array);
    device.synchronize()
}
