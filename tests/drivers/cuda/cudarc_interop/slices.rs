//! Conversions of slices to arrays and of arrays to slices, in place.

use resident::cudarc::driver::{CudaContext, DevicePtr};
use resident::ndarray::{Array1, Array2, ShapeBuilder, s};
use resident::{Device, Error, SmartArray, Validity, audit};
use resident_stand_in::{self as stand_in, Settings};

use super::bench::{Bench, Gate, doubling, launch_with, other_context};
use support::{assert_says, in_own_process, own_process};

const LEN: usize = 300;

fn copies(calls: &[String]) -> Vec<&String> {
    calls
        .iter()
        .filter(|call| {
            call.contains("Memcpy") || call.contains("Alloc") || call.contains("Synchronize")
        })
        .collect()
}

/// On a cudarc stream with tracking, and on the default stream of a context object with only that
/// stream, which cudarc does not track.
#[test]
fn a_slice_is_taken_over_and_given_back_in_place() {
    own_process!();
    for is_tracked in [true, false] {
        let bench = Bench::new();
        let context = CudaContext::new(0).unwrap();
        let (theirs, gate) = (
            if is_tracked { context.new_stream().unwrap() } else { context.default_stream() },
            Gate::default(),
        );
        let double = doubling(&bench.gpu, "double_before_taking", &gate);
        let mut slice = theirs.clone_htod(&[3.0_f32; LEN]).unwrap();
        launch_with(&theirs, &double, &mut slice);
        let address = slice.device_ptr(&theirs).0;
        let in_use = bench.gpu.memory().in_use;
        bench.calls();

        let mut array = SmartArray::from_cuda_slice(slice).unwrap();
        assert_eq!(
            (array.residency().host(), array.residency().on(&bench.gpu)),
            (Validity::Absent, Validity::Valid)
        );
        assert_eq!(bench.gpu.memory().in_use, in_use + 4 * LEN as u64);
        let stream = bench.gpu.new_stream().unwrap();
        let mut guard = array.gpu_mut_on(&stream).unwrap();
        assert_eq!(guard.address(), address);
        launch_with(&stream.cudarc(), &double, &mut guard);
        drop(guard);
        let back = array.into_cuda_slice().unwrap();
        assert_eq!(copies(&bench.calls()), Vec::<&String>::new());
        assert_eq!(
            (back.device_ptr(&theirs).0, back.stream(), bench.gpu.memory().in_use),
            (address, &theirs, in_use)
        );
        // This also holds on another stream, since cudarc's tracking includes this library's use.
        // The copy is queued before any work has run, so that the hazard check covers all of it.
        let reader = if is_tracked { context.new_stream().unwrap() } else { theirs.clone() };
        let copy = reader.clone_dtod(&back).unwrap();
        gate.open();
        assert_eq!(reader.clone_dtoh(&copy).unwrap(), [12.0; LEN]);
        drop(back);
        theirs.synchronize().unwrap();
        context.check_err().unwrap();
        bench.finish();
    }
}

/// cudarc does not unmap pages, so the slice is a copy, which the device makes.
#[test]
fn an_array_with_memory_by_pages_becomes_a_slice_without_a_copy_to_the_host() {
    own_process!();
    stand_in::load(Settings::new().page_bytes(256)).expect("the stand-in driver loads");
    let gpu = Device::cuda(0).expect("a GPU");
    let stream = gpu.new_stream().unwrap();
    let mut array = SmartArray::from(Array1::from_iter(0..4096_u32));
    for part in [s![..1000], s![1000..]] {
        drop(array.slice_mut(part).gpu_mut_on(&stream).unwrap());
    }
    assert_eq!((array.traffic().to_device.bytes, gpu.memory().in_use), (16_384, 16_384));
    let (slice, report) = audit::capture(|| array.into_cuda_slice_on(&stream).unwrap());
    assert_eq!(report.traffic().moved().bytes, 0);
    let back = stream.cudarc().clone_dtoh(&slice).unwrap();
    assert_eq!(back, Vec::from_iter(0..4096));
    drop(slice);
    gpu.synchronize().unwrap();
    gpu.trim().unwrap();
    assert_eq!((gpu.memory().in_use, stand_in::memory_in_use(0)), (0, 0));
    assert_eq!(stand_in::take_hazards(), Vec::<String>::new());
}

