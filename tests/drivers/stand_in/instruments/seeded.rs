//! The stand-in driver with a seed: work runs only when a thread waits, so that the same hazards
//! are found each time. The first context of a process creates the devices.

use std::sync::Arc;

use resident::cudarc::driver::{
    CudaContext, CudaStream, DevicePtr, LaunchConfig, PushKernelArg, result, sys,
};
use resident::cudarc::nvrtc::{Ptx, compile_ptx};
use resident_stand_in::{Access, Length, Parameter, Settings};
use support::{in_own_process, own_process};

/// The first device of two.
fn context() -> Arc<CudaContext> {
    let settings = Settings::new().devices(2).seed(7);
    resident_stand_in::load(settings).expect("the stand-in loads");
    CudaContext::new(0).expect("a device")
}

/// As [`context`], without cudarc's tracking.
fn untracked() -> Arc<CudaContext> {
    let context = context();
    // SAFETY: the tests order their streams themselves.
    unsafe { context.disable_event_tracking() };
    context
}

fn streams<const N: usize>(context: &Arc<CudaContext>) -> [Arc<CudaStream>; N] {
    std::array::from_fn(|_| context.new_stream().expect("a stream"))
}

#[test]
fn work_runs_once_a_thread_waits_for_it() {
    let context = in_own_process!(context());
    let [stream] = streams(&context);
    let event = context.new_event(None).expect("an event");
    let memory = stream.clone_htod(&[1_u8; 4]).expect("a copy");
    event.record(&stream).expect("a record");
    // Each query runs one piece of work: the copy, an event record made by cudarc, the event record
    // of the test.
    assert_eq!((1..10).find(|_| event.is_complete()), Some(3));
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [1; 4]);
    assert!(resident_stand_in::take_hazards().is_empty());
}

/// Error (a) of cudarc: the hazard names both operations.
#[test]
fn unordered_uses_are_hazards() {
    let context = in_own_process!(context());
    let [slow, fast, writer] = streams(&context);
    let mut source = writer.clone_htod(&[1_u8; 4]).expect("a copy");
    let mut first = slow.alloc_zeros::<u8>(4).expect("memory");
    let mut second = fast.alloc_zeros::<u8>(4).expect("memory");
    context.synchronize().expect("all uploads have completed");
    slow.memcpy_dtod(&source, &mut first).expect("a copy");
    fast.memcpy_dtod(&source, &mut second).expect("a copy");
    assert!(resident_stand_in::take_hazards().is_empty(), "both only read");
    writer.memcpy_htod(&[9_u8; 4], &mut source).expect("a copy");
    let hazards = resident_stand_in::take_hazards();
    let [hazard] = hazards.as_slice() else { panic!("{hazards:?}") };
    let told = [
        "copy within the device",
        "reads",
        "copy to the device",
        "writes",
        "bytes 0..4",
        "nothing orders them",
    ];
    assert!(told.iter().all(|words| hazard.contains(words)), "{hazard}");
    context.synchronize().expect("all is done");
}

#[test]
fn a_wait_orders_and_a_later_record_does_not_move_it() {
    let context = in_own_process!(untracked());
    let [one, other] = streams(&context);
    let event = context.new_event(None).expect("an event");
    let mut memory = one.alloc_zeros::<u8>(4).expect("memory");
    one.memcpy_htod(&[1_u8; 4], &mut memory).expect("a copy");
    event.record(&one).expect("a record");
    other.wait(&event).expect("a wait");
    one.memcpy_htod(&[2_u8; 4], &mut memory).expect("a copy");
    event.record(&one).expect("a record");
    other.memset_zeros(&mut memory.slice_mut(0..2)).expect("a fill");
    let hazards = resident_stand_in::take_hazards();
    assert_eq!(hazards.len(), 1, "the second copy alone is not waited for: {hazards:?}");
    other.wait(&event).expect("a wait");
    other.memset_zeros(&mut memory.slice_mut(2..4)).expect("a fill");
    assert!(resident_stand_in::take_hazards().is_empty(), "now the wait covers it");
    context.synchronize().expect("all is done");
}

#[test]
fn the_null_stream_comes_behind_blocking_streams_and_they_behind_it() {
    let context = in_own_process!(untracked());
    context.bind_to_thread().expect("a context");
    let raw = result::stream::create(result::stream::StreamKind::Default).expect("a stream");
    // SAFETY: a live stream of this context, destroyed at the end.
    let blocking = unsafe { context.wrap_borrowed_stream(raw) };
    let null = context.default_stream();
    let [apart] = streams(&context);
    let mut memory = blocking.alloc_zeros::<u8>(4).expect("memory");
    null.memset_zeros(&mut memory).expect("a fill");
    blocking.memcpy_htod(&[1_u8; 4], &mut memory).expect("a copy");
    null.memset_zeros(&mut memory).expect("a fill");
    assert!(resident_stand_in::take_hazards().is_empty());
    apart.memset_zeros(&mut memory).expect("a fill");
    assert!(!resident_stand_in::take_hazards().is_empty(), "a non-blocking stream is independent");
    context.synchronize().expect("all is done");
    // SAFETY: the stream was created above, and is not used any more.
    unsafe { result::stream::destroy(raw) }.expect("it is there");
}

