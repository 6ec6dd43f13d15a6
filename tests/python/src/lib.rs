//! Functions that the scripts call: they pass device arrays to Python and take them from it, as
//! DLPack tensors and by the fields of `__cuda_array_interface__`. The device is the embedded one,
//! or the GPU that `resident_use` chooses.

use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

use ndarray::{Array2, Ix2, IxDyn, ShapeBuilder};
use resident::dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use resident::dlpark::{Managed, ManagedTensorBase};
use resident::{Device, DeviceArray, Grid, InOut, Kernel, ReadOnlyDeviceArray, Result, Stream};

static DEVICE: Mutex<Option<Device>> = Mutex::new(None);

fn device() -> Device {
    let chosen = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    chosen.clone().unwrap_or_else(Device::cpu)
}

/// A device by its name: `cpu`, `cuda:0`, `hip:0`.
fn named(name: &str) -> Result<Device> {
    let ordinal = |text: &str| text.parse().unwrap_or(usize::MAX);
    match name.split_once(':') {
        Some(("cuda", number)) => Device::cuda(ordinal(number)),
        Some(("hip", number)) => Device::hip(ordinal(number)),
        _ => Ok(Device::cpu()),
    }
}

/// A 2 by 3 table of 0, 1, ... on the device, column-major if asked for.
fn table(is_column_major: bool) -> Result<DeviceArray<f32, Ix2>> {
    let rows = Array2::from_shape_fn((2, 3), |(row, column)| (3 * row + column) as f32);
    let stream = device().stream();
    let mut table = DeviceArray::uninit_on(&stream, (2, 3).set_f(is_column_major))?;
    table.copy_from_host(&rows)?;
    Ok(table)
}

const DOUBLE: &str = r#"
extern "C" __global__ void twice(float *xs, unsigned long long len) {
    unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
    if (i < len) xs[i] *= 2;
}
"#;

/// Doubles an array's elements with a kernel, and returns their sum.
fn doubled(stream: &Stream, mut array: DeviceArray<f32, IxDyn>) -> Result<f32> {
    let double = Kernel::<(InOut<f32>, u64)>::new("twice")
        .require("the length is passed", |_grid, (xs, len)| xs.len() as u64 == len)
        .host(|_grid, (xs, _)| xs.iter_mut().for_each(|x| *x *= 2.0));
    // SAFETY: the source accesses elements below the length, which the requirement compares.
    let double = unsafe { double.cuda(DOUBLE) };
    let len = array.len();
    double.launch_on(stream, Grid::cover(len), (&mut array, len as u64))?;
    Ok(array.copy_to_host()?.sum())
}

fn doubled_tensor<M: ManagedTensorBase + 'static>(tensor: Managed<M>) -> Result<f32> {
    let stream = device().stream();
    // SAFETY: the script keeps to what `from_dlpack_on` requires: it reads the array only after
    // this function has returned.
    let array = unsafe { DeviceArray::<f32, IxDyn>::from_dlpack_on(&stream, tensor) }?;
    doubled(&stream, array)
}

/// The message is printed, since it cannot be returned.
fn or_print<T>(outcome: Result<T>, otherwise: T) -> T {
    outcome.unwrap_or_else(|error| {
        eprintln!("{error}");
        otherwise
    })
}

fn exported<M: ManagedTensorBase>(is_column_major: bool) -> *mut M {
    let tensor = table(is_column_major).and_then(DeviceArray::into_dlpack::<M>);
    or_print(tensor.map(Managed::into_raw), std::ptr::null_mut())
}

/// # Safety
///
/// The caller owns the tensor, and passes that to this function.
unsafe fn sum_of<M: ManagedTensorBase + 'static>(tensor: *mut M) -> f32 {
    // SAFETY: as the caller promises.
    match unsafe { Managed::from_raw(tensor) } {
        Ok(tensor) => or_print(doubled_tensor(tensor), f32::NAN),
        Err(fault) => {
            eprintln!("{fault}");
            f32::NAN
        }
    }
}

/// A new tensor, which the caller owns; null if there was an error.
#[unsafe(no_mangle)]
pub extern "C" fn resident_export(is_column_major: bool) -> *mut DLManagedTensor {
    exported(is_column_major)
}

