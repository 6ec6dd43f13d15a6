//! One run of NVRTC.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

use super::nvrtc::{Content, Handle, Nvrtc, Size};

/// An `nvrtcProgram`, destroyed on drop.
pub(super) struct Compilation {
    nvrtc: &'static Nvrtc,
    handle: Handle,
}

impl Compilation {
    /// Creates a program from a text; `file` is its name in the log.
    pub(super) fn new(nvrtc: &'static Nvrtc, text: &str, file: &str) -> Result<Self, String> {
        let (text, file) = (c_string(text)?, c_string(file)?);
        let mut handle = null_mut();
        // SAFETY: the call copies the two texts, which outlive the call; the number of headers is
        // 0.
        nvrtc.check(unsafe {
            (nvrtc.create)(&raw mut handle, text.as_ptr(), file.as_ptr(), 0, null(), null())
        })?;
        Ok(Self { nvrtc, handle })
    }

    /// Adds the function of a name expression to the code. Call it before `run`.
    pub(super) fn add_expression(&self, expression: &CStr) -> Result<(), String> {
        // SAFETY: the program is not destroyed yet; the call copies the text.
        self.nvrtc.check(unsafe { (self.nvrtc.add_expression)(self.handle, expression.as_ptr()) })
    }

    /// Compiles. The error is the compiler's log.
    pub(super) fn run(&self, options: &[String]) -> Result<(), String> {
        let options: Vec<CString> =
            options.iter().map(|option| c_string(option)).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len())
            .map_err(|_| "there are more options than NVRTC takes".to_owned())?;
        // SAFETY: the program is not destroyed yet; `pointers` has `count` options, which outlive
        // the call.
        let outcome = unsafe { (self.nvrtc.compile)(self.handle, count, pointers.as_ptr()) };
        self.nvrtc.check(outcome).map_err(|error| self.log().unwrap_or(error))
    }

    /// The compiler's log, unless it is empty.
    fn log(&self) -> Option<String> {
        // SAFETY: the two functions return the size and the bytes of the log.
        let log = unsafe { self.bytes(self.nvrtc.log_size, self.nvrtc.log) }.ok()?;
        Some(String::from_utf8_lossy(&log).trim_matches(['\0', '\n']).to_owned())
            .filter(|log| !log.is_empty())
    }

    /// The PTX without its final zero. Empty if the compiler made no PTX.
    pub(super) fn ptx(&self) -> Result<Vec<u8>, String> {
        // SAFETY: the two functions return the size and the bytes of the PTX.
        let mut ptx = unsafe { self.bytes(self.nvrtc.ptx_size, self.nvrtc.ptx) }?;
        ptx.truncate(ptx.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Ok(ptx)
    }

    /// The machine code (cubin). It is empty for a virtual architecture, and with options that
    /// request other output.
    pub(super) fn cubin(&self) -> Result<Vec<u8>, String> {
        // SAFETY: the two functions return the size and the bytes of the cubin.
        unsafe { self.bytes(self.nvrtc.cubin_size, self.nvrtc.cubin) }
    }

    /// # Safety
    ///
    /// `size` returns the number of bytes that `content` writes.
    unsafe fn bytes(&self, size: Size, content: Content) -> Result<Vec<u8>, String> {
        let mut len_bytes = 0;
        // SAFETY: the program is not destroyed yet; the library writes one size.
        self.nvrtc.check(unsafe { size(self.handle, &raw mut len_bytes) })?;
        let mut bytes = vec![0; len_bytes];
        if len_bytes > 0 {
            // SAFETY: the vector has the length that `size` has just returned (the caller's
            // promise).
            self.nvrtc.check(unsafe { content(self.handle, bytes.as_mut_ptr().cast()) })?;
        }
        Ok(bytes)
    }

    /// The lowered (mangled) name of the function that an added name expression selects.
    pub(super) fn lowered_name(&self, expression: &CStr) -> Result<String, String> {
        let mut name = null();
        // SAFETY: the program is not destroyed yet, and was compiled with this expression.
        self.nvrtc.check(unsafe {
            (self.nvrtc.lowered_name)(self.handle, expression.as_ptr(), &raw mut name)
        })?;
        // SAFETY: on success the pointer leads to a text that ends with a zero and lives as long as
        // the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        // SAFETY: the program is not destroyed yet, and only this value has the handle.
        let _destroyed = unsafe { (self.nvrtc.destroy)(&raw mut self.handle) };
    }
}

/// The text with a final zero.
pub(super) fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error| {
        format!(
            "there is a zero byte at {} of {:?}, where C's texts end",
            error.nul_position(),
            text.chars().take(40).collect::<String>()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::c_string;

    #[test]
    fn texts_with_a_zero_byte_are_refused() {
        let error = c_string("before\0after").expect_err("a zero within");
        assert!(error.contains("at 6 of \"before\\0after\""), "{error}");
    }
}
