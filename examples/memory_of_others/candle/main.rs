//! Memory of a tensor of candle as an array, and memory of an array as a tensor, both without a
//! copy.

use candle_core::cuda_backend::cudarc::driver::DevicePtr;
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, DeviceLocation, Storage, Tensor};
use resident::ndarray::IxDyn;
use resident::{Device, SmartArray, Stream, ops};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The tensor's memory as an array, which keeps the tensor.
///
/// # Safety
///
/// While the array lives, nothing else uses the memory: neither clones nor views of the tensor.
unsafe fn array_of(tensor: Tensor) -> Outcome<SmartArray<f32, IxDyn>> {
    // candle's streams are not ordered with ours, so their work ends first.
    tensor.device().synchronize()?;
    let address = {
        let (storage, layout) = tensor.storage_and_layout();
        let (Storage::Cuda(storage), Some((start, _))) = (&*storage, layout.contiguous_offsets())
        else {
            return Err("the tensor is not on an NVIDIA GPU, or not contiguous".into());
        };
        let slice = storage.as_cuda_slice::<f32>()?;
        let (address, _read) = slice.device_ptr(slice.stream());
        address + (start * size_of::<f32>()) as u64
    };
    let DeviceLocation::Cuda { gpu_id } = tensor.device().location() else {
        return Err("the tensor is not on an NVIDIA GPU".into());
    };
    let (device, shape) = (Device::cuda(gpu_id)?, IxDyn(tensor.dims()));
    // SAFETY: the tensor keeps elements of this shape there; the caller promises the rest.
    Ok(unsafe { SmartArray::from_device_memory(&device, address, shape, tensor) }?)
}

/// The array's memory as a tensor. A tensor frees its memory itself and keeps no owner, so the
/// memory is given to cudarc, by which candle frees it.
fn tensor_of(array: SmartArray<f32, IxDyn>, device: &CudaDevice) -> Outcome<Tensor> {
    let shape = array.shape().to_vec();
    let stream = Stream::adopt(device.cuda_stream())?;
    let slice = array.into_cuda_slice_on(&stream)?;
    let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(slice, device.clone()));
    Ok(Tensor::from_storage(storage, shape, BackpropOp::none(), false))
}

fn main() -> Outcome<()> {
    let device = candle_core::Device::new_cuda(0)?;
    let tensor = Tensor::new(&[[1.0_f32, 2.0], [3.0, 4.0]], &device)?;
    // SAFETY: the tensor has neither clones nor views.
    let numbers = unsafe { array_of(tensor) }?;
    let mut doubled = SmartArray::uninit_like(&numbers);
    ops::mul(&numbers, 2.0, &mut doubled)?;
    println!("{}", tensor_of(doubled, device.as_cuda_device()?)?);
    Ok(())
}
