//! Device arrays exchanged with other code by DLPack: in place, in order, and freed once.

use std::sync::Arc;

use super::prelude::*;
use resident::dlpark::DlpackFlags;
use resident::dlpark::ffi::{DLDataType, DLDevice};
use resident::dlpark::versioned::Dlpack;
use resident::{DeviceKind, ReadOnlyDeviceArray};
use support::foreign::{ForeignMemory, Form, dl_device};

const ROWS: [i64; 2] = [2, 3];

fn is_gpu(device: &Device) -> bool {
    device.kind() != DeviceKind::Cpu
}

/// Six elements, 0 to 5.
fn six(device: &Device) -> Arc<ForeignMemory> {
    ForeignMemory::of(device, &[0, 1, 2, 3, 4, 5])
}

fn taken<D: Dimension>(stream: &Stream, tensor: Dlpack) -> Result<DeviceArray<u32, D>> {
    // SAFETY: nothing else uses the memory until the tensor's deleter is called.
    unsafe { DeviceArray::from_dlpack_on(stream, tensor) }
}

pub(crate) fn memory_of_others_is_used_in_place_and_freed_once(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.new_stream()?);
    let memory = six(&device);
    let table = taken::<Ix2>(&stream, Form::rows(ROWS).tensor(&memory))?;
    assert_eq!((device.memory().in_use, Arc::strong_count(&memory)), (24, 2));
    let coherent = SmartArray::from_device(table);
    let address = coherent.gpu_on(&stream)?.address();
    assert!(!is_gpu(&device) || address == memory.address());
    let mut table = coherent.into_device(&device)?;
    lab.add_sized(&stream, 10, &mut table)?;
    table.set((1, 0), 7)?;
    let pending = table.copy_to_host_on(&stream)?;
    drop(table);
    assert_eq!(pending.wait()?, array![[10, 11, 12], [7, 14, 15]]);
    device.synchronize()?;
    assert_eq!((device.memory().in_use, Arc::strong_count(&memory)), (0, 1));
    // SAFETY: the array is gone, and its work has run.
    assert_eq!(unsafe { memory.elements() }, [10, 11, 12, 7, 14, 15]);
    Ok(())
}

pub(crate) fn tensors_of_any_layout_without_gaps_are_taken_over(lab: &Lab) -> Result<()> {
    let memory = ForeignMemory::of(&lab.device(), &[0, 1, 2, 3, 4, 5, 6, 7]);
    for (strides, offset_bytes, wanted) in [
        ([3, 1], 8, array![[2, 3, 4], [5, 6, 7]]),
        ([1, 2], 0, array![[0, 2, 4], [1, 3, 5]]),
        ([-3, 1], 12, array![[3, 4, 5], [0, 1, 2]]),
        ([3, -1], 8, array![[2, 1, 0], [5, 4, 3]]),
    ] {
        let form = Form { strides, offset_bytes, ..Form::rows(ROWS) };
        let mut table = taken::<Ix2>(&lab.stream(), form.tensor(&memory))?;
        assert_eq!(table.copy_to_host()?, wanted, "{strides:?}");
        let ones = DeviceArray::<u32, _>::full_on(&lab.stream(), 3, 1)?;
        table.slice_mut(s![1, ..;-1]).copy_from_device(&ones)?;
        let mut expected = wanted.clone();
        expected.row_mut(1).fill(1);
        assert_eq!(table.copy_to_host()?, expected, "{strides:?}");
        table.copy_from_host(&wanted)?;
        drop(table);
        lab.device().synchronize()?;
        assert_eq!(Arc::strong_count(&memory), 1);
    }
    // SAFETY: the arrays are gone, and their work has run.
    assert_eq!(unsafe { memory.elements() }, [0, 1, 2, 3, 4, 5, 6, 7]);
    Ok(())
}

