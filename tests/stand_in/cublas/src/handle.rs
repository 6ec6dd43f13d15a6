//! Handles. Each has a stream, a pointer mode, and the kernels as functions of the context
//! in which the handle was created.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::kernels::{self, ALL, Kernel};
use resident_stand_in_client::library::Library;
use resident_stand_in_client::protocol::GetControl;
use resident_stand_in_client::register;

/// A cublasStatus_t other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    pub(crate) const NOT_INITIALIZED: Self = Self(1);
    pub(crate) const INVALID_VALUE: Self = Self(7);
    pub(crate) const EXECUTION_FAILED: Self = Self(13);
    pub(crate) const INTERNAL_ERROR: Self = Self(14);
    pub(crate) const NOT_SUPPORTED: Self = Self(15);
}

pub(crate) type Outcome<T = ()> = Result<T, Status>;

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

/// The driver functions in use.
struct Driver {
    load_module: LoadModule,
    get_function: GetFunction,
    launch_kernel: LaunchKernel,
}

/// The stand-in driver, with the kernels registered.
fn driver() -> Outcome<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(find_driver).as_ref().map_err(|_| Status::NOT_INITIALIZED)
}

fn find_driver() -> Result<Driver, String> {
    let library = Library::open(Path::new("libcuda.so"))?;
    let control: GetControl = library.function("resident_stand_in_control")?;
    for kernel in ALL {
        register(control().register, kernel.name, kernel.parameters, kernel.body);
    }
    Ok(Driver {
        load_module: library.function("cuModuleLoadData")?,
        get_function: library.function("cuModuleGetFunction")?,
        launch_kernel: library.function("cuLaunchKernel")?,
    })
}

/// One handle.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) stream: u64,
    pub(crate) has_numbers_on_device: bool,
    functions: HashMap<&'static str, u64>,
}

/// The handles by number; the numbers are never used as pointers.
static HANDLES: Mutex<Option<HashMap<u64, Handle>>> = Mutex::new(None);

/// Creates a handle for the current context.
pub(crate) fn create() -> Outcome<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(0xC0B1_0000_0000_0010);
    let driver = driver()?;
    let text = CString::new(kernels::module()).map_err(|_| Status::INTERNAL_ERROR)?;
    let mut module = 0;
    // The module is never unloaded, because its kernels may still be running.
    // SAFETY: the driver writes one handle, and the text ends with a zero.
    done(unsafe { (driver.load_module)(&raw mut module, text.as_ptr()) }, Status::NOT_INITIALIZED)?;
    let function = |kernel: &Kernel| {
        let name = CString::new(kernel.name).map_err(|_| Status::INTERNAL_ERROR)?;
        let mut function = 0;
        // SAFETY: as above.
        let code = unsafe { (driver.get_function)(&raw mut function, module, name.as_ptr()) };
        done(code, Status::INTERNAL_ERROR)?;
        Ok((kernel.name, function))
    };
    let functions = ALL.into_iter().map(function).collect::<Outcome<_>>()?;
    let number = NEXT.fetch_add(0x10, Ordering::Relaxed);
    with_all(|handles| {
        handles.insert(number, Handle { stream: 0, has_numbers_on_device: false, functions })
    });
    Ok(number)
}

pub(crate) fn destroy(number: u64) -> Outcome {
    with_all(|handles| handles.remove(&number)).map(drop).ok_or(Status::NOT_INITIALIZED)
}

pub(crate) fn change(number: u64, change: impl FnOnce(&mut Handle)) -> Outcome {
    with_all(|handles| handles.get_mut(&number).map(change)).ok_or(Status::NOT_INITIALIZED)
}

pub(crate) fn find(number: u64) -> Outcome<Handle> {
    with_all(|handles| handles.get(&number).cloned()).ok_or(Status::NOT_INITIALIZED)
}

fn with_all<T>(body: impl FnOnce(&mut HashMap<u64, Handle>) -> T) -> T {
    body(HANDLES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// An argument of a launch, as the bytes that the driver reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word([u8; 8]);

impl From<i32> for Word {
    fn from(number: i32) -> Self {
        Self(u64::from(number.cast_unsigned()).to_le_bytes())
    }
}

impl From<f32> for Word {
    fn from(number: f32) -> Self {
        Self(u64::from(number.to_bits()).to_le_bytes())
    }
}

impl From<f64> for Word {
    fn from(number: f64) -> Self {
        Self(number.to_le_bytes())
    }
}

/// A device address.
impl From<u64> for Word {
    fn from(address: u64) -> Self {
        Self(address.to_le_bytes())
    }
}

impl Handle {
    /// Launches on the handle's stream.
    pub(crate) fn launch(&self, kernel: &Kernel, words: &[Word]) -> Outcome {
        assert_eq!(
            words.len(),
            kernel.parameters.len(),
            "one word per parameter of {}",
            kernel.name
        );
        let function = *self.functions.get(kernel.name).ok_or(Status::INTERNAL_ERROR)?;
        let places: Vec<*const c_void> = words.iter().map(|word| word.0.as_ptr().cast()).collect();
        let launch = driver()?.launch_kernel;
        // SAFETY: there is one word per parameter (asserted), and it is at least as long as the
        // parameter. The words are live during the call, which copies them.
        let code = unsafe {
            launch(function, 1, 1, 1, 1, 1, 1, 0, self.stream, places.as_ptr(), ptr::null())
        };
        done(code, Status::EXECUTION_FAILED)
    }
}

fn done(code: u32, status: Status) -> Outcome {
    if code == 0 { Ok(()) } else { Err(status) }
}
