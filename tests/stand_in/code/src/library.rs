//! A shared library that a stand-in compiler made of a source: its kernels, as `kernels.hpp` lists
//! them. The compiler reads the list for its code, and the driver runs the kernels.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use resident_host_code::runtime::RunBlocks;
use resident_host_code::temporary_files::TemporaryFile;
use resident_host_code::variables::Variables;

/// A loaded library.
#[derive(Debug)]
pub struct CodeLibrary {
    /// In the order of the source.
    pub kernels: Vec<Kernel>,
    /// The source's variables, by their names in compiled code.
    pub variables: Variables,
    /// The kernels are valid as long as it is loaded.
    _library: libloading::Library,
}

/// A kernel of a library.
#[derive(Debug)]
pub struct Kernel {
    /// The name of the function, or a name expression.
    pub name: String,
    /// The kernel's name in PTX.
    pub symbol: String,
    pub run: RunBlocks,
    pub parameters: Vec<CodeParameter>,
    /// The launch bounds, if it has any.
    pub max_threads: Option<u32>,
}

/// A parameter of a kernel: `parameter` in `kernels.hpp`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeParameter {
    pub len_bytes: c_uint,
    pub align_bytes: c_uint,
    kind: c_uint,
    /// Of a pointer and of a view.
    pub element_bytes: c_uint,
}

/// What a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// An integer.
    Whole,
    Floating,
    Aggregate,
    Pointer {
        is_const: bool,
    },
    /// A `resident::View`.
    View {
        is_const: bool,
    },
}

impl CodeParameter {
    pub fn kind(&self) -> ParameterKind {
        match self.kind {
            0 => ParameterKind::Whole,
            1 => ParameterKind::Floating,
            3 | 4 => ParameterKind::Pointer { is_const: self.kind == 3 },
            5 | 6 => ParameterKind::View { is_const: self.kind == 5 },
            _ => ParameterKind::Aggregate,
        }
    }
}

/// `kernel` in `kernels.hpp`.
#[repr(C)]
struct RawKernel {
    name: *const c_char,
    function: *const c_void,
    run: RunBlocks,
    parameters: *const CodeParameter,
    count: c_uint,
    max_threads: c_uint,
    next: *const Self,
}

impl CodeLibrary {
    /// Loads a library. Each has the source's `__device__` variables for itself.
    pub fn load(image: &[u8]) -> Result<Self, String> {
        let file = TemporaryFile::new("so")?;
        file.fill(image)?;
        // SAFETY: the library is code that a C++ compiler made from the source of a test, whose
        // globals are all that it initialises.
        let library = unsafe { libloading::Library::new(&file.path) };
        let library = library.map_err(|fault| fault.to_string())?;
        // SAFETY: `kernels.hpp` defines the function with this type.
        let list = unsafe { library.get::<unsafe extern "C" fn() -> *const RawKernel>(LIST) };
        let list = *list.map_err(|fault| fault.to_string())?;
        // SAFETY: the function has no preconditions.
        let mut next = unsafe { list() };
        let mut kernels = Vec::new();
        // SAFETY: the list has static elements, and ends with null.
        while let Some(kernel) = unsafe { next.as_ref() } {
            kernels.push(Kernel::read(kernel));
            next = kernel.next;
        }
        kernels.reverse();
        let mut code = [std::ptr::null(); 2];
        // SAFETY: `exports.hpp` defines the function with this type.
        let code_of = unsafe { library.get::<unsafe extern "C" fn(*mut *const c_void)>(CODE) };
        if let Ok(code_of) = code_of {
            // SAFETY: the function writes two pointers.
            unsafe { code_of(code.as_mut_ptr()) };
        }
        let variables = Variables::read(image, code[0].addr(), &[]);
        Ok(Self { kernels, variables, _library: library })
    }
}

/// The start of the line of PTX that has the library, in hexadecimal digits.
pub const COMMENT: &str = "// The library, for the stand-in driver: ";

/// The library in PTX, if there is one.
pub fn in_ptx(ptx: &str) -> Option<Vec<u8>> {
    let (_, digits) = ptx.rsplit_once(COMMENT)?;
    let digits = digits.split_whitespace().next()?.as_bytes();
    let number = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(number).collect()
}

/// The function that returns the last kernel of the list.
const LIST: &[u8] = b"resident_program_kernels";

/// The function that tells where the library's code is.
const CODE: &[u8] = b"resident_host_code";

impl Kernel {
    fn read(raw: &RawKernel) -> Self {
        // SAFETY: the name is a literal of the library, which is loaded.
        let name = unsafe { CStr::from_ptr(raw.name) }.to_string_lossy().into_owned();
        // SAFETY: `kernels.hpp` stores an array of this length.
        let parameters = unsafe { std::slice::from_raw_parts(raw.parameters, raw.count as usize) };
        let symbol = symbol(raw.function).unwrap_or_else(|| format!("_Z{}{name}v", name.len()));
        Self {
            symbol: symbol.replace(|letter: char| !letter.is_alphanumeric() && letter != '_', "_"),
            name,
            run: raw.run,
            parameters: parameters.to_vec(),
            max_threads: Some(raw.max_threads).filter(|threads| *threads > 0),
        }
    }
}

/// The symbol of a function, as the loader knows it. It does not know a template's instance for a
/// type of the source.
fn symbol(function: *const c_void) -> Option<String> {
    let mut found = SymbolInfo {
        _file: [std::ptr::null(); 2],
        name: std::ptr::null(),
        address: std::ptr::null(),
    };
    // SAFETY: the address is that of a function, and the result has room for what is written.
    let outcome = unsafe { dladdr(function, &raw mut found) };
    if outcome == 0 || found.name.is_null() || found.address != function {
        return None;
    }
    // SAFETY: the name lies in the library, which is loaded.
    Some(unsafe { CStr::from_ptr(found.name) }.to_string_lossy().into_owned())
}

/// `Dl_info`.
#[repr(C)]
struct SymbolInfo {
    _file: [*const c_void; 2],
    name: *const c_char,
    address: *const c_void,
}

// The function is in glibc or in libdl, which std links.
unsafe extern "C" {
    fn dladdr(address: *const c_void, found: *mut SymbolInfo) -> c_int;
}