pub(crate) fn tensors_that_do_not_fit_are_refused_and_freed(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let memory = six(&device);
    let refused = |stream: &Stream, words: &str, form: Form| {
        let error = taken::<Ix2>(stream, form.tensor(&memory)).expect_err(words);
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert_eq!(Arc::strong_count(&memory), 1, "{words}");
    };
    let rows = Form::rows(ROWS);
    for (words, form) in [
        (
            "elements are float32; expected elements of type uint32; convert",
            Form { dtype: DLDataType::F32, ..rows },
        ),
        (
            "a read-only tensor; expected one that may be written; use \
             `ReadOnlyDeviceArray::from_dlpack_on`",
            Form { flags: DlpackFlags::READ_ONLY, ..rows },
        ),
        ("contiguous", Form { strides: [6, 2], ..rows }),
        ("repetitions", Form { strides: [0, 1], ..rows }),
        ("multiple of 4", Form { offset_bytes: 2, ..rows }),
        ("device", Form { device: Some(DLDevice::cuda(77)), ..rows }),
    ] {
        refused(&stream, words, form);
    }
    if is_gpu(&device) {
        refused(&Device::cpu().stream(), "device", rows);
    }
    if let Some([_, other]) = lab.pair().filter(|_| is_gpu(&device)) {
        refused(&other.stream(), "device", rows);
    }
    let axes = taken::<Ix1>(&stream, rows.tensor(&memory)).expect_err("two axes");
    assert!(matches!(axes, Error::Shape { .. }), "{axes}");
    let words = "expects a tensor of 1 axes, as the array's type says but got one of shape [2, 3]";
    assert!(axes.to_string().contains(words), "{axes}");
    let empty = taken::<Ix2>(&stream, Form::rows([0, 3]).tensor(&memory))?;
    assert_eq!((empty.shape(), Arc::strong_count(&memory)), (&[0, 3][..], 1));
    // SAFETY: no array uses the memory.
    assert_eq!(unsafe { memory.elements() }, [0, 1, 2, 3, 4, 5]);
    Ok(())
}

pub(crate) fn an_array_is_handed_out_in_place(lab: &Lab) -> Result<()> {
    let (device, stream, other) = (lab.device(), lab.stream(), lab.new_stream()?);
    for waits in [true, false] {
        let table = DeviceArray::<u32, _>::full_on(&stream, (2, 3), 5)?;
        let coherent = SmartArray::from_device(table);
        let address = coherent.gpu_on(&stream)?.address();
        let mut table = coherent.into_device(&device)?;
        lab.add_sized(&stream, 4, &mut table)?;
        let tensor: Dlpack =
            if waits { table.into_dlpack()? } else { table.into_dlpack_on(&other)? };
        let view = tensor.validate().expect("a tensor");
        assert_eq!((view.shape(), view.device()), (&[2, 3][..], dl_device(&device)));
        let is_in_place = view.data_ptr().addr() as u64 + view.byte_offset() == address;
        assert!(!is_gpu(&device) || is_in_place);
        assert_eq!(taken::<Ix2>(&other, tensor)?.copy_to_host()?, Array2::from_elem((2, 3), 9));
        device.synchronize()?;
        device.synchronize()?;
        assert_eq!(device.memory().in_use, 0, "waits: {waits}");
    }
    Ok(())
}

pub(crate) fn memory_that_an_array_uses_is_not_taken_over(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let memory = six(&device);
    let mut streams = vec![stream.clone()];
    // All devices on the CPU use the memory of this process.
    streams.extend(lab.pair().filter(|_| !is_gpu(&device)).map(|[_, other]| other.stream()));
    let row = |offset_bytes| Form { offset_bytes, ..Form::rows([1, 2]) };
    let mut middle = taken::<Ix2>(&stream, row(8).tensor(&memory))?;
    for stream in &streams {
        for (what, form) in [
            ("all", Form::rows(ROWS)),
            ("the same", row(8)),
            ("the first byte", row(4)),
            ("the last byte", row(12)),
        ] {
            let refused = taken::<Ix2>(stream, form.tensor(&memory)).expect_err(what);
            assert!(matches!(refused, Error::Backend { .. }), "{what}: {refused}");
            let words = "drop that array first, or copy the memory";
            assert!(refused.to_string().contains(words), "{what}: {refused}");
            assert_eq!((device.memory().in_use, Arc::strong_count(&memory)), (8, 2), "{what}");
        }
    }
    // What lies before and behind is free.
    let first = taken::<Ix2>(&stream, row(0).tensor(&memory))?;
    let last = taken::<Ix2>(&stream, row(16).tensor(&memory))?;
    middle.fill(9)?;
    assert_eq!((first.copy_to_host()?, last.copy_to_host()?), (array![[0, 1]], array![[4, 5]]));
    drop((first, middle, last));
    device.synchronize()?;
    let all = taken::<Ix2>(&stream, Form::rows(ROWS).tensor(&memory))?;
    assert_eq!(all.copy_to_host()?, array![[0, 1, 9], [9, 4, 5]]);
    Ok(())
}

