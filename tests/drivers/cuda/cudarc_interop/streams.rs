//! Contexts and streams.

use std::sync::Arc;

use resident::cudarc::driver::CudaContext;
use resident::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use resident::{Device, Error, SmartArray, Stream};

use super::bench::{Bench, Gate, doubling, gated, launch, launch_with, other_context};
use support::{assert_says, in_own_process};

const LEN: usize = 512;

#[test]
fn the_context_is_the_primary_one_and_tracks() {
    let bench = in_own_process!(Bench::new());
    let context = bench.gpu.cuda_context().unwrap();
    assert!(Arc::ptr_eq(&context, &bench.gpu.cuda_context().unwrap()));
    assert_eq!(*context, *CudaContext::new(0).unwrap());
    assert!(context.is_event_tracking() && context.is_managing_stream_synchronization());
    assert!(matches!(Device::cpu().cuda_context(), Err(Error::NoDevice { .. })));
    assert!(matches!(Device::cpu().stream().try_cudarc(), Err(Error::NoDevice { .. })));
    assert!(matches!(Stream::legacy(&Device::cpu()), Err(Error::NoDevice { .. })));
    bench.finish();
}

#[test]
fn a_stream_that_is_adopted_twice_is_one() {
    let bench = in_own_process!(Bench::new());
    let theirs = bench.gpu.cuda_context().unwrap().new_stream().unwrap();
    let (first, second) =
        (Stream::adopt(theirs.clone()).unwrap(), Stream::adopt(theirs.clone()).unwrap());
    assert_eq!((&first, first.device()), (&second, bench.gpu.clone()));
    assert!(Arc::ptr_eq(&first.cudarc(), &theirs));
    // The same holds for another object of the same stream, in another object of the same context.
    let other = CudaContext::new(0).unwrap();
    // SAFETY: the stream belongs to the same primary context, and `theirs` outlives this.
    let borrowed = unsafe { other.wrap_borrowed_stream(theirs.cu_stream()) };
    assert_eq!(Stream::adopt(borrowed).unwrap(), first);
    assert_ne!(Stream::adopt(other.new_stream().unwrap()).unwrap(), first);

    let (ours, default) = (bench.gpu.new_stream().unwrap(), bench.gpu.stream());
    assert_eq!(Stream::adopt(ours.cudarc()).unwrap(), ours);
    assert_eq!(Stream::adopt(default.cudarc()).unwrap(), default);
    assert_eq!(Stream::legacy(&bench.gpu).unwrap(), Stream::legacy(&bench.gpu).unwrap());
    assert_ne!(Stream::legacy(&bench.gpu).unwrap(), default);
    bench.finish();
}

#[test]
fn streams_of_other_contexts_and_of_each_thread_are_refused() {
    let bench = in_own_process!(Bench::new());
    let (context, second) = (bench.gpu.cuda_context().unwrap(), CudaContext::new(1).unwrap());
    let strange = other_context(&bench.gpu);
    let Err(refusal @ Error::Foreign { .. }) = Stream::adopt(strange.default_stream()) else {
        panic!("it is of another context")
    };
    let text = refusal.to_string();
    assert_says(&text, &[&format!("{:p}", strange.cu_ctx()), &format!("{:p}", context.cu_ctx())]);
    assert!(matches!(Stream::adopt(context.per_thread_stream()), Err(Error::Foreign { .. })));
    assert_eq!(
        Stream::adopt(second.new_stream().unwrap()).unwrap().device(),
        Device::cuda(1).unwrap()
    );
    bench.finish();
}

#[test]
fn an_adopted_stream_waits_for_what_others_queued_there() {
    let bench = in_own_process!(Bench::new());
    let (theirs, gate) = (bench.gpu.cuda_context().unwrap().new_stream().unwrap(), Gate::default());
    let (wait, double) = (
        gated(&bench.gpu, "wait_before_adoption", &gate),
        doubling(&bench.gpu, "double_on_adopted", &gate),
    );
    launch(&theirs, &wait);
    let adopted = Stream::adopt(theirs.clone()).unwrap();
    assert!(!adopted.is_idle().unwrap());
    let mut array = SmartArray::from(vec![2.0_f32; LEN]);
    launch_with(&theirs, &double, &mut array.gpu_mut_on(&adopted).unwrap());
    gate.open();
    adopted.synchronize().unwrap();
    assert!(adopted.is_idle().unwrap());
    let event = adopted.record().unwrap();
    let later = Gate::default();
    launch(&theirs, &gated(&bench.gpu, "wait_behind_event", &later));
    event.synchronize().unwrap();
    assert!(event.is_complete().unwrap());
    assert!(
        !adopted.record().unwrap().is_complete().unwrap(),
        "only foreign work lies between the two events"
    );
    assert!(!adopted.is_idle().unwrap());
    later.open();
    assert_eq!(array.host().unwrap().sum(), 4.0 * LEN as f32);
    bench.finish();
}

