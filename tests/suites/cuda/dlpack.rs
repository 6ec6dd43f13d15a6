//! Memory of a GPU exchanged with other code by DLPack, on the stand-in driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use resident::cudarc::driver::{CudaSlice, DevicePtr};
use resident::dlpark::ffi::{DLDataType, DLDevice, DLManagedTensorVersioned};
use resident::dlpark::metadata::Dynamic;
use resident::dlpark::versioned::Dlpack;
use resident::ndarray::{Ix2, array};
use resident::{Device, DeviceArray, Error, SmartArray, Stream};
use resident_stand_in::{self as driver, Settings};

/// cudarc's memory, which counts how often it is freed.
struct Owner(Option<CudaSlice<f32>>, Arc<AtomicU32>);

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.take());
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// A tensor over cudarc's memory of a GPU, which holds 0, 1, ... 5.
fn tensor_of_cudarc(device: &Device, freed: &Arc<AtomicU32>) -> Dlpack {
    let stream = device.cuda_context().expect("a GPU").new_stream().expect("a stream");
    let slice = stream.clone_htod(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("memory");
    stream.synchronize().expect("a wait");
    let address = slice.device_ptr(&stream).0;
    let prepared = Dynamic::new([2_i64, 3], [3_i64, 1]).prepare_as::<DLManagedTensorVersioned>();
    let owner = Box::new(Owner(Some(slice), Arc::clone(freed)));
    let mut tensor = prepared.expect("two axes").initialize(owner);
    tensor.set_data(std::ptr::without_provenance_mut(address as usize));
    tensor.set_device(DLDevice::cuda(0)).set_dtype(DLDataType::F32);
    // SAFETY: the memory lives as long as the owner, and the description is true.
    unsafe { tensor.finish() }
}

#[test]
fn memory_of_others_on_a_gpu_is_used_in_place_and_freed_once() {
    support::own_process!();
    let device = support::driver::open(Settings::new().seed(7), 1).remove(0);
    let (stream, freed) = (device.stream(), Arc::new(AtomicU32::new(0)));
    let tensor = tensor_of_cudarc(&device, &freed);
    // SAFETY: nothing else uses the memory.
    let mut table = unsafe { DeviceArray::<f32, Ix2>::from_dlpack_on(&stream, tensor) }
        .expect("a tensor of this GPU");
    assert_eq!(device.memory().in_use, 24);
    table.set((1, 0), 7.0).expect("queued");
    let pending = table.copy_to_host_on(&stream).expect("queued");
    drop(table);
    assert_eq!(pending.wait().expect("copied"), array![[0.0, 1.0, 2.0], [7.0, 4.0, 5.0]]);
    device.synchronize().expect("nothing failed");
    assert_eq!((freed.load(Ordering::SeqCst), driver::memory_in_use(0)), (1, 0));
}

#[test]
fn memory_of_others_is_no_slice_of_cudarc_and_belongs_to_its_gpu() {
    support::own_process!();
    let device = support::driver::open(Settings::new().seed(7), 1).remove(0);
    let (stream, freed) = (device.stream(), Arc::new(AtomicU32::new(0)));
    let take = |stream: &Stream| {
        let tensor = tensor_of_cudarc(&device, &freed);
        // SAFETY: nothing else uses the memory.
        unsafe { DeviceArray::<f32, Ix2>::from_dlpack_on(stream, tensor) }
    };
    let refused = take(&Device::cpu().stream()).expect_err("it is CUDA memory");
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    let table = SmartArray::from_device(take(&stream).expect("a tensor of this GPU"));
    let refused = table.into_cuda_slice().expect_err("cudarc did not allocate it");
    assert!(refused.to_string().contains("another library owns the memory"), "{refused}");
    device.synchronize().expect("nothing failed");
    assert_eq!((freed.load(Ordering::SeqCst), driver::memory_in_use(0)), (2, 0));
}

#[test]
fn a_gpus_array_is_handed_out_with_its_address() {
    support::own_process!();
    let device = support::driver::open(Settings::new().seed(7), 1).remove(0);
    let (stream, other) = (device.stream(), device.new_stream().expect("a stream"));
    let table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 1.5).expect("memory");
    let coherent = SmartArray::from_device(table);
    let address = coherent.gpu_on(&stream).expect("it is there").address();
    let table = coherent.into_device(&device).expect("it is there");
    let tensor: Dlpack = table.into_dlpack_on(&other).expect("it has contents");
    let view = tensor.validate().expect("a tensor");
    assert_eq!((view.device(), view.data_ptr().addr() as u64), (DLDevice::cuda(0), address));
    // SAFETY: nothing else uses the memory.
    let again = unsafe { DeviceArray::<f32, Ix2>::from_dlpack_on(&stream, tensor) };
    let refused = again.expect_err("the library has the memory already");
    assert!(matches!(refused, Error::Backend { .. }), "{refused}");
    device.synchronize().expect("nothing failed");
    device.trim().expect("nothing failed");
    assert_eq!((device.memory().in_use, driver::memory_in_use(0)), (0, 0));
}