/// Six elements from an address of the host on, each of which an array uses, are taken over neither
/// as memory of the CPU nor as that of the device.
fn expect_in_use(lab: &Lab, first: *const u32) {
    let mut places = vec![(Device::cpu().stream(), dl_device(&Device::cpu()))];
    places.push((lab.stream(), dl_device(&lab.device())));
    let elements = |offset: u64, len| (first.addr() as u64 + 4 * offset, Form::rows([1, len]));
    for (stream, device) in places {
        let owner = Arc::new(());
        let (before, after) = (first.addr() as u64 - 4, first.addr() as u64 + 20);
        for (address, form) in [
            elements(0, 6),
            elements(2, 1),
            (before, Form::rows([1, 2])),
            (after, Form::rows([2, 2])),
        ] {
            let form = Form { device: Some(device), ..form };
            let refused = taken::<Ix2>(&stream, form.tensor_at(address, Arc::clone(&owner)));
            let refused = refused.expect_err("an array uses the memory");
            assert!(matches!(refused, Error::Backend { .. }), "{refused}");
            assert!(refused.to_string().contains("an array uses"), "{refused}");
            assert_eq!(Arc::strong_count(&owner), 1);
        }
    }
}

pub(crate) fn pinned_memory_of_an_array_is_not_taken_over(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let pinned = PinnedArray::<u32, _>::zeros(6)?;
    expect_in_use(lab, pinned.host()?.as_ptr());
    let mapped = MappedArray::<u32, _>::zeros(6)?;
    expect_in_use(lab, mapped.host()?.as_ptr());
    let managed = ManagedArray::<u32, _>::zeros(6)?;
    expect_in_use(lab, managed.host()?.as_ptr());
    let locked = SmartArray::from(vec![0_u32; 6]);
    locked.page_lock()?;
    expect_in_use(lab, locked.host()?.as_ptr());
    let mut lent = Array1::<u32>::from(vec![0, 1, 2, 3, 4, 5]);
    with_pinned(&mut lent, |lent| {
        expect_in_use(lab, lent.host()?.as_ptr());
        Ok(())
    })?;
    with_mapped(&mut lent, |lent| {
        expect_in_use(lab, lent.host()?.as_ptr());
        Ok(())
    })?;
    // After the loan it is the program's.
    let stream = Device::cpu().stream();
    let tensor = Form::rows(ROWS).tensor_at(lent.as_mut_ptr().expose_provenance() as u64, ());
    let table = taken::<Ix2>(&stream, tensor)?;
    assert_eq!(table.copy_to_host()?, array![[0, 1, 2], [3, 4, 5]]);
    drop(table);
    // So is memory that was pinned with an array which gave it away.
    let mut own = locked.into_array()?.into_raw_vec_and_offset().0;
    let tensor = Form::rows(ROWS).tensor_at(own.as_mut_ptr().expose_provenance() as u64, ());
    assert_eq!(taken::<Ix2>(&stream, tensor)?.copy_to_host()?, Array2::<u32>::zeros((2, 3)));
    Device::cpu().synchronize()
}

pub(crate) fn memory_that_the_host_accesses_too_comes_back(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let contents = array![[0_u32, 1, 2], [3, 4, 5]];
    let mapped = SmartArray::from(MappedArray::from_array(contents.view())?);
    let managed = SmartArray::from(ManagedArray::from_array(contents.view())?);
    for array in [mapped, managed] {
        let mut array = array.into_device(&device)?;
        for _ in 0..2 {
            array = returned(&stream, array)?;
        }
        assert_eq!(array.copy_to_host()?, contents);
    }
    // The first deleters queue what the last frees.
    device.synchronize()?;
    Ok(())
}

/// The array, handed out and taken over again.
fn returned(stream: &Stream, array: DeviceArray<u32, Ix2>) -> Result<DeviceArray<u32, Ix2>> {
    taken(stream, array.into_dlpack()?)
}