#[test]
fn another_seed_is_another_order_and_the_same_one_the_same() {
    own_process!();
    resident_stand_in::load(Settings::new().devices(2).seed(7)).expect("the stand-in loads");
    let settings = |seed| Settings::new().devices(2).seed(seed);
    let order = |seed| {
        resident_stand_in::change(settings(seed)).expect("no context is retained");
        let context = CudaContext::new(0).expect("a device");
        assert!(resident_stand_in::change(settings(seed)).is_err(), "one is now");
        let streams: [_; 4] = streams(&context);
        let events: Vec<_> =
            streams.iter().map(|stream| stream.record_event(None).expect("an event")).collect();
        let mut done = Vec::new();
        for _ in 0..events.len() {
            // SAFETY: a live stream; each query runs one of the records.
            let _ready = unsafe { sys::cuStreamQuery(std::ptr::null_mut()) };
            done.push(events.iter().map(|event| event.is_complete()).collect::<Vec<_>>());
        }
        context.synchronize().expect("all is done");
        done
    };
    let orders: Vec<_> = (0..8).map(order).collect();
    assert_eq!(orders, (0..8).map(order).collect::<Vec<_>>());
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
    resident_stand_in::change(settings(7)).expect("its contents are unchanged");
}

#[test]
fn a_plain_free_waits_for_the_device_and_one_in_order_does_not() {
    let context = in_own_process!(context());
    context.bind_to_thread().expect("a context");
    let [one, other] = streams(&context);
    // SAFETY: freed memory is not used afterwards; the unordered free is the purpose of the test.
    unsafe {
        let address = result::malloc_sync(64).expect("memory");
        result::memset_d8_async(address, 1, 64, one.cu_stream()).expect("a fill");
        result::free_sync(address).expect("it is there");
        assert_eq!(resident_stand_in::take_hazards(), [""; 0]);
        let address = result::malloc_async(one.cu_stream(), 64).expect("memory");
        result::memset_d8_async(address, 1, 64, one.cu_stream()).expect("a fill");
        result::free_async(address, other.cu_stream()).expect("it is there");
    }
    let hazards = resident_stand_in::take_hazards();
    assert!(hazards.len() == 1 && hazards[0].contains("frees"), "{hazards:?}");
}

/// The hazard check uses the memory with which a kernel is registered.
#[test]
fn kernels_touch_what_they_were_registered_with() {
    let context = in_own_process!(untracked());
    let ptx = ".version 8.0\n.target sm_80\n.entry half(.param .u64 memory, .param .u32 count) \
        {}\n.entry rest(.param .u64 memory, .param .u32 count) {}";
    let module = context.load_module(Ptx::from_src(ptx)).expect("a module");
    let [one, other] = streams(&context);
    let memory = one.clone_htod(&[0_u8; 8]).expect("a copy");
    one.synchronize().expect("it is there");
    let start = memory.device_ptr(&one).0;
    for (name, length, hazards) in
        [("half", Length::Counted { by: 1, element_bytes: 1 }, 0), ("rest", Length::ToEnd, 1)]
    {
        let parameters = [
            Parameter::Pointer { access: Access::Write, length },
            Parameter::Scalar { len_bytes: 4 },
        ];
        resident_stand_in::register(name, &parameters, |launch| {
            // SAFETY: the only memory of this kernel; a simulation runs one kernel at a time.
            unsafe { launch.slice_mut::<u8>(0) }.fill(launch.scalar::<u32>(1) as u8);
            Ok(())
        });
        let function = module.load_function(name).expect("a function");
        for (stream, offset) in [(&one, 0), (&other, 4)] {
            let mut launch = stream.launch_builder(&function);
            let address = start + offset;
            launch.arg(&address).arg(&4_u32);
            // SAFETY: the memory is live; overlapping launches write the same bytes.
            unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.expect("a launch");
        }
        let found = resident_stand_in::take_hazards();
        assert_eq!(found.len(), hazards, "{name}: {found:?}");
        context.synchronize().expect("all is done");
        assert_eq!(one.clone_dtoh(&memory).expect("a copy"), [4; 8]);
    }
}

/// Of a kernel that was compiled, the hazard check uses what its types and its declaration tell.
#[test]
fn compiled_kernels_touch_what_their_types_and_declarations_tell() {
    own_process!();
    resident_stand_in_nvrtc::load().expect("the stand-in for NVRTC loads");
    let context = untracked();
    let source = "
        extern \"C\" __global__ void look(const char* x, int count) { }
        extern \"C\" __global__ void half(char* x, int count) { x[threadIdx.x] = count; }
        extern \"C\" __global__ void rest(char* x, int count) { x[threadIdx.x] = count; }";
    let module = context.load_module(compile_ptx(source).expect("it compiles")).expect("a module");
    let bytes = Parameter::Pointer {
        access: Access::Write,
        length: Length::Counted { by: 1, element_bytes: 1 },
    };
    resident_stand_in::declare("half", &[bytes, Parameter::Scalar { len_bytes: 4 }]);
    let [one, other] = streams(&context);
    let memory = one.clone_htod(&[0_u8; 8]).expect("a copy");
    one.synchronize().expect("it is there");
    let start = memory.device_ptr(&one).0;
    for (name, hazards) in [("look", 0), ("half", 0), ("rest", 1)] {
        let function = module.load_function(name).expect("a function");
        for (stream, offset) in [(&one, 0), (&other, 4)] {
            let mut launch = stream.launch_builder(&function);
            let address = start + offset;
            launch.arg(&address).arg(&4_i32);
            let four = LaunchConfig { block_dim: (4, 1, 1), ..LaunchConfig::for_num_elems(1) };
            // SAFETY: the memory is live, and the launches write different bytes.
            unsafe { launch.launch(four) }.expect("a launch");
        }
        let found = resident_stand_in::take_hazards();
        assert_eq!(found.len(), hazards, "{name}: {found:?}");
        context.synchronize().expect("all is done");
    }
    assert_eq!(one.clone_dtoh(&memory).expect("a copy"), [4; 8]);
}
