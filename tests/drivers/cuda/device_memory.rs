//! Device memory of any owner as arrays, on the stand-in driver, which knows what it allocated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use resident::cudarc::driver::{CudaSlice, DevicePtr};
use resident::ndarray::{Ix1, array, s};
use resident::{Device, DeviceArray, SmartArray};
use resident_backend::{
    Backend, Bytes, Dependencies, DeviceKind, FailureKind, FillWork, Footprint, Label, LabelText,
    PageRange,
};
use resident_gpu::GpuStreamHandle;
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

/// Memory of cudarc, which holds 0, 1, ... 5, and its address.
fn memory_of_cudarc(device: &Device, freed: &Arc<AtomicU32>) -> (u64, Owner) {
    let stream = device.cuda_context().expect("a GPU").new_stream().expect("a stream");
    let slice = stream.clone_htod(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("memory");
    stream.synchronize().expect("a wait");
    let address = slice.device_ptr(&stream).0;
    (address, Owner(Some(slice), Arc::clone(freed)))
}

#[test]
fn memory_of_any_owner_is_used_in_place_and_freed_after_queued_work() {
    let device = in_own_process!(support::driver::open(Settings::new().seed(7), 1).remove(0));
    let freed = Arc::new(AtomicU32::new(0));
    let (address, owner) = memory_of_cudarc(&device, &freed);
    // SAFETY: the owner keeps the six elements, which nothing else uses.
    let table = unsafe { DeviceArray::from_device_memory(&device, address, (2, 3), owner) };
    let mut table = table.expect("memory of this GPU");
    assert_eq!(table.gpu_on(&device.stream()).expect("it is there").address(), address);
    table.slice_mut(s![.., 1]).fill(9.0_f32).expect("queued");
    assert_eq!(table.copy_to_host().expect("copied"), array![[0.0, 9.0, 2.0], [3.0, 9.0, 5.0]]);
    let (same, len_bytes, owner) = table.into_device_memory().expect("complete");
    assert_eq!((same, len_bytes, freed.load(Ordering::SeqCst)), (address, 24, 0));
    // SAFETY: the owner keeps the six elements, which nothing else uses.
    let line = unsafe { SmartArray::<f32, _>::from_device_memory(&device, same, 6, owner) };
    let line = line.expect("memory that was handed out");
    assert_eq!(line.host().expect("downloaded").sum(), 28.0);
    drop(line);
    // The end of the second array's work frees it, which queues the end of the first.
    device.synchronize().expect("nothing failed");
    device.synchronize().expect("nothing failed");
    assert_eq!((freed.load(Ordering::SeqCst), driver::memory_in_use(0)), (1, 0));
}

#[test]
fn memory_that_the_driver_does_not_find_is_refused_and_its_owner_dropped() {
    let devices = in_own_process!(support::driver::open(Settings::new().seed(7).devices(2), 2));
    let freed = Arc::new(AtomicU32::new(0));
    let refused = |device: &Device, change: fn(u64) -> u64, len: usize| {
        let (address, owner) = memory_of_cudarc(&devices[0], &freed);
        // SAFETY: what is not true of the memory is refused.
        let made = unsafe {
            DeviceArray::<f32, Ix1>::from_device_memory(device, change(address), len, owner)
        };
        made.map(drop).expect_err("it does not fit").to_string()
    };
    let (here, other) = (&devices[0], &devices[1]);
    for (text, error) in [
        ("does not know", refused(here, |_| 4096, 6)),
        ("of device 0", refused(other, |address| address, 6)),
        ("bytes", refused(here, |address| address, 1 << 30)),
        ("multiple of 4", refused(here, |address| address + 1, 6)),
        ("address 0x0", refused(here, |_| 0, 6)),
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
    assert_eq!(freed.load(Ordering::SeqCst), 5);
    here.synchronize().expect("nothing failed");
    assert_eq!(driver::memory_in_use(0), 0);
}

/// cudarc frees a slice as memory of the pool, so that it gets a copy of what pages have.
#[test]
fn a_slice_has_the_elements_of_committed_pages() {
    let settings = Settings::new().page_bytes(4096).seed(7);
    let device = in_own_process!(support::driver::open(settings, 1).remove(0));
    let gpu = resident_gpu::open(DeviceKind::Cuda, 0).expect("it opens");
    let stream = gpu.new_stream(None).expect("a stream");
    let label = Label { text: LabelText::Text("grid".into()), site: None };
    let grid = gpu.reserve(8192, &label).expect("addresses");
    gpu.commit(&PageRange { reservation: grid, bytes: 0..8192 }, &label).expect("memory");
    let fill = FillWork {
        address: grid,
        parts: [Footprint::run(0, 8192)].into_iter().collect(),
        pattern: Bytes::from_slice(&[7]),
        loss: FailureKind::Contents,
        depends: Dependencies::new(),
        label,
    };
    stream.fill(Box::new(fill)).expect("queued");
    let handle = stream.downcast_ref::<GpuStreamHandle>().expect("a GPU's stream");
    let slice = handle.give_away::<u8>(grid, 8192).expect("a copy");
    stream.free(grid).expect_err("it was freed");
    let theirs = device.cuda_context().expect("a GPU").new_stream().expect("a stream");
    assert_eq!(theirs.clone_dtoh(&slice).expect("copied"), [7; 8192]);
    drop(slice);
    gpu.trim().expect("nothing fails");
    assert_eq!((gpu.memory().in_use, gpu.memory().pooled, driver::memory_in_use(0)), (0, 0, 0));
    assert_eq!((driver::take_hazards(), driver::take_notes()), (vec![], vec![]));
}
