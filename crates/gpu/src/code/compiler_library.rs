//! The functions of NVRTC, and of AMD's hiprtc, which mirrors it. This module opens the libraries
//! itself, because cudarc tries other file names, in another order.

use std::ffi::{CStr, OsString, c_char, c_int, c_void};

use libloading::Library;

use crate::driver::library::{FileVariable, open};

/// `nvrtcResult`, `hiprtcResult`, as a number, because newer libraries have more values.
pub(super) type Outcome = c_int;

/// `nvrtcProgram`, `hiprtcProgram`, an opaque pointer.
pub(super) type ProgramHandle = *mut c_void;

/// A function that writes the size of a program's text or image, in bytes.
pub(super) type Size = unsafe extern "C" fn(ProgramHandle, *mut usize) -> Outcome;

/// A function that writes as many bytes as the corresponding `Size` function returned.
pub(super) type Content = unsafe extern "C" fn(ProgramHandle, *mut c_char) -> Outcome;

/// What one vendor's compiler is called, and where it is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// `NVRTC`, `hiprtc`.
    pub(super) name: &'static str,
    /// What its functions' names begin with.
    pub(super) prefix: &'static str,
    pub(super) variable: FileVariable,
    /// What to do where none of the files was found, which are given.
    pub(super) missing: fn(&str) -> String,
    /// The oldest version that has all functions.
    pub(super) oldest: &'static str,
    /// Whether threads must use it one after the other.
    pub(super) is_for_one_thread: bool,
    /// Headers of the CUDA toolkit that the compiler does not find: their names, and texts.
    pub(super) headers: &'static [(&'static CStr, &'static CStr)],
    /// What an architecture follows in an option.
    pub(super) architecture_option: &'static str,
    /// The user's options, which have NVRTC's spelling, as this compiler takes them.
    pub(super) translated: fn(&[String]) -> Vec<String>,
    /// Why one of the user's options cannot be used.
    pub(super) refused: fn(&[String]) -> Option<String>,
    /// The architecture that the user's options name.
    pub(super) architecture: fn(&[String]) -> Option<&str>,
    /// The option whose output the driver cannot load.
    pub(super) without_code: fn(&[String]) -> Option<&str>,
}

impl Product {
    /// Finds the compiler: the file that the environment names, else the first of these files that
    /// can be used. The error says which files were tried and why each was rejected.
    pub(super) fn find(self, files: &[OsString]) -> Result<CompilerLibrary, String> {
        let usable = |library| CompilerLibrary::of(library, self);
        if let Some(file) = self.variable.file() {
            let found = open(&file).map_err(|fault| fault.to_string()).and_then(usable);
            return found.map_err(|fault| self.variable.misnamed(&file, &fault));
        }
        let mut unusable = String::new();
        for file in files {
            match open(file).ok().map(usable) {
                Some(Ok(found)) => return Ok(found),
                Some(Err(fault)) => {
                    unusable += &format!("; {} is there, but {fault}", file.display());
                }
                None => {}
            }
        }
        let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
        Err((self.missing)(&(names.join(", ") + &unusable)))
    }
}