#[test]
fn a_slice_is_freed_by_cudarc_behind_the_arrays_uses() {
    let bench = in_own_process!(Bench::new());
    let (theirs, gate) = (bench.gpu.cuda_context().unwrap().new_stream().unwrap(), Gate::default());
    let double = doubling(&bench.gpu, "double_before_freeing", &gate);
    theirs.context().synchronize().unwrap();
    let before = resident_stand_in::memory_in_use(0);
    let slice = theirs.clone_htod(&[1_f32; LEN]).unwrap();
    let mut array = SmartArray::from_cuda_slice(slice).unwrap();
    let stream = bench.gpu.new_stream().unwrap();
    launch_with(&stream.cudarc(), &double, &mut array.gpu_mut_on(&stream).unwrap());
    bench.calls();
    drop(array);
    let calls = bench.calls();
    assert_eq!(calls.iter().filter(|call| *call == "cuMemFreeAsync").count(), 1, "{calls:?}");
    gate.open();
    theirs.synchronize().unwrap();
    bench.gpu.synchronize().unwrap();
    assert_eq!(resident_stand_in::memory_in_use(0), before);
    theirs.context().check_err().unwrap();
    bench.finish();
}

#[test]
fn an_array_becomes_a_slice_over_its_own_memory() {
    let bench = in_own_process!(Bench::new());
    let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
    let double = doubling(&bench.gpu, "double_before_giving", &gate);
    let in_use = bench.gpu.memory().in_use;
    let mut array = SmartArray::from(vec![5.0_f32; LEN]);
    let address = {
        let mut guard = array.gpu_mut_on(&stream).unwrap();
        launch_with(&stream.cudarc(), &double, &mut guard);
        guard.address()
    };
    bench.calls();
    let slice = array.into_cuda_slice().unwrap();
    assert_eq!(copies(&bench.calls()), Vec::<&String>::new());
    assert_eq!((slice.len(), bench.gpu.memory().in_use), (LEN, in_use));
    let other = bench.gpu.cuda_context().unwrap().new_stream().unwrap();
    let copy = other.clone_dtod(&slice).unwrap();
    gate.open();
    assert_eq!(
        (slice.device_ptr(&other).0, other.clone_dtoh(&copy).unwrap()),
        (address, vec![10.0; LEN])
    );
    drop(slice);
    bench.gpu.cuda_context().unwrap().check_err().unwrap();
    bench.finish();
}

#[test]
fn contents_only_on_the_host_are_uploaded_in_memory_order() {
    let bench = in_own_process!(Bench::new());
    let _here = bench.gpu.enter();
    let columns = Array2::from_shape_fn((2, 3).f(), |(row, column)| (10 * row + column) as i32);
    let slice = SmartArray::from(columns).into_cuda_slice().unwrap();
    assert_eq!(slice.stream().clone_dtoh(&slice).unwrap(), [0, 10, 1, 11, 2, 12]);
    let stream = bench.gpu.new_stream().unwrap();
    let zeros = SmartArray::<u8, _>::zeros(7).into_cuda_slice_on(&stream).unwrap();
    assert_eq!(
        (zeros.stream(), zeros.stream().clone_dtoh(&zeros).unwrap()),
        (&stream.cudarc(), vec![0; 7])
    );
    bench.finish();
}

