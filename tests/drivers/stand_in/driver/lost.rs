//! What makes a context lost, and the behaviour of a lost context. Each test has its own device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use resident::cudarc::driver::sys::{self, CUresult};
use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DevicePtr, DriverError, PushKernelArg, result,
};
use support::own_process::HANG_LIMIT;

use crate::driver::boxes::copy_2d;
use crate::driver::choice::{context, function, with_stream};
use crate::kernels::threads;
use crate::shared::{Gate, code, done};

/// Launches the kernel that writes to an address at which there is no memory.
fn go_astray(stream: &Arc<CudaStream>, astray: &CudaFunction) {
    // SAFETY: the write is an error of the device, and changes no memory of this process.
    unsafe { stream.launch_builder(astray).launch(threads(1)) }.expect("it fails when it runs");
}

#[test]
fn an_illegal_address_loses_the_context() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(1));
    go_astray(&stream, &function(&context, "astray"));
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "each time");
    assert_eq!(
        code(context.new_stream().map(drop)),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        "and of all its calls"
    );
    assert!(context.name().is_ok(), "the device itself still answers");
}

#[test]
fn a_lost_context_copies_nothing() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(3));
    let (astray, scale) = (function(&context, "astray"), function(&context, "scale"));
    let mut memory = stream.clone_htod(&[1.0_f32]).expect("a copy");
    let address = { memory.device_ptr(&stream).0 };
    go_astray(&stream, &astray);
    // SAFETY: the kernel accesses only its argument. The context may have detected the error by
    // now.
    let _either =
        unsafe { stream.launch_builder(&scale).arg(&mut memory).arg(&2.0_f32).launch(threads(1)) };
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let mut seen = [0.0_f32];
    // SAFETY: live memory of four bytes each.
    let outcome = unsafe { sys::cuMemcpyDtoH_v2(seen.as_mut_ptr().cast(), address, 4) };
    assert_eq!((outcome, seen), (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, [0.0]));
    std::mem::forget(memory);
}

static STATUS: AtomicU32 = AtomicU32::new(u32::MAX);

unsafe extern "C" fn keep_status(
    _stream: sys::CUstream,
    status: CUresult,
    _data: *mut std::ffi::c_void,
) {
    STATUS.store(status as u32, Ordering::SeqCst);
}

unsafe extern "C" fn never(_data: *mut std::ffi::c_void) {
    STATUS.store(0, Ordering::SeqCst);
}

#[test]
fn a_callback_is_given_failures_and_a_host_function_is_not_called() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(11));
    let astray = function(&context, "astray");
    let gate = Gate::in_front_of(&stream);
    go_astray(&stream, &astray);
    // SAFETY: the functions take no data.
    unsafe {
        done(sys::cuStreamAddCallback(
            stream.cu_stream(),
            Some(keep_status),
            std::ptr::null_mut(),
            0,
        ));
        result::stream::launch_host_function(stream.cu_stream(), never, std::ptr::null_mut())
            .expect("a host function");
    }
    gate.open();
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    // The driver's thread for callbacks may still be at work.
    let start = Instant::now();
    while STATUS.load(Ordering::SeqCst) == u32::MAX && start.elapsed() < HANG_LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(STATUS.load(Ordering::SeqCst), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS as u32);
}

/// A counter in pinned memory, which the process can read when the context is lost.
struct Counter(*mut u32);

impl Counter {
    fn new(context: &CudaContext) -> Self {
        context.bind_to_thread().expect("a context");
        // SAFETY: the driver returns memory of four bytes.
        let memory = unsafe { result::malloc_host(4, 0) }.expect("memory").cast::<u32>();
        // SAFETY: live memory that nothing else uses.
        unsafe { memory.write(0) };
        Self(memory)
    }

    fn add(&self, stream: &Arc<CudaStream>, counted: &CudaFunction) -> Result<(), DriverError> {
        let address = self.0.expose_provenance() as u64;
        // SAFETY: the kernel accesses only the counter, which is never freed.
        unsafe { stream.launch_builder(counted).arg(&address).launch(threads(1)) }.map(drop)
    }

