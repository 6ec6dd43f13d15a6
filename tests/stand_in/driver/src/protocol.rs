//! What passes between the client and the driver. Both are made of this very file, so that the
//! layouts agree.

use std::ffi::c_void;

/// How a kernel uses the memory of a parameter.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It reads it.
    Read,
    /// It writes all of it, and reads none of it before.
    Write,
    /// It may read and may write it.
    ReadWrite,
}

/// How many bytes a kernel may touch from a pointer on.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// So many.
    Bytes(u64),
    /// All up to the end of the allocation that the pointer points into.
    ToEnd,
    /// Elements, counted by the scalar parameter of this number (from 0), an integer of 4 or 8
    /// bytes.
    Counted {
        /// The parameter that counts.
        by: u32,
        /// Bytes of one element.
        element_bytes: u64,
    },
}

/// What a parameter of a kernel is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// A plain value.
    Scalar {
        /// Bytes of it.
        len_bytes: u32,
    },
    /// A pointer to device memory.
    Pointer {
        /// How it is used.
        access: Access,
        /// How many bytes of it.
        length: Length,
    },
    /// A view by value: `{ T* data; int64_t shape[N]; int64_t strides[N]; }`, strides in elements,
    /// possibly negative; `data` is element 0, 0, ...
    View {
        /// N.
        dimensions: u32,
        /// Bytes of one element.
        element_bytes: u32,
        /// How it is used.
        access: Access,
    },
}

/// One call of the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCall {
    pub(crate) name: RawText,
    pub(crate) len_bytes: u64,
    pub(crate) stream: u64,
    pub(crate) code: u32,
}

/// A text that lives for the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawText {
    pub(crate) start: *const u8,
    pub(crate) len_bytes: usize,
}

impl RawText {
    pub(crate) fn of(text: &str) -> Self {
        Self { start: text.as_ptr(), len_bytes: text.len() }
    }

    /// # Safety
    ///
    /// It was made by `of` from a text that still lives.
    pub(crate) unsafe fn get<'a>(self) -> &'a str {
        // SAFETY: the caller says that these are the bytes of a live text.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.len_bytes) };
        std::str::from_utf8(bytes).unwrap_or("text that is not UTF-8")
    }
}

/// A parameter of a launch, device addresses turned into pointers of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawArgument {
    /// A scalar's bytes; the memory at a pointer; element 0, 0, ... of a view.
    pub(crate) start: *mut u8,
    /// Of a scalar or a pointer's memory.
    pub(crate) len_bytes: u64,
    /// Shape and then strides of a view.
    pub(crate) extents: *const i64,
    pub(crate) dimensions: u32,
    pub(crate) element_bytes: u32,
}

/// A launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLaunch {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) argument_count: u32,
    pub(crate) arguments: *const RawArgument,
}

/// Runs a registered host function; gives back a CUresult. Never unwinds.
pub(crate) type RunLaunch =
    unsafe extern "C" fn(function: *const c_void, launch: *const RawLaunch) -> u32;

/// Takes one item of a list.
pub(crate) type VisitText = unsafe extern "C" fn(list: *mut c_void, text: RawText);
/// As above.
pub(crate) type VisitCall = unsafe extern "C" fn(list: *mut c_void, call: RawCall);

/// What the driver exports for the client, by name.
pub(crate) mod symbol {
    pub(crate) const CONFIGURE: &str = "resident_stand_in_configure";
    pub(crate) const REGISTER: &str = "resident_stand_in_register";
    pub(crate) const CALLS: &str = "resident_stand_in_calls";
    pub(crate) const TEXTS: &str = "resident_stand_in_texts";
    pub(crate) const FAIL: &str = "resident_stand_in_fail";
    pub(crate) const MEMORY: &str = "resident_stand_in_memory";
}

/// 0 if the settings hold from now on. 1 if others do already, unless it is `again`, or while the
/// machine runs.
pub(crate) type Configure =
    unsafe extern "C" fn(settings: *const crate::Settings, again: bool) -> u32;
pub(crate) type Register = unsafe extern "C" fn(
    name: RawText,
    parameters: *const Parameter,
    parameter_count: usize,
    run: RunLaunch,
    function: *const c_void,
);
/// `take`: forgets what it told.
pub(crate) type Calls = unsafe extern "C" fn(take: bool, visit: VisitCall, list: *mut c_void);
pub(crate) type Texts =
    unsafe extern "C" fn(kind: TextKind, take: bool, visit: VisitText, list: *mut c_void);
/// `name` empty: any call, or for a late one any work. `nth` 0: forget all faults.
pub(crate) type Fail = unsafe extern "C" fn(name: RawText, nth: u64, code: u32, late: bool);
/// Bytes in use on a device.
pub(crate) type Memory = unsafe extern "C" fn(device: u32) -> u64;

/// Which texts.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextKind {
    /// What the check of ordering found.
    Hazards,
    /// What the driver has to say: unsupported calls, kernels that nobody registered.
    Notes,
}