#[test]
fn what_cannot_be_taken_or_given_is_refused() {
    let bench = in_own_process!(Bench::new());
    let context = bench.gpu.cuda_context().unwrap();
    let theirs = context.new_stream().unwrap();
    assert!(matches!(
        SmartArray::<f32, _>::zeros(0).into_cuda_slice_on(&bench.gpu.stream()),
        Err(Error::Shape { .. })
    ));
    assert!(matches!(
        SmartArray::<f32, _>::zeros(3).into_cuda_slice_on(&Device::cpu().stream()),
        Err(Error::NoDevice { .. })
    ));
    assert!(matches!(
        SmartArray::<f32, _>::uninit(3).into_cuda_slice_on(&bench.gpu.stream()),
        Err(Error::Uninitialised { .. })
    ));
    // SAFETY: only the address of the slice is read. The driver refuses to free it, and the error
    // is taken below.
    let null = unsafe { theirs.upgrade_device_ptr::<f32>(0, 3) };
    let Err(Error::Foreign { seen, .. }) = SmartArray::from_cuda_slice(null) else {
        panic!("a slice at address 0 is refused")
    };
    assert!(seen.contains("address 0x0"), "{seen}");
    let _told = context.check_err();
    // SAFETY: as above; the address is never used.
    let crooked = unsafe { theirs.upgrade_device_ptr::<u32>(0x1003, 1) };
    assert!(matches!(SmartArray::from_cuda_slice(crooked), Err(Error::Foreign { .. })));
    let _told = context.check_err();
    bench.finish();
}

/// The slice is neither taken over nor leaked: the failed call drops it, in its own context.
#[test]
fn a_slice_of_a_context_that_is_not_the_primary_one_is_refused() {
    let bench = in_own_process!(Bench::new());
    let strange = other_context(&bench.gpu);
    let (primary, in_use) =
        (bench.gpu.cuda_context().unwrap(), resident_stand_in::memory_in_use(0));
    let slice = strange.default_stream().clone_htod(&[1.0_f32; LEN]).unwrap();
    let Err(refusal @ Error::Foreign { .. }) = SmartArray::from_cuda_slice(slice) else {
        panic!("it is of another context")
    };
    let text = refusal.to_string();
    assert_says(&text, &[&format!("{:p}", strange.cu_ctx()), &format!("{:p}", primary.cu_ctx())]);
    assert!(text.contains("the slice to be taken over"), "{text}");
    strange.synchronize().unwrap();
    assert_eq!(resident_stand_in::memory_in_use(0), in_use);
    drop(strange);
    // The primary context is unchanged.
    assert_eq!(
        SmartArray::<f32, _>::ones(LEN).gpu_on(&bench.gpu.stream()).map(|guard| guard.len()),
        Ok(LEN)
    );
    bench.finish();
}

#[test]
fn a_refused_gift_leaves_nothing_behind() {
    let bench = in_own_process!(Bench::new());
    let _here = bench.gpu.enter();
    let in_use = bench.gpu.memory().in_use;
    let array = SmartArray::from(vec![1.0_f32; LEN]);
    drop(array.gpu().unwrap());
    resident_stand_in::fail_nth("cuEventCreate", 1, 2);
    assert!(matches!(
        array.into_cuda_slice(),
        Err(Error::Backend { .. } | Error::OutOfMemory { .. })
    ));
    assert_eq!(bench.gpu.memory().in_use, in_use);
    bench.finish();
}

/// Each driver call of the two conversions fails once. Each conversion returns a right result or an
/// error, and the device stays usable.
#[test]
fn any_call_may_fail_on_the_way_in_and_out() {
    let bench = in_own_process!(Bench::new());
    let context = CudaContext::new(0).unwrap();
    let theirs = context.new_stream().unwrap();
    let mut outcomes = [0, 0];
    for nth in 1..60 {
        let slice = theirs.clone_htod(&[nth as f32; LEN]).unwrap();
        let stream = bench.gpu.new_stream().unwrap();
        resident_stand_in::fail_any(nth, 1);
        let back =
            SmartArray::from_cuda_slice(slice).and_then(|array| array.into_cuda_slice_on(&stream));
        resident_stand_in::forget_faults();
        outcomes[usize::from(back.is_ok())] += 1;
        if let Ok(back) = back {
            assert_eq!(
                theirs.clone_dtoh(&back).unwrap_or_else(|_| theirs.clone_dtoh(&back).unwrap()),
                [nth as f32; LEN]
            );
        }
        let _told_by_drops = [context.check_err(), bench.gpu.cuda_context().unwrap().check_err()];
        bench.finish();
    }
    assert!(outcomes[0] > 5 && outcomes[1] > 20, "{outcomes:?}");
}