    fn value(&self) -> u32 {
        // SAFETY: the work that writes it is over, or will not run.
        unsafe { self.0.read_volatile() }
    }
}

#[test]
fn work_behind_the_failure_does_not_run_whatever_stream_it_is_in() {
    let context = on_either_driver!(Gpu; context(12));
    let (astray, counted) = (function(&context, "astray"), function(&context, "counted"));
    let counter = Counter::new(&context);
    let [stream, other] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    let gate = Gate::in_front_of(&stream);
    counter.add(&stream, &counted).expect("before the failure");
    go_astray(&stream, &astray);
    counter.add(&stream, &counted).expect("behind the failure");
    let event = stream.record_event(None).expect("an event");
    other.wait(&event).expect("a wait");
    counter.add(&other, &counted).expect("behind it through the event");
    gate.open();
    assert_eq!(code(other.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(counter.value(), 1);
}

static IS_OVER: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn note_end(
    _stream: sys::CUstream,
    _status: CUresult,
    _data: *mut std::ffi::c_void,
) {
    IS_OVER.store(1, Ordering::SeqCst);
}

#[test]
fn no_copy_to_the_host_lands_once_the_loss_is_reported() {
    let context = on_either_driver!(Gpu; context(16));
    let astray = function(&context, "astray");
    let host = Counter::new(&context);
    let [stream, other] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    let memory = other.clone_htod(&[7_u32]).expect("a copy");
    let gate = Gate::in_front_of(&other);
    let address = { memory.device_ptr(&other).0 };
    // SAFETY: live memory of four bytes each. The callback takes no data.
    unsafe {
        done(sys::cuMemcpyDtoHAsync_v2(host.0.cast(), address, 4, other.cu_stream()));
        done(sys::cuStreamAddCallback(other.cu_stream(), Some(note_end), std::ptr::null_mut(), 0));
    }
    go_astray(&stream, &astray);
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    // SAFETY: the context is lost, so that nothing else uses the memory.
    unsafe { host.0.write(5) };
    gate.open();
    let start = Instant::now();
    while IS_OVER.load(Ordering::SeqCst) == 0 && start.elapsed() < HANG_LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((IS_OVER.load(Ordering::SeqCst), host.value()), (1, 5));
    std::mem::forget(memory);
}

#[test]
fn a_copy_to_the_host_that_runs_ends_before_the_loss_is_reported() {
    on_either_driver!(Gpu);
    // Short rows, so that the copy takes long.
    const ROWS: usize = 4 << 20;
    let context = context(15);
    let astray = function(&context, "astray");
    let [stream, other] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    let memory = other.clone_htod(&vec![7_u32; 2 * ROWS]).expect("a copy");
    // SAFETY: the driver returns memory of this size.
    let host = unsafe { result::malloc_host(4 * ROWS, 0) }.expect("memory").cast::<u32>();
    // SAFETY: as above, and nothing else uses it.
    unsafe { host.write_bytes(0, ROWS) };
    let element = |index| {
        // SAFETY: an element of the memory, which the copy may be writing.
        unsafe { host.add(index).read_volatile() }
    };
    let to = (sys::CUmemorytype::CU_MEMORYTYPE_HOST, host.expose_provenance() as u64, 4);
    let from = { memory.device_ptr(&other).0 };
    let rows = copy_2d((sys::CUmemorytype::CU_MEMORYTYPE_DEVICE, from, 8), to, 4, ROWS);
    other.synchronize().expect("the memory is ready");
    // SAFETY: both boxes lie in live memory.
    done(unsafe { sys::cuMemcpy2DAsync_v2(&raw const rows, other.cu_stream()) });
    while element(0) == 0 {
        std::hint::spin_loop();
    }
    go_astray(&stream, &astray);
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let at_report = element(ROWS - 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(element(ROWS - 1), at_report, "the copy still writes");
    std::mem::forget(memory);
}
