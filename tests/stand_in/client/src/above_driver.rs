//! What libraries above the stand-in driver share: how their functions are exported, and their
//! kernels, which the driver runs as host functions.

use std::ffi::{CString, c_char, c_uint, c_void};
use std::ptr;

use crate::launch::{Fault, Launch, register};
use crate::library::Library;
use crate::protocol::{GetControl, Parameter};

/// Defines functions that are exported under the library's names and never unwind. Their results
/// are numbers of the status type.
#[macro_export]
macro_rules! library_functions {
    ($status:ident; $($name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        /// Implements the function of the library's manual, as far as the stand-in supports it.
        ///
        /// # Safety
        ///
        /// As in the manual: pointers must be valid.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the library's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            let body = ::std::panic::AssertUnwindSafe(move || -> Result<(), $status> { $body });
            let outcome = ::std::panic::catch_unwind(body);
            outcome.unwrap_or(Err($status::INTERNAL_ERROR)).err().map_or(0, |status| status.0)
        }
    )*};
}

/// A kernel, and the host function that the driver runs in its place.
#[derive(Debug)]
pub struct Kernel {
    /// Its name, which no other library's kernel has.
    pub name: &'static str,
    /// Scalars of four bytes, and what has eight.
    pub parameters: &'static [Parameter],
    /// The host function.
    pub body: fn(&Launch<'_>) -> Result<(), Fault>,
}

/// A result of the driver other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused(pub u32);

type LoadModule = unsafe extern "C" fn(module: *mut u64, image: *const c_char) -> u32;
type GetFunction =
    unsafe extern "C" fn(function: *mut u64, module: u64, name: *const c_char) -> u32;
/// The type of `cuLaunchKernel`. Parameters: a function; blocks and threads along x, y and z;
/// shared memory; a stream; the addresses of the arguments; extra options.
type LaunchKernel = unsafe extern "C" fn(
    u64,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    u64,
    *const *const c_void,
    *const *const c_void,
) -> u32;

/// The driver's functions for kernels.
#[derive(Debug)]
pub struct Launcher {
    load_module: LoadModule,
    get_function: GetFunction,
    launch_kernel: LaunchKernel,
}

impl Launcher {
    /// The functions of the driver, at which the kernels are registered.
    ///
    /// # Errors
    ///
    /// If the library is not the stand-in driver.
    pub fn new(driver: &Library, kernels: &[&Kernel]) -> Result<Self, String> {
        let control: GetControl = driver.function("resident_stand_in_control")?;
        for kernel in kernels {
            register(control().register, kernel.name, kernel.parameters, kernel.body);
        }
        Ok(Self {
            load_module: driver.function("cuModuleLoadData")?,
            get_function: driver.function("cuModuleGetFunction")?,
            launch_kernel: driver.function("cuLaunchKernel")?,
        })
    }

    /// A module of the kernels in the current context. It is never unloaded, because its kernels
    /// may still be running.
    ///
    /// # Errors
    ///
    /// What the driver returns.
    pub fn module(&self, kernels: &[&Kernel]) -> Result<u64, Refused> {
        let (text, mut module) = (c_string(ptx(kernels)), 0);
        // SAFETY: the driver writes one handle, and the text ends with a zero.
        done(unsafe { (self.load_module)(&raw mut module, text.as_ptr()) }).map(|()| module)
    }

    /// A kernel of a module.
    ///
    /// # Errors
    ///
    /// What the driver returns.
    pub fn function(&self, module: u64, kernel: &Kernel) -> Result<u64, Refused> {
        let (name, mut function) = (c_string(kernel.name.to_owned()), 0);
        // SAFETY: as above.
        let code = unsafe { (self.get_function)(&raw mut function, module, name.as_ptr()) };
        done(code).map(|()| function)
    }

    /// Launches one thread of a kernel, each parameter of which is in the bytes of a word.
    ///
    /// # Errors
    ///
    /// What the driver returns.
    ///
    /// # Panics
    ///
    /// If there is not one word per parameter.
    pub fn launch(
        &self,
        (kernel, function): (&Kernel, u64),
        stream: u64,
        words: &[[u8; 8]],
    ) -> Result<(), Refused> {
        assert_eq!(words.len(), kernel.parameters.len(), "one word per parameter: {}", kernel.name);
        let places: Vec<*const c_void> = words.iter().map(|word| word.as_ptr().cast()).collect();
        let launch = self.launch_kernel;
        // SAFETY: there is one word per parameter (asserted), and it is at least as long as the
        // parameter. The words are live during the call, which copies them.
        done(unsafe { launch(function, 1, 1, 1, 1, 1, 1, 0, stream, places.as_ptr(), ptr::null()) })
    }
}

/// Kernels as PTX with names and parameters, but without code.
fn ptx(kernels: &[&Kernel]) -> String {
    let entry = |kernel: &&Kernel| {
        let parameter = |(index, parameter): (usize, &Parameter)| {
            let is_half = matches!(parameter, Parameter::Scalar { len_bytes: 4 });
            format!(".param .{} parameter_{index}", if is_half { "u32" } else { "u64" })
        };
        let list: Vec<String> = kernel.parameters.iter().enumerate().map(parameter).collect();
        format!(".visible .entry {}(\n{}\n)\n{{\nret;\n}}\n", kernel.name, list.join(",\n"))
    };
    let entries: String = kernels.iter().map(entry).collect();
    format!(".version 7.0\n.target sm_50\n.address_size 64\n{entries}")
}

fn c_string(text: String) -> CString {
    CString::new(text).expect("names and parameters have no zeros")
}

fn done(code: u32) -> Result<(), Refused> {
    if code == 0 { Ok(()) } else { Err(Refused(code)) }
}
