//! Functions that `exchange.py` calls: they pass device arrays to Python and take them from it, as
//! DLPack tensors.

use ndarray::{Array2, IxDyn, ShapeBuilder};
use resident::dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use resident::dlpark::{Managed, ManagedTensorBase};
use resident::{Device, DeviceArray, Grid, InOut, Kernel, Result};

/// A 2 by 3 table of 0, 1, ... on the embedded device, column-major if asked for.
fn table(is_column_major: bool) -> Result<DeviceArray<f32, ndarray::Ix2>> {
    let rows = Array2::from_shape_fn((2, 3), |(row, column)| (3 * row + column) as f32);
    let stream = Device::cpu().stream();
    let mut table = DeviceArray::uninit_on(&stream, (2, 3).set_f(is_column_major))?;
    table.copy_from_host(&rows)?;
    Ok(table)
}

/// Doubles a tensor's elements with a kernel, and returns their sum.
fn doubled<M: ManagedTensorBase + 'static>(tensor: Managed<M>) -> Result<f32> {
    let double = Kernel::<(InOut<f32, IxDyn>,)>::new("double").host(|_grid, (mut xs,)| xs *= 2.0);
    let stream = Device::cpu().stream();
    // SAFETY: the script keeps to what `from_dlpack_on` requires: it reads the array only after
    // this function has returned.
    let mut array = unsafe { DeviceArray::<f32, IxDyn>::from_dlpack_on(&stream, tensor) }?;
    double.launch_on(&stream, Grid::cover(array.len()), (&mut array,))?;
    Ok(array.copy_to_host()?.sum())
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
        Ok(tensor) => or_print(doubled(tensor), f32::NAN),
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

/// The bytes of live arrays on the embedded device.
#[unsafe(no_mangle)]
pub extern "C" fn resident_bytes_in_use() -> u64 {
    Device::cpu().memory().in_use
}

/// Waits for all work of the embedded device, the frees included.
#[unsafe(no_mangle)]
pub extern "C" fn resident_synchronize() {
    or_print(Device::cpu().synchronize(), ());
}
