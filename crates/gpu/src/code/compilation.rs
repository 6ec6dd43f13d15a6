//! One run of a compiler.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

use super::compiler_library::{CompilerLibrary, Content, ProgramHandle, Size};
use resident_code::headers::Header;

/// An `nvrtcProgram` or `hiprtcProgram`, destroyed on drop.
pub(super) struct Compilation {
    compiler: &'static CompilerLibrary,
    handle: ProgramHandle,
}

impl Compilation {
    /// Creates a program from a text and its name in the log, with headers that it may include.
    pub(super) fn new(
        compiler: &'static CompilerLibrary,
        (text, file): (&str, &str),
        headers: &[&Header],
    ) -> Result<Self, String> {
        let text = c_string(text)?;
        let file = c_string(file)?;
        let mut handle = null_mut();
        let own = compiler.product.headers.iter().map(|(name, text)| (*name, *text));
        let given = headers.iter().map(|header| (&*header.name, &*header.text));
        let (names, texts): (Vec<*const c_char>, Vec<*const c_char>) =
            own.chain(given).map(|(name, text)| (name.as_ptr(), text.as_ptr())).unzip();
        let (count, contents, names) = match names.len() {
            0 => (0, null(), null()),
            count => (count as c_int, texts.as_ptr(), names.as_ptr()),
        };
        // SAFETY: the call copies the texts, which outlive the call; there are `count` headers,
        // each with contents and a name.
        compiler.check(unsafe {
            (compiler.create)(&raw mut handle, text.as_ptr(), file.as_ptr(), count, contents, names)
        })?;
        Ok(Self { compiler, handle })
    }

    /// Adds the function of a name expression to the code. Call it before `run`.
    pub(super) fn add_expression(&self, expression: &CStr) -> Result<(), String> {
        // SAFETY: the program is not destroyed yet; the call copies the text.
        self.compiler
            .check(unsafe { (self.compiler.add_expression)(self.handle, expression.as_ptr()) })
    }

    /// Compiles. The error is the compiler's log.
    pub(super) fn run(&self, options: &[String]) -> Result<(), String> {
        let options: Vec<CString> =
            options.iter().map(|option| c_string(option)).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len())
            .map_err(|_| "there are more options than a compiler takes".to_owned())?;
        // SAFETY: the program is not destroyed yet; `pointers` has `count` options, which outlive
        // the call.
        let outcome = unsafe { (self.compiler.compile)(self.handle, count, pointers.as_ptr()) };
        self.compiler.check(outcome).map_err(|error| self.log().unwrap_or(error))
    }

    /// The compiler's log, unless it is empty.
    pub(super) fn log(&self) -> Option<String> {
        // SAFETY: the two functions return the size and the bytes of the log.
        let log = unsafe { self.bytes(self.compiler.log_size, self.compiler.log) }.ok()?;
        Some(String::from_utf8_lossy(&log).trim_matches(['\0', '\n']).to_owned())
            .filter(|log| !log.is_empty())
    }

    /// The PTX without its final zero. Empty if the compiler made no PTX.
    pub(super) fn ptx(&self) -> Result<Vec<u8>, String> {
        let (Some(size), Some(content)) = (self.compiler.ptx_size, self.compiler.ptx) else {
            return Ok(Vec::new());
        };
        // SAFETY: the two functions return the size and the bytes of the PTX.
        let mut ptx = unsafe { self.bytes(size, content) }?;
        ptx.truncate(ptx.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Ok(ptx)
    }

    /// The machine code: a cubin, or an AMD code object. It is empty for a virtual architecture,
    /// and with options that request other output.
    pub(super) fn machine_code(&self) -> Result<Vec<u8>, String> {
        let compiler = self.compiler;
        let functions = compiler.cubin_size.zip(compiler.cubin);
        let Some((size, content)) = functions.or(compiler.code_size.zip(compiler.code)) else {
            return Err(format!("this {} returns no machine code", compiler.product.name));
        };
        // SAFETY: the two functions return the size and the bytes of the machine code.
        unsafe { self.bytes(size, content) }
    }

    /// # Safety
    ///
    /// `size` returns the number of bytes that `content` writes.
    unsafe fn bytes(&self, size: Size, content: Content) -> Result<Vec<u8>, String> {
        let mut len_bytes = 0;
        // SAFETY: the program is not destroyed yet; the library writes one size.
        self.compiler.check(unsafe { size(self.handle, &raw mut len_bytes) })?;
        let mut bytes = vec![0; len_bytes];
        if len_bytes > 0 {
            // SAFETY: the vector has the length that `size` has just returned (the caller's
            // promise).
            self.compiler.check(unsafe { content(self.handle, bytes.as_mut_ptr().cast()) })?;
        }
        Ok(bytes)
    }

    /// The lowered (mangled) name of the function that an added name expression selects.
    pub(super) fn lowered_name(&self, expression: &CStr) -> Result<String, String> {
        let mut name = null();
        // SAFETY: the program is not destroyed yet, and was compiled with this expression.
        self.compiler.check(unsafe {
            (self.compiler.lowered_name)(self.handle, expression.as_ptr(), &raw mut name)
        })?;
        // SAFETY: on success the pointer leads to a text that ends with a zero and lives as long as
        // the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        // SAFETY: the program is not destroyed yet, and only this value has the handle.
        let _destroyed = unsafe { (self.compiler.destroy)(&raw mut self.handle) };
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
