//! The client: it loads a driver and controls it.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::launch::{Fault, Launch, register};
use crate::library::Library;
use crate::protocol::{Control, GetControl, Parameter, RawCall, RawText, TextKind};
use crate::settings::Values;

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

/// What controls one driver. The stand-in for the driver has one, in a static, and the functions of
/// [`client_functions`](crate::client_functions).
#[derive(Debug)]
pub struct Client {
    /// The function of the shared object that returns its table.
    symbol: &'static str,
    open: fn(&Values) -> Result<Library, String>,
    loaded: Mutex<Option<Values>>,
    /// The table of the loaded driver, which is never unloaded.
    control: OnceLock<&'static Control>,
}

impl Client {
    /// The client of the driver that `open` loads, and whose function `symbol` is a `GetControl`.
    #[must_use]
    pub const fn new(symbol: &'static str, open: fn(&Values) -> Result<Library, String>) -> Self {
        Self { symbol, open, loaded: Mutex::new(None), control: OnceLock::new() }
    }

    /// Loads the driver, at the first call. It is an error if an earlier call passed other
    /// settings.
    pub fn load(&self, settings: &Values) -> Result<(), String> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = *loaded {
            return if before == *settings {
                Ok(())
            } else {
                Err(format!("the stand-in driver is loaded with other settings: {before:?}"))
            };
        }
        let library = (self.open)(settings)?;
        let control: GetControl = library.function(self.symbol)?;
        let control = control();
        // SAFETY: the settings are live during the call, which copies them.
        if unsafe { (control.configure)(settings, false) } != 0 {
            return Err("the stand-in driver was used before it got its settings: load it before \
                the first call to a driver"
                .to_owned());
        }
        let _first = self.control.set(control);
        *loaded = Some(*settings);
        Ok(())
    }

    /// Changes the settings, unless a context is retained.
    pub fn change(&self, settings: &Values) -> Result<(), String> {
        // SAFETY: the settings are live during the call, which copies them.
        match unsafe { (self.control().configure)(settings, true) } {
            0 => Ok(()),
            _ => Err("a context is in use: release all contexts and everything that retains them \
                before changing the settings"
                .to_owned()),
        }
    }

    /// Registers a host function for a kernel.
    pub fn register(
        &self,
        name: &str,
        parameters: &[Parameter],
        function: impl Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync + 'static,
    ) {
        register(self.control().register, name, parameters, function);
    }

    /// Registers only the parameters of a kernel.
    pub fn declare(&self, name: &str, parameters: &[Parameter]) {
        let (name, count, function) = (RawText::of(name), parameters.len(), std::ptr::null());
        // SAFETY: name and parameters are live during the call, which copies them.
        unsafe { (self.control().register)(name, parameters.as_ptr(), count, None, function) };
    }

    /// The calls so far; with `take`, also clears the record.
    #[must_use]
    pub fn calls(&self, take: bool) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        // SAFETY: the list is live during the call and has the type that `visit_call` expects.
        unsafe { (self.control().calls)(take, visit_call, (&raw mut calls).cast()) };
        calls
    }

    /// The texts of a kind so far; with `take`, also clears the record.
    #[must_use]
    pub fn texts(&self, kind: TextKind, take: bool) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        // SAFETY: the list is live during the call and has the type that `visit_text` expects.
        unsafe { (self.control().texts)(kind, take, visit_text, (&raw mut texts).cast()) };
        texts
    }

    /// Requests a failure: see [`Fail`](crate::protocol::Fail).
    pub fn fail(&self, name: &str, nth: u64, code: u32, late: bool) {
        // SAFETY: the name is live during the call, which copies it.
        unsafe { (self.control().fail)(RawText::of(name), nth, code, late) };
    }

    /// Bytes that are allocated on a device and not yet freed.
    #[must_use]
    pub fn memory_in_use(&self, device: u32) -> u64 {
        // SAFETY: the function takes and returns a number.
        unsafe { (self.control().memory)(device) }
    }

    fn control(&self) -> &'static Control {
        self.control.get().expect("the stand-in driver is not loaded: call `load` first")
    }
}

unsafe extern "C" fn visit_call(list: *mut c_void, call: RawCall) {
    // SAFETY: `calls` passes its own list, and nothing else accesses it during the call.
    let calls = unsafe { &mut *list.cast::<Vec<Call>>() };
    // SAFETY: the driver passes the text of a live string.
    let name = unsafe { call.name.get() }.to_owned();
    calls.push(Call { name, len_bytes: call.len_bytes, stream: call.stream, code: call.code });
}

