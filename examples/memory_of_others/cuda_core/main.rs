//! Memory of a `DeviceBuffer` of cuda-core as an array, and memory of an array as a `DeviceBuffer`,
//! both without a copy.

use std::any::Any;
use std::sync::Arc;

use cuda_core::{Context, DeviceAllocation, DeviceBuffer, RawDeviceBuffer};
use resident::ndarray::Ix1;
use resident::{Device, SmartArray, ops};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The buffer's memory as an array, which keeps the buffer.
///
/// # Safety
///
/// While the array lives, nothing else uses the memory: the buffer's storage has no other handle.
unsafe fn array_of(buffer: DeviceBuffer<f32>) -> Outcome<SmartArray<f32, Ix1>> {
    // cuda-core's streams are not ordered with ours, so their work ends first.
    buffer.context().synchronize()?;
    let device = Device::cuda(buffer.context().ordinal())?;
    let (address, len) = (buffer.cu_deviceptr(), buffer.len());
    // SAFETY: the buffer keeps `len` elements there; the caller promises the rest.
    Ok(unsafe { SmartArray::from_device_memory(&device, address, len, buffer) }?)
}

/// The memory of an array, for cuda-core.
struct Memory {
    address: u64,
    len_bytes: usize,
    context: Arc<Context>,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the owner keeps the bytes at the address, and the context is the GPU's primary one, which
// the library uses too.
unsafe impl DeviceAllocation for Memory {
    fn device_ptr(&self) -> u64 {
        self.address
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn context(&self) -> Arc<Context> {
        Arc::clone(&self.context)
    }
}

/// The array's memory as a buffer. cuda-core drops its owner after the last use there.
fn buffer_of(array: SmartArray<f32, Ix1>, context: &Arc<Context>) -> Outcome<DeviceBuffer<f32>> {
    let _here = Device::cuda(context.ordinal())?.enter();
    let len = array.len();
    let (address, len_bytes, _owner) = array.into_device_memory()?;
    let memory = Memory { address, len_bytes, context: Arc::clone(context), _owner };
    let storage = RawDeviceBuffer::foreign(Arc::new(memory), len_bytes);
    // SAFETY: the memory has `len` initialised numbers, or `into_device_memory` had failed.
    Ok(unsafe { DeviceBuffer::from_storage(storage, len) }?)
}

fn main() -> Outcome<()> {
    let context = Context::new(0)?;
    let stream = context.new_stream()?;
    let buffer = DeviceBuffer::from_host(&stream, &[1.0_f32, 2.0, 3.0])?;
    // SAFETY: the buffer has no other handle.
    let numbers = unsafe { array_of(buffer) }?;
    let mut doubled = SmartArray::uninit_like(&numbers);
    ops::mul(&numbers, 2.0, &mut doubled)?;
    let buffer = buffer_of(doubled, &context)?;
    println!("{:?}", buffer.to_host_vec(&stream)?);
    Ok(())
}