#[test]
fn the_legacy_stream_is_a_stream() {
    let bench = in_own_process!(Bench::new());
    let legacy = Stream::legacy(&bench.gpu).unwrap();
    let mut array = SmartArray::from(vec![2.0_f32; LEN]);
    legacy.cudarc().memset_zeros(&mut array.gpu_mut_on(&legacy).unwrap()).unwrap();
    let other = bench.gpu.new_stream().unwrap();
    assert_eq!(other.cudarc().clone_dtoh(&array.gpu_on(&other).unwrap()).unwrap(), [0.0; LEN]);
    bench.finish();
}

/// cudarc's own tracking, in a context object of the user, together with arrays of this library.
#[test]
fn a_program_of_cudarcs_on_two_streams_runs_unharmed_beside_ours() {
    let bench = in_own_process!(Bench::new());
    let gate = Gate::default();
    gate.open();
    let double = doubling(&bench.gpu, "double_of_theirs", &gate);
    let theirs = CudaContext::new(0).unwrap();
    let (one, two) = (theirs.new_stream().unwrap(), theirs.new_stream().unwrap());
    let stream = bench.gpu.new_stream().unwrap();
    let mut array = SmartArray::from(vec![1.0_f32; LEN]);
    for round in 1..=10_i32 {
        let mut slice = one.clone_htod(&vec![round as f32; LEN]).unwrap();
        launch_with(&one, &double, &mut slice);
        launch_with(&stream.cudarc(), &double, &mut array.gpu_mut_on(&stream).unwrap());
        launch_with(&two, &double, &mut slice);
        let copy = two.clone_dtod(&slice).unwrap();
        launch_with(&one, &double, &mut slice);
        assert_eq!(two.clone_dtoh(&copy).unwrap(), vec![4.0 * round as f32; LEN]);
        assert_eq!(one.clone_dtoh(&slice).unwrap(), vec![8.0 * round as f32; LEN]);
        assert_eq!(array.get(round as usize).unwrap(), 2.0_f32.powi(round));
    }
    theirs.check_err().unwrap();
    bench.finish();
}

#[test]
fn a_stream_outlives_its_handles_of_either_side() {
    let bench = in_own_process!(Bench::new());
    let stream = bench.gpu.new_stream().unwrap();
    let theirs = stream.cudarc();
    drop(stream);
    bench.gpu.synchronize().unwrap();
    assert_eq!(theirs.clone_dtoh(&theirs.clone_htod(&[1, 2, 3]).unwrap()).unwrap(), [1, 2, 3]);
    let adopted = Stream::adopt(bench.gpu.cuda_context().unwrap().new_stream().unwrap()).unwrap();
    let array = SmartArray::from(vec![5_i32; LEN]);
    array.prefetch(&adopted).unwrap();
    drop(adopted);
    bench.gpu.synchronize().unwrap();
    assert_eq!(array.get(3).unwrap(), 5);
    bench.finish();
}

/// Captured work does not run. If the library counted it as queued, its results would be missing,
/// and a later replay would use memory that may have another owner by then. A refused call has no
/// effect.
#[test]
fn a_stream_that_others_capture_takes_no_work() {
    let bench = in_own_process!(Bench::new());
    let gate = Gate::default();
    gate.open();
    let double = doubling(&bench.gpu, "double_beside_capture", &gate);
    let (stream, other) = (bench.gpu.new_stream().unwrap(), bench.gpu.new_stream().unwrap());
    let mut array = SmartArray::from(vec![3.0_f32; LEN]).named("captured");
    launch_with(&stream.cudarc(), &double, &mut array.gpu_mut_on(&stream).unwrap());
    stream.cudarc().begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    let fresh = SmartArray::from(vec![1.0_f32; LEN]);
    let refused = fresh.prefetch(&stream).unwrap_err();
    assert!(
        matches!(refused, Error::Backend { .. }) && refused.to_string().contains("end the capture"),
        "{refused}"
    );
    assert!(matches!(stream.record(), Err(Error::Backend { .. })));
    // Other streams work normally, and contents that work on the captured stream wrote earlier are
    // not lost.
    assert_eq!(fresh.gpu_on(&other).map(|guard| guard.len()), Ok(LEN));
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    assert!(stream.cudarc().end_capture(flags).unwrap().is_none());
    assert_eq!(array.host().unwrap()[LEN - 1], 6.0);
    fresh.prefetch(&stream).unwrap();
    bench.finish();
}
