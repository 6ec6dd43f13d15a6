//! The functions that code compiled for the check calls: the other side of `calls.hpp`.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_longlong, c_uint, c_ulonglong, c_void};

use super::access::{Extent, MemoryAccess, Touch};
use super::finding::{Finding, FindingKind, Stop};
use super::launch::{LaunchCheck, Running};
use crate::faults::running_bounds;
use crate::heap;
use crate::runtime::BlockProgress;
use crate::waiting;

/// The functions of the library: `resident_sanitizer`.
#[repr(C)]
pub(super) struct Calls {
    access: unsafe extern "C" fn(*const c_void, c_ulonglong, c_uint, *const c_void),
    outside: unsafe extern "C" fn(*const c_void, *const c_longlong, c_uint, c_uint, *const c_void),
    misaligned: unsafe extern "C" fn(*const c_void, c_ulonglong, c_uint, *const c_void),
    beyond: unsafe extern "C" fn(*const c_void, c_uint, *const c_void),
    fence: unsafe extern "C" fn(),
    waits: unsafe extern "C" fn(c_uint, *const c_void),
    reads_absent_lane: unsafe extern "C" fn(c_uint, *const c_void),
    divides: unsafe extern "C" fn(*const c_void),
    prints_wrongly: unsafe extern "C" fn(*const c_char, *const c_void),
    returns: unsafe extern "C" fn(),
}

pub(super) static CALLS: Calls = Calls {
    access,
    outside,
    misaligned,
    beyond,
    fence,
    waits,
    reads_absent_lane,
    divides,
    prints_wrongly,
    returns,
};

/// The check of the launch that this thread of the machine runs.
pub(super) struct Current<'a> {
    pub(super) check: RefCell<LaunchCheck<'a>>,
    pub(super) progress: *const BlockProgress,
    /// What fails the launch.
    pub(super) finding: Cell<Option<Box<Finding>>>,
}

thread_local! {
    static CURRENT: Cell<*const Current<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Makes a check the current one of this thread until it drops.
pub(super) struct Entered;

impl Entered {
    /// # Safety
    ///
    /// `current` and the progress that it names stay alive and in place until the value drops.
    pub(super) unsafe fn new(current: &Current<'_>) -> Self {
        CURRENT.set(std::ptr::from_ref(current).cast());
        heap::GAPS.set(true);
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        heap::GAPS.set(false);
        CURRENT.set(std::ptr::null());
    }
}

/// Runs something with the current check. If an error must stop the running thread, it ends here.
#[inline]
fn check(with: impl FnOnce(&mut LaunchCheck<'_>, Running) -> Option<Stop>) {
    let current = CURRENT.get();
    if current.is_null() {
        return;
    }
    // SAFETY: `Entered` has set the pointer to a value that lives until it clears the pointer.
    let current = unsafe { &*current };
    // SAFETY: the same holds for the progress.
    let progress = unsafe { &*current.progress };
    let (block, thread) = (progress.block.get(), progress.running.get());
    let me = Running { block, thread, stack: running_bounds() };
    let stop = with(&mut current.check.borrow_mut(), me);
    match stop {
        None => {}
        Some(Stop::Thread) => waiting::stop(),
        Some(Stop::Launch(finding)) => {
            let text = finding.to_string();
            current.finding.set(Some(finding));
            waiting::fail(text);
        }
    }
}

/// How a thread accesses memory, by `resident_touch`.
/// As many as three bits can name, so that there is nothing to check. The last are not used.
const TOUCHES: [Touch; 8] = [
    Touch::Read,
    Touch::Write,
    Touch::AtomicRead,
    Touch::AtomicWrite,
    Touch::AtomicUpdate,
    Touch::AtomicUpdate,
    Touch::AtomicUpdate,
    Touch::AtomicUpdate,
];

unsafe extern "C" fn access(
    address: *const c_void,
    len_bytes: c_ulonglong,
    touch: c_uint,
    code: *const c_void,
) {
    /// `resident_compares_and_swaps`.
    const COMPARE_AND_SWAP: c_uint = 5;
    /// `resident_volatile`.
    const VOLATILE: c_uint = 32;
    let access = MemoryAccess {
        address: address.addr(),
        len_bytes: len_bytes as usize,
        touch: TOUCHES[(touch & 7) as usize],
        extent: match touch >> 3 & 3 {
            0 => Extent::Value,
            1 => Extent::Bytes,
            _ => Extent::Record,
        },
        is_volatile: touch & VOLATILE != 0,
        is_swap: touch & 7 == COMPARE_AND_SWAP,
        code: code.addr(),
    };
    check(|launch, me| launch.access(me, access));
}

unsafe extern "C" fn outside(
    first: *const c_void,
    index: *const c_longlong,
    axes: c_uint,
    element_bytes: c_uint,
    code: *const c_void,
) {
    // SAFETY: the prelude passes an array of so many numbers.
    let index = unsafe { std::slice::from_raw_parts(index, axes as usize) };
    let access = access_of_bytes(first, element_bytes as usize, 0, code);
    check(|launch, me| Some(launch.outside(me, access.address, index, access)));
}

unsafe extern "C" fn misaligned(
    address: *const c_void,
    len_bytes: c_ulonglong,
    touch: c_uint,
    code: *const c_void,
) {
    let access = access_of_bytes(address, len_bytes as usize, touch, code);
    check(|launch, me| Some(launch.misaligned(me, access)));
}

unsafe extern "C" fn beyond(address: *const c_void, touch: c_uint, code: *const c_void) {
    let access = access_of_bytes(address, 0, touch, code);
    check(|launch, me| launch.beyond(me, access));
}

/// An access that is judged already.
fn access_of_bytes(
    address: *const c_void,
    len_bytes: usize,
    touch: c_uint,
    code: *const c_void,
) -> MemoryAccess {
    MemoryAccess {
        address: address.addr(),
        len_bytes,
        touch: TOUCHES[(touch & 7) as usize],
        extent: Extent::Bytes,
        is_volatile: false,
        is_swap: false,
        code: code.addr(),
    }
}

unsafe extern "C" fn fence() {
    check(|launch, me| {
        launch.pass_fence(me);
        None
    });
}

unsafe extern "C" fn waits(mask: c_uint, code: *const c_void) {
    let code = code.addr();
    waiting::set_code(code);
    check(|launch, me| launch.pass_mask(me, mask, code));
}

unsafe extern "C" fn reads_absent_lane(lane: c_uint, code: *const c_void) {
    check(|launch, me| {
        launch.read_absent_lane(me, lane, code.addr());
        None
    });
}

unsafe extern "C" fn divides(code: *const c_void) {
    let code = code.addr();
    check(|launch, me| Some(launch.wrong_at(FindingKind::DivisionByZero, None, me, code)));
}

unsafe extern "C" fn prints_wrongly(reason: *const c_char, code: *const c_void) {
    // SAFETY: `printing.hpp` passes a literal.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy();
    let code = code.addr();
    check(|launch, me| Some(launch.wrong_at(FindingKind::WrongFormat, Some(&reason), me, code)));
}

unsafe extern "C" fn returns() {
    check(|launch, me| {
        launch.pass_return(me);
        None
    });
}
