//! The kernels that the stand-in launches, and the functions of the driver.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::status::{Outcome, Status};
use resident_stand_in_client::library::Library;
use resident_stand_in_client::protocol::{Access, GetControl, Length, Parameter};
use resident_stand_in_client::{Fault, Launch, register};

/// What a kernel does: it gets the memory that it reads, or that it writes.
pub(crate) type Task = Box<dyn FnOnce(Memory<'_>) -> Result<(), Fault> + Send>;

/// The memory of a kernel.
pub(crate) enum Memory<'a> {
    None,
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

/// A kernel, by what it does with its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// No memory.
    Wait,
    Post,
    Take,
}

const WORD: Parameter = Parameter::Scalar { len_bytes: 8 };

/// Memory of as many bytes as the parameter before it says.
const fn counted(access: Access) -> Parameter {
    Parameter::Pointer { access, length: Length::Counted { by: 1, element_bytes: 1 } }
}

impl Kernel {
    const ALL: [Self; 3] = [Self::Wait, Self::Post, Self::Take];

    fn name(self) -> &'static str {
        match self {
            Self::Wait => "nccl_wait",
            Self::Post => "nccl_post",
            Self::Take => "nccl_take",
        }
    }

    /// The number of the task; the number of bytes; their address.
    fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Wait => &[WORD],
            Self::Post => const { &[WORD, WORD, counted(Access::Read)] },
            Self::Take => const { &[WORD, WORD, counted(Access::Write)] },
        }
    }

    fn run(self, launch: &Launch<'_>) -> Result<(), Fault> {
        let Some(task) = tasks(|tasks| tasks.remove(&launch.scalar(0))) else {
            return Err(Fault::Failed);
        };
        task(match self {
            Self::Wait => Memory::None,
            // SAFETY: elements are bytes. The kernel is registered as reading the memory, and the
            // driver checks that no unordered work writes it.
            Self::Post => Memory::Read(unsafe { launch.slice(2) }),
            // SAFETY: as above, as writing; the kernel has no other memory.
            Self::Take => Memory::Write(unsafe { launch.slice_mut(2) }),
        })
    }
}

type Code = u32;
type Initialise = unsafe extern "C" fn(flags: c_uint) -> Code;
type RetainContext = unsafe extern "C" fn(context: *mut u64, device: i32) -> Code;
type OfDevice = unsafe extern "C" fn(device: i32) -> Code;
type GetNumber = unsafe extern "C" fn(number: *mut i32) -> Code;
type PushContext = unsafe extern "C" fn(context: u64) -> Code;
type PopContext = unsafe extern "C" fn(context: *mut u64) -> Code;
type LoadModule = unsafe extern "C" fn(module: *mut u64, image: *const c_char) -> Code;
type GetFunction =
    unsafe extern "C" fn(function: *mut u64, module: u64, name: *const c_char) -> Code;
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
) -> Code;

/// The driver functions in use.
struct Driver {
    count_devices: GetNumber,
    current_device: GetNumber,
    retain: RetainContext,
    release: OfDevice,
    push: PushContext,
    pop: PopContext,
    load_module: LoadModule,
    get_function: GetFunction,
    launch_kernel: LaunchKernel,
}

/// The stand-in driver, with the kernels registered.
fn driver() -> Outcome<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(find_driver).as_ref().map_err(|_| Status::SYSTEM_ERROR)
}

fn find_driver() -> Result<Driver, String> {
    let library = Library::open(Path::new("libcuda.so"))?;
    let control: GetControl = library.function("resident_stand_in_control")?;
    for kernel in Kernel::ALL {
        let body = move |launch: &Launch<'_>| kernel.run(launch);
        register(control().register, kernel.name(), kernel.parameters(), body);
    }
    let initialise: Initialise = library.function("cuInit")?;
    // SAFETY: the only flags are 0.
    let code = unsafe { initialise(0) };
    if code != 0 {
        return Err(format!("cuInit returns {code}"));
    }
    Ok(Driver {
        count_devices: library.function("cuDeviceGetCount")?,
        current_device: library.function("cuCtxGetDevice")?,
        retain: library.function("cuDevicePrimaryCtxRetain")?,
        release: library.function("cuDevicePrimaryCtxRelease_v2")?,
        push: library.function("cuCtxPushCurrent_v2")?,
        pop: library.function("cuCtxPopCurrent_v2")?,
        load_module: library.function("cuModuleLoadData")?,
        get_function: library.function("cuModuleGetFunction")?,
        launch_kernel: library.function("cuLaunchKernel")?,
    })
}

