//! Device arrays exchanged with other code by DLPack, on embedded devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use resident::dlpark::ffi::{DLDataType, DLDevice, DLManagedTensorVersioned};
use resident::dlpark::metadata::Dynamic;
use resident::dlpark::versioned::Dlpack;
use resident::dlpark::{DlpackFlags, legacy};
use resident::ndarray::{Array2, Dimension, Ix1, Ix2};
use resident::{Device, DeviceArray, Emulation, Error, Grid, InOut, Kernel, Result, SmartArray};

/// Memory of other code, which counts how often it is freed.
struct Owner {
    elements: Vec<f32>,
    freed: Arc<AtomicU32>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Ordering::SeqCst);
    }
}

/// What is unusual about a tensor.
#[derive(Clone, Copy)]
struct Form {
    strides: [i64; 2],
    offset_bytes: u64,
    dtype: DLDataType,
    device: DLDevice,
    flags: DlpackFlags,
}

const ROWS: Form = Form {
    strides: [3, 1],
    offset_bytes: 0,
    dtype: DLDataType::F32,
    device: DLDevice::CPU,
    flags: DlpackFlags::empty(),
};

/// A tensor of 2 by 3 elements over other code's memory, which holds 0, 1, ...
fn tensor(form: Form, freed: &Arc<AtomicU32>) -> Dlpack {
    let elements: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let mut owner = Box::new(Owner { elements, freed: Arc::clone(freed) });
    let data = owner.elements.as_mut_ptr();
    let prepared = Dynamic::new([2_i64, 3], form.strides).prepare_as::<DLManagedTensorVersioned>();
    let mut tensor = prepared.expect("two axes").initialize(owner);
    tensor.set_data(data.cast()).set_device(form.device).set_dtype(form.dtype);
    tensor.set_byte_offset(form.offset_bytes).set_flags(form.flags).expect("no copy");
    // SAFETY: the memory lives as long as the owner, and the description is what the tests mean.
    unsafe { tensor.finish() }
}

fn taken<D: Dimension>(device: &Device, tensor: Dlpack) -> Result<DeviceArray<f32, D>> {
    // SAFETY: nothing else uses the memory.
    unsafe { DeviceArray::from_dlpack_on(&device.stream(), tensor) }
}

fn double() -> Kernel<(InOut<f32, Ix2>,)> {
    Kernel::new("double").host(|_grid, (mut xs,)| xs *= 2.0)
}

/// Devices that no other test uses: with threads, with poison, and seeded.
fn devices() -> [Device; 3] {
    let emulation = Emulation::new().poison(true);
    let plain = emulation.clone().poison(false);
    [plain, emulation.clone(), emulation.seed(3)].map(Device::emulated)
}

#[test]
fn memory_of_others_is_used_in_place_and_freed_once_after_its_last_use() -> Result<()> {
    for device in devices() {
        let (freed, before) = (Arc::new(AtomicU32::new(0)), device.memory().in_use);
        let mut table = taken::<Ix2>(&device, tensor(ROWS, &freed))?;
        assert_eq!(device.memory().in_use - before, 24);
        double().launch_on(&device.stream(), Grid::cover(6), (&mut table,))?;
        let pending = table.copy_to_host_on(&device.stream())?;
        drop(table);
        assert_eq!(pending.wait()?, array([[0, 2, 4], [6, 8, 10]]));
        device.synchronize()?;
        assert_eq!((freed.load(Ordering::SeqCst), device.memory().in_use), (1, before));
    }
    Ok(())
}

#[test]
fn any_axis_order_and_direction_without_gaps_is_taken_over() -> Result<()> {
    let freed = Arc::new(AtomicU32::new(0));
    for (strides, offset, wanted) in [
        ([3, 1], 8, [[2, 3, 4], [5, 6, 7]]),
        ([1, 2], 0, [[0, 2, 4], [1, 3, 5]]),
        ([-3, 1], 12, [[3, 4, 5], [0, 1, 2]]),
        ([3, -1], 8, [[2, 1, 0], [5, 4, 3]]),
    ] {
        let form = Form { strides, offset_bytes: offset, ..ROWS };
        let table = taken::<Ix2>(&Device::cpu(), tensor(form, &freed))?;
        assert_eq!(table.copy_to_host()?, array(wanted), "{strides:?}");
        assert_eq!(table.get((1, 0))?, wanted[1][0] as f32);
    }
    Ok(())
}

fn array(rows: [[u8; 3]; 2]) -> Array2<f32> {
    Array2::from_shape_fn((2, 3), |(row, column)| f32::from(rows[row][column]))
}

