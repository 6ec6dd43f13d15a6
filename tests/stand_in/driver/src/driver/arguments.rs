//! Arguments as they come from C. Each is checked for null where it is used; that it is else what
//! CUDA's manual says (a valid place of its type, a text with an end) is what the caller of any
//! driver function promises, and all that the functions rely on.

use std::ffi::{CStr, c_char, c_void};

use super::code::{Code, Outcome};

/// A place for a result.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place of this process.
    pub(super) fn at(place: *mut c_void) -> Self {
        Self(place.cast())
    }

    /// Writes the result; a null place is an invalid value.
    pub(super) fn set(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver function promises a place for a value of this type
        // (module).
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result where there is a place.
    pub(super) fn set_if_wanted(self, value: T) {
        let _unwanted = self.set(value);
    }

    /// Refuses a null place before anything is done.
    pub(super) fn check(self) -> Outcome {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// The values of an array of results.
    pub(super) fn nth(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }
}

/// A value, or an array of them.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(super) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Values of this process.
    pub(super) fn at(place: *const c_void) -> Self {
        Self(place.cast())
    }

    /// The value; null is an invalid value.
    pub(super) fn get(self) -> Outcome<T> {
        self.nth(0)
    }

    /// The place of a value, where a result of another type goes.
    pub(super) fn place<R>(self, index: usize) -> Out<R> {
        Out(self.0.wrapping_add(index).cast_mut().cast())
    }

    /// A value of the array.
    pub(super) fn nth(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver function promises so many values of this type (module).
        Ok(unsafe { self.0.wrapping_add(index).read_unaligned() })
    }

    /// Whether there is none.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A text.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Text(*const c_char);

impl Text {
    /// The text's bytes, copied.
    pub(super) fn get(self) -> Outcome<Vec<u8>> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver function promises a text with an end (module).
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }

    /// As text; what is not UTF-8 is an invalid value.
    pub(super) fn string(self) -> Outcome<String> {
        String::from_utf8(self.get()?).map_err(|_| Code::INVALID_VALUE)
    }
}
