//! Device arrays exchanged with other code by DLPack, on embedded devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use num_complex::Complex;
use resident::dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned,
    DLTensor,
};
use resident::dlpark::metadata::Dynamic;
use resident::dlpark::versioned::Dlpack;
use resident::dlpark::{DlpackFlags, Managed, ManagedTensorBase, legacy};
use resident::{AnyViewMut, ReadOnlyDeviceArray, TensorElement};
use support::foreign::{ForeignMemory, Form};
use support::prelude::*;

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

fn taken(device: &Device, tensor: Dlpack) -> Result<DeviceArray<f32, Ix1>> {
    // SAFETY: nothing else uses the memory.
    unsafe { DeviceArray::from_dlpack_on(&device.stream(), tensor) }
}

#[test]
fn a_tensor_that_runs_backwards_begins_at_its_first_element() -> Result<()> {
    let rows = Array2::from_shape_fn((2, 3), |(row, column)| (3 * row + column) as f32);
    let turned = SmartArray::from(rows.slice_move(s![..;-1, ..]));
    let made: Dlpack = turned.into_device(&Device::cpu())?.into_dlpack()?;
    let view = made.validate().expect("a tensor");
    assert_eq!((view.shape(), view.strides()), (&[2, 3][..], Some(&[-3, 1][..])));
    let first = view.data_ptr().wrapping_byte_add(view.byte_offset() as usize);
    // SAFETY: the first element is there while the tensor lives, and nothing else uses it.
    assert_eq!(unsafe { first.cast::<f32>().read() }, 3.0);
    // SAFETY: as above; the second row lies before the first.
    assert_eq!(unsafe { first.cast::<f32>().wrapping_sub(3).read() }, 0.0);
    Ok(())
}

#[test]
fn memory_that_comes_back_counts_once_against_the_limit() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1000));
    let stream = device.stream();
    let made: Dlpack = DeviceArray::<f32, _>::full_on(&stream, 150, 1.0)?.into_dlpack()?;
    let back = taken(&device, made)?;
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
    // A device of its own: others wait for the embedded device, and would return the failure.
    let stream = Device::emulated(Emulation::new()).stream();
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
    let [device, other] = [Emulation::new(), Emulation::new().seed(3)].map(Device::emulated);
    let memory = ForeignMemory::of(&device, &[0, 1, 2, 3, 4, 5]);
    // SAFETY: nothing else uses the memory.
    let table = unsafe {
        DeviceArray::<u32, Ix2>::from_dlpack_on(
            &device.stream(),
            Form::rows([2, 3]).tensor(&memory),
        )
    };
    let mut table = SmartArray::from_device(table?);
    let double = Kernel::<(InOut<u32, Ix2>,)>::new("double").host(|_grid, (mut xs,)| xs *= 2);
    double.launch_on(&other.stream(), Grid::cover(6), (&mut table,))?;
    assert_eq!(table.host()?.sum(), 30);
    table.release_on(&device)?;
    device.synchronize()?;
    assert_eq!(Arc::strong_count(&memory), 1, "it is freed");
    assert_eq!(table.into_array()?.sum(), 30);
    Ok(())
}

/// An array of these elements, handed out and taken over again; and what DLPack says they are.
fn exchanged<T>(elements: [T; 2]) -> Result<DLDataType>
where
    T: TensorElement + PartialEq + std::fmt::Debug,
{
    let stream = Device::cpu().stream();
    let elements = Array1::from(elements.to_vec());
    let made: Dlpack = DeviceArray::from_host_on(&stream, &elements)?.into_dlpack()?;
    let dtype = made.validate().expect("a tensor").dtype();
    // SAFETY: nothing else has the tensor.
    let back = unsafe { DeviceArray::<T, Ix1>::from_dlpack_on(&stream, made) }?;
    assert_eq!(back.copy_to_host()?, elements);
    Ok(dtype)
}