#[test]
fn what_cannot_be_taken_over_is_refused_and_freed() {
    let freed = Arc::new(AtomicU32::new(0));
    let forms = [
        ("float64; float32", Form { dtype: DLDataType::F64, ..ROWS }),
        ("device", Form { device: DLDevice::cuda(0), ..ROWS }),
        ("read-only", Form { flags: DlpackFlags::READ_ONLY, ..ROWS }),
        ("contiguous", Form { strides: [6, 2], ..ROWS }),
        ("repetitions", Form { strides: [0, 1], ..ROWS }),
        ("multiple of 4", Form { offset_bytes: 2, ..ROWS }),
    ];
    for (number, (words, form)) in forms.into_iter().enumerate() {
        let refused = taken::<Ix2>(&Device::cpu(), tensor(form, &freed)).expect_err(words);
        assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains(words), "{words}: {refused}");
        assert_eq!(freed.load(Ordering::SeqCst), number as u32 + 1);
    }
    let refused = taken::<Ix1>(&Device::cpu(), tensor(ROWS, &freed)).expect_err("two axes");
    assert!(matches!(refused, Error::Shape { .. }), "{refused}");
}

#[test]
fn a_tensor_owns_the_array_and_frees_its_memory() -> Result<()> {
    for device in devices() {
        let before = device.memory().in_use;
        let stream = device.stream();
        let mut table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 1.0)?;
        double().launch_on(&stream, Grid::cover(6), (&mut table,))?;
        let made: Dlpack = table.into_dlpack()?;
        let view = made.validate().expect("a tensor");
        assert_eq!((view.shape(), view.device()), (&[2, 3][..], DLDevice::CPU));
        // SAFETY: the tensor lives, and nothing else uses it.
        let elements = unsafe { view.cpu_slice::<f32>() }.expect("compact");
        assert_eq!(elements, [2.0; 6]);
        // Taken over again, it is the same memory.
        let mut again = taken::<Ix2>(&device, made)?;
        double().launch_on(&stream, Grid::cover(6), (&mut again,))?;
        assert_eq!(again.copy_to_host()?.sum(), 24.0);
        drop(again);
        device.synchronize()?;
        device.synchronize()?;
        assert_eq!(device.memory().in_use, before);
    }
    Ok(())
}

#[test]
fn memory_that_comes_back_counts_once_against_the_limit() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1000));
    let stream = device.stream();
    let made: Dlpack = DeviceArray::<f32, _>::full_on(&stream, 150, 1.0)?.into_dlpack()?;
    let back = taken::<Ix1>(&device, made)?;
    let second = DeviceArray::<f32, _>::full_on(&stream, 100, 2.0)?;
    assert_eq!(device.memory().in_use, 1000);
    assert_eq!(back.copy_to_host()?.sum() + second.copy_to_host()?.sum(), 350.0);
    Ok(())
}

#[test]
fn the_legacy_form_and_arrays_without_elements_are_exchanged() -> Result<()> {
    let stream = Device::cpu().stream();
    for shape in [(2, 3), (0, 3)] {
        let table = DeviceArray::<i64, _>::full_on(&stream, shape, -7)?;
        let made: legacy::Dlpack = table.into_dlpack()?;
        // SAFETY: nothing else has the tensor.
        let back = unsafe { DeviceArray::<i64, Ix2>::from_dlpack_on(&stream, made) }?;
        assert_eq!(back.copy_to_host()?, Array2::from_elem(shape, -7));
    }
    Ok(())
}

#[test]
fn elements_without_contents_are_not_handed_out() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let unwritten = DeviceArray::<f32, _>::uninit_on(&stream, 4)?;
    let refused = unwritten.into_dlpack::<DLManagedTensorVersioned>().map(drop);
    assert!(matches!(refused, Err(Error::Uninitialised { .. })), "{refused:?}");
    let fails = Kernel::<(InOut<f32>,)>::new("fails")
        .host(|_grid, (_xs,)| std::panic::resume_unwind(Box::new("no such value")));
    let mut lost = DeviceArray::<f32, _>::full_on(&stream, 4, 1.0)?;
    fails.launch_on(&stream, Grid::cover(4), (&mut lost,))?;
    let refused = lost.into_dlpack::<DLManagedTensorVersioned>().map(drop);
    assert!(matches!(refused, Err(Error::Lost { .. })), "{refused:?}");
    Ok(())
}

/// An array over other code's memory becomes coherent, and is copied to other devices.
#[test]
fn a_coherent_array_may_live_in_memory_of_others() -> Result<()> {
    let [device, other, _] = devices();
    let freed = Arc::new(AtomicU32::new(0));
    let mut table = SmartArray::from_device(taken::<Ix2>(&device, tensor(ROWS, &freed))?);
    double().launch_on(&other.stream(), Grid::cover(6), (&mut table,))?;
    assert_eq!(table.host()?.sum(), 30.0);
    table.release_on(&device)?;
    device.synchronize()?;
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    assert_eq!(table.into_array()?.sum(), 30.0);
    Ok(())
}