/// Defines a struct of function pointers with their names in the library, without the prefix.
macro_rules! library {
    (
        $(#[$about:meta])* $name:ident
        needed { $($field:ident = $symbol:literal: $kind:ty,)* }
        optional { $($(#[$doc:meta])* $other:ident = $other_symbol:literal: $other_kind:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $name {
            pub(super) product: Product,
            $(pub(super) $field: $kind,)*
            $($(#[$doc])* pub(super) $other: Option<$other_kind>,)*
            /// The file that it is in: its path, its length and when it was written.
            pub(super) file: String,
            /// Keeps the library open.
            _library: Library,
        }

        impl $name {
            /// Looks up all functions. The error names the first missing function.
            pub(super) fn of(library: Library, product: Product) -> Result<Self, String> {
                $(
                    let symbol = format!("{}{}", product.prefix, $symbol);
                    // SAFETY: the field's type is the function's type in `nvrtc.h` since version
                    // 11.2, and in `hiprtc.h` since 5.0.
                    let $field = unsafe { library.get::<$kind>(symbol.as_bytes()) };
                    let $field = *$field.map_err(|_| {
                        let Product { name, oldest, .. } = product;
                        format!("it has no function {symbol}, as {name} {oldest} and later have")
                    })?;
                )*
                $(
                    let symbol = format!("{}{}", product.prefix, $other_symbol);
                    // SAFETY: as above.
                    let $other = unsafe { library.get::<$other_kind>(symbol.as_bytes()) };
                    let $other = $other.ok().map(|function| *function);
                )*
                let file = String::new();
                let mut found = Self { product, $($field,)* $($other,)* file, _library: library };
                found.file = file_at(found.version as *const ());
                Ok(found)
            }
        }
    };
}

library! {
    /// The functions of a compiler.
    CompilerLibrary
    needed {
        version = "Version": unsafe extern "C" fn(*mut c_int, *mut c_int) -> Outcome,
        error_text = "GetErrorString": unsafe extern "C" fn(Outcome) -> *const c_char,
        create = "CreateProgram": unsafe extern "C" fn(
            *mut ProgramHandle,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Outcome,
        destroy = "DestroyProgram": unsafe extern "C" fn(*mut ProgramHandle) -> Outcome,
        add_expression = "AddNameExpression":
            unsafe extern "C" fn(ProgramHandle, *const c_char) -> Outcome,
        compile = "CompileProgram":
            unsafe extern "C" fn(ProgramHandle, c_int, *const *const c_char) -> Outcome,
        lowered_name = "GetLoweredName":
            unsafe extern "C" fn(ProgramHandle, *const c_char, *mut *const c_char) -> Outcome,
        log_size = "GetProgramLogSize": Size,
        log = "GetProgramLog": Content,
    }
    optional {
        /// The architectures that NVRTC compiles for. hiprtc does not tell.
        architecture_count = "GetNumSupportedArchs": unsafe extern "C" fn(*mut c_int) -> Outcome,
        architectures = "GetSupportedArchs": unsafe extern "C" fn(*mut c_int) -> Outcome,
        ptx_size = "GetPTXSize": Size,
        ptx = "GetPTX": Content,
        /// The machine code, as NVRTC calls it.
        cubin_size = "GetCUBINSize": Size,
        cubin = "GetCUBIN": Content,
        /// The machine code, as hiprtc calls it.
        code_size = "GetCodeSize": Size,
        code = "GetCode": Content,
    }
}

/// Describes the file whose code is at an address; nothing where the system does not tell.
fn file_at(code: *const ()) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let is_around = |line: &&str| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let [start, end] = range
            .map_or(["", ""], |(start, end)| [start, end])
            .map(|number| usize::from_str_radix(number, 16).unwrap_or_default());
        (start..end).contains(&code.addr())
    };
    let path = maps.lines().find(is_around).and_then(|line| Some(&line[line.find('/')?..]));
    let Some(path) = path else { return String::new() };
    match std::fs::metadata(path) {
        Ok(known) => format!("{path}, {} bytes, {:?}", known.len(), known.modified()),
        Err(_) => path.to_owned(),
    }
}

impl CompilerLibrary {
    /// Turns the outcome of a call into a result.
    pub(super) fn check(&self, outcome: Outcome) -> Result<(), String> {
        const SUCCESS: Outcome = 0;
        if outcome == SUCCESS {
            return Ok(());
        }
        let name = self.product.name;
        // SAFETY: the function takes any number.
        let text = unsafe { (self.error_text)(outcome) };
        if text.is_null() {
            return Err(format!("{name} failed with {outcome}"));
        }
        // SAFETY: the pointer leads to a static text of the library, which ends with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        Err(format!("{name} failed with {outcome}: {text}"))
    }
}