#[test]
fn complex_and_half_numbers_are_exchanged() -> Result<()> {
    let turn = [Complex::new(0.5, -1.0), Complex::new(-3.0, 0.25)];
    assert_eq!(exchanged::<Complex<f32>>(turn)?, DLDataType::C64);
    let turn = [Complex::new(0.5, -1.0), Complex::new(-3.0, 0.25)];
    assert_eq!(exchanged::<Complex<f64>>(turn)?, DLDataType::C128);
    let halves = [0.5, -3.0];
    let dtype = exchanged(halves.map(half::f16::from_f64))?;
    assert_eq!(dtype, DLDataType::scalar(DLDataTypeCode::FLOAT, 16));
    let dtype = exchanged(halves.map(half::bf16::from_f64))?;
    assert_eq!(dtype, DLDataType::scalar(DLDataTypeCode::BFLOAT, 16));
    Ok(())
}

#[test]
fn elements_of_bool_come_in_as_bytes_of_zero_and_one() -> Result<()> {
    let stream = Device::cpu().stream();
    let owner = Box::new([true, false, true]);
    let data = owner.as_ptr().cast_mut();
    let made = || {
        let prepared = Dynamic::new([3_i64], [1_i64]).prepare_as::<DLManagedTensorVersioned>();
        let mut tensor = prepared.expect("one axis").initialize(owner.clone());
        tensor.set_data(data.cast()).set_device(DLDevice::CPU).set_dtype(DLDataType::BOOL);
        // SAFETY: `owner` lives longer than the arrays below.
        unsafe { tensor.finish() }
    };
    // SAFETY: nothing else uses the memory.
    let bytes = unsafe { DeviceArray::<u8, Ix1>::from_dlpack_on(&stream, made()) }?;
    assert_eq!(bytes.copy_to_host()?.to_vec(), [1, 0, 1]);
    // SAFETY: the memory is refused.
    let refused = unsafe { DeviceArray::<i8, Ix1>::from_dlpack_on(&stream, made()) };
    let refused = refused.expect_err("no byte without a sign");
    assert!(refused.to_string().contains("are bool8; expected elements of type int8"), "{refused}");
    drop(bytes);
    Device::cpu().synchronize()
}

/// Lengths and strides at the limits of their type, and around what sixteen elements need.
const LIMITS: [i64; 12] =
    [i64::MIN, i64::MIN + 1, i64::MIN / 4, -3, -1, 0, 1, 2, 3, 1 << 58, i64::MAX - 1, i64::MAX];

/// Whether a tensor of other code, changed by `change`, was taken over in its versioned form, by
/// `from_dlpack_on`, and in its legacy form, by `from_dlpack`.
fn are_taken<D: Dimension>(change: &dyn Fn(&mut DLTensor)) -> [bool; 2] {
    let freed = Arc::new(AtomicU32::new(0));
    let stream = Device::cpu().stream();
    let by_stream = changed::<DLManagedTensorVersioned>(change, &freed);
    // SAFETY: nothing uses the memory: arrays that were made of a description that is not true are
    // dropped at once.
    let by_stream = unsafe { DeviceArray::<f32, D>::from_dlpack_on(&stream, by_stream) };
    let all = [by_stream.map(drop), {
        eventually(1, "tensors freed", || {
            Device::cpu().synchronize().expect("nothing failed");
            freed.load(Ordering::SeqCst)
        });
        let legacy = changed::<DLManagedTensor>(change, &freed);
        // SAFETY: as above.
        unsafe { DeviceArray::<f32, D>::from_dlpack(legacy) }.map(drop)
    }];
    eventually(2, "tensors freed", || {
        Device::cpu().synchronize().expect("nothing failed");
        freed.load(Ordering::SeqCst)
    });
    for refused in all.iter().filter_map(|taken| taken.as_ref().err()) {
        let is_expected = matches!(refused, Error::Foreign { .. } | Error::Shape { .. });
        assert!(is_expected, "{refused:?}");
    }
    all.map(|taken| taken.is_ok())
}

