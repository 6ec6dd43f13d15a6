//! How a thread of a block waits for others: it goes from its own stack back to the scheduler with
//! what it waits for, and later continues with the answer.

use std::cell::{Cell, RefCell};

use corosensei::Yielder;

/// What a thread waits for.
pub(super) enum Wait {
    /// All threads of the block. `code` is the place in the library, if the code is checked.
    Block { predicate: bool, code: usize },
    /// That no other lane of the warp can go on.
    Active,
    /// The lanes in `mask` of the warp, which exchange values. `code` is as above.
    Lanes { mask: u32, value: u64, is_barrier: bool, code: usize },
    /// Perhaps for memory that another thread writes: that all others have had a turn.
    Turn(Suspended),
    /// Nothing: the checker has ended the thread, and the others go on.
    Stopped,
    /// Nothing: the launch has failed.
    Failed(String),
}

/// What a thread gets when it continues.
pub(super) enum Answer {
    Start,
    /// For how many threads of the block the predicate held; or which lanes are active.
    Count(u32),
    /// The values of the lanes, valid until the thread waits again.
    Lanes(*const u64),
}

/// Where the part of a stack starts on which everything is that a thread keeps while it waits,
/// registers included; 0 where that is not known.
#[derive(Clone, Copy)]
pub(super) struct Suspended {
    pub(super) stack_pointer: usize,
}

/// The way from a stack back to the scheduler.
pub(super) type Switch = Yielder<Answer, Wait>;

thread_local! {
    /// The way from the running stack back to the scheduler.
    pub(super) static SWITCH: Cell<*const Switch> = const { Cell::new(std::ptr::null()) };
    /// The place in the library from which the running thread is about to wait.
    static CODE: Cell<usize> = const { Cell::new(0) };
    /// The dynamic shared memory of the block that this thread runs. It never moves, since compiled
    /// code keeps its address.
    static SHARED: RefCell<Vec<SharedUnit>> = const { RefCell::new(Vec::new()) };
}

/// The most dynamic shared memory of a block, as on GPUs of compute capability 9.0 and 10.0.
pub(super) const SHARED_BYTES_MAX: usize = 227 << 10;

/// Dynamic shared memory is aligned as on a GPU.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct SharedUnit(#[allow(dead_code, reason = "accessed by pointer only")] [u8; 128]);

/// The number of threads whose `predicate` was not 0, once all threads of the block have called.
pub(super) fn wait_for_block(predicate: u32) -> u32 {
    match wait(Wait::Block { predicate: predicate != 0, code: CODE.replace(0) }) {
        Answer::Count(count) => count,
        _ => 0,
    }
}

/// The mask of the lanes of the warp that have come here, when no other lane can go on.
pub(super) fn wait_for_active() -> u32 {
    match wait(Wait::Active) {
        Answer::Count(mask) => mask,
        _ => 0,
    }
}

/// What the lanes of the warp passed, once those in `mask` have called.
pub(super) fn wait_for_lanes(mask: u32, value: u64) -> *const u64 {
    let code = CODE.replace(0);
    match wait(Wait::Lanes { mask, value, is_barrier: false, code }) {
        Answer::Lanes(values) => values,
        _ => std::ptr::null(),
    }
}

/// Waits until the lanes in `mask` of the warp have called.
pub(super) fn wait_at_warp_barrier(mask: u32) {
    wait(Wait::Lanes { mask, value: 0, is_barrier: true, code: CODE.replace(0) });
}

/// Waits until all other threads that can run have had a turn.
pub(super) fn wait_for_turn(suspended: Suspended) {
    wait(Wait::Turn(suspended));
}

/// Sets the place in the library from which the running thread is about to wait.
pub(super) fn set_code(code: usize) {
    CODE.set(code);
}

/// Ends the running thread.
pub(super) fn stop() {
    wait(Wait::Stopped);
}

/// Ends the running thread, and the launch with this text.
pub(super) fn fail(text: String) {
    wait(Wait::Failed(text));
}

/// Whether this thread can run blocks. At its end, when the destructors of its thread-locals run,
/// it may have no shared memory any more.
pub fn can_run_blocks() -> bool {
    SHARED.try_with(|_| ()).is_ok()
}

/// The start of this thread's dynamic shared memory. The thread can run blocks.
pub(super) fn dynamic_shared() -> *mut u8 {
    SHARED.with_borrow_mut(|units| {
        units.resize(SHARED_BYTES_MAX.div_ceil(size_of::<SharedUnit>()), SharedUnit([0; 128]));
        units.as_mut_ptr().cast()
    })
}

fn wait(request: Wait) -> Answer {
    let switch = SWITCH.get();
    assert!(!switch.is_null(), "the initialiser of a global waits for other threads");
    // SAFETY: compiled code runs on a fiber's stack only. The fiber's start and `resume` set the
    // pointer to that fiber's own, which lives on the stack that is running.
    unsafe { &*switch }.suspend(request)
}
