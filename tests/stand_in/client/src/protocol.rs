//! The types that pass between the client and the driver. Both are built from this file, so the
//! layouts agree.

use std::ffi::c_void;

use crate::settings::Values;

/// How a kernel uses the memory of a parameter.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The kernel only reads it.
    Read,
    /// The kernel writes all of it and reads nothing before that.
    Write,
    /// The kernel may read and write it.
    ReadWrite,
}

/// How many bytes a kernel may access at a pointer.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// This many bytes.
    Bytes(u64),
    /// All bytes up to the end of the allocation that contains the pointer.
    ToEnd,
    /// As many elements as the value of another parameter: a scalar integer of 4 or 8 bytes.
    Counted {
        /// The index of that parameter, counted from 0.
        by: u32,
        /// Bytes of one element.
        element_bytes: u64,
    },
}

/// A parameter of a kernel.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// A plain value.
    Scalar {
        /// Its size.
        len_bytes: u32,
    },
    /// A pointer to device memory.
    Pointer {
        /// How the memory is used.
        access: Access,
        /// How many bytes are used.
        length: Length,
    },
    /// A view by value: `{ T* data; int64_t shape[N]; int64_t strides[N]; }`, strides in elements,
    /// possibly negative; `data` points to element (0, 0, ...).
    View {
        /// The number of dimensions, `N`.
        dimensions: u32,
        /// Bytes of one element.
        element_bytes: u32,
        /// How the memory is used.
        access: Access,
    },
}

/// One call of the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawCall {
    pub name: RawText,
    pub len_bytes: u64,
    pub stream: u64,
    pub code: u32,
}

/// A text that is live during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawText {
    pub start: *const u8,
    pub len_bytes: usize,
}

impl RawText {
    pub fn of(text: &str) -> Self {
        Self { start: text.as_ptr(), len_bytes: text.len() }
    }

    /// # Safety
    ///
    /// The value was made by `of` from a text that is still live.
    pub unsafe fn get<'a>(self) -> &'a str {
        // SAFETY: the caller guarantees that these are the bytes of a live text.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.len_bytes) };
        std::str::from_utf8(bytes).unwrap_or("text that is not UTF-8")
    }
}

/// An argument of a launch, with device addresses resolved to host pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawArgument {
    /// The bytes of a scalar, the memory at a pointer, or element (0, 0, ...) of a view.
    pub start: *mut u8,
    /// The size of a scalar or of the memory at a pointer.
    pub len_bytes: u64,
    /// The shape of a view, followed by its strides.
    pub extents: *const i64,
    pub dimensions: u32,
    pub element_bytes: u32,
}

/// A launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawLaunch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub argument_count: u32,
    pub arguments: *const RawArgument,
}

/// Runs a registered host function and returns a CUresult. It never unwinds.
pub type RunLaunch = unsafe extern "C" fn(function: *const c_void, launch: *const RawLaunch) -> u32;

/// Receives one text of a list.
pub type VisitText = unsafe extern "C" fn(list: *mut c_void, text: RawText);
/// Receives one call of a list.
pub type VisitCall = unsafe extern "C" fn(list: *mut c_void, call: RawCall);

/// The functions of the driver that the client calls. A driver exports one function that returns
/// the table, under a name of its own, because a test may load several drivers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Control {
    pub configure: Configure,
    pub register: Register,
    pub calls: Calls,
    pub texts: Texts,
    pub fail: Fail,
    pub memory: Memory,
}

/// Returns the table, which is static.
pub type GetControl = extern "C" fn() -> &'static Control;

/// Returns 0 if the settings apply from now on. Returns 1 while a context is retained, or if other
/// settings already apply and `again` is false.
pub type Configure = unsafe extern "C" fn(settings: *const Values, again: bool) -> u32;
/// Registers a host function for the kernel with this name; without `run` only its parameters.
pub type Register = unsafe extern "C" fn(
    name: RawText,
    parameters: *const Parameter,
    parameter_count: usize,
    run: Option<RunLaunch>,
    function: *const c_void,
);
/// Lists the recorded calls; with `take`, also clears the record.
pub type Calls = unsafe extern "C" fn(take: bool, visit: VisitCall, list: *mut c_void);
pub type Texts =
    unsafe extern "C" fn(kind: TextKind, take: bool, visit: VisitText, list: *mut c_void);
/// Requests a failure. If `name` is empty, any call counts, or any queued operation if `late` is
/// set. If `nth` is 0, all faults are removed.
pub type Fail = unsafe extern "C" fn(name: RawText, nth: u64, code: u32, late: bool);
/// Bytes in use on a device.
pub type Memory = unsafe extern "C" fn(device: u32) -> u64;

/// The kind of texts to list.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextKind {
    /// Unordered accesses.
    Hazards,
    /// Notes: about unsupported calls, kernels without code, and arguments that do not match.
    Notes,
}
