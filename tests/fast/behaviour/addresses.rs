//! Addresses of guards on the embedded device are pointers; those of emulated devices are not.

use resident::DeviceRef;
use support::prelude::*;

/// A function as those of a library in C.
unsafe extern "C" fn add_to_each(values: *mut f32, len: usize, added: f32) {
    // SAFETY: the caller promises that there are `len` values, which nothing else uses.
    let values = unsafe { std::slice::from_raw_parts_mut(values, len) };
    values.iter_mut().for_each(|value| *value += added);
}

fn grid(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(row, column)| (row * columns + column) as f32)
}

/// The elements of a guard in row-major order, read at its address once its stream has run all work
/// before it.
fn read_at_address(guard: &DeviceRef<'_, f32, Ix2>) -> Result<Vec<f32>> {
    let (address, shape) = (guard.address(), guard.shape().to_vec());
    let strides = guard.strides().to_vec();
    let read = move || {
        let first: *const f32 = std::ptr::with_exposed_provenance(address as usize);
        let at = |index: usize| {
            let (row, column) = (index / shape[1], index % shape[1]);
            let offset = row as isize * strides[0] + column as isize * strides[1];
            // SAFETY: the offset is that of an element of the guard, which lives until the function
            // is over.
            unsafe { first.wrapping_offset(offset).read() }
        };
        (0..shape[0] * shape[1]).map(at).collect()
    };
    guard.stream().launch_host_function(read)?.wait()
}

/// A stream of the embedded device, with work that takes a while and changes the array.
fn after_slow_work(array: &mut SmartArray<f32, Ix2>) -> Result<Stream> {
    let stream = Device::cpu().new_stream()?;
    let slow = Kernel::<(InOut<f32>,)>::new("slow").host(|_grid, (xs,)| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        xs.iter_mut().for_each(|x| *x += 100.0);
    });
    slow.launch_on(&stream, Grid::cover(1), (array,))?;
    Ok(stream)
}

#[test]
fn an_address_of_the_embedded_device_points_to_the_elements() -> Result<()> {
    let expected = grid(4, 6) + 100.0;
    let mut array = SmartArray::from(grid(4, 6));
    let stream = after_slow_work(&mut array)?;
    assert_eq!(read_at_address(&array.gpu_on(&stream)?)?, expected.as_slice().expect("rows"));
    for part in [s![1..3, 2..5], s![..;-1, ..;2], s![3.., ..;-2]] {
        let read = read_at_address(&array.slice(part).gpu_on(&stream)?)?;
        assert_eq!(read, expected.slice(part).iter().copied().collect::<Vec<_>>());
    }
    let whole = array.gpu_on(&stream)?.address();
    assert_eq!(whole % 256, 0);
    assert_eq!(array.slice(s![1.., ..]).gpu_on(&stream)?.address(), whole + 24);
    Ok(())
}

#[test]
fn what_other_code_writes_at_an_address_is_the_arrays() -> Result<()> {
    let mut array = SmartArray::from(grid(4, 6));
    let stream = after_slow_work(&mut array)?;
    let mut rows = array.slice_mut(s![1..3, ..]);
    let guard = rows.gpu_mut_on(&stream)?;
    let (address, len) = (guard.address(), guard.len());
    // SAFETY: the work before is over when the function runs, and the guard, whose elements have no
    // gaps, lives until it is over.
    let call = move || unsafe { add_to_each(address as *mut f32, len, 0.5) };
    stream.launch_host_function(call)?.wait()?;
    drop(guard);
    let mut expected = grid(4, 6) + 100.0;
    expected.slice_mut(s![1..3, ..]).mapv_inplace(|x| x + 0.5);
    assert_eq!(array.host()?, expected);
    Ok(())
}

/// Freed memory is used again, so two arrays may have the same address one after the other.
#[test]
fn arrays_that_live_together_have_different_addresses() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    for round in 0..20 {
        let arrays = [0, 1, 2].map(|number| SmartArray::from(grid(3, 5) + (round + number) as f32));
        let guards: Vec<_> =
            arrays.iter().map(|array| array.gpu_on(&stream)).collect::<Result<_>>()?;
        for (number, guard) in guards.iter().enumerate() {
            let expected = grid(3, 5) + (round + number as i32) as f32;
            assert_eq!(read_at_address(guard)?, expected.as_slice().expect("rows"));
        }
    }
    Ok(())
}

#[test]
fn mapped_memory_has_the_hosts_address() -> Result<()> {
    let _here = Device::cpu().enter();
    let stream = Device::cpu().stream();
    let mapped = MappedArray::from_array(grid(4, 6))?;
    let address = mapped.gpu_on(&stream)?.address();
    assert_eq!(mapped.host()?.as_ptr().addr() as u64, address);
    let mut own = grid(4, 6);
    let start = own.as_ptr().addr() as u64;
    let address = with_mapped(&mut own, |lent| Ok(lent.gpu_on(&stream)?.address()))?;
    assert_eq!(address, start);
    Ok(())
}

#[test]
fn parts_without_elements_have_an_address_that_is_not_followed() -> Result<()> {
    let stream = Device::cpu().stream();
    let empty = SmartArray::from(grid(0, 6));
    assert_eq!(empty.gpu_on(&stream)?.address(), 0);
    let array = SmartArray::from(grid(4, 6));
    assert!(array.slice(s![4.., ..]).gpu_on(&stream)?.is_empty());
    Ok(())
}

/// Memory of other code, and own memory that comes back, is at the address that the tensor says.
#[cfg(feature = "dlpack")]
#[test]
fn exchanged_memory_keeps_its_address() -> Result<()> {
    use resident::DeviceArray;
    use resident::dlpark::versioned::Dlpack;
    let stream = Device::cpu().stream();
    let table = DeviceArray::from_host_on(&stream, &grid(4, 6))?;
    let address = table.gpu_on(&stream)?.address();
    let made: Dlpack = table.into_dlpack()?;
    let tensor = made.validate().expect("a tensor");
    // SAFETY: the tensor lives, and nothing else uses it.
    let elements = unsafe { tensor.cpu_slice::<f32>() }.expect("compact");
    assert_eq!(elements.as_ptr().addr() as u64, address);
    // SAFETY: nothing else has the tensor.
    let back = unsafe { DeviceArray::<f32, Ix2>::from_dlpack_on(&stream, made) }?;
    let guard = back.gpu_on(&stream)?;
    assert_eq!(guard.address(), address);
    assert_eq!(read_at_address(&guard)?, grid(4, 6).as_slice().expect("rows"));
    Ok(())
}

/// The number is the same in each run, starts at the device's first, and is not where the elements
/// are.
#[test]
fn an_address_of_an_emulated_device_is_no_pointer() -> Result<()> {
    for emulation in [Emulation::new(), Emulation::new().seed(1)] {
        let device = Device::emulated(emulation);
        let array = SmartArray::from(grid(4, 6));
        let address = array.gpu_on(&device.stream())?.address();
        assert_eq!(address % (1 << 44), 0, "the first allocation of the device: {address:#x}");
        let kernel = Kernel::<(InOut<f32>,)>::new("look").host(move |_grid, (xs,)| {
            assert_ne!(xs.as_ptr().addr() as u64, address);
        });
        let mut array = array;
        kernel.launch_on(&device.stream(), Grid::cover(1), (&mut array,))?;
        device.synchronize()?;
    }
    Ok(())
}