pub(crate) fn memory_that_comes_back_counts_once_and_is_freed_once(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let memory = six(&device);
    let own = || DeviceArray::<u32, _>::full_on(&stream, (2, 3), 5);
    let others = || taken::<Ix2>(&stream, Form::rows(ROWS).tensor(&memory));
    for make in [&own as &dyn Fn() -> Result<DeviceArray<u32, Ix2>>, &others] {
        let mut array = make()?;
        for _ in 0..3 {
            array = returned(&stream, array)?;
            assert_eq!(device.memory().in_use, 24);
        }
        array.fill(7)?;
        assert_eq!(array.copy_to_host()?, Array2::from_elem((2, 3), 7));
        drop(array);
        eventually((0, 1), "bytes in use, handles of the memory", || {
            device.synchronize().expect("nothing failed");
            (device.memory().in_use, Arc::strong_count(&memory))
        });
    }
    // SAFETY: no array uses the memory.
    assert_eq!(unsafe { memory.elements() }, [7; 6]);
    Ok(())
}

pub(crate) fn one_array_at_a_time_uses_memory_that_came_back(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let memory = six(&device);
    let array = taken::<Ix2>(&stream, Form::rows(ROWS).tensor(&memory))?;
    let tensor: Dlpack = array.into_dlpack()?;
    // The other library passes on parts of the tensor that it got.
    let row = |offset_bytes| Form { offset_bytes, ..Form::rows([1, 2]) }.tensor(&memory);
    let part = taken::<Ix2>(&stream, row(8))?;
    let refused = taken::<Ix2>(&stream, row(12)).expect_err("an array uses one element");
    assert!(matches!(refused, Error::Backend { .. }), "{refused}");
    let other = taken::<Ix2>(&stream, row(0))?;
    assert_eq!((device.memory().in_use, Arc::strong_count(&memory)), (24, 4));
    assert_eq!((part.copy_to_host()?, other.copy_to_host()?), (array![[2, 3]], array![[0, 1]]));
    drop((part, other));
    device.synchronize()?;
    drop(tensor);
    eventually(1, "handles of the memory", || {
        device.synchronize().expect("nothing failed");
        Arc::strong_count(&memory) as u64
    });
    Ok(())
}

/// The tensor's consumer queues nothing here: what counts is that its stream follows the array's
/// work, and that the memory is used again after the work on that stream.
pub(crate) fn work_of_others_and_of_this_library_is_ordered_by_the_stream(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let (producer, consumer) = (lab.new_stream()?, lab.new_stream()?);
    let memory = ForeignMemory::of(&device, &[0; 3000]);
    let (gate, mut held) = (Gate::new(), numbers(3000));
    // The producer's work, which the array follows.
    lab.gated(&producer, &gate, &mut held)?;
    let mut table = taken::<Ix2>(&producer, Form::rows([50, 60]).tensor(&memory))?;
    lab.add_sized(&stream, 3, &mut table)?;
    let tensor: Dlpack = table.into_dlpack_on(&consumer)?;
    if lab.has_gates() {
        assert!(!consumer.is_idle()?, "the consumer's stream waits for the array's work");
    }
    gate.open();
    consumer.synchronize()?;
    // SAFETY: the stream has done all work on the memory.
    assert_eq!(unsafe { memory.elements() }, [3; 3000]);
    drop(tensor);
    device.synchronize()?;
    assert_eq!(Arc::strong_count(&memory), 1);
    Ok(())
}

fn taken_read_only<D: Dimension>(
    stream: &Stream,
    tensor: Dlpack,
) -> Result<ReadOnlyDeviceArray<u32, D>> {
    // SAFETY: nothing writes the memory until the tensor's deleter is called.
    unsafe { ReadOnlyDeviceArray::from_dlpack_on(stream, tensor) }
}

pub(crate) fn read_only_tensors_are_read_in_place(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.new_stream()?);
    let memory = six(&device);
    for flags in [DlpackFlags::READ_ONLY, DlpackFlags::empty()] {
        let table =
            taken_read_only::<Ix1>(&stream, Form { flags, ..Form::rows([1, 6]) }.tensor(&memory));
        assert!(matches!(table, Err(Error::Shape { .. })), "two axes");
        let form = Form { flags, strides: [1, 2], ..Form::rows(ROWS) };
        let table = taken_read_only::<Ix2>(&stream, form.tensor(&memory))?;
        assert_eq!((device.memory().in_use, Arc::strong_count(&memory)), (24, 2));
        assert!(!is_gpu(&device) || table.gpu_on(&stream)?.address() == memory.address());
        assert_eq!((table.get((1, 1))?, table.row(1).copy_to_host()?), (3, array![1, 3, 5]));
        let mut sums = DeviceArray::<u32, _>::full_on(&stream, 6, 10)?;
        let flat = table.t();
        let flat = flat.reshape(6, Order::RowMajor)?;
        lab.accumulate(&stream, &flat, &mut sums)?;
        assert_eq!(sums.copy_to_host()?, array![10, 11, 12, 13, 14, 15]);
        // A clone is a handle, and no way leads to an array that may be written.
        let clone = table.clone();
        let table = table.into_device_array().expect_err("others' memory");
        drop(table);
        let clone = clone.into_device_array().expect_err("others' memory");
        let pending = clone.copy_to_host_on(&stream)?;
        drop(clone);
        assert_eq!(pending.wait()?, array![[0, 2, 4], [1, 3, 5]]);
        device.synchronize()?;
        assert_eq!(Arc::strong_count(&memory), 1);
    }
    // SAFETY: the arrays are gone.
    assert_eq!(unsafe { memory.elements() }, [0, 1, 2, 3, 4, 5]);
    Ok(())
}

