//! The client: the functions by which tests load the driver and control it.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::launch::{self, Fault, Launch};
use crate::library::Library;
use crate::protocol::{Control, GetControl, Parameter, RawCall, RawText, TextKind};
use crate::settings::Settings;

/// One call of the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The function, such as `cuMemAlloc_v2`.
    pub name: String,
    /// The number of bytes in the call's arguments, or 0.
    pub len_bytes: u64,
    /// The stream's handle, or 0.
    pub stream: u64,
    /// The code that it returned: a CUresult, or a hipError_t.
    pub code: u32,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if self.len_bytes > 0 {
            write!(f, ", {} bytes", self.len_bytes)?;
        }
        if self.code == 0 { Ok(()) } else { write!(f, " = {}", self.code) }
    }
}

/// The table of the loaded driver, which is never unloaded.
static DRIVER: OnceLock<&'static Control> = OnceLock::new();

/// Loads the driver into this process. Each test must call it before anything looks for a real
/// driver, and all tests of a process must pass the same settings. The first call loads the driver;
/// later calls do nothing.
///
/// # Errors
///
/// If the driver cannot be found, with the paths that were tried; or if an earlier call passed
/// other settings.
pub fn load(settings: Settings) -> Result<(), String> {
    static LOADING: Mutex<Option<Settings>> = Mutex::new(None);
    let mut loaded = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = *loaded {
        return if before == settings {
            Ok(())
        } else {
            Err(format!("the stand-in driver is loaded with other settings: {before:?}"))
        };
    }
    let library: Library = crate::open(settings)?;
    let control: GetControl = library.function(crate::CONTROL)?;
    let control = control();
    // SAFETY: the settings are live during the call, which copies them.
    if unsafe { (control.configure)(&raw const settings, false) } != 0 {
        return Err("the stand-in driver was used before it got its settings: load it before the \
            first call to a driver"
            .to_owned());
    }
    let _first = DRIVER.set(control);
    *loaded = Some(settings);
    Ok(())
}

/// Changes the settings for contexts that are created from now on, for example the seed.
///
/// # Errors
///
/// While a context is retained.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn change(settings: Settings) -> Result<(), String> {
    // SAFETY: the settings are live during the call, which copies them.
    match unsafe { (control().configure)(&raw const settings, true) } {
        0 => Ok(()),
        _ => Err("a context is in use: release all contexts and everything that retains them \
            before changing the settings"
            .to_owned()),
    }
}

/// Makes `function` replace the kernel whose entry has this name, in all modules, whatever its code
/// does: for kernels that wait for the test or fail, and for PTX by hand. A later registration
/// replaces an earlier one. A C++ name may be given as in the source (`blur`) or as lowered by the
/// compiler (`_Z4blurPf`). The function must access memory only as `parameters` declare, because
/// the check for unordered accesses uses them.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn register(
    name: &str,
    parameters: &[Parameter],
    function: impl Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync + 'static,
) {
    launch::register(control().register, name, parameters, function);
}

/// Tells which memory the kernel with this name accesses, for the check for unordered accesses. Of
/// a kernel that is not declared, the check knows what its C++ types tell: which elements a
/// `resident::View` has, and that nothing is written to `const`. At a bare pointer it takes all up
/// to the end of the allocation as accessed. Where a kernel may write, the check does not look for
/// reads of what was never written. Pointers in structs are not checked.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn declare(name: &str, parameters: &[Parameter]) {
    let (count, function) = (parameters.len(), std::ptr::null());
    // SAFETY: name and parameters are live during the call, which copies them.
    unsafe { (control().register)(RawText::of(name), parameters.as_ptr(), count, None, function) };
}

/// The calls so far, in order.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn calls() -> Vec<Call> {
    list_calls(false)
}

/// Like [`calls`], and clears the record.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn take_calls() -> Vec<Call> {
    list_calls(true)
}

/// The unordered accesses found on all devices, as texts of the embedded device's hazards.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn hazards() -> Vec<String> {
    list_texts(TextKind::Hazards, false)
}

/// Like [`hazards`], and clears the record.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn take_hazards() -> Vec<String> {
    list_texts(TextKind::Hazards, true)
}

/// The driver's notes: calls that it does not support, kernels without code, arguments that do not
/// match the registration, and why compiled kernels failed.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn notes() -> Vec<String> {
    list_texts(TextKind::Notes, false)
}

/// Like [`notes`], and clears the record.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn take_notes() -> Vec<String> {
    list_texts(TextKind::Notes, true)
}

/// Makes a future call of the function `name` do nothing and return `code`: the `nth`
/// from now on, counted from 1. This happens once.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn fail_nth(name: &str, nth: u64, code: u32) {
    add_fault(name, nth, code, false);
}

/// Like [`fail_nth`], but counts the calls of all functions.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn fail_any(nth: u64, code: u32) {
    add_fault("", nth, code, false);
}

/// Makes the `nth` operation that is queued from now on (a copy, fill or launch, counted from 1)
/// fail with `code` when it runs. Its context is then lost.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn fail_late(nth: u64, code: u32) {
    add_fault("", nth, code, true);
}

/// Removes all requested faults that have not occurred yet.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn forget_faults() {
    add_fault("", 0, 0, false);
}

/// Bytes that are allocated on a device and not yet freed.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn memory_in_use(device: u32) -> u64 {
    // SAFETY: the function takes and returns a number.
    unsafe { (control().memory)(device) }
}

fn add_fault(name: &str, nth: u64, code: u32, late: bool) {
    // SAFETY: the name is live during the call, which copies it.
    unsafe { (control().fail)(RawText::of(name), nth, code, late) };
}

fn list_calls(take: bool) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // SAFETY: the list is live during the call and has the type that `visit_call` expects.
    unsafe { (control().calls)(take, visit_call, (&raw mut calls).cast()) };
    calls
}

fn list_texts(kind: TextKind, take: bool) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    // SAFETY: the list is live during the call and has the type that `visit_text` expects.
    unsafe { (control().texts)(kind, take, visit_text, (&raw mut texts).cast()) };
    texts
}

unsafe extern "C" fn visit_call(list: *mut c_void, call: RawCall) {
    // SAFETY: `list_calls` passes its own list, and nothing else accesses it during the call.
    let calls = unsafe { &mut *list.cast::<Vec<Call>>() };
    // SAFETY: the driver passes the text of a live string.
    let name = unsafe { call.name.get() }.to_owned();
    calls.push(Call { name, len_bytes: call.len_bytes, stream: call.stream, code: call.code });
}

unsafe extern "C" fn visit_text(list: *mut c_void, text: RawText) {
    // SAFETY: `list_texts` passes its own list, and nothing else accesses it during the call.
    let texts = unsafe { &mut *list.cast::<Vec<String>>() };
    // SAFETY: the driver passes the text of a live string.
    texts.push(unsafe { text.get() }.to_owned());
}

fn control() -> &'static Control {
    DRIVER.get().expect("the stand-in driver is not loaded: call `load` first")
}
