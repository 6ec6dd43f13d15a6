//! Device arrays exchanged with other code by DLPack: in place, in order, and freed once.

use std::sync::Arc;

use resident::dlpark::DlpackFlags;
use resident::dlpark::ffi::{DLDataType, DLDevice};
use resident::dlpark::versioned::Dlpack;
use resident::ndarray::{Array2, Dimension, Ix1, Ix2, array, s};
use resident::{Device, DeviceArray, DeviceKind, Error, Result, SmartArray, Stream};
use support::eventually;
use support::foreign::{ForeignMemory, Form, dl_device};

use super::gates::Gate;
use super::kernels::{add_sized, gated, over, over_2d};
use super::lab::Lab;
use super::values::counting;

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

pub(crate) fn memory_of_others_is_used_in_place_and_freed_once(lab: &Lab<'_>) -> Result<()> {
    let (device, stream) = (lab.device(), lab.new_stream()?);
    let memory = six(&device);
    let table = taken::<Ix2>(&stream, Form::rows(ROWS).tensor(&memory))?;
    assert_eq!((device.memory().in_use, Arc::strong_count(&memory)), (24, 2));
    let coherent = SmartArray::from_device(table);
    let address = coherent.gpu_on(&stream)?.address();
    assert!(!is_gpu(&device) || address == memory.address());
    let mut table = coherent.into_device(&device)?;
    add_sized(lab).launch_on(&stream, over_2d(2, 3), (10, &mut table))?;
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

pub(crate) fn tensors_of_any_layout_without_gaps_are_taken_over(lab: &Lab<'_>) -> Result<()> {
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
        table
            .slice_mut(s![1, ..;-1])
            .copy_from_device(&DeviceArray::<u32, _>::ones_on(&lab.stream(), 3)?)?;
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

pub(crate) fn tensors_that_do_not_fit_are_refused_and_freed(lab: &Lab<'_>) -> Result<()> {
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
        ("read-only", Form { flags: DlpackFlags::READ_ONLY, ..rows }),
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
    let empty = taken::<Ix2>(&stream, Form::rows([0, 3]).tensor(&memory))?;
    assert_eq!((empty.shape(), Arc::strong_count(&memory)), (&[0, 3][..], 1));
    // SAFETY: no array uses the memory.
    assert_eq!(unsafe { memory.elements() }, [0, 1, 2, 3, 4, 5]);
    Ok(())
}

pub(crate) fn an_array_is_handed_out_in_place(lab: &Lab<'_>) -> Result<()> {
    let (device, stream, other) = (lab.device(), lab.stream(), lab.new_stream()?);
    for waits in [true, false] {
        let table = DeviceArray::<u32, _>::full_on(&stream, (2, 3), 5)?;
        let coherent = SmartArray::from_device(table);
        let address = coherent.gpu_on(&stream)?.address();
        let mut table = coherent.into_device(&device)?;
        add_sized(lab).launch_on(&stream, over_2d(2, 3), (4, &mut table))?;
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

pub(crate) fn memory_that_an_array_uses_is_not_taken_over(lab: &Lab<'_>) -> Result<()> {
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

/// The array, handed out and taken over again.
fn returned(stream: &Stream, array: DeviceArray<u32, Ix2>) -> Result<DeviceArray<u32, Ix2>> {
    taken(stream, array.into_dlpack()?)
}

pub(crate) fn memory_that_comes_back_counts_once_and_is_freed_once(lab: &Lab<'_>) -> Result<()> {
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

pub(crate) fn one_array_at_a_time_uses_memory_that_came_back(lab: &Lab<'_>) -> Result<()> {
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
pub(crate) fn work_of_others_and_of_this_library_is_ordered_by_the_stream(
    lab: &Lab<'_>,
) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let (producer, consumer) = (lab.new_stream()?, lab.new_stream()?);
    let memory = ForeignMemory::of(&device, &[0; 3000]);
    let (gate, mut held) = (Gate::new(), SmartArray::from(counting(3000)));
    // The producer's work, which the array follows.
    gated(lab).launch_on(&producer, over(3000), (gate.number(), &mut held, 3000))?;
    let mut table = taken::<Ix2>(&producer, Form::rows([50, 60]).tensor(&memory))?;
    add_sized(lab).launch_on(&stream, over_2d(50, 60), (3, &mut table))?;
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
