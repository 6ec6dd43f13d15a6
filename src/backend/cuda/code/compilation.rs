//! One compilation by NVRTC.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

use super::nvrtc::{Content, Handle, Nvrtc, Size};

/// A program of NVRTC's, which lives as long.
pub(super) struct Compilation {
    nvrtc: &'static Nvrtc,
    handle: Handle,
}

impl Compilation {
    /// Of a text that the log calls `file`.
    pub(super) fn new(nvrtc: &'static Nvrtc, text: &str, file: &str) -> Result<Self, String> {
        let (text, file) = (c_string(text)?, c_string(file)?);
        let mut handle = null_mut();
        // SAFETY: both texts live through the call, which copies them; there are no headers.
        nvrtc.check(unsafe {
            (nvrtc.create)(&raw mut handle, text.as_ptr(), file.as_ptr(), 0, null(), null())
        })?;
        Ok(Self { nvrtc, handle })
    }

    /// The function of a name expression is to be in the code. Before it is run.
    pub(super) fn add(&self, expression: &CStr) -> Result<(), String> {
        // SAFETY: the program is alive, and copies the text.
        self.nvrtc.check(unsafe { (self.nvrtc.add_expression)(self.handle, expression.as_ptr()) })
    }

    /// Compiles, or says why not, as the log does.
    pub(super) fn run(&self, options: &[String]) -> Result<(), String> {
        let options: Vec<CString> =
            options.iter().map(|option| c_string(option)).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len())
            .map_err(|_| "there are more options than NVRTC takes".to_owned())?;
        // SAFETY: the program is alive, and so are as many options as are said.
        let outcome = unsafe { (self.nvrtc.compile)(self.handle, count, pointers.as_ptr()) };
        self.nvrtc.check(outcome).map_err(|fault| self.log().unwrap_or(fault))
    }

    /// What the compiler had to say, if anything.
    fn log(&self) -> Option<String> {
        // SAFETY: both are of the log.
        let log = unsafe { self.bytes(self.nvrtc.log_size, self.nvrtc.log) }.ok()?;
        Some(String::from_utf8_lossy(&log).trim_matches(['\0', '\n']).to_owned())
            .filter(|log| !log.is_empty())
    }

    /// Without the zero that ends it. Empty where none was made.
    pub(super) fn ptx(&self) -> Result<Vec<u8>, String> {
        // SAFETY: both are of the PTX.
        let mut ptx = unsafe { self.bytes(self.nvrtc.ptx_size, self.nvrtc.ptx) }?;
        ptx.truncate(ptx.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Ok(ptx)
    }

    /// Empty where none was made: for a virtual architecture, and with options that ask for
    /// something else.
    pub(super) fn cubin(&self) -> Result<Vec<u8>, String> {
        // SAFETY: both are of the cubin.
        unsafe { self.bytes(self.nvrtc.cubin_size, self.nvrtc.cubin) }
    }

    /// # Safety
    ///
    /// `size` writes how many bytes `content` will write.
    unsafe fn bytes(&self, size: Size, content: Content) -> Result<Vec<u8>, String> {
        let mut len_bytes = 0;
        // SAFETY: the program is alive while `self` is, and one size is written.
        self.nvrtc.check(unsafe { size(self.handle, &raw mut len_bytes) })?;
        let mut bytes = vec![0; len_bytes];
        if len_bytes > 0 {
            // SAFETY: there is room for as many bytes as the library has just said.
            self.nvrtc.check(unsafe { content(self.handle, bytes.as_mut_ptr().cast()) })?;
        }
        Ok(bytes)
    }

    /// How the code calls the function of an expression that was added.
    pub(super) fn lowered_name(&self, expression: &CStr) -> Result<String, String> {
        let mut name = null();
        // SAFETY: the program is alive, was given this expression, and has been compiled.
        self.nvrtc.check(unsafe {
            (self.nvrtc.lowered_name)(self.handle, expression.as_ptr(), &raw mut name)
        })?;
        // SAFETY: on success it points to a text that ends with a zero and lives as long as the
        // program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and nobody else has the handle. That it cannot be freed is
        // no concern of anybody's.
        let _freed = unsafe { (self.nvrtc.destroy)(&raw mut self.handle) };
    }
}

/// A text as C has it.
pub(super) fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|zero| {
        format!(
            "there is a zero byte at {} of {:?}, where C's texts end",
            zero.nul_position(),
            start_of(text)
        )
    })
}

/// Enough of a text to recognise it.
fn start_of(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::c_string;

    #[test]
    fn texts_that_c_cannot_hold_are_refused() {
        let fault = c_string("before\0after").expect_err("a zero within");
        assert!(fault.contains("at 6 of \"before\\0after\""), "{fault}");
    }
}
