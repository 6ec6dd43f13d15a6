//! A full device: copies that nothing uses are evicted, others are not.

use support::prelude::*;

const BYTES: u64 = 1 << 12;

type Bytes = SmartArray<u8, Ix1>;

/// A device with memory for two arrays, but not for three.
fn small() -> Device {
    Device::emulated(Emulation::new().memory(2 * BYTES + BYTES / 2))
}

fn ones() -> Bytes {
    Bytes::from(vec![1; BYTES as usize])
}

fn here(array: &Bytes, device: &Device) -> Validity {
    array.residency().on(device)
}

#[test]
fn a_copy_that_the_host_has_too_gives_way_and_comes_back_when_it_is_needed() {
    let device = small();
    let arrays = [ones(), ones(), ones()];
    for array in &arrays {
        array
            .prefetch(&device.stream())
            .expect("there is enough memory, if necessary after an eviction");
    }
    let valid = arrays.iter().filter(|array| here(array, &device) == Valid).count();
    assert_eq!((valid, here(&arrays[2], &device)), (2, Valid));
    assert!(arrays.iter().all(|array| array.residency().host() == Valid));
    arrays[0].prefetch(&device.stream()).expect("an eviction frees enough memory");
    assert_eq!(here(&arrays[0], &device), Valid);
    assert_eq!(device.traffic().to_host.count, 0, "the eviction downloads nothing");
    device.synchronize().expect("nothing fails");
    assert_eq!(device.memory().in_use, 2 * BYTES);
}

#[test]
fn what_guards_use_stays_and_the_error_says_so() {
    let device = small();
    let (mut one, mut two, three) = (ones(), ones(), ones());
    let first = one.gpu_mut_on(&device.stream()).expect("enough memory");
    let second = two.gpu_on(&device.stream()).expect("enough memory");
    let refused = three.prefetch(&device.stream()).expect_err("not enough memory");
    assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused}");
    assert!(refused.to_string().contains("4096 bytes"), "{refused}");
    drop((first, second));
    drop(two.gpu_mut_on(&device.stream()).expect("enough memory"));
    three.prefetch(&device.stream()).expect("the first can be evicted, whose guard is over");
    assert_eq!((here(&one, &device), here(&two, &device)), (Absent, Valid));
    assert_eq!(device.traffic().to_host.bytes, BYTES);
    assert_eq!(one.host().expect("it is there")[5], 1);
    assert_eq!(device.traffic().to_host.bytes, BYTES, "the eviction has copied it");
}

#[test]
fn the_arguments_of_one_launch_do_not_push_each_other_out() {
    let device = small();
    let add = Kernel::<(In<u8>, In<u8>, InOut<u8>)>::new("add")
        .host(|_, (a, b, c)| c.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (a, b))| *c += a + b));
    let (one, two, mut three) = (ones(), ones(), ones());
    let refused = add.launch_on(&device.stream(), Grid::cover(one.len()), (&one, &two, &mut three));
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })));
    assert_eq!(three.host().expect("its contents are unchanged")[7], 1);
    // The refused launch has released its arguments, so there is memory for another array.
    let four = ones();
    four.prefetch(&device.stream()).expect("an eviction frees enough memory");
    assert_ordered(&device);
}

#[test]
fn a_launch_finds_room_where_arrays_idle() {
    let device = small();
    let increment =
        Kernel::<(InOut<u8>,)>::new("increment").host(|_, (x,)| x.iter_mut().for_each(|x| *x += 1));
    let (mut one, two, three) = (ones(), ones(), ones());
    for idle in [&two, &three] {
        idle.prefetch(&device.stream()).expect("enough memory");
    }
    increment
        .launch_on(&device.stream(), Grid::cover(one.len()), (&mut one,))
        .expect("an eviction frees enough memory");
    assert!(one.host().expect("a download").iter().all(|element| *element == 2));
    assert!(two.host().expect("the host's copy stayed valid").iter().all(|element| *element == 1));
}

#[test]
fn released_contents_are_downloaded_first_part_by_part() {
    let device = Device::emulated(Emulation::new());
    let mut array = ones();
    array.prefetch(&device.stream()).expect("enough memory");
    array
        .slice_mut(resident::ndarray::s![..100])
        .fill_on(&device.stream(), 9)
        .expect("enough memory");
    let mut quarter = array.slice_mut(resident::ndarray::s![1024..2048]);
    drop(quarter.gpu_mut_on(&device.stream()).expect("there"));
    array.release_on(&device).expect("nothing fails");
    assert_eq!(here(&array, &device), Absent);
    assert_eq!(array.traffic().to_host.bytes, 1024, "not what the host has, nor constants");
    let host = array.host().expect("all of it");
    assert_eq!((host[0], host[100], host[1500]), (9, 1, 1));
    drop(host);
    device.synchronize().expect("nothing fails");
    assert_eq!(device.memory().in_use, 0);
    array.release_on(&device).expect("nothing to do");
}

#[test]
fn a_part_that_was_never_written_is_released_without_a_word() {
    let device = Device::emulated(Emulation::new());
    let mut array = Bytes::uninit(64);
    drop(
        array
            .slice_mut(resident::ndarray::s![..8])
            .gpu_overwrite_on(&device.stream())
            .expect("enough memory"),
    );
    array.release_on(&device).expect("nothing fails");
    assert_eq!(array.traffic().to_host.bytes, 8);
    assert!(matches!(array.host(), Err(Error::Uninitialised { .. })));
}

#[test]
fn threads_that_push_each_other_out_lose_nothing() {
    let device = Device::emulated(Emulation::new().memory(5 * BYTES));
    let increment = Kernel::<(InOut<u8>,)>::new("increment")
        .host(|_, (x,)| x.iter_mut().for_each(|x| *x = x.wrapping_add(1)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (stream, mut arrays) =
                    (device.new_stream().expect("a stream"), [ones(), ones(), ones()]);
                let mut done = [1_u8; 3];
                for round in 0..60 {
                    let (array, count) = (&mut arrays[round % 3], &mut done[round % 3]);
                    // The device is full and refuses the launch, which has no effect.
                    if increment
                        .launch_on(&stream, Grid::cover(array.len()), (&mut *array,))
                        .is_ok()
                    {
                        *count = count.wrapping_add(1);
                    }
                    assert!(
                        array.host().expect("a download").iter().all(|element| element == count)
                    );
                }
            });
        }
    });
    assert_ordered(&device);
}
