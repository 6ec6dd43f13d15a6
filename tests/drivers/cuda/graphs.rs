//! Chains beside captures of other code.

use resident::cudarc::driver::sys::CUstreamCaptureMode as Mode;
use resident_backend::Address;
use resident_gpu::GpuStreamHandle;
use resident_stand_in::Settings;
use support::in_own_process;

use crate::chains::rig::{Gpu, apply, matrices};
use crate::chains::{STEPS, assert_clean, take_graph_calls};

#[test]
fn a_stream_that_is_captured_takes_no_chain() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let mut values = matrices(3);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    let handle = gpu.stream.downcast_ref::<GpuStreamHandle>().expect("a GPU's");
    let shared = handle.stream().expect("cudarc's");
    for _ in 0..2 {
        shared.begin_capture(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL).expect("it begins");
        let before = gpu.stream.tail();
        let refused = chain.replay(&*gpu.stream, &memory).expect_err("it is captured");
        assert!(refused.detail.contains("end the capture"), "{refused}");
        assert_eq!(gpu.stream.tail(), before);
        // SAFETY: the stream is alive; the stand-in makes no graph.
        let ended =
            unsafe { resident::cudarc::driver::result::stream::end_capture(shared.cu_stream()) };
        ended.expect("nothing disturbed it");
        chain.replay(&*gpu.stream, &memory).expect("queued");
        apply(&STEPS, &[0, 1, 2], &mut values);
    }
    for (memory, values) in memory.iter().zip(&values) {
        assert_eq!(gpu.download(*memory), *values);
    }
    assert_clean();
}

/// Another thread captures another stream in global mode, which forbids calls of all threads.
#[test]
fn a_capture_elsewhere_does_not_hinder_a_graph() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let other = gpu.device.shared_context().expect("cudarc's").new_stream().expect("a stream");
    other.begin_capture(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL).expect("it begins");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let chain = gpu.chain(&STEPS);
            chain.replay(&*gpu.stream, &memory).expect("queued");
            gpu.wait();
        });
    });
    // SAFETY: the stream is alive; the stand-in makes no graph.
    let ended = unsafe { resident::cudarc::driver::result::stream::end_capture(other.cu_stream()) };
    ended.expect("nothing disturbed it");
    let calls = take_graph_calls();
    assert_eq!((calls["Launch"], calls["ExecDestroy"]), (1, 1), "{calls:?}");
    assert_clean();
}
