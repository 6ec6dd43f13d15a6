//! Errors of cudarc 0.19 that a driver shows: each program is safe code with all defaults.
//! They show that the stand-in is strict enough to find such errors in this library's backend; a
//! version of cudarc without an error fails the test that names it.

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::driver::{DevicePtr, result, sys};

use crate::driver::choice::{context, is_real, with_stream};
use crate::shared::{Gate, code, done};

/// A slice has one event for all its readers. The event of the second reader replaces that of the
/// first, so a writer waits only for the second reader.
#[test]
fn a_writer_overtakes_all_readers_but_the_last() {
    let context = on_either_driver!(Gpu; context(0));
    let [slow, fast, writer] = [(); 3].map(|()| context.new_stream().expect("a stream"));
    let mut source = writer.clone_htod(&[1_u8; 4]).expect("a copy");
    let mut first = slow.alloc_zeros::<u8>(4).expect("memory");
    let mut second = fast.alloc_zeros::<u8>(4).expect("memory");
    context.synchronize().expect("all uploads have completed");
    let gate = Gate::in_front_of(&slow);
    slow.memcpy_dtod(&source, &mut first).expect("a copy");
    fast.memcpy_dtod(&source, &mut second).expect("a copy");
    writer.memcpy_htod(&[9_u8; 4], &mut source).expect("a copy");
    writer.synchronize().expect("the writer waits only for the last reader");
    gate.open();
    assert_eq!(
        slow.clone_dtoh(&first).expect("a copy"),
        [9; 4],
        "the first reader should have seen 1"
    );
    assert_eq!(fast.clone_dtoh(&second).expect("a copy"), [1; 4]);
}

/// Without tracking, a pinned slice's event is not recorded, so reading it does not wait.
#[test]
fn b_pinned_memory_is_shown_before_it_is_written() {
    let context = on_either_driver!(Gpu; context(9));
    let stream = context.default_stream();
    let source = stream.clone_htod(&[7_u8]).expect("a copy");
    // SAFETY: the memory is bytes, and in the order that cudarc's tracking promises, the copy below
    // writes them before they are read.
    let mut pinned = unsafe { context.alloc_pinned::<u8>(1) }.expect("memory");
    pinned.as_mut_slice().expect("memory").fill(0);
    stream.synchronize().expect("all uploads have completed");
    let gate = Gate::in_front_of(&stream);
    stream.memcpy_dtoh(&source, &mut pinned).expect("a copy");
    assert_eq!(pinned.as_slice().expect("the call returns as if it had waited"), [0]);
    gate.open();
    stream.synchronize().expect("the work is complete now");
    assert_eq!(pinned.as_slice().expect("it is there"), [7]);
}

/// cudarc treats a plain slice as pageable memory, and relies on the driver to wait for copies of
/// pageable memory. For registered memory the driver does not wait, so the safe call returns early.
#[test]
fn c_a_registered_vector_is_given_back_while_it_is_written() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let source = stream.clone_htod(&[7_u8; 64]).expect("a copy");
    stream.synchronize().expect("all uploads have completed");
    let mut vector = vec![0_u8; 64];
    // SAFETY: the memory is live, and is unregistered below before it is freed.
    done(unsafe { sys::cuMemHostRegister_v2(vector.as_mut_ptr().cast(), 64, 0) });
    let gate = Gate::in_front_of(&stream);
    stream.memcpy_dtoh(&source, &mut vector).expect("a copy");
    assert_eq!(vector, [0; 64], "it should have been [7; 64]");
    gate.open();
    stream.synchronize().expect("the work is complete now");
    assert_eq!(vector, [7; 64]);
    // SAFETY: registered above.
    done(unsafe { sys::cuMemHostUnregister(vector.as_mut_ptr().cast()) });
}

/// With one stream, cudarc does not make the context current when it drops a slice. On another
/// thread the driver refuses the free, the memory leaks, and the next unrelated call returns the
/// error.
#[test]
fn d_a_drop_on_a_fresh_thread_leaks_and_fails_another_call() {
    let context = on_either_driver!(Gpu; context(10));
    let stream = context.default_stream();
    let memory = stream.alloc_zeros::<u8>(1000).expect("memory");
    let address = { memory.device_ptr(&stream).0 };
    std::thread::spawn(move || drop(memory)).join().expect("no panic");
    assert_eq!(
        code(context.name()),
        CUresult::CUDA_ERROR_INVALID_CONTEXT,
        "a name needs no context"
    );
    assert!(is_real() || resident_stand_in::memory_in_use(10) == 1000);
    context.bind_to_thread().expect("the error was returned once");
    // SAFETY: nothing uses the memory any more.
    unsafe { result::free_async(address, std::ptr::null_mut()) }.expect("it was not freed");
}
