//! Memory of cudarc exchanged by DLPack, and array interfaces, on the stand-in driver. What DLPack
//! does on every backend is in the conformance suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use resident::cudarc::driver::{CudaSlice, DevicePtr};
use resident::dlpark::ffi::{DLDataType, DLDevice, DLManagedTensorVersioned};
use resident::dlpark::metadata::Dynamic;
use resident::dlpark::versioned::Dlpack;
use resident::ndarray::{Ix1, Ix2, array, s};
use resident::{CudaArrayInterface, Device, DeviceArray, DeviceView, Error, SmartArray, Stream};
use resident_stand_in::{self as driver, Settings};
use support::in_own_process;

/// cudarc's memory, which counts how often it is freed.
struct Owner(Option<CudaSlice<f32>>, Arc<AtomicU32>);

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.take());
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// A GPU, its stream, and a count of what was freed.
fn gpu() -> (Device, Stream, Arc<AtomicU32>) {
    let device = support::driver::open(Settings::new().seed(7), 1).remove(0);
    let stream = device.stream();
    (device, stream, Arc::new(AtomicU32::new(0)))
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
fn memory_of_others_is_no_slice_of_cudarc_and_belongs_to_its_gpu() {
    let (device, stream, freed) = in_own_process!(gpu());
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

/// Six elements in memory that cudarc allocated, described as Python's libraries do.
fn interface_of_cudarc(device: &Device, freed: &Arc<AtomicU32>) -> (CudaArrayInterface, Owner) {
    let stream = device.cuda_context().expect("a GPU").new_stream().expect("a stream");
    let slice = stream.clone_htod(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("memory");
    let address = slice.device_ptr(&stream).0;
    let mut fields = CudaArrayInterface::new(vec![2, 3], String::from("<f4"), address);
    fields.stream = Some(stream.cu_stream() as u64);
    (fields, Owner(Some(slice), Arc::clone(freed)))
}

#[test]
fn memory_that_an_array_interface_describes_is_used_in_place() {
    let (device, stream, freed) = in_own_process!(gpu());
    let (fields, owner) = interface_of_cudarc(&device, &freed);
    // SAFETY: the fields are true, the stream lives in the owner's slice, and nothing else uses
    // the memory.
    let table =
        unsafe { DeviceArray::<f32, Ix2>::from_cuda_array_interface_on(&stream, &fields, owner) };
    let mut table = table.expect("memory of this GPU");
    assert_eq!(table.gpu_on(&stream).expect("it is there").address(), fields.data.0);
    table.slice_mut(s![.., 1]).fill(9.0).expect("queued");
    assert_eq!(table.copy_to_host().expect("copied"), array![[0.0, 9.0, 2.0], [3.0, 9.0, 5.0]]);
    drop(table);
    device.synchronize().expect("nothing failed");
    assert_eq!((freed.load(Ordering::SeqCst), driver::memory_in_use(0)), (1, 0));
}

#[test]
fn guards_have_the_fields_of_an_array_interface() {
    let device = in_own_process!(gpu().0);
    let stream = device.new_stream().expect("a stream");
    let mut table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 1.0).expect("memory");
    let handle = Some(stream.cudarc().cu_stream() as u64);
    {
        let mut guard = table.gpu_mut_on(&stream).expect("it is there");
        let fields = guard.cuda_array_interface().expect("a GPU");
        let mut expected =
            CudaArrayInterface::new(vec![2, 3], String::from("<f4"), guard.address());
        expected.stream = handle;
        assert_eq!(fields, expected);
    }
    let columns = table.t();
    let guard = columns.gpu_on(&stream).expect("it is there");
    let fields = guard.cuda_array_interface().expect("a GPU");
    assert_eq!((fields.shape, fields.strides), (vec![3, 2], Some(vec![4, 12])));
    assert_eq!((fields.data, fields.version), ((guard.address(), true), 3));
    let bytes = DeviceArray::<u8, _>::zeros_on(&stream, (0, 5)).expect("no memory");
    let fields = bytes.gpu_on(&stream).expect("empty").cuda_array_interface().expect("a GPU");
    assert_eq!((fields.typestr.as_str(), fields.data), ("|u1", (0, true)));
    let halves = DeviceArray::<half::bf16, _>::zeros_on(&stream, 3).expect("memory");
    let refused = halves.gpu_on(&stream).expect("it is there").cuda_array_interface();
    assert!(matches!(refused, Err(Error::Foreign { .. })), "{refused:?}: NumPy has no name for it");
    let legacy = Stream::legacy(&device).expect("a stream");
    let fields = table.gpu_on(&legacy).expect("it is there").cuda_array_interface();
    assert_eq!(fields.expect("a GPU").stream, Some(1));
    let here = Device::cpu().stream();
    let other = DeviceArray::<f32, _>::full_on(&here, 4, 1.0).expect("memory");
    let refused = other.gpu_on(&here).expect("it is there").cuda_array_interface();
    assert!(matches!(refused, Err(Error::NoDevice { .. })), "{refused:?}");
    let refused = other.gpu_on(&stream).map(drop);
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
}

/// Numba said that repeated elements are contiguous (`strides = None`), so that consumers read past
/// their end.
#[test]
fn d14_strides_of_an_array_interface_are_none_only_for_row_major_elements() {
    let device = in_own_process!(gpu().0);
    let stream = device.stream();
    let table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 1.0).expect("memory");
    let strides = |view: DeviceView<'_, f32, Ix2>| {
        let guard = view.gpu_on(&stream).expect("it is there");
        guard.cuda_array_interface().expect("a GPU").strides
    };
    assert_eq!(strides(table.row(0).broadcast((4, 3)).expect("it fits")), Some(vec![0, 4]));
    assert_eq!(strides(table.slice(s![.., ..1]).broadcast((2, 5)).expect("1")), Some(vec![12, 0]));
    assert_eq!(strides(table.slice(s![.., 1..])), Some(vec![12, 4]));
    assert_eq!(strides(table.slice(s![..;-1, ..])), Some(vec![-12, 4]));
    assert_eq!(strides(table.t()), Some(vec![4, 12]));
    // Axes of length 1, and arrays without elements, have no gaps.
    assert_eq!(strides(table.view()), None);
    assert_eq!(strides(table.slice(s![1..;-1, 1..])), None);
    assert_eq!(strides(table.row(0).broadcast((1, 3)).expect("it fits")), None);
    assert_eq!(strides(table.slice(s![.., ..0])), None);
}

