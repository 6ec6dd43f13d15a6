//! The functions that the client calls. A function that the driver exports returns their table.

use std::ffi::c_void;

use crate::call::{self, Fault};
use crate::code::Code;
use crate::interface::{self, Interface};
use crate::kernel::{self, HostKernel};
use crate::machine;
use resident_stand_in_client::protocol::{
    Control, Parameter, RawCall, RawText, RunLaunch, TextKind, VisitCall, VisitText,
};
use resident_stand_in_client::settings::Values;

/// The functions, for the client of this interface.
pub fn table(interface: &'static dyn Interface) -> &'static Control {
    interface::choose(interface);
    &TABLE
}

static TABLE: Control = Control { configure, register, calls, texts, fail, memory };

/// `protocol::Configure`.
///
/// # Safety
///
/// `settings` is valid during the call.
unsafe extern "C" fn configure(settings: *const Values, again: bool) -> u32 {
    // SAFETY: guaranteed by the caller (see `# Safety`).
    let settings = unsafe { settings.read() };
    u32::from(!machine::configure(settings, again))
}

/// `protocol::Register`.
///
/// # Safety
///
/// Name and parameters are valid during the call. `run` may be called with `function` at any later
/// time and on any thread.
unsafe extern "C" fn register(
    name: RawText,
    parameters: *const Parameter,
    parameter_count: usize,
    run: Option<RunLaunch>,
    function: *const c_void,
) {
    // SAFETY: guaranteed by the caller (see `# Safety`).
    let name = unsafe { name.get() }.to_owned();
    // SAFETY: guaranteed by the caller; the pointer of an empty slice is not null.
    let parameters = unsafe { std::slice::from_raw_parts(parameters, parameter_count) }.to_vec();
    kernel::register(name, HostKernel { parameters, run, function });
}

/// `protocol::Calls`.
///
/// # Safety
///
/// `visit` may be called with `list`.
unsafe extern "C" fn calls(take: bool, visit: VisitCall, list: *mut c_void) {
    if take {
        machine::forget_calls();
    }
    for call in call::calls(take) {
        let raw = RawCall {
            name: RawText::of(call.name),
            len_bytes: call.len_bytes,
            stream: call.stream,
            code: call.code,
        };
        // SAFETY: guaranteed by the caller (see `# Safety`).
        unsafe { visit(list, raw) };
    }
}

/// `protocol::Texts`.
///
/// # Safety
///
/// `visit` may be called with `list`.
unsafe extern "C" fn texts(kind: TextKind, take: bool, visit: VisitText, list: *mut c_void) {
    let texts = match kind {
        TextKind::Hazards => machine::hazards(take),
        TextKind::Notes => call::notes(take),
    };
    for text in texts {
        // SAFETY: guaranteed by the caller (see `# Safety`).
        unsafe { visit(list, RawText::of(&text)) };
    }
}

/// `protocol::Fail`.
///
/// # Safety
///
/// The name is valid during the call.
unsafe extern "C" fn fail(name: RawText, nth: u64, code: u32, late: bool) {
    // SAFETY: guaranteed by the caller (see `# Safety`).
    let name = unsafe { name.get() }.to_owned();
    if nth == 0 {
        call::forget_faults();
    } else {
        call::add_fault(Fault { name, nth, code: Code(code), late });
    }
}

/// `protocol::Memory`.
extern "C" fn memory(device: u32) -> u64 {
    machine::memory_in_use(device as usize)
}