/// Two by three elements in the middle of sixteen, but for one change.
fn changed<M: ManagedTensorBase>(
    change: &dyn Fn(&mut DLTensor),
    freed: &Arc<AtomicU32>,
) -> Managed<M> {
    let mut owner = Box::new(Owner { elements: vec![0.0; 16], freed: Arc::clone(freed) });
    let data = owner.elements.as_mut_ptr();
    let prepared = Dynamic::new([2_i64, 3], [3_i64, 1]).prepare_as::<M>().expect("two axes");
    let mut tensor = prepared.initialize(owner);
    tensor.set_data(data.cast()).set_device(DLDevice::CPU).set_dtype(DLDataType::F32);
    // SAFETY: what is changed of the description below is refused, or no element is used.
    let tensor: Managed<M> = unsafe { tensor.finish() };
    // SAFETY: the tensor lives, and nothing else uses it.
    change(unsafe { (*tensor.as_ptr()).tensor_mut() });
    tensor
}

/// Sets lengths and strides; there are two of each.
fn set_axes(tensor: &mut DLTensor, shape: [i64; 2], strides: [i64; 2]) {
    // SAFETY: the pointer is that of two numbers, which live as long as the tensor.
    unsafe { tensor.shape.cast::<[i64; 2]>().write(shape) };
    // SAFETY: as above.
    unsafe { tensor.strides.cast::<[i64; 2]>().write(strides) };
}

/// Whether two axes are those of elements without gaps and repetitions, in an address space around
/// `first`, calculated with integers that do not overflow.
fn has_no_gaps(first: usize, shape: [i64; 2], strides: [i64; 2]) -> bool {
    let (shape, strides) = (shape.map(i128::from), strides.map(i128::from));
    // ndarray counts no axes of length 0, and DLPack's crate counts bits.
    let counted: i128 = shape.iter().filter(|len| **len != 0).product();
    let is_counted = counted <= i128::from(i64::MAX) / 4
        && shape.iter().product::<i128>() <= i128::from(u64::MAX) / 32;
    if shape.iter().any(|len| *len < 0) || !is_counted {
        return false;
    }
    if shape.contains(&0) {
        return true;
    }
    let mut axes: Vec<(i128, i128)> = shape.into_iter().zip(strides).collect();
    axes.retain(|(len, _)| *len > 1);
    axes.sort_by_key(|(_, stride)| stride.abs());
    let (mut expected, mut below) = (1, 0);
    for (len, stride) in axes {
        if stride.abs() != expected {
            return false;
        }
        expected *= len;
        below += (len - 1) * (-stride).max(0);
    }
    let start = first as i128 - 4 * below;
    start > 0 && start + 4 * expected <= i128::from(u64::MAX)
}

#[test]
fn shapes_and_strides_at_their_limits_are_taken_or_refused_without_a_panic() {
    // Descriptions of most of the address space would overlap the arrays of other tests.
    support::own_process!();
    let pairs = || LIMITS.iter().flat_map(|a| LIMITS.iter().map(move |b| [*a, *b]));
    let mut taken = 0;
    for (shape, strides) in pairs().flat_map(|shape| pairs().map(move |strides| (shape, strides))) {
        let expected = std::cell::Cell::new(false);
        let are_taken = are_taken::<Ix2>(&|tensor| {
            set_axes(tensor, shape, strides);
            expected.set(has_no_gaps(tensor.data.addr(), shape, strides));
        });
        assert_eq!(are_taken, [expected.get(); 2], "{shape:?} {strides:?}");
        taken += usize::from(expected.get());
    }
    assert!(taken > 1000, "{taken}");
    // Without strides, the legacy form is compact; the versioned form has to have some.
    for shape in pairs() {
        let expected = std::cell::Cell::new(false);
        let are_taken = are_taken::<IxDyn>(&|tensor| {
            set_axes(tensor, shape, [0, 0]);
            tensor.strides = std::ptr::null_mut();
            let row = shape[1].max(1);
            expected.set(has_no_gaps(tensor.data.addr(), shape, [row, 1]));
        });
        assert_eq!(are_taken, [false, expected.get()], "{shape:?}");
    }
}

