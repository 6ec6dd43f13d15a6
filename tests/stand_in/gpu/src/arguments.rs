//! Arguments that come from C. Each pointer is checked for null where it is used. The caller of a
//! driver function guarantees what CUDA's manual requires: a non-null pointer is valid for its
//! type, and a text ends with a zero. The functions rely on no other guarantee.

use std::ffi::{CStr, c_char, c_void};

use crate::code::{Code, Outcome};

/// A pointer to a result.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A pointer into this process.
    pub fn at(place: *mut c_void) -> Self {
        Self(place.cast())
    }

    /// Writes the result. Returns CUDA_ERROR_INVALID_VALUE for a null pointer.
    pub fn set(self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver function guarantees a pointer to a value of this type
        // (see the module).
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result unless the pointer is null.
    pub fn set_if_wanted(self, value: T) {
        let _unwanted = self.set(value);
    }

    /// Rejects a null pointer before anything is done.
    pub fn check(self) -> Outcome {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes an array of results.
    pub fn set_all(self, values: impl IntoIterator<Item = T>) -> Outcome {
        let mut place = self.0;
        values.into_iter().try_for_each(|value| {
            Self(place).set(value)?;
            place = place.wrapping_add(1);
            Ok(())
        })
    }
}

/// A pointer to a value or to an array.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// A pointer to values in this process.
    pub fn at(place: *const c_void) -> Self {
        Self(place.cast())
    }

    /// The value. Returns CUDA_ERROR_INVALID_VALUE for a null pointer.
    pub fn get(self) -> Outcome<T> {
        self.nth(0)
    }

    /// The element as a result of another type.
    pub fn place<R>(self, index: usize) -> Out<R> {
        Out(self.0.wrapping_add(index).cast_mut().cast())
    }

    /// The element of the array.
    pub fn nth(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver function guarantees an array with this many values (see
        // the module).
        Ok(unsafe { self.0.wrapping_add(index).read_unaligned() })
    }

    /// The pointer.
    pub fn address(self) -> *const c_void {
        self.0.cast()
    }

    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A C string.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text(*const c_char);

impl Text {
    /// The text's bytes, copied.
    pub fn get(self) -> Outcome<Vec<u8>> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver function guarantees a text that ends with a zero (see
        // the module).
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }

    /// The text as a string. Returns CUDA_ERROR_INVALID_VALUE for invalid UTF-8.
    pub fn string(self) -> Outcome<String> {
        String::from_utf8(self.get()?).map_err(|_| Code::INVALID_VALUE)
    }
}