pub(crate) fn a_read_only_array_is_read_by_others_and_by_the_program(lab: &Lab) -> Result<()> {
    let (device, stream, other) = (lab.device(), lab.stream(), lab.new_stream()?);
    for waits in [true, false] {
        let mut table = DeviceArray::<u32, _>::full_on(&stream, (2, 3), 5)?;
        lab.add_sized(&stream, 4, &mut table)?;
        let table = ReadOnlyDeviceArray::from(table);
        let [first, second] = [&stream, &other]
            .map(|stream| if waits { table.to_dlpack() } else { table.to_dlpack_on(stream) });
        let (first, second) = (first?, second?);
        assert!(first.flags().contains(DlpackFlags::READ_ONLY));
        let view = first.validate().expect("a tensor");
        assert_eq!((view.shape(), view.device()), (&[2, 3][..], dl_device(&device)));
        let expected = Array2::from_elem((2, 3), 9);
        assert_eq!(table.copy_to_host()?, expected);
        let refused = taken::<Ix2>(&stream, first).expect_err("read-only");
        assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
        let back = taken_read_only::<Ix2>(&other, second)?;
        assert_eq!((back.copy_to_host()?, device.memory().in_use), (expected.clone(), 24));
        let table = table.into_device_array().expect_err("the other tensor lives");
        drop(back);
        let mut table = Some(table);
        eventually(true, "the array is the program's again", || {
            device.synchronize().expect("nothing failed");
            let kept = table.take().expect("it was put back");
            match kept.into_device_array() {
                Ok(mut array) => array.fill(1).is_ok(),
                Err(kept) => {
                    table = Some(kept);
                    false
                }
            }
        });
        device.synchronize()?;
    }
    let unwritten = ReadOnlyDeviceArray::from(DeviceArray::<u32, _>::uninit_on(&stream, 4)?);
    assert!(matches!(unwritten.to_dlpack(), Err(Error::Uninitialised { .. })));
    Ok(())
}

/// The tensor's consumer has queued work on its stream when it calls the deleter.
pub(crate) fn memory_is_written_after_the_work_of_those_who_read_it(lab: &Lab) -> Result<()> {
    let (stream, consumer) = (lab.stream(), lab.new_stream()?);
    let mut table = DeviceArray::<u32, _>::full_on(&stream, 3000, 5)?;
    for _ in 0..2 {
        let shared = ReadOnlyDeviceArray::from(table);
        // With so many readers, the array forgets those whose streams are idle.
        let readers: Vec<Stream> = (0..20).map(|_| lab.new_stream()).collect::<Result<_>>()?;
        let read = |streams: &[Stream]| {
            streams.iter().try_for_each(|stream| shared.gpu_on(stream).map(drop))
        };
        read(&readers[..10])?;
        let tensor = shared.to_dlpack_on(&consumer)?;
        lab.device().synchronize()?;
        read(&readers[10..])?;
        let (gate, mut held) = (Gate::new(), numbers(3000));
        lab.gated(&consumer, &gate, &mut held)?;
        drop(tensor);
        table = shared.into_device_array().expect("the only handle");
        let written = lab.new_stream()?;
        table.fill_on(&written, 6)?;
        if lab.has_gates() {
            assert!(!written.is_idle()?, "the fill waits for the consumer's work");
        }
        gate.open();
        written.synchronize()?;
    }
    assert_eq!(table.get(2999)?, 6);
    Ok(())
}