#[test]
fn other_fields_of_a_tensor_at_their_limits_are_refused_without_a_panic() {
    // Failures of other tests' kernels would be reported here.
    support::own_process!();
    let is_refused = |what: &str, change: &dyn Fn(&mut DLTensor)| {
        assert_eq!(are_taken::<Ix2>(change), [false; 2], "{what}");
        assert_eq!(are_taken::<IxDyn>(change), [false; 2], "{what}");
    };
    assert_eq!(
        (are_taken::<Ix2>(&|_tensor| ()), are_taken::<IxDyn>(&|_tensor| ())),
        ([true; 2], [true; 2])
    );
    for ndim in [i32::MIN, i32::MIN + 1, -2, -1] {
        is_refused("ndim", &|tensor| tensor.ndim = ndim);
    }
    is_refused("no shape", &|tensor| tensor.shape = std::ptr::null_mut());
    let odd = [1, 2, 3, i64::MAX as u64 - 1, i64::MAX as u64, u64::MAX - 1, u64::MAX];
    for byte_offset in odd.into_iter().chain([u64::MAX - 3, u64::MAX - 15, 0_u64.wrapping_sub(64)])
    {
        is_refused("byte_offset", &|tensor| tensor.byte_offset = byte_offset);
        is_refused("no data", &|tensor| {
            (tensor.data, tensor.byte_offset) = (std::ptr::null_mut(), byte_offset);
        });
    }
    for byte_offset in [0, 4, 4096] {
        is_refused("no data", &|tensor| {
            (tensor.data, tensor.byte_offset) = (std::ptr::null_mut(), byte_offset);
        });
    }
    for code in (0..=u8::MAX).filter(|code| *code != DLDataTypeCode::FLOAT.0) {
        is_refused("code", &|tensor| tensor.dtype.code = DLDataTypeCode(code));
    }
    for bits in (0..=u8::MAX).filter(|bits| *bits != 32) {
        is_refused("bits", &|tensor| tensor.dtype.bits = bits);
    }
    for lanes in [0, 2, 4, u16::MAX - 1, u16::MAX] {
        is_refused("lanes", &|tensor| tensor.dtype.lanes = lanes);
    }
    for number in [0, 2, 3, 4, 7, 10, 13, 14, 17, 18, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
        is_refused("device", &|tensor| tensor.device.device_type = DLDeviceType(number as _));
    }
    for number in [i32::MIN, -1, 1, i32::MAX] {
        is_refused("number", &|tensor| tensor.device.device_id = number);
    }
}

/// Has two implementations for what implements `$forbidden`, so that a call is ambiguous.
macro_rules! assert_not_implemented {
    ($type:ty: $forbidden:path) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn call() {}
            }
            struct Forbidden;
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $forbidden> Ambiguous<Forbidden> for T {}
            <$type as Ambiguous<_>>::call();
        };
    };
}

type Table = ReadOnlyDeviceArray<f32, Ix2>;

// Whatever gives a `&mut DeviceArray` or takes the place of one would write.
assert_not_implemented!(Table: std::ops::DerefMut);
assert_not_implemented!(Table: AsMut<DeviceArray<f32, Ix2>>);
assert_not_implemented!(Table: std::borrow::BorrowMut<DeviceArray<f32, Ix2>>);
assert_not_implemented!(Table: Into<DeviceArray<f32, Ix2>>);
assert_not_implemented!(Table: AnyViewMut<f32>);

/// A page of the system that this process may only read, with 1024 numbers.
struct ReadOnlyPage(*mut f32);

// SAFETY: nothing writes the page, which is unmapped once.
unsafe impl Send for ReadOnlyPage {}
// SAFETY: as above.
unsafe impl Sync for ReadOnlyPage {}

impl ReadOnlyPage {
    const LEN: usize = 1024;
    const LEN_BYTES: usize = 4 * Self::LEN;

