//! Many threads read one array, from the host and on two devices, while a backend call fails. Every
//! read that succeeds is right, nothing is lost, and no thread hangs.

use std::sync::{Arc, Barrier};

use support::bodies::{add, assert_ordered, one, plus};
use support::prelude::*;

const LEN: u32 = 24;
const THREADS: usize = 4;

/// An emulated device, with this fault unless it is `None`.
fn device(fault: Option<Fault>) -> Device {
    let emulation = Emulation::new().poison(true);
    Device::emulated(fault.map_or(emulation.clone(), |fault| emulation.fail(fault)))
}

/// An array of which part is newest on a device, part on the host, and part is a constant.
fn mixed(stream: &Stream) -> Result<SmartArray<u32, Ix1>> {
    let mut array = SmartArray::from((0..LEN).collect::<Vec<u32>>());
    add().launch_on(stream, one(), (100, &mut array.slice_mut(s![..8])))?;
    add().launch_on(stream, one(), (200, &mut array.slice_mut(s![6..12])))?;
    array.slice_mut(s![20..]).fill(7)?;
    stream.synchronize()?;
    Ok(array)
}

fn expected() -> Vec<u32> {
    let first = |index: u32| if index < 8 { 100 } else { 0 };
    let second = |index: u32| if (6..12).contains(&index) { 200 } else { 0 };
    (0..LEN)
        .map(|index| if index < 20 { index + first(index) + second(index) } else { 7 })
        .collect()
}

/// Reads the array in one of several ways; `None` if there are no values to compare.
fn read(array: &SmartArray<u32, Ix1>, streams: &[Stream], way: usize) -> Result<Option<Vec<u32>>> {
    let stream = &streams[way % streams.len()];
    match way % 7 {
        0 => array.host().map(|host| Some(host.to_vec())),
        1 => array.prefetch(stream).map(|()| None),
        2 => array.snapshot_on(stream)?.wait().map(|copy| Some(copy.to_vec())),
        3 => array.prefetch_host().map(|()| None),
        4 => {
            let mut copy = SmartArray::<u32, _>::uninit(LEN as usize);
            plus().launch_on(stream, one(), (0, array, &mut copy))?;
            copy.host().map(|host| Some(host.to_vec()))
        }
        5 => {
            (0..LEN).map(|index| array.get(index as usize)).collect::<Result<Vec<u32>>>().map(Some)
        }
        _ => {
            let mut copy = SmartArray::<u32, _>::uninit(LEN as usize);
            copy.assign_on(stream, array)?;
            copy.host().map(|host| Some(host.to_vec()))
        }
    }
}

/// Reads until it succeeds. Copies of the array may be lost; the array itself may not.
fn read_right(array: &SmartArray<u32, Ix1>, streams: &[Stream], way: usize) {
    for _ in 0..6 {
        match read(array, streams, way) {
            Ok(None) => return,
            Ok(Some(values)) => return assert_eq!(values, expected(), "way {way}"),
            Err(Error::Backend { .. }) => {}
            Err(Error::Lost { array: lost, .. }) => {
                assert!(!lost.contains("shared"), "way {way}: {lost}");
            }
            Err(other) => panic!("way {way}: {other}"),
        }
    }
    panic!("way {way} fails for ever");
}

fn run(on: usize, fault: Option<Fault>) {
    let devices = [0, 1].map(|index| device(fault.filter(|_| index == on)));
    let streams = Arc::new(
        [0, 0, 1]
            .map(|index: usize| devices[index].stream())
            .into_iter()
            .chain([0, 1].map(|index: usize| devices[index].new_stream().unwrap()))
            .collect::<Vec<_>>(),
    );
    let array = Arc::new(mixed(&streams[0]).unwrap().named("shared"));
    let start = Arc::new(Barrier::new(THREADS));
    let readers = (0..THREADS).map(|thread| {
        let (array, streams, start) =
            (Arc::clone(&array), Arc::clone(&streams), Arc::clone(&start));
        std::thread::spawn(move || {
            start.wait();
            (0..7).for_each(|turn| read_right(&array, &streams, thread * 5 + turn * 3));
        })
    });
    let panics: Vec<_> =
        readers.collect::<Vec<_>>().into_iter().filter_map(|reader| reader.join().err()).collect();
    assert!(panics.is_empty(), "with {fault:?} on device {on}");
    assert_eq!(
        array.host().map(|host| host.to_vec()).or_else(|_| array.host().map(|host| host.to_vec())),
        Ok(expected())
    );
    drop(array);
    for device in &devices {
        while device.synchronize().is_err() {}
        assert_ordered(device);
        assert_eq!([(); 3].map(|()| device.memory().in_use)[2], 0, "a refused free is repeated");
    }
}

/// The number of calls to the devices before threads start.
fn calls_before() -> [u64; 2] {
    let devices = [device(None), device(None)];
    let _streams = [devices[0].new_stream().unwrap(), devices[1].new_stream().unwrap()];
    drop(mixed(&devices[0].stream()).unwrap());
    devices.map(|device| device.emulation().unwrap().calls().len() as u64)
}

fn sweep(late: bool) {
    without_deadlock(move || {
        for (on, before) in calls_before().into_iter().enumerate() {
            for call in before..before + 30 {
                let fault = if late { Fault::nth(call + 1).late() } else { Fault::nth(call + 1) };
                run(on, Some(fault));
            }
        }
    });
}

#[test]
fn a_copy_that_fails_late_under_many_readers_is_made_again_and_nothing_is_lost() {
    sweep(true);
}

#[test]
fn a_refused_call_under_many_readers_fails_only_that_read() {
    sweep(false);
}

#[test]
fn readers_on_many_threads_see_the_same_contents() {
    without_deadlock(|| (0..40).for_each(|_| run(0, None)));
}