/// `strides = None` of other code's memory means row-major order.
#[test]
fn an_array_interface_without_strides_is_row_major() {
    let (device, stream, freed) = in_own_process!(gpu());
    for strides in [None, Some(vec![12, 4])] {
        let (mut fields, owner) = interface_of_cudarc(&device, &freed);
        fields.strides = strides;
        // SAFETY: the fields are true, and nothing else uses the memory.
        let table = unsafe {
            DeviceArray::<f32, Ix2>::from_cuda_array_interface_on(&stream, &fields, owner)
        };
        let table = table.expect("memory of this GPU");
        assert_eq!(table.strides(), [3, 1]);
        assert_eq!(table.copy_to_host().expect("copied"), array![[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
    }
}

#[test]
fn array_interfaces_that_do_not_fit_are_refused_and_their_owners_dropped() {
    let devices = in_own_process!(support::driver::open(Settings::new().seed(7).devices(2), 2));
    let freed = Arc::new(AtomicU32::new(0));
    type Change = &'static dyn Fn(&mut CudaArrayInterface);
    let refused = |stream: &Stream, change: Change| {
        let (mut fields, owner) = interface_of_cudarc(&devices[0], &freed);
        change(&mut fields);
        // SAFETY: what is not true of the memory is refused.
        let made = unsafe {
            DeviceArray::<f32, Ix2>::from_cuda_array_interface_on(stream, &fields, owner)
        };
        made.map(drop).expect_err("it does not fit").to_string()
    };
    let (here, other) = (devices[0].stream(), devices[1].stream());
    let embedded = Device::cpu().stream();
    let cases: [(&str, &Stream, Change); 12] = [
        ("\"<f8\"", &here, &|fields| fields.typestr = String::from("<f8")),
        ("read-only", &here, &|fields| fields.data.1 = true),
        ("version 1", &here, &|fields| fields.version = 1),
        ("stream 0", &here, &|fields| fields.stream = Some(0)),
        ("[6]", &here, &|fields| fields.shape = vec![6]),
        ("gaps", &here, &|fields| fields.strides = Some(vec![16, 4])),
        ("multiples of 4", &here, &|fields| fields.strides = Some(vec![12, 2])),
        ("2 strides", &here, &|fields| fields.strides = Some(vec![4])),
        ("multiple of 4", &here, &|fields| fields.data.0 += 2),
        ("does not know", &here, &|fields| fields.data.0 = 4096),
        ("memory of cuda:0", &other, &|_fields| ()),
        ("not an NVIDIA GPU", &embedded, &|_fields| ()),
    ];
    for (text, stream, change) in cases {
        let error = refused(stream, change);
        assert!(error.contains(text), "{text}: {error}");
    }
    assert_eq!(freed.load(Ordering::SeqCst), 12);
}

/// Numbers at the limits of their type. Nothing that they describe is there.
#[test]
fn array_interfaces_with_numbers_at_their_limits_are_refused_without_a_panic() {
    let (_device, stream, freed) = in_own_process!(gpu());
    let take = |fields: &CudaArrayInterface| {
        let owner = Owner(None, Arc::clone(&freed));
        // SAFETY: what is not true of the memory is refused.
        unsafe { DeviceArray::<f32, Ix2>::from_cuda_array_interface_on(&stream, fields, owner) }
            .map(drop)
    };
    let mut count = 0;
    for shape in [[2, 3], [1, 3], [usize::MAX, 1], [1 << 62, 4], [usize::MAX >> 2, 1]] {
        for first in [0, 4, 2, u64::MAX - 3, u64::MAX] {
            for stride in [isize::MIN, isize::MIN + 4, -12, -4, 0, isize::MAX - 3, isize::MAX] {
                let mut fields =
                    CudaArrayInterface::new(shape.to_vec(), String::from("<f4"), first);
                fields.strides = Some(vec![stride, 4]);
                let refused = take(&fields).expect_err("nothing is there");
                assert!(matches!(refused, Error::Foreign { .. }), "{fields:?}: {refused}");
                count += 1;
            }
        }
    }
    let none = CudaArrayInterface::new(vec![0, usize::MAX], String::from("<f4"), 0);
    assert!(matches!(take(&none), Err(Error::Foreign { .. })), "no array has such a shape");
    assert_eq!(freed.load(Ordering::SeqCst), count + 1);
}

/// A guard's fields describe memory that an array uses.
#[test]
fn memory_that_an_array_uses_is_not_taken_over_by_its_interface() {
    let (_device, stream, freed) = in_own_process!(gpu());
    let mut table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 1.0).expect("memory");
    let fields = {
        let mut row = table.row_mut(1);
        let mut guard = row.gpu_mut_on(&stream).expect("it is there");
        guard.cuda_array_interface().expect("a GPU")
    };
    let owner = Owner(None, Arc::clone(&freed));
    // SAFETY: the memory is refused.
    let refused =
        unsafe { DeviceArray::<f32, Ix1>::from_cuda_array_interface_on(&stream, &fields, owner) };
    let refused = refused.expect_err("the table uses it");
    assert!(matches!(refused, Error::Backend { .. }), "{refused}");
    assert!(refused.to_string().contains("drop that array first"), "{refused}");
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}