    fn new() -> Arc<Self> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let anywhere = std::ptr::null_mut();
        // SAFETY: the system chooses where the page is.
        let page =
            unsafe { libc::mmap(anywhere, Self::LEN_BYTES, protection, flags, -1, 0) }.cast();
        assert_ne!(page, libc::MAP_FAILED.cast());
        // SAFETY: the page is new, has room for the numbers, and may be written yet.
        let numbers = unsafe { std::slice::from_raw_parts_mut::<f32>(page, Self::LEN) };
        numbers.iter_mut().zip(0_u16..).for_each(|(number, value)| *number = value.into());
        // SAFETY: the page is this test's.
        let protected = unsafe { libc::mprotect(page.cast(), Self::LEN_BYTES, libc::PROT_READ) };
        assert_eq!(protected, 0);
        Arc::new(Self(page))
    }

    /// A read-only tensor of 32 rows.
    fn tensor(self: &Arc<Self>) -> Dlpack {
        let metadata = Dynamic::new([32_i64, 32], [32_i64, 1]);
        let prepared = metadata.prepare_as::<DLManagedTensorVersioned>().expect("two axes");
        let mut tensor = prepared.initialize(Box::new(Arc::clone(self)));
        tensor.set_data(self.0.cast()).set_device(DLDevice::CPU).set_dtype(DLDataType::F32);
        tensor.set_flags(DlpackFlags::READ_ONLY).expect("no copy");
        // SAFETY: the page lives as long as its owner, and the description is true.
        unsafe { tensor.finish() }
    }
}

impl Drop for ReadOnlyPage {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the page, and this is the last handle.
        unsafe { libc::munmap(self.0.cast(), Self::LEN_BYTES) };
    }
}

/// The system ends the process at a write. Poison, checks of kernels and of races, failures, and
/// the end of the memory write nothing either.
#[test]
fn no_call_writes_a_read_only_tensor() -> Result<()> {
    support::own_process!();
    let emulation = Emulation::new().poison(true);
    let seeded = emulation.clone().seed(5);
    for device in [emulation.clone().sanitize(true), seeded, emulation].map(Device::emulated) {
        let (page, stream) = (ReadOnlyPage::new(), device.stream());
        // SAFETY: nothing writes the page.
        let table =
            unsafe { ReadOnlyDeviceArray::<f32, Ix2>::from_dlpack_on(&stream, page.tensor()) }?;
        read_in_every_way(&device, &table)?;
        drop(table);
        device.synchronize()?;
        device.synchronize()?;
        assert_eq!((Arc::strong_count(&page), device.memory().in_use), (1, 0));
        assert_ordered(&device);
    }
    Ok(())
}

fn read_in_every_way(device: &Device, table: &ReadOnlyDeviceArray<f32, Ix2>) -> Result<()> {
    let stream = device.stream();
    let _here = device.enter();
    let expected = Array2::from_shape_fn((32, 32), |(row, column)| (32 * row + column) as f32);
    assert_eq!(table.copy_to_host()?, expected);
    assert_eq!(table.copy_to_host_on(&stream)?.wait()?, expected);
    let mut into = Array2::zeros((32, 32));
    table.t().copy_to_host_into(&mut into)?;
    assert_eq!(into, expected.t());
    assert_eq!((table.get((31, 31))?, table.row(1).get(0)?), (1023.0, 32.0));
    let mut copy = table.to_contiguous()?;
    copy.copy_from_device(table)?;
    copy.slice_mut(resident::ndarray::s![.., ..;-1]).copy_from_device(&table.view())?;
    assert_eq!(copy.get((0, 0))?, 31.0);
    assert!(table.gpu_on(&stream)?.address() > 0);
    let negate = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("negate")
        .host(|_grid, (xs, mut ys)| ys.assign(&-&xs));
    negate.launch(Grid::cover(1024), (table, &mut copy))?;
    assert_eq!(copy.copy_to_host()?, -&expected);
    let fails = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("fails")
        .host(|_grid, (_xs, _ys)| std::panic::resume_unwind(Box::new("no such value")));
    fails.launch(Grid::cover(1024), (&table.view(), &mut copy))?;
    assert!(copy.copy_to_host().is_err());
    // The failure is not the table's; the device reports it once.
    let _failed = device.synchronize();
    assert_eq!(table.sum()?, expected.sum());
    let tensor = table.to_dlpack()?;
    // SAFETY: nothing writes the page.
    let back = unsafe { ReadOnlyDeviceArray::<f32, Ix2>::from_dlpack_on(&stream, tensor) }?;
    assert_eq!(back.clone().copy_to_host()?, expected);
    Ok(())
}