/// As [`resident_export`], in the versioned form.
#[unsafe(no_mangle)]
pub extern "C" fn resident_export_versioned(
    is_column_major: bool,
) -> *mut DLManagedTensorVersioned {
    exported(is_column_major)
}

/// A new read-only tensor over a table that the library keeps until [`resident_forget`]; null if
/// there was an error.
#[unsafe(no_mangle)]
pub extern "C" fn shared_table() -> *mut DLManagedTensorVersioned {
    let shared = || {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            let stream = device().stream();
            *shared = Some(DeviceArray::full_on(&stream, (2, 3), 0.5)?.into());
        }
        shared.as_ref().map(ReadOnlyDeviceArray::to_dlpack).transpose()
    };
    or_print(shared(), None).map_or(std::ptr::null_mut(), Managed::into_raw)
}

static SHARED: Mutex<Option<ReadOnlyDeviceArray<f32, Ix2>>> = Mutex::new(None);

/// The sum of a tensor's elements, which are only read, not a number if there was an error.
///
/// # Safety
///
/// The caller owns the tensor, and passes that to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn resident_sum_read_only(tensor: *mut DLManagedTensorVersioned) -> f32 {
    // SAFETY: as the caller promises.
    let Ok(tensor) = (unsafe { Managed::from_raw(tensor) }) else { return f32::NAN };
    // SAFETY: the script writes the array only after this function has returned.
    let array =
        unsafe { ReadOnlyDeviceArray::<f32, IxDyn>::from_dlpack_on(&device().stream(), tensor) };
    or_print(array.and_then(|array| array.sum()), f32::NAN)
}

/// Doubles a tensor's elements and returns their sum; not a number if there was an error.
///
/// # Safety
///
/// The caller owns the tensor, and passes that to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn resident_import(tensor: *mut DLManagedTensor) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { sum_of(tensor) }
}

/// As [`resident_import`], in the versioned form.
///
/// # Safety
///
/// As [`resident_import`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn resident_import_versioned(tensor: *mut DLManagedTensorVersioned) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { sum_of(tensor) }
}

/// Chooses the device of the following calls, by its name. `false`, and a message, if there is no
/// such device.
///
/// # Safety
///
/// The name ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn resident_use(name: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let chosen = or_print(named(&name).map(Some), None);
    let is_there = chosen.is_some();
    *DEVICE.lock().unwrap_or_else(PoisonError::into_inner) = chosen;
    is_there
}

/// A new table that the library keeps, for `__cuda_array_interface__`: its address, or 0. All work
/// on it is complete.
#[unsafe(no_mangle)]
pub extern "C" fn resident_keep(is_column_major: bool) -> u64 {
    let made = table(is_column_major).and_then(|table| {
        let stream = device().stream();
        let address = table.gpu_on(&stream)?.address();
        stream.synchronize()?;
        Ok((address, table))
    });
    let Some((address, table)) = or_print(made.map(Some), None) else { return 0 };
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(table);
    address
}

static KEPT: Mutex<Vec<DeviceArray<f32, Ix2>>> = Mutex::new(Vec::new());

/// Frees the tables of [`resident_keep`] and [`shared_table`].
#[unsafe(no_mangle)]
pub extern "C" fn resident_forget() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clear();
    *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// As [`resident_import`], of contiguous memory by the fields of `__cuda_array_interface__`. Its
/// owner in Python keeps it until after the next `resident_synchronize`.
///
/// # Safety
///
/// There are as many numbers at the address, whose owner keeps them, and all work on them is over.
#[cfg(feature = "cuda")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn resident_import_interface(
    address: u64,
    rows: usize,
    columns: usize,
) -> f32 {
    let fields = resident::CudaArrayInterface::new(vec![rows, columns], "<f4".to_owned(), address);
    let stream = device().stream();
    // SAFETY: as the caller promises.
    let array =
        unsafe { DeviceArray::<f32, IxDyn>::from_cuda_array_interface_on(&stream, &fields, ()) };
    or_print(array.and_then(|array| doubled(&stream, array)), f32::NAN)
}

/// The bytes of live arrays on the device.
#[unsafe(no_mangle)]
pub extern "C" fn resident_bytes_in_use() -> u64 {
    device().memory().in_use
}

/// Waits for all work of the device, the frees included.
#[unsafe(no_mangle)]
pub extern "C" fn resident_synchronize() {
    or_print(device().synchronize(), ());
}
