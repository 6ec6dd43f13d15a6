//! The kernels that the stand-in launches, and the functions of the driver.

use std::collections::HashMap;
use std::ffi::c_uint;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::status::{Outcome, Status};
use resident_stand_in_client::above_driver::{self, Launcher, Refused};
use resident_stand_in_client::library::Library;
use resident_stand_in_client::protocol::{Access, Length, Parameter};
use resident_stand_in_client::{Fault, Launch};

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

/// In the order of [`Kernel`]. The parameters are: the number of the task; the number of bytes;
/// their address.
static KERNELS: [above_driver::Kernel; 3] = [
    above_driver::Kernel {
        name: "nccl_wait",
        parameters: &[WORD],
        body: |launch| run(launch, Memory::None),
    },
    above_driver::Kernel {
        name: "nccl_post",
        parameters: const { &[WORD, WORD, counted(Access::Read)] },
        // SAFETY: elements are bytes. The kernel is registered as reading the memory, and the
        // driver checks that no unordered work writes it.
        body: |launch| run(launch, Memory::Read(unsafe { launch.slice(2) })),
    },
    above_driver::Kernel {
        name: "nccl_take",
        parameters: const { &[WORD, WORD, counted(Access::Write)] },
        // SAFETY: as above, as writing; the kernel has no other memory.
        body: |launch| run(launch, Memory::Write(unsafe { launch.slice_mut(2) })),
    },
];

fn run(launch: &Launch<'_>, memory: Memory<'_>) -> Result<(), Fault> {
    let task = tasks(|tasks| tasks.remove(&launch.scalar(0)));
    task.map_or(Err(Fault::Failed), |task| task(memory))
}

type Code = u32;
type Initialise = unsafe extern "C" fn(flags: c_uint) -> Code;
type RetainContext = unsafe extern "C" fn(context: *mut u64, device: i32) -> Code;
type OfDevice = unsafe extern "C" fn(device: i32) -> Code;
type GetNumber = unsafe extern "C" fn(number: *mut i32) -> Code;
type PushContext = unsafe extern "C" fn(context: u64) -> Code;
type PopContext = unsafe extern "C" fn(context: *mut u64) -> Code;

/// The driver functions in use.
struct Driver {
    count_devices: GetNumber,
    current_device: GetNumber,
    retain: RetainContext,
    release: OfDevice,
    push: PushContext,
    pop: PopContext,
    launcher: Launcher,
}

/// The stand-in driver, with the kernels registered.
fn driver() -> Outcome<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(find_driver).as_ref().map_err(|_| Status::SYSTEM_ERROR)
}

fn find_driver() -> Result<Driver, String> {
    let library = Library::open(Path::new("libcuda.so"))?;
    let launcher = Launcher::new(&library, &KERNELS.each_ref())?;
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
        launcher,
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
    /// In the order of [`Kernel`].
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
        let words = [number, len_bytes as u64, address].map(u64::to_ne_bytes);
        let index = kernel as usize;
        let known = (&KERNELS[index], self.functions[index]);
        let words = &words[..known.0.parameters.len()];
        let queued =
            self.during(|| driver.launcher.launch(known, stream, words).map_err(unhandled));
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

/// Loads the kernels into the current context.
fn load() -> Outcome<[u64; 3]> {
    let launcher = &driver()?.launcher;
    let module = launcher.module(&KERNELS.each_ref()).map_err(unhandled)?;
    let mut functions = [0; 3];
    for (kernel, function) in KERNELS.iter().zip(&mut functions) {
        *function = launcher.function(module, kernel).map_err(unhandled)?;
    }
    Ok(functions)
}

fn unhandled(_refused: Refused) -> Status {
    Status::UNHANDLED_CUDA_ERROR
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