unsafe extern "C" fn visit_text(list: *mut c_void, text: RawText) {
    // SAFETY: `texts` passes its own list, and nothing else accesses it during the call.
    let texts = unsafe { &mut *list.cast::<Vec<String>>() };
    // SAFETY: the driver passes the text of a live string.
    texts.push(unsafe { text.get() }.to_owned());
}

/// Defines the functions by which tests load and control the driver of a [`Client`]. The type of
/// its settings is `Settings`. All but `load` panic if the driver is not loaded.
#[macro_export]
macro_rules! client_functions {
    ($client:path) => {
        /// Loads the driver into this process. Each test must call it before anything looks for a
        /// real driver, and all tests of a process must pass the same settings. The first call
        /// loads the driver; later calls do nothing.
        ///
        /// # Errors
        ///
        /// If the driver cannot be found, with the paths that were tried; or if an earlier call
        /// passed other settings.
        pub fn load(settings: Settings) -> Result<(), String> {
            $client.load(settings.values())
        }

        /// Changes the settings for contexts that are created from now on, for example the seed.
        ///
        /// # Errors
        ///
        /// While a context is retained.
        pub fn change(settings: Settings) -> Result<(), String> {
            $client.change(settings.values())
        }

        /// Makes `function` replace the kernel whose entry has this name, in all modules, whatever
        /// its code does: for kernels that wait for the test or fail, and for PTX by hand. A later
        /// registration replaces an earlier one. A C++ name may be given as in the source (`blur`)
        /// or as lowered by the compiler (`_Z4blurPf`). The function must access memory only as
        /// `parameters` declare, because the check for unordered accesses uses them.
        pub fn register(
            name: &str,
            parameters: &[$crate::protocol::Parameter],
            function: impl Fn(&$crate::Launch<'_>) -> Result<(), $crate::Fault>
            + Send
            + Sync
            + 'static,
        ) {
            $client.register(name, parameters, function);
        }

        /// Tells which memory the kernel with this name accesses, for the check for unordered
        /// accesses. Of a kernel that is not declared, the check knows what its C++ types tell:
        /// which elements a `resident::View` has, and that nothing is written to `const`. At a bare
        /// pointer it takes all up to the end of the allocation as accessed. Where a kernel may
        /// write, the check does not look for reads of what was never written. Pointers in structs
        /// are not checked.
        pub fn declare(name: &str, parameters: &[$crate::protocol::Parameter]) {
            $client.declare(name, parameters);
        }

        /// The calls so far, in order.
        #[must_use]
        pub fn calls() -> Vec<$crate::Call> {
            $client.calls(false)
        }

        /// Like [`calls`], and clears the record.
        pub fn take_calls() -> Vec<$crate::Call> {
            $client.calls(true)
        }

        /// The unordered accesses found on all devices, as texts of the embedded device's hazards.
        #[must_use]
        pub fn hazards() -> Vec<String> {
            $client.texts($crate::protocol::TextKind::Hazards, false)
        }

        /// Like [`hazards`], and clears the record.
        pub fn take_hazards() -> Vec<String> {
            $client.texts($crate::protocol::TextKind::Hazards, true)
        }

        /// The driver's notes: calls that it does not support, kernels without code, arguments that
        /// do not match the registration, and why compiled kernels failed.
        #[must_use]
        pub fn notes() -> Vec<String> {
            $client.texts($crate::protocol::TextKind::Notes, false)
        }

        /// Like [`notes`], and clears the record.
        pub fn take_notes() -> Vec<String> {
            $client.texts($crate::protocol::TextKind::Notes, true)
        }

        /// Makes a future call of the function `name` do nothing and return `code`: the `nth` from
        /// now on, counted from 1. This happens once.
        pub fn fail_nth(name: &str, nth: u64, code: u32) {
            $client.fail(name, nth, code, false);
        }

        /// Like [`fail_nth`], but counts the calls of all functions.
        pub fn fail_any(nth: u64, code: u32) {
            $client.fail("", nth, code, false);
        }

        /// Makes the `nth` operation that is queued from now on (a copy, fill or launch, counted
        /// from 1) fail with `code` when it runs. Its context is then lost.
        pub fn fail_late(nth: u64, code: u32) {
            $client.fail("", nth, code, true);
        }

        /// Removes all requested faults that have not occurred yet.
        pub fn forget_faults() {
            $client.fail("", 0, 0, false);
        }

        /// Bytes that are allocated on a device and not yet freed.
        #[must_use]
        pub fn memory_in_use(device: u32) -> u64 {
            $client.memory_in_use(device)
        }
    };
}
