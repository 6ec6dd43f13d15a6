//! CUDA C to machine code, by NVRTC.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use cudarc::nvrtc::result::NvrtcError;
use cudarc::nvrtc::sys;

use super::ptx;
use crate::backend::cuda::library::NVRTC;

/// What came out: code for the driver, and what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Compiled {
    /// A cubin, or PTX text.
    pub(super) image: Vec<u8>,
    /// Under which name the code has the function that a name expression stands for.
    pub(super) lowered_name: Option<String>,
    /// The heads of all kernels, as PTX declares them.
    pub(super) declarations: String,
}

/// What is compiled, whatever it is compiled for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) text: String,
    /// What the log calls it.
    pub(super) file: String,
    pub(super) options: Vec<String>,
    /// Of the function to run, where it is no `extern "C"` one: `scale<float>`.
    pub(super) expression: Option<String>,
}

/// An architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// Machine code for compute capability 90, or what.
    Machine(u32),
    /// PTX for an older architecture than the device's, the newest that the compiler knows: the driver compiles it further.
    Virtual(u32),
}

impl Target {
    /// As NVRTC's option has it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Machine(capability) => format!("sm_{capability}"),
            Self::Virtual(capability) => format!("compute_{capability}"),
        }
    }

    /// The best for a device among those that a compiler knows.
    fn among(supported: &[u32], (major, minor): (u32, u32)) -> Result<Self, String> {
        let capability = 10 * major + minor;
        if supported.contains(&capability) {
            return Ok(Self::Machine(capability));
        }
        let older = supported.iter().copied().filter(|supported| *supported < capability).max();
        older.map(Self::Virtual).ok_or_else(|| {
            let oldest = supported.iter().min().copied().unwrap_or_default();
            format!("it compiles for sm_{oldest} and later, and the device is sm_{capability}: use an older NVRTC, or `CudaSource::ptx` or `cubin`")
        })
    }
}

/// The compiler that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Compiler {
    version: (i32, i32),
}

impl Compiler {
    /// Looks for NVRTC.
    pub(super) fn find() -> Result<Self, String> {
        if !NVRTC.is_present() {
            return Err(missing());
        }
        // SAFETY: the type does not matter, since nothing is called through this pointer.
        let since_11_2 = unsafe { NVRTC.function::<*const c_void>("nvrtcGetSupportedArchs") };
        if since_11_2.is_none() {
            return Err("the NVRTC that was found is older than 11.2; install a newer one".to_owned());
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library is there, and writes two `int`s.
        succeeded(unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) })?;
        Ok(Self { version: (major, minor) })
    }

    /// `13.5`
    pub(super) fn version(self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// What to compile for, for a device of that compute capability.
    pub(super) fn target(self, capability: (u32, u32)) -> Result<Target, String> {
        Target::among(&self.supported()?, capability).map_err(|fault| format!("NVRTC {} was found, but {fault}", self.version()))
    }

    /// Compute capabilities, as 90.
    pub(super) fn supported(self) -> Result<Vec<u32>, String> {
        let mut count = 0;
        // SAFETY: the library is there, and writes one `int`.
        succeeded(unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) })?;
        let mut supported: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or_default()];
        // SAFETY: there is room for as many as the library has just said that there are.
        succeeded(unsafe { sys::nvrtcGetSupportedArchs(supported.as_mut_ptr()) })?;
        Ok(supported.into_iter().filter_map(|capability| u32::try_from(capability).ok()).collect())
    }

    /// Compiles; or says what is wrong, as the compiler's log does.
    pub(super) fn compile(self, unit: &Unit, target: Target) -> Result<Compiled, String> {
        let program = Program::new(unit)?;
        let expression = unit.expression.as_deref().map(c_string).transpose()?;
        if let Some(expression) = &expression {
            // SAFETY: the program is alive, and copies the text.
            succeeded(unsafe { sys::nvrtcAddNameExpression(program.handle, expression.as_ptr()) })?;
        }
        program
            .compile(unit, target)
            .map_err(|log| format!("NVRTC {} for {} refuses the source, correct it:\n{log}", self.version(), target.name()))?;
        let ptx = program.ptx()?;
        let declarations = ptx::declarations(&String::from_utf8_lossy(&ptx));
        let image = match target {
            Target::Machine(_) => program.cubin()?,
            Target::Virtual(_) => ptx,
        };
        let lowered_name = expression.map(|expression| program.lowered_name(&expression)).transpose()?;
        Ok(Compiled { image, lowered_name, declarations })
    }
}

/// One compilation. The library's object lives as long.
struct Program {
    handle: sys::nvrtcProgram,
}

impl Program {
    fn new(unit: &Unit) -> Result<Self, String> {
        let (text, file) = (c_string(&unit.text)?, c_string(&unit.file)?);
        let mut handle = null_mut();
        // SAFETY: both texts live through the call, which copies them; there are no headers.
        succeeded(unsafe { sys::nvrtcCreateProgram(&raw mut handle, text.as_ptr(), file.as_ptr(), 0, null(), null()) })?;
        Ok(Self { handle })
    }

