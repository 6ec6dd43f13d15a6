//! Memory of a handle of CubeCL as an array, without a copy. CubeCL takes no memory of others, so
//! the way back is the handle, which shows what the array has written. The array is a
//! `DeviceArray`: a full device may move a `SmartArray` to other memory.

use std::sync::Mutex;

use cubecl_cuda::{CudaDevice, CudaRuntime};
use cubecl_runtime::client::Client;
use cubecl_runtime::runtime::Runtime;
use cubecl_runtime::server::Handle;
use resident::ndarray::{Ix1, s};
use resident::{Device, DeviceArray, bytemuck};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The first `len` numbers of a handle's memory as an array, which keeps the memory in place.
///
/// # Safety
///
/// The memory has `len` numbers. While the array lives, nothing else uses it: neither this handle
/// nor a clone.
unsafe fn array_of(
    client: &Client,
    handle: &Handle,
    len: usize,
    device: &Device,
) -> Outcome<DeviceArray<f32, Ix1>> {
    let resource = client.get_resource::<<CudaRuntime as Runtime>::Server>(handle.clone())?;
    let (address, size) = (resource.resource().ptr, resource.resource().size);
    assert!((len * size_of::<f32>()) as u64 <= size, "{len} numbers in {size} bytes");
    // CubeCL's streams are not ordered with ours, so their work ends first.
    cubecl_core::future::block_on(client.sync())?;
    // A resource is `Send` only, and an owner `Sync` too.
    let owner = Mutex::new(resource);
    // SAFETY: the resource keeps the memory there; the caller promises the rest.
    Ok(unsafe { DeviceArray::from_device_memory(device, address, len, owner) }?)
}

fn main() -> Outcome<()> {
    let (client, device) = (CudaRuntime::client(&CudaDevice::new(0)), Device::cuda(0)?);
    let handle = client.create_from_slice(bytemuck::cast_slice(&[1.0_f32, 2.0, 3.0]));
    // SAFETY: the handle has three numbers and is not used before the array is dropped.
    let mut numbers = unsafe { array_of(&client, &handle, 3, &device) }?;
    numbers.slice_mut(s![1..]).fill(7.0)?;
    device.synchronize()?; // CubeCL's streams do not wait for ours
    drop(numbers);
    let bytes = client.read_one(handle)?;
    println!("{:?}", bytemuck::cast_slice::<u8, f32>(&bytes));
    Ok(())
}
