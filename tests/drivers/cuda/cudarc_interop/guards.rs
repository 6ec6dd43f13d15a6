//! Guards as cudarc's slices.

use resident::cudarc::driver::{DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use resident::ndarray::{Array2, s};
use resident::{Device, Error, SmartArray, audit};

use super::bench::{Bench, Gate, doubling, gated, launch, launch_with};
use support::{in_own_process, own_process};

const LEN: usize = 1000;

#[test]
fn on_its_own_stream_a_guard_asks_nothing_of_the_driver() {
    let bench = in_own_process!(Bench::new());
    let stream = bench.gpu.new_stream().unwrap();
    let cudarc = stream.cudarc();
    let mut array = SmartArray::<f32, _>::full(LEN, 7.0);
    let mut guard = array.gpu_mut_on(&stream).unwrap();
    bench.calls();
    cudarc.memset_zeros(&mut guard).unwrap();
    assert_eq!(bench.calls(), ["cuCtxGetCurrent", "cuMemsetD8Async"]);
    let (values, report) = audit::capture(|| cudarc.clone_dtoh(&guard).unwrap());
    assert_eq!(bench.calls(), ["cuCtxGetCurrent", "cuMemcpyDtoHAsync_v2"]);
    assert_eq!((values, report.waited_for()), (vec![0.0; LEN], vec![]));
    drop(guard);
    assert_eq!(array.host().unwrap().sum(), 0.0);
    bench.finish();
}

#[test]
fn a_launch_takes_guards_as_arguments() {
    let bench = in_own_process!(Bench::new());
    let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
    gate.open();
    let double = doubling(&bench.gpu, "double_of_guard", &gate);
    let mut array = SmartArray::from(vec![1.5_f32; LEN]);
    let mut guard = array.gpu_mut_on(&stream).unwrap();
    let cudarc = stream.cudarc();
    bench.calls();
    launch_with(&cudarc, &double, &mut guard);
    assert_eq!(bench.calls(), ["cuCtxGetCurrent", "cuLaunchKernel"]);
    launch_with(&cudarc, &double, &guard);
    drop(guard);
    assert_eq!(array.get(LEN - 1).unwrap(), 6.0);
    bench.finish();
}

/// The library waits for all work on the stream, including work of other code; the library's own
/// work completed long before.
#[test]
fn work_of_others_behind_a_guard_is_waited_for_on_other_streams_and_the_host() {
    own_process!();
    for forgets in [false, true] {
        for at_host in [false, true] {
            let bench = Bench::new();
            let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
            let double = doubling(&bench.gpu, "double_behind_guard", &gate);
            let mut array = SmartArray::from(vec![4.0_f32; LEN]);
            array.prefetch(&stream).unwrap();
            stream.synchronize().unwrap();
            let mut guard = array.gpu_mut_on(&stream).unwrap();
            launch_with(&stream.cudarc(), &double, &mut guard);
            if forgets {
                std::mem::forget(guard);
            } else {
                drop(guard);
            }
            let value = if at_host {
                let opening = gate.open_after("cuLaunchKernel");
                let value = array.host().unwrap()[LEN - 1];
                opening.join().unwrap();
                value
            } else {
                let other = bench.gpu.new_stream().unwrap();
                let copy = {
                    let guard = array.gpu_on(&other).unwrap();
                    gate.open();
                    other.cudarc().clone_dtoh(&guard).unwrap()
                };
                copy[LEN - 1]
            };
            assert_eq!(value, 8.0, "forgotten: {forgets}, on the host: {at_host}");
            bench.finish();
        }
    }
}

#[test]
fn an_array_is_given_back_behind_what_others_queued_on_its_guards_stream() {
    let bench = in_own_process!(Bench::new());
    let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
    let double = doubling(&bench.gpu, "double_before_drop", &gate);
    let mut array = SmartArray::from(vec![1.0_f32; LEN]);
    let mut guard = array.gpu_mut_on(&stream).unwrap();
    stream.synchronize().unwrap();
    launch_with(&stream.cudarc(), &double, &mut guard);
    drop(guard);
    drop(array);
    let mut fresh = SmartArray::<f32, _>::full(LEN, 1.0);
    fresh.gpu_mut_on(&bench.gpu.new_stream().unwrap()).map(drop).unwrap();
    gate.open();
    assert_eq!(fresh.host().unwrap().sum(), LEN as f32);
    bench.finish();
}

#[test]
fn an_array_may_be_overwritten_right_after_a_foreign_stream_read_it() {
    let bench = in_own_process!(Bench::new());
    let (stream, before, after) =
        (bench.gpu.new_stream().unwrap(), Gate::default(), Gate::default());
    let (double, wait) = (
        doubling(&bench.gpu, "double_slowly", &before),
        gated(&bench.gpu, "wait_on_foreign", &after),
    );
    let foreign = bench.gpu.cuda_context().unwrap().new_stream().unwrap();
    let mut theirs = foreign.alloc_zeros::<f32>(LEN).unwrap();
    foreign.synchronize().unwrap();

    let mut array = SmartArray::from(vec![21.0_f32; LEN]).named("read abroad");
    launch_with(&stream.cudarc(), &double, &mut array.gpu_mut_on(&stream).unwrap());
    launch(&foreign, &wait);
    // The copy is delayed twice: by the kernel that writes the contents, and by work on the other
    // stream. Nevertheless the copy is complete when the call returns.
    bench.calls();
    let opening =
        [before.open_after("cuMemcpyDtoDAsync_v2"), after.open_after("cuMemcpyDtoDAsync_v2")];
    let ((), report) = audit::capture(|| {
        foreign.memcpy_dtod(&array.gpu_on(&stream).unwrap(), &mut theirs).unwrap();
    });
    let calls = bench.calls_so_far();
    stream.cudarc().memset_zeros(&mut array.gpu_overwrite_on(&stream).unwrap()).unwrap();
    opening.into_iter().for_each(|thread| thread.join().unwrap());

    assert_eq!(foreign.clone_dtoh(&theirs).unwrap(), vec![42.0; LEN]);
    assert_eq!(array.host().unwrap().sum(), 0.0);
    assert_eq!(calls.iter().filter(|call| *call == "cuStreamSynchronize").count(), 1, "{calls:?}");
    assert_eq!(report.waited_for(), [("read abroad", 1)]);
    assert!(
        report.to_string().contains("1 use of read abroad on foreign streams, waited for"),
        "{report}"
    );
    bench.finish();
}

#[test]
fn an_array_may_be_read_right_after_a_foreign_stream_wrote_it() {
    let bench = in_own_process!(Bench::new());
    let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
    let wait = gated(&bench.gpu, "wait_before_writing", &gate);
    let foreign = bench.gpu.cuda_context().unwrap().new_stream().unwrap();
    let theirs = foreign.clone_htod(&vec![3.0_f32; LEN]).unwrap();
    let mut array = SmartArray::<f32, _>::uninit(LEN);
    launch(&foreign, &wait);
    bench.calls();
    let opening = gate.open_after("cuMemcpyDtoDAsync_v2");
    foreign.memcpy_dtod(&theirs, &mut array.gpu_overwrite_on(&stream).unwrap()).unwrap();
    assert_eq!(
        stream.cudarc().clone_dtoh(&array.gpu_on(&stream).unwrap()).unwrap(),
        vec![3.0; LEN]
    );
    opening.join().unwrap();
    bench.finish();
}

#[test]
fn where_no_event_can_be_had_the_host_waits() {
    let bench = in_own_process!(Bench::new());
    let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
    let double = doubling(&bench.gpu, "double_without_event", &gate);
    let foreign = bench.gpu.cuda_context().unwrap().new_stream().unwrap();
    let mut array = SmartArray::from(vec![1.0_f32; LEN]);
    let mut guard = array.gpu_mut_on(&stream).unwrap();
    launch_with(&stream.cudarc(), &double, &mut guard);
    bench.calls();
    resident_stand_in::fail_nth("cuStreamWaitEvent", 1, 2);
    let opening = gate.open_after("cuStreamWaitEvent");
    let (pointer, after) = guard.device_ptr(&foreign);
    assert_eq!(pointer, guard.address());
    assert!(matches!(after, SyncOnDrop::Sync(Some(_))));
    drop(after);
    opening.join().unwrap();
    assert_eq!(foreign.clone_dtoh(&guard).unwrap(), vec![2.0; LEN]);
    drop(guard);
    bench.finish();
}

/// Expects that the call panics, with a message that has these parts.
fn expect_panic<T: std::fmt::Debug>(says: &[&str], call: impl FnOnce() -> T) {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).expect_err("a panic");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(says.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn parts_without_gaps_are_slices_and_others_are_refused() {
    let bench = in_own_process!(Bench::new());
    let stream = bench.gpu.new_stream().unwrap();
    let cudarc = stream.cudarc();
    let mut table =
        SmartArray::from(Array2::from_shape_fn((4, 5), |(row, column)| (10 * row + column) as f32))
            .named("table");
    let row = table.slice(s![2, 1..4]).gpu_on(&stream).unwrap();
    assert_eq!(cudarc.clone_dtoh(row.as_cuda_slice().unwrap()).unwrap(), [21.0, 22.0, 23.0]);
    let backwards = table.slice(s![1..3;-1, ..]).gpu_on(&stream).unwrap();
    assert_eq!(
        cudarc.clone_dtoh(backwards.as_cuda_slice().unwrap()).unwrap()[..6],
        [10.0, 11.0, 12.0, 13.0, 14.0, 20.0],
        "in memory order"
    );

    let mut middle = table.slice_mut(s![.., 1..3]);
    let mut column = middle.gpu_mut_on(&stream).unwrap();
    let Err(Error::NotContiguous { array, layout, .. }) = column.as_cuda_slice_mut().map(drop)
    else {
        panic!("it has gaps")
    };
    assert_eq!((&*array, &*layout), ("\"table\"", "shape [4, 2] and strides [5, 1]"));
    // Without that check, cudarc and the libraries above it would do nothing and report success.
    let says = ["\"table\" has shape [4, 2] and strides [5, 1]", "`as_cuda_slice`"];
    expect_panic(&says, || DeviceSlice::<f32>::len(&column));
    expect_panic(&says, || column.device_ptr(&cudarc).0);
    expect_panic(&says, || cudarc.clone_dtoh(&column).is_ok());
    expect_panic(&says, || column.device_ptr_mut(&cudarc).0);
    expect_panic(&says, || cudarc.memset_zeros(&mut column).is_ok());
    expect_panic(&says, || cudarc.memcpy_htod(&[1.0_f32; 8], &mut column).is_ok());
    cudarc.context().check_err().unwrap();
    drop(column);
    assert_eq!(
        table.host().unwrap().sum(),
        (0..4).flat_map(|row| (0..5).map(move |column| (10 * row + column) as f32)).sum::<f32>()
    );
    bench.finish();
}

#[test]
fn guards_of_no_gpu_and_without_a_byte_are_no_danger() {
    let bench = in_own_process!(Bench::new());
    let cudarc = bench.gpu.stream().cudarc();
    let here = SmartArray::from(vec![1.0_f32; 10]);
    let guard = here.gpu_on(&Device::cpu().stream()).unwrap();
    assert!(matches!(guard.as_cuda_slice(), Err(Error::NoDevice { .. })));
    let says = ["a cudarc slice", "cpu", "`as_cuda_slice`"];
    expect_panic(&says, || DeviceSlice::<f32>::len(&guard));
    expect_panic(&says, || guard.device_ptr(&cudarc).0);
    assert!(std::sync::Arc::ptr_eq(DeviceSlice::<f32>::stream(&guard), &cudarc));
    let empty_here = SmartArray::<f32, _>::zeros((0, 3));
    let guard = empty_here.gpu_on(&Device::cpu().stream()).unwrap();
    assert_eq!((DeviceSlice::<f32>::len(&guard), guard.device_ptr(&cudarc).0), (0, 0));

    let empty = SmartArray::<f32, _>::zeros((0, 3));
    let guard = empty.gpu_on(&bench.gpu.stream()).unwrap();
    assert_eq!((guard.as_cuda_slice().unwrap().len(), guard.device_ptr(&cudarc).0), (0, 0));
    cudarc.context().check_err().unwrap();
    bench.finish();
}