    fn compile(&self, unit: &Unit, target: Target) -> Result<(), String> {
        let architecture = format!("--gpu-architecture={}", target.name());
        let options = unit.options.iter().map(|option| c_string(option)).chain([c_string(&architecture)]);
        let options: Vec<CString> = options.collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|_| "there are more options than NVRTC takes".to_owned())?;
        // SAFETY: the program is alive, and so are as many options as are said.
        let outcome = unsafe { sys::nvrtcCompileProgram(self.handle, count, pointers.as_ptr()) };
        outcome.result().map_err(|failure| self.log().unwrap_or_else(|| failed(failure)))
    }

    /// What the compiler had to say, if anything.
    fn log(&self) -> Option<String> {
        // SAFETY: the program is alive.
        let log = unsafe { self.bytes(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog) }.ok()?;
        Some(String::from_utf8_lossy(&log).trim_matches(['\0', '\n']).to_owned()).filter(|log| !log.is_empty())
    }

    /// Without the zero that ends it.
    fn ptx(&self) -> Result<Vec<u8>, String> {
        // SAFETY: the program is alive.
        let mut ptx = unsafe { self.bytes(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX) }?;
        ptx.truncate(ptx.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Ok(ptx)
    }

    fn cubin(&self) -> Result<Vec<u8>, String> {
        // SAFETY: the program is alive.
        unsafe { self.bytes(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN) }
    }

    /// # Safety
    ///
    /// `size` writes how many bytes `content` will write.
    unsafe fn bytes(
        &self,
        size: unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult,
        content: unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult,
    ) -> Result<Vec<u8>, String> {
        let mut len_bytes = 0;
        // SAFETY: the program is alive while `self` is, and one size is written.
        succeeded(unsafe { size(self.handle, &raw mut len_bytes) })?;
        let mut bytes = vec![0; len_bytes];
        // SAFETY: there is room for as many bytes as the library has just said.
        succeeded(unsafe { content(self.handle, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn lowered_name(&self, expression: &CStr) -> Result<String, String> {
        let mut name = null();
        // SAFETY: the program is alive, was given this expression, and has been compiled.
        succeeded(unsafe { sys::nvrtcGetLoweredName(self.handle, expression.as_ptr(), &raw mut name) })?;
        // SAFETY: on success it points to a text that ends with a zero and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and nobody else has the handle. That it cannot be freed is no concern of anybody's.
        let _freed = unsafe { sys::nvrtcDestroyProgram(&raw mut self.handle) };
    }
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text)
        .map_err(|zero| format!("there is a zero byte at {} of {:?}, where C's texts end", zero.nul_position(), start_of(text)))
}

/// Enough of a text to recognise it.
fn start_of(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

fn succeeded(result: sys::nvrtcResult) -> Result<(), String> {
    result.result().map_err(failed)
}

fn failed(NvrtcError(failure): NvrtcError) -> String {
    format!("NVRTC failed: {failure:?}")
}

/// What to do where there is no compiler.
fn missing() -> String {
    format!(
        "CUDA C is compiled by NVRTC, which was not found (looked for {}); install the CUDA toolkit or the package `nvidia-cuda-nvrtc` of the Python \
         package index, and put the library's folder where libraries are looked for (`LD_LIBRARY_PATH`); or give the kernel `CudaSource::ptx` or \
         `CudaSource::cubin`, which need no compiler",
        NVRTC.files().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::{Target, c_string, missing};

    #[test]
    fn a_missing_compiler_is_told_with_what_to_do() {
        let text = missing();
        for words in ["nvrtc", "`nvidia-cuda-nvrtc`", "CUDA toolkit", "`CudaSource::ptx`", "`CudaSource::cubin`"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_device_gets_machine_code_or_the_newest_older_ptx() {
        let supported = [75, 80, 86, 90, 100, 120];
        assert_eq!(Target::among(&supported, (9, 0)), Ok(Target::Machine(90)));
        assert_eq!(Target::among(&supported, (8, 9)), Ok(Target::Virtual(86)));
        assert_eq!(Target::among(&supported, (13, 0)), Ok(Target::Virtual(120)));
        let too_old = Target::among(&supported, (7, 0)).expect_err("older than all");
        assert!(too_old.contains("sm_75 and later, and the device is sm_70"), "{too_old}");
        assert_eq!([Target::Machine(90).name(), Target::Virtual(86).name()], ["sm_90", "compute_86"]);
    }

    #[test]
    fn texts_that_c_cannot_hold_are_refused() {
        let fault = c_string("before\0after").expect_err("a zero within");
        assert!(fault.contains("at 6 of \"before\\0after\""), "{fault}");
    }
}
