//! The side of the tests: loads the driver, and steers it.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::launch::{self, Fault, Launch};
use crate::library::Library;
use crate::protocol::{self, Parameter, RawCall, RawText, TextKind, symbol};
use crate::settings::Settings;

/// The file that cargo builds beside the test.
const FILE: &str = "libresident_stand_in.so";

/// One call of the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The function: `cuMemAlloc_v2`.
    pub name: String,
    /// Bytes that it was about, or 0.
    pub len_bytes: u64,
    /// The stream's handle, or 0.
    pub stream: u64,
    /// What it returned: a CUresult.
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

static DRIVER: OnceLock<Library> = OnceLock::new();

/// Loads the driver into this process. To be called before anything looks for a CUDA driver, by
/// each test of a process with the same settings: the first call loads, others find it loaded.
///
/// # Errors
///
/// Says what was looked for and where if the driver cannot be loaded, and refuses other settings
/// than those of the first call.
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
    let library = Library::open_beside_tests(FILE)?;
    let configure: protocol::Configure = library.function(symbol::CONFIGURE)?;
    // SAFETY: the settings live for the call, which copies them.
    if unsafe { configure(&raw const settings, false) } != 0 {
        return Err("the stand-in driver was used before it got its settings: load it before the first call of a CUDA driver".to_owned());
    }
    let _first = DRIVER.set(library);
    *loaded = Some(settings);
    Ok(())
}

/// Makes another machine of it, for the contexts that are made from now on: another seed, for
/// instance.
///
/// # Errors
///
/// While a context is retained.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn change(settings: Settings) -> Result<(), String> {
    let configure: protocol::Configure = function_of(symbol::CONFIGURE);
    // SAFETY: the settings live for the call, which copies them.
    match unsafe { configure(&raw const settings, true) } {
        0 => Ok(()),
        _ => Err("a context is retained: release all of them, and with them what holds them, before the machine is changed".to_owned()),
    }
}

/// Lets `function` stand for the kernel whose entry has this name, in all modules; it replaces an
/// earlier one. A C++ name may be given as the source has it (`blur`) or as the compiler lowers it
/// (`_Z4blurPf`). What it touches must keep to `parameters`: the check of ordering goes by them.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn register(
    name: &str,
    parameters: &[Parameter],
    function: impl Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync + 'static,
) {
    launch::register(function_of(symbol::REGISTER), name, parameters, function);
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

/// As [`calls`], which are forgotten.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn take_calls() -> Vec<Call> {
    list_calls(true)
}

/// What the check of ordering found on all devices: the texts of the embedded device's hazards.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn hazards() -> Vec<String> {
    list_texts(TextKind::Hazards, false)
}

/// As [`hazards`], which are forgotten.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn take_hazards() -> Vec<String> {
    list_texts(TextKind::Hazards, true)
}

/// What the driver has to say: unsupported calls, kernels that nobody registered, arguments that do
/// not fit.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn notes() -> Vec<String> {
    list_texts(TextKind::Notes, false)
}

/// As [`notes`], which are forgotten.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn take_notes() -> Vec<String> {
    list_texts(TextKind::Notes, true)
}

/// Lets the `nth` call from now on (counted from 1) of the function `name` return `code`, a
/// CUresult, and do nothing. Once.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn fail_nth(name: &str, nth: u64, code: u32) {
    add_fault(name, nth, code, false);
}

/// As [`fail_nth`], counting calls of all functions.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn fail_any(nth: u64, code: u32) {
    add_fault("", nth, code, false);
}

/// Lets the `nth` piece of work from now on (a copy, fill or launch that is queued, counted from 1)
/// fail with `code` when it runs. Its context is lost.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn fail_late(nth: u64, code: u32) {
    add_fault("", nth, code, true);
}

/// Forgets all faults that were asked for and have not come up.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn forget_faults() {
    add_fault("", 0, 0, false);
}

/// Bytes that are allocated on a device and not freed.
///
/// # Panics
///
/// If the driver is not loaded.
#[must_use]
pub fn memory_in_use(device: u32) -> u64 {
    let memory: protocol::Memory = function_of(symbol::MEMORY);
    // SAFETY: it takes a number and gives one back.
    unsafe { memory(device) }
}

fn add_fault(name: &str, nth: u64, code: u32, late: bool) {
    let fail: protocol::Fail = function_of(symbol::FAIL);
    // SAFETY: the name lives for the call, which copies it.
    unsafe { fail(RawText::of(name), nth, code, late) };
}

fn list_calls(take: bool) -> Vec<Call> {
    let list: protocol::Calls = function_of(symbol::CALLS);
    let mut calls: Vec<Call> = Vec::new();
    // SAFETY: the list lives for the call, and is what `visit_call` takes it for.
    unsafe { list(take, visit_call, (&raw mut calls).cast()) };
    calls
}

fn list_texts(kind: TextKind, take: bool) -> Vec<String> {
    let list: protocol::Texts = function_of(symbol::TEXTS);
    let mut texts: Vec<String> = Vec::new();
    // SAFETY: the list lives for the call, and is what `visit_text` takes it for.
    unsafe { list(kind, take, visit_text, (&raw mut texts).cast()) };
    texts
}

unsafe extern "C" fn visit_call(list: *mut c_void, call: RawCall) {
    // SAFETY: `list_calls` passes its own list, which nobody else touches during the call.
    let calls = unsafe { &mut *list.cast::<Vec<Call>>() };
    // SAFETY: the driver passes the text of a live string.
    let name = unsafe { call.name.get() }.to_owned();
    calls.push(Call { name, len_bytes: call.len_bytes, stream: call.stream, code: call.code });
}

unsafe extern "C" fn visit_text(list: *mut c_void, text: RawText) {
    // SAFETY: `list_texts` passes its own list, which nobody else touches during the call.
    let texts = unsafe { &mut *list.cast::<Vec<String>>() };
    // SAFETY: the driver passes the text of a live string.
    texts.push(unsafe { text.get() }.to_owned());
}

fn function_of<F: Copy>(name: &str) -> F {
    let driver = DRIVER.get().expect("the stand-in driver is not loaded: call `load` first");
    driver.function(name).unwrap_or_else(|fault| panic!("{fault}"))
}
