//! Invalid input: each call returns a typed error that names the array, the values and the next
//! step, and leaves the arrays unchanged.

use support::prelude::*;

/// Asserts that the message contains each of these words, between which there are bars.
#[track_caller]
fn says(error: &Error, words: &str) {
    let message = error.to_string();
    for word in words.split(" | ") {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

/// Asserts that the array has these contents, and that the host and every device can read, write
/// and launch on it.
#[track_caller]
fn is_usable<D: Dimension>(array: &mut SmartArray<f32, D>, sum: f32) {
    let double = Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    let device = lab();
    assert_eq!(array.host().expect("readable").sum(), sum);
    double
        .launch_on(&device.stream(), Grid::cover(array.len()), (&mut *array,))
        .expect("launchable");
    assert_eq!(array.host().expect("readable").sum(), 2.0 * sum);
    array.host_mut().expect("writable").fill(1.0);
    assert_eq!(array.host().expect("readable").len() as f32, array.host().expect("readable").sum());
}

/// An array whose newest contents are on a device; every element is 3.
fn on_device(device: &Device) -> SmartArray<f32, Ix1> {
    let mut array = SmartArray::<f32, _>::full(4, 3.0).named("xs");
    drop(array.gpu_mut_on(&device.stream()).expect("enough memory"));
    array
}

#[test]
fn shapes_that_a_requirement_forbids() {
    let device = lab();
    let add = Kernel::<(f32, In<f32>, InOut<f32>)>::new("add")
        .require("both have one length", |_grid, (_, x, y)| x.len() == y.len())
        .host(|_grid, (_, _, _)| {});
    let (mut x, mut y) = (on_device(&device), SmartArray::<f32, _>::ones(5).named("ys"));
    let refused = add
        .launch_on(&device.stream(), Grid::cover(5), (0.25, &x, &mut y))
        .expect_err("4 are not 5");
    assert!(matches!(refused, Error::Requirement { .. }));
    says(&refused, "\"add\" | both have one length | \"xs\" | [4] | \"ys\" | [5] | 0.25");
    says(&refused, "nothing was moved | pass arguments");
    is_usable(&mut x, 12.0);
    is_usable(&mut y, 5.0);
}

#[test]
fn assigning_between_different_shapes() {
    let device = lab();
    let (mut source, mut target) =
        (on_device(&device), SmartArray::<f32, _>::ones((2, 2)).named("target"));
    for refused in [target.assign(&source), target.assign_on(&device.stream(), &source)] {
        let refused = refused.expect_err("a line is no square");
        assert!(matches!(refused, Error::Shape { .. }));
        says(&refused, "assign | \"target\" | [2, 2] | \"xs\" | [4] | slice");
    }
    is_usable(&mut source, 12.0);
    is_usable(&mut target, 4.0);
}

#[test]
fn an_index_outside() {
    let mut array = SmartArray::<f32, _>::ones((2, 3)).named("grid");
    says(&array.get((2, 1)).expect_err("two rows"), "get | \"grid\" | [2, 3] | [2, 1]");
    says(&array.set((0, 3), 0.0).expect_err("three columns"), "set | \"grid\" | [2, 3] | [0, 3]");
    is_usable(&mut array, 6.0);
}

#[test]
fn an_array_larger_than_the_device() {
    let device = Device::emulated(Emulation::new().memory(1000));
    let idle = Kernel::<(In<f32>, Out<f32>)>::new("idle").host(|_grid, (_, _)| {});
    let (mut large, mut small) =
        (SmartArray::<f32, _>::ones(300).named("large"), SmartArray::<f32, _>::ones(4));
    let attempts = [
        large.gpu_on(&device.stream()).map(drop),
        large.gpu_overwrite_on(&device.stream()).map(drop),
        large.fill_on(&device.stream(), 0.0),
        large.prefetch(&device.stream()),
        idle.launch_on(&device.stream(), Grid::cover(4), (&large, &mut small)),
        idle.launch_on(&device.stream(), Grid::cover(4), (&small, &mut large)),
        large.assign_on(&device.stream(), &SmartArray::<f32, _>::zeros(300)),
    ];
    for refused in attempts {
        let refused = refused.expect_err("1,200 bytes in 1,000");
        let Error::OutOfMemory { shortage, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!(shortage.requested, 1200);
        assert!([1000, 1000 - 16].contains(&shortage.free), "`small` has 16 bytes: {refused:?}");
        says(&refused, &format!("\"large\" | 1200 bytes | {} | free | drop arrays", device.name()));
    }
    is_usable(&mut large, 300.0);
    is_usable(&mut small, 4.0);
}

#[test]
fn a_kernel_with_no_body_for_this_device() {
    let device = lab();
    let mut array = on_device(&device);
    let bare = Kernel::<(InOut<f32>,)>::new("bare");
    let called = bare.call(Grid::cover(4), (&mut array,));
    assert!(matches!(called, Err(Error::NoKernelBody { .. })), "{called:?}");
    let refused = bare.launch_on(&device.stream(), Grid::cover(4), (&mut array,));
    let refused = refused.expect_err("no body");
    assert!(matches!(refused, Error::NoKernelBody { .. }));
    says(&refused, &format!("\"bare\" | {} | .host(", device.name()));
    is_usable(&mut array, 12.0);
}

#[test]
fn a_strided_part_for_a_flat_parameter() {
    let device = lab();
    let add = Kernel::<(f32, InOut<f32>)>::new("add").host(|_grid, (_, _)| {});
    let mut array = SmartArray::from(Array2::<f32>::ones((4, 6))).named("grid");
    drop(array.gpu_mut_on(&device.stream()).expect("enough memory"));
    let refused = add
        .launch_on(&device.stream(), Grid::cover(8), (1.0, &mut array.slice_mut(s![.., 2..4])))
        .expect_err("there are gaps");
    assert!(matches!(refused, Error::NotContiguous { .. }));
    says(&refused, "\"grid\" | \"add\" | [4, 2] | [6, 1] | flat");
    says(&refused, "sized (`InOut<f32, Ix2>`) | a part without gaps");
    is_usable(&mut array, 24.0);
}

#[test]
fn mixed_axis_orders_of_flat_parameters() {
    let device = lab();
    let add = Kernel::<(In<f32>, InOut<f32>)>::new("add").host(|_grid, (_, _)| {});
    let mut rows = SmartArray::<f32, _>::ones((2, 3)).named("rows");
    let mut columns = SmartArray::<f32, _>::ones((2, 3).f()).named("columns");
    let refused = add
        .launch_on(&device.stream(), Grid::cover(6), (&rows, &mut columns))
        .expect_err("rows are not columns");
    assert!(matches!(refused, Error::LayoutMismatch { .. }));
    says(&refused, "\"add\" | \"rows\" | [3, 1] | \"columns\" | [1, 2] | axis order | sized");
    is_usable(&mut rows, 6.0);
    is_usable(&mut columns, 6.0);
}

#[test]
fn an_array_read_before_it_was_written() {
    let device = lab();
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let mut never = SmartArray::<f32, _>::uninit((2, 4)).named("never");
    let mut target = SmartArray::<f32, _>::ones(8);
    let refused = copy
        .launch_on(&device.stream(), Grid::cover(8), (&never, &mut target))
        .expect_err("never written");
    assert!(matches!(refused, Error::Uninitialised { .. }));
    says(&refused, "\"never\" | kernel \"copy\" | all | never written | host_overwrite");
    never.slice_mut(s![.., ..2]).fill(1.0).expect("a fill");
    let refused = never.host().map(drop).expect_err("half was written");
    says(&refused, "\"never\" | host | [0..2, 2..4]");
    is_usable(&mut target, 8.0);
    never.slice_mut(s![.., 2..]).fill(2.0).expect("a fill");
    is_usable(&mut never, 12.0);
}

#[test]
fn declaring_the_host_changed_while_a_device_is_newer() {
    let device = lab();
    let mut array = on_device(&device);
    let refused = array.host_changed().expect_err("the device is newer");
    assert!(matches!(refused, Error::LostUpdate { .. }));
    says(
        &refused,
        &format!("\"xs\" | changed on the host | {} | host_overwrite | called at", device.name()),
    );
    is_usable(&mut array, 12.0);
}

#[test]
fn declaring_a_device_changed_that_is_not_the_newest() {
    let (device, other) = (lab(), lab());
    let mut array = on_device(&device);
    drop(array.gpu_mut_on(&other.stream()).expect("enough memory"));
    let refused = array.gpu_changed_on(&device.stream()).expect_err("the other is newer");
    assert!(matches!(refused, Error::LostUpdate { .. }));
    says(
        &refused,
        &format!(
            "\"xs\" | changed on {} | newest contents are on {} | gpu_mut | called at",
            device.name(),
            other.name()
        ),
    );
    is_usable(&mut array, 12.0);
    let refused = array.gpu_changed_on(&lab().stream()).expect_err("it was never valid there");
    says(&refused, "the host");
}

#[test]
fn more_than_63_devices_for_one_array() -> Result<()> {
    let devices: Vec<Device> = (0..64).map(|_| lab()).collect();
    let mut array = SmartArray::<f32, Ix2>::from(Array2::ones((2, 2))).named("everywhere");
    for device in &devices[..63] {
        drop(array.gpu_on(&device.stream())?);
    }
    let last = &devices[63];
    let touch = Kernel::<(InOut<f32>,)>::new("touch").host(|_grid, (_,)| {});
    let attempts = [
        array.gpu_on(&last.stream()).map(drop),
        array.gpu_overwrite_on(&last.stream()).map(drop),
        array.prefetch(&last.stream()),
        touch.launch_on(&last.stream(), Grid::cover(4), (&mut array,)),
        array.fill_on(&last.stream(), 0.0),
    ];
    for refused in attempts {
        let refused = refused.expect_err("63 hold it");
        assert!(matches!(refused, Error::TooManyDevices { .. }), "{refused:?}");
        says(
            &refused,
            &format!("\"everywhere\" | 63 devices | {} | try_clone | release_on", last.name()),
        );
    }
    touch.launch_on(&devices[62].stream(), Grid::cover(4), (&mut array,))?;
    assert_eq!((array.host()?.sum(), array.try_clone()?.host()?.sum()), (4.0, 4.0));
    Ok(())
}

/// How an array of 100 rows is used on a device, and how much each use adds to its sum.
type Use = fn(&mut SmartArray<f32, Ix2>, usize, &Device) -> Result<()>;

const USES: [(&str, usize, Use); 4] = [
    ("read", 0, |array, _, device| array.gpu_on(&device.stream()).map(drop)),
    ("prefetched in part", 0, |array, row, device| {
        array.slice(s![row, ..]).prefetch(&device.stream())
    }),
    ("changed", 100, |array, _, device| {
        add_one().launch_on(&device.stream(), Grid::cover(100), (array,))
    }),
    ("changed in a row", 1, |array, row, device| {
        let mut row = array.slice_mut(s![row, ..]);
        add_one().launch_on(&device.stream(), Grid::cover(1), (&mut row,))
    }),
];

fn add_one() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("add_one").host(|_, (xs,)| xs.iter_mut().for_each(|x| *x += 1.0))
}

/// What only a device that was dropped has is copied to the host first. An array that was used on
/// the same devices keeps none of them.
#[test]
fn devices_that_were_dropped_give_way_to_others() -> Result<()> {
    for (how, added, each) in USES {
        let [mut array, mut other] = [(); 2].map(|()| SmartArray::<f32, Ix2>::ones((100, 1)));
        let devices: Vec<Device> = (0..63).map(|_| lab()).collect();
        for (row, device) in devices.iter().enumerate() {
            each(&mut array, row, device)?;
            each(&mut other, row, device)?;
        }
        drop(devices);
        for row in 63..80 {
            each(&mut array, row, &lab())?;
        }
        assert_eq!(array.host()?.sum(), (100 + 80 * added) as f32, "{how}");
        each(&mut other, 63, &lab())?;
        assert_eq!(other.host()?.sum(), (100 + 64 * added) as f32, "{how}");
    }
    Ok(())
}

/// A stream keeps its device open, and so does an event.
#[test]
fn devices_with_a_stream_or_an_event_do_not_give_way() -> Result<()> {
    let mut array = SmartArray::<f32, Ix2>::ones((100, 1));
    let devices = (0..63).map(|_| lab());
    let mut streams = devices.map(|device| device.new_stream()).collect::<Result<Vec<_>>>()?;
    for stream in &streams {
        add_one().launch_on(stream, Grid::cover(100), (&mut array,))?;
    }
    let newest = streams.pop().map(|stream| stream.record()).transpose()?;
    let refused = |array: &SmartArray<f32, Ix2>| {
        let refused = array.prefetch(&lab().stream()).expect_err("63 devices are open");
        assert!(matches!(refused, Error::TooManyDevices { .. }), "{refused:?}");
    };
    refused(&array);
    drop(newest);
    streams.remove(0).synchronize()?;
    array.prefetch(&lab().stream())?;
    assert_eq!(array.host()?.sum(), 6400.0);
    Ok(())
}

/// This variable is set in a process that a parent test has started to run one test.
const CHILD: &str = "RESIDENT_TEST_CHILD";

/// Runs one test of this program in its own process. A variable that is empty is not set.
#[track_caller]
fn in_a_process_of_its_own(test: &str, variables: &[(&str, &str)]) {
    let variables = [&[("RESIDENT_DEVICE", ""), (CHILD, test)], variables].concat();
    assert_success(&own_process::run(test, &variables), test);
}

fn is_child(test: &str) -> bool {
    std::env::var_os(CHILD).is_some_and(|value| value == test)
}

#[test]
fn a_resident_device_that_makes_no_sense_or_cannot_be_used() {
    let name = test_name!();
    if !is_child(name) {
        for value in
            ["gpu", "cuda:", "cuda:99", "cuda:x", "cuda:-1", "hip:3", "cpu:7", "CPU:", "cpu cpu"]
        {
            in_a_process_of_its_own(name, &[("RESIDENT_DEVICE", value)]);
        }
        return;
    }
    let value = std::env::var("RESIDENT_DEVICE").expect("the parent sets it");
    let wanted = format!("RESIDENT_DEVICE={value}");
    let makes_sense = ["cuda:99", "hip:3"].contains(&value.as_str());
    let mut array = SmartArray::<f32, _>::ones(4).named("xs");
    let touch = Kernel::<(InOut<f32>,)>::new("touch").host(|_grid, (_,)| {});
    let attempts = [
        Device::current().map(drop),
        array.gpu().map(drop),
        array.gpu_mut().map(drop),
        touch.launch(Grid::cover(4), (&mut array,)),
        std::thread::spawn(|| Device::current().map(drop)).join().expect("no panic"),
    ];
    for refused in attempts {
        let refused = refused.expect_err("never ignored");
        assert!(matches!(refused, Error::NoDevice { .. }), "{refused:?}");
        says(&refused, &format!("{} | set RESIDENT_DEVICE | unset", wanted));
        let names_forms = refused.to_string().contains("expected cpu, cuda:N or hip:N");
        assert_eq!(names_forms, !makes_sense, "{refused}");
    }
    Device::set_default(Device::cpu());
    assert!(Device::current().is_err(), "the variable comes before the default");
    let _here = Device::cpu().enter();
    assert_eq!(Device::current(), Ok(Device::cpu()), "an entered device comes before both");
    is_usable(&mut array, 4.0);
}

#[test]
fn a_resident_device_of_cpu_is_the_embedded_one_whatever_the_default() {
    let name = test_name!();
    if !is_child(name) {
        for value in ["cpu", "CPU", " cpu:0 "] {
            in_a_process_of_its_own(name, &[("RESIDENT_DEVICE", value)]);
        }
        return;
    }
    Device::set_default(lab());
    assert_eq!(Device::current(), Ok(Device::cpu()));
}

#[test]
fn without_the_variable_the_default_is_taken_by_all_threads() {
    let name = test_name!();
    if !is_child(name) {
        in_a_process_of_its_own(name, &[]);
        return;
    }
    assert_eq!(Device::current().as_ref(), Ok(&Device::all()[0]), "the first of all");
    let device = lab();
    Device::set_default(&device);
    assert_eq!(Device::current().as_ref(), Ok(&device));
    let there = std::thread::spawn(|| Device::current().map(|device| device.name()))
        .join()
        .expect("no panic");
    assert_eq!(there, Ok(device.name()));
    let other = lab();
    let _here = other.enter();
    assert_eq!(Device::current(), Ok(other.clone()));
}

/// Whether a call asks for this many bytes, and says where, without invented numbers.
#[track_caller]
fn is_too_large<T>(outcome: Result<T>, requested: u64) {
    let Err(error @ Error::OutOfMemory { .. }) = outcome.map(drop) else {
        panic!("{requested} bytes are given")
    };
    says(&error, &format!("needs {requested} bytes on the host; | bad_input.rs"));
    assert!(!error.to_string().contains("free"), "{error}");
}

/// Sizes that a view has without memory for each of its elements.
#[test]
fn results_that_no_memory_has_room_for() -> Result<()> {
    let _here = lab().enter();
    const LEN: usize = 1 << 46;
    let (one, there) = (SmartArray::<u64, _>::ones(1), DeviceArray::<u64, _>::ones(1)?);
    let (many, many_there) = (one.broadcast(LEN)?, there.broadcast(LEN)?);
    is_too_large(many.to_vec(), 8 << 46);
    is_too_large(many.snapshot_on(&lab().stream())?.wait(), 8 << 46);
    is_too_large(many_there.copy_to_host(), 8 << 46);
    // No shape has so many bytes.
    const BYTES: u64 = u64::MAX;
    let (most, most_there) = (one.broadcast(1_usize << 62)?, there.broadcast(1_usize << 62)?);
    is_too_large(most.try_clone(), BYTES);
    is_too_large(most.to_contiguous(), BYTES);
    is_too_large(most_there.to_contiguous(), BYTES);
    is_too_large(most_there.to_contiguous_in(Order::F), BYTES);
    is_too_large(DeviceArray::<u64, _>::like(&most_there), BYTES);
    is_too_large(DeviceArray::<u64, _>::like_on(&lab().stream(), &most_there), BYTES);
    let on_host = Array1::<u64>::ones(1);
    let most_on_host = on_host.broadcast(1_usize << 60).expect("it fits");
    is_too_large(DeviceArray::from_host(&most_on_host), 8 << 60);
    is_too_large(PinnedArray::from_array(most_on_host), 8 << 60);
    Ok(())
}

/// Such a host array has its axes in another order than its copy, for which it is turned first.
#[test]
fn a_repeated_row_that_no_memory_has_room_for() -> Result<()> {
    let _here = lab().enter();
    let row = Array1::<u8>::ones(3);
    let many = row.broadcast((1_usize << 46, 3)).expect("it fits");
    let made = DeviceArray::from_host(&many);
    assert!(matches!(made, Err(Error::OutOfMemory { .. })), "{made:?}");
    let one = DeviceArray::<u8, _>::ones(1)?;
    let list = one.broadcast(1_usize << 46)?.split(1).map(drop);
    assert!(matches!(list, Err(Error::OutOfMemory { .. })), "{list:?}");
    Ok(())
}

/// Elements without bytes: as many as there can be, of which none is looked at.
#[test]
fn more_elements_without_bytes_than_anyone_can_count() -> Result<()> {
    const LEN: usize = usize::MAX >> 1;
    let _here = lab().enter();
    let array = SmartArray::<[u32; 0], _>::zeros(LEN);
    assert_eq!(array.to_vec()?.len(), LEN);
    assert_eq!(array.slice(s![..;-1]).to_vec()?.len(), LEN);
    assert_eq!(array.host()?.as_array().map(|array| array.len()), Some(LEN));
    assert_eq!(array.snapshot_on(&lab().stream())?.wait()?.len(), LEN);
    let there = DeviceArray::<[u32; 0], _>::zeros(LEN)?;
    assert_eq!(there.copy_to_host()?.len(), LEN);
    let one = SmartArray::<[u32; 0], _>::zeros(1);
    assert_eq!(one.broadcast(LEN)?.to_vec()?.len(), LEN);
    assert_eq!(one.broadcast(LEN)?.snapshot_on(&lab().stream())?.wait()?.len(), LEN);
    assert_eq!(array.try_clone()?.into_array()?.len(), LEN);
    assert_eq!(array.into_array()?.len(), LEN);
    Ok(())
}
