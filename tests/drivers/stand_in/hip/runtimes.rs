//! Runtimes that do otherwise than AMD's what HIP leaves open, and runtimes that break promises.

use resident_stand_in_hip::{Described, Settings, code_object, register};
use support::in_own_process;

use super::api::{at, at_mut, get, has, load, ok, with_stream};
use super::streams::Gate;

const NOT_READY: u32 = 600;

#[test]
fn copies_with_pageable_memory_may_be_late() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().copies_pageable_late()));
    let (mut source, mut copied) = (vec![1_u32; 100], vec![0_u32; 100]);
    // SAFETY: the memory lives until the wait ends, and nothing refers to it when work uses it.
    unsafe {
        let memory = hip.memory(400);
        let gate = Gate::in_front_of(&hip, stream);
        ok((hip.hipMemcpyHtoDAsync)(memory, at(&source), 400, stream));
        ok((hip.hipMemcpyDtoHAsync)(at_mut(&mut copied), memory, 400, stream));
        source.fill(2);
        assert_eq!(copied, [0; 100], "the call waits for the copy");
        gate.open();
        ok((hip.hipStreamSynchronize)(stream));
        assert_eq!(copied, [2; 100], "the source was read within the call");
        ok((hip.hipFree)(memory));
    }
}

#[test]
fn a_stream_may_never_be_said_to_be_idle() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().never_says_idle()));
    let event = get(|event| (hip.hipEventCreateWithFlags)(event, 2));
    let memory = hip.memory(4);
    ok((hip.hipStreamQuery)(stream));
    ok((hip.hipMemsetD8Async)(memory, 1, 4, stream));
    ok((hip.hipEventRecord)(event, stream));
    ok((hip.hipEventSynchronize)(event));
    assert_eq!((hip.hipStreamQuery)(stream), NOT_READY, "its work is over");
    ok((hip.hipStreamSynchronize)(stream));
    ok((hip.hipStreamQuery)(stream));
    ok((hip.hipFree)(memory));
}

#[test]
fn streams_may_have_no_priorities() {
    let hip = in_own_process!(load(Settings::new().without_priorities()));
    let (mut least, mut greatest) = (7, 7);
    ok((hip.hipDeviceGetStreamPriorityRange)(&mut least, &mut greatest));
    assert_eq!((least, greatest), (0, 0));
    let stream = get(|stream| (hip.hipStreamCreateWithPriority)(stream, 1, -1));
    assert_eq!(get(|known| (hip.hipStreamGetPriority)(stream, known)), 0);
}

#[test]
fn device_memory_is_aligned_as_set() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().alignment(128)));
    for len in [1, 1000] {
        let values = vec![len as u64; len];
        let memory = hip.upload(&values, stream);
        assert_eq!(memory % 256, 128);
        assert_eq!(hip.download::<u64>(memory, len, stream), values);
        ok((hip.hipFree)(memory));
    }
    assert_eq!(resident_stand_in_hip::memory_in_use(0), 0);
}

#[test]
fn a_runtime_may_have_no_attributes_of_functions() {
    support::own_process!();
    resident_stand_in_hip::load(Settings::new().without_function_attributes()).expect("it loads");
    assert!(!has("hipFuncGetAttribute") && has("hipLaunchHostFunc"));
}

#[test]
fn an_event_may_hold_nothing_back() {
    let hip = in_own_process!(load(Settings::new().ignores_waits()));
    let (one, two) = (hip.stream(), hip.stream());
    let event = get(|event| (hip.hipEventCreateWithFlags)(event, 2));
    let memory = hip.upload(&[1_u32], one);
    let gate = Gate::in_front_of(&hip, one);
    ok((hip.hipMemsetD32Async)(memory, 5, 1, one));
    ok((hip.hipEventRecord)(event, one));
    ok((hip.hipStreamWaitEvent)(two, event, 0));
    assert_eq!(hip.download::<u32>(memory, 1, two), [1], "the stream waits for the fill");
    gate.open();
    ok((hip.hipStreamSynchronize)(one));
    assert_eq!(hip.download::<u32>(memory, 1, two), [5]);
}

#[test]
fn registered_memory_may_be_copied_back() {
    let hip = in_own_process!(load(Settings::new().restores_registered_memory()));
    let nothing = Described { name: "nothing".to_owned(), parameters: Vec::new(), threads_max: 64 };
    register("nothing", &[], |_| Ok(()));
    let module = hip.module(&code_object("gfx90a", &[nothing], &[]).expect("an image"));
    let kernel = hip.function(module.expect("a module"), "nothing").expect("a function");
    let (stream, mut memory) = (hip.stream(), vec![1_u8; 100]);
    let start = at_mut(&mut memory);
    // SAFETY: the memory is registered until no work is left.
    ok(unsafe { (hip.hipHostRegister)(start, 100, 1) });
    let gate = Gate::in_front_of(&hip, stream);
    ok(hip.launch(kernel, [1, 1], stream, &[]));
    memory.fill(2);
    gate.open();
    ok((hip.hipStreamSynchronize)(stream));
    ok((hip.hipHostUnregister)(start));
    assert_eq!(memory, [1; 100]);
}