/// The device of the calling thread's context.
pub(crate) fn current_device() -> Outcome<i32> {
    let mut device = 0;
    // SAFETY: the driver writes one number.
    done(unsafe { (driver()?.current_device)(&raw mut device) })?;
    Ok(device)
}

pub(crate) fn device_count() -> Outcome<i32> {
    let mut count = 0;
    // SAFETY: the driver writes one number.
    done(unsafe { (driver()?.count_devices)(&raw mut count) })?;
    Ok(count)
}

/// The primary context of a device, with the kernels loaded. It is released when this drops.
#[derive(Debug)]
pub(crate) struct Context {
    device: i32,
    handle: u64,
    /// In the order of [`Kernel::ALL`].
    functions: [u64; 3],
}

impl Context {
    pub(crate) fn of(device: i32) -> Outcome<Self> {
        let mut handle = 0;
        // SAFETY: the driver writes one handle.
        done(unsafe { (driver()?.retain)(&raw mut handle, device) })?;
        // Once it exists, it gives the context back also if the rest fails.
        let mut context = Self { device, handle, functions: [0; 3] };
        context.functions = context.during(load)?;
        Ok(context)
    }

    /// Runs `body` while the context is the calling thread's current one.
    fn during<T>(&self, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let driver = driver()?;
        // SAFETY: the context is retained.
        done(unsafe { (driver.push)(self.handle) })?;
        let outcome = body();
        let mut popped = 0;
        // SAFETY: the driver writes one handle.
        done(unsafe { (driver.pop)(&raw mut popped) })?;
        outcome
    }

    /// Queues a kernel, which runs the task. A kernel with memory gets its address and size.
    pub(crate) fn launch(
        &self,
        kernel: Kernel,
        stream: u64,
        memory: Option<(u64, usize)>,
        task: Task,
    ) -> Outcome {
        let driver = driver()?;
        let number = add(task);
        let (address, len_bytes) = memory.unwrap_or_default();
        let words = [number, len_bytes as u64, address];
        let places = words.each_ref().map(|word| ptr::from_ref(word).cast::<c_void>());
        let function = self.functions[kernel as usize];
        let launch = driver.launch_kernel;
        let queued = self.during(|| {
            // SAFETY: the kernels have at most three parameters, of the size of a word each. The
            // words are live during the call, which copies them.
            done(unsafe {
                launch(function, 1, 1, 1, 1, 1, 1, 0, stream, places.as_ptr(), ptr::null())
            })
        });
        queued.inspect_err(|_| drop(tasks(|tasks| tasks.remove(&number))))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            // SAFETY: `of` retained it.
            let _released = unsafe { (driver.release)(self.device) };
        }
    }
}

/// Loads the kernels into the current context. The module is never unloaded, because its kernels
/// may still be running.
fn load() -> Outcome<[u64; 3]> {
    let driver = driver()?;
    let text = CString::new(module()).map_err(|_| Status::INTERNAL_ERROR)?;
    let mut module = 0;
    // SAFETY: the driver writes one handle, and the text ends with a zero.
    done(unsafe { (driver.load_module)(&raw mut module, text.as_ptr()) })?;
    let mut functions = [0; 3];
    for (kernel, function) in Kernel::ALL.into_iter().zip(&mut functions) {
        let name = CString::new(kernel.name()).map_err(|_| Status::INTERNAL_ERROR)?;
        // SAFETY: as above.
        done(unsafe { (driver.get_function)(function, module, name.as_ptr()) })?;
    }
    Ok(functions)
}

/// All kernels as PTX with names and parameters, but without code.
fn module() -> String {
    let entry = |kernel: Kernel| {
        let list: Vec<String> = (0..kernel.parameters().len())
            .map(|index| format!(".param .u64 parameter_{index}"))
            .collect();
        format!(".visible .entry {}(\n{}\n)\n{{\nret;\n}}\n", kernel.name(), list.join(",\n"))
    };
    let entries: String = Kernel::ALL.into_iter().map(entry).collect();
    format!(".version 7.0\n.target sm_50\n.address_size 64\n{entries}")
}

/// Stores a task for its kernel, and returns its number.
fn add(task: Task) -> u64 {
    static NEXT: Mutex<u64> = Mutex::new(0);
    let number = {
        let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        *next
    };
    tasks(|tasks| tasks.insert(number, task));
    number
}

/// The tasks of queued kernels, by number.
fn tasks<T>(body: impl FnOnce(&mut HashMap<u64, Task>) -> T) -> T {
    static TASKS: Mutex<Option<HashMap<u64, Task>>> = Mutex::new(None);
    body(TASKS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

fn done(code: Code) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Status::UNHANDLED_CUDA_ERROR) }
}
