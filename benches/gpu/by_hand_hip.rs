//! The programs by hand for AMD GPUs, on HIP's C functions. They do what the programs with cudarc
//! do for NVIDIA GPUs, with the runtime and the compiler that this library uses.

use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

use libloading::Library;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::ours::{SOURCE, THREADS};

use crate::measure::{Run, timed, timed_each};
use crate::rows::launches::LEN;
use crate::rows::pinned::Way;
use crate::session::Session;

/// A stream, a module, a function or a program.
type Handle = *mut c_void;

/// Declares functions of a library as fields of a table.
macro_rules! table {
    ($table:ident: $($name:ident($($kind:ty),* $(,)?);)*) => {
        #[allow(non_snake_case, reason = "the names of C")]
        struct $table {
            $($name: unsafe extern "C" fn($($kind),*) -> c_int,)*
            _library: Library,
        }

        impl $table {
            fn of(library: Library) -> Outcome<Self> {
                Ok(Self {
                    $(
                        // SAFETY: the function has this type in AMD's headers.
                        $name: *unsafe { library.get(stringify!($name)) }.map_err(Fault::new)?,
                    )*
                    _library: library,
                })
            }
        }
    };
}

table! { Hip:
    hipInit(u32);
    hipSetDevice(c_int);
    hipStreamCreateWithFlags(*mut Handle, u32);
    hipStreamDestroy(Handle);
    hipStreamSynchronize(Handle);
    hipMalloc(*mut u64, usize);
    hipFree(u64);
    hipHostMalloc(*mut *mut c_void, usize, u32);
    hipHostFree(*mut c_void);
    hipHostRegister(*mut c_void, usize, u32);
    hipHostUnregister(*mut c_void);
    hipMemsetD8Async(u64, u8, usize, Handle);
    hipMemcpyHtoDAsync(u64, *const c_void, usize, Handle);
    hipMemcpyDtoHAsync(*mut c_void, u64, usize, Handle);
    hipMemcpyHtoD(u64, *const c_void, usize);
    hipMemcpyDtoH(*mut c_void, u64, usize);
    hipModuleLoadData(*mut Handle, *const c_void);
    hipModuleGetFunction(*mut Handle, Handle, *const c_char);
    hipModuleLaunchKernel(
        Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void);
}

table! { Hiprtc:
    hiprtcCreateProgram(
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char);
    hiprtcDestroyProgram(*mut Handle);
    hiprtcCompileProgram(Handle, c_int, *const *const c_char);
    hiprtcGetCodeSize(Handle, *mut usize);
    hiprtcGetCode(Handle, *mut c_char);
}

/// Turns the code of a call into a result.
fn check(call: &str, code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Fault::new(format_args!("{call} returned {code}"))) }
}

/// Calls a function and names it in the error.
macro_rules! call {
    ($table:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the arguments are handles and memory that live until the call, or the work that
        // it queues, is over: each run waits for its streams.
        check(stringify!($name), unsafe { ($table.$name)($($argument),*) })
    }};
}

/// The file that a variable names, else the library with one of these names.
fn open(variable: &str, name: &str) -> Outcome<Library> {
    let named = std::env::var_os(variable).filter(|file| !file.is_empty());
    let usual = ["", ".7", ".6", ".5"].map(|major| OsString::from(format!("lib{name}.so{major}")));
    let files = named.map_or(usual.to_vec(), |file| vec![file]);
    // SAFETY: the library is AMD's runtime or compiler, which any program for its GPUs opens so.
    let found = files.iter().find_map(|file| unsafe { Library::new(file) }.ok());
    found.ok_or_else(|| Fault::new(format_args!("{files:?} cannot be opened")))
}

/// The runtime with the kernels loaded.
pub struct Twin {
    hip: Hip,
    module: Handle,
}

impl Twin {
    pub fn new() -> Outcome<Rc<Self>> {
        let hip = Hip::of(open("RESIDENT_HIP", "amdhip64")?)?;
        call!(hip, hipInit(0))?;
        call!(hip, hipSetDevice(0))?;
        let code = machine_code(&architecture(&hip)?)?;
        let mut module = null_mut();
        call!(hip, hipModuleLoadData(&raw mut module, code.as_ptr().cast()))?;
        // The runtime reads the code in place.
        std::mem::forget(code);
        Ok(Rc::new(Self { hip, module }))
    }

    fn function(&self, name: &str) -> Outcome<Handle> {
        let (name, mut function) = (CString::new(name).map_err(Fault::new)?, null_mut());
        call!(self.hip, hipModuleGetFunction(&raw mut function, self.module, name.as_ptr()))?;
        Ok(function)
    }

    /// Launches a block on the addresses of as many arrays as the kernel takes.
    fn touch(&self, stream: Handle, function: Handle, arrays: &[Memory]) -> Outcome {
        let mut addresses: Vec<u64> = arrays.iter().map(|array| array.address).collect();
        let mut values: Vec<*mut c_void> =
            addresses.iter_mut().map(|address| std::ptr::from_mut(address).cast()).collect();
        let (values, none) = (values.as_mut_ptr(), null_mut());
        let (block, shared) = (THREADS, 0);
        call!(
            self.hip,
            hipModuleLaunchKernel(function, 1, 1, 1, block, 1, 1, shared, stream, values, none)
        )
    }

    fn wait(&self, stream: Handle) -> Outcome {
        call!(self.hip, hipStreamSynchronize(stream))
    }
}

/// `hipDeviceProp_t::gcnArchName`: its place changed with HIP 6, whose function has another name.
fn architecture(hip: &Hip) -> Outcome<String> {
    type Properties = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    let mut properties = vec![0_u64; 1024];
    // SAFETY: the functions have this type in AMD's headers.
    let newer = unsafe { hip._library.get::<Properties>("hipGetDevicePropertiesR0600") };
    // SAFETY: as above.
    let older = || unsafe { hip._library.get::<Properties>("hipGetDeviceProperties") };
    let (ask, start) = match newer {
        Ok(ask) => (ask, 1160),
        Err(_) => (older().map_err(Fault::new)?, 396),
    };
    // SAFETY: the structure has at most 8 KiB in all versions.
    check("hipGetDeviceProperties", unsafe { ask(properties.as_mut_ptr().cast(), 0) })?;
    let bytes: &[u8] = &resident::bytemuck::cast_slice(&properties)[start..start + 256];
    let text = CStr::from_bytes_until_nul(bytes).map_err(Fault::new)?;
    Ok(text.to_string_lossy().into_owned())
}

/// Compiles the kernels as this library does. hiprtc is in the runtime before ROCm 6.
fn machine_code(architecture: &str) -> Outcome<Vec<u8>> {
    let library = open("RESIDENT_HIPRTC", "hiprtc").or_else(|_| open("RESIDENT_HIP", "amdhip64"));
    let compiler = Hiprtc::of(library?)?;
    let source = CString::new(SOURCE).map_err(Fault::new)?;
    let option = format!("--offload-arch={architecture}");
    let option = CString::new(option).map_err(Fault::new)?;
    let options = [option.as_ptr()];
    let (mut program, file) = (null_mut(), c"kernels.cu".as_ptr());
    let at = &raw mut program;
    call!(compiler, hiprtcCreateProgram(at, source.as_ptr(), file, 0, null(), null()))?;
    call!(compiler, hiprtcCompileProgram(program, 1, options.as_ptr()))?;
    let mut len_bytes = 0;
    call!(compiler, hiprtcGetCodeSize(program, &raw mut len_bytes))?;
    let mut code = vec![0_u8; len_bytes];
    call!(compiler, hiprtcGetCode(program, code.as_mut_ptr().cast()))?;
    call!(compiler, hiprtcDestroyProgram(at))?;
    Ok(code)
}

/// A stream that does not wait for the null stream.
struct Stream {
    twin: Rc<Twin>,
    handle: Handle,
}

impl Stream {
    fn new(twin: &Rc<Twin>) -> Outcome<Self> {
        let mut handle = null_mut();
        call!(twin.hip, hipStreamCreateWithFlags(&raw mut handle, 1))?;
        Ok(Self { twin: Rc::clone(twin), handle })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _gone = call!(self.twin.hip, hipStreamDestroy(self.handle));
    }
}

/// Zeroed memory of the device.
struct Memory {
    twin: Rc<Twin>,
    address: u64,
}

impl Memory {
    fn zeros(twin: &Rc<Twin>, len_bytes: usize) -> Outcome<Self> {
        let mut address = 0;
        call!(twin.hip, hipMalloc(&raw mut address, len_bytes))?;
        let memory = Self { twin: Rc::clone(twin), address };
        call!(twin.hip, hipMemsetD8Async(address, 0, len_bytes, null_mut()))?;
        twin.wait(null_mut())?;
        Ok(memory)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _gone = call!(self.twin.hip, hipFree(self.address));
    }
}

/// Pinned memory of the host.
struct HostMemory {
    twin: Rc<Twin>,
    start: *mut c_void,
    /// Of memory that the runtime did not allocate, but registered.
    layout: Option<Layout>,
}

impl HostMemory {
    fn new(twin: &Rc<Twin>, len_bytes: usize, is_registered: bool) -> Outcome<Self> {
        const PAGE_BYTES: usize = 4096;
        let (twin, mut start) = (Rc::clone(twin), null_mut());
        if !is_registered {
            call!(twin.hip, hipHostMalloc(&raw mut start, len_bytes, 0))?;
            return Ok(Self { twin, start, layout: None });
        }
        let whole_pages = len_bytes.max(1).next_multiple_of(PAGE_BYTES);
        let layout = Layout::from_size_align(whole_pages, PAGE_BYTES).map_err(Fault::new)?;
        // SAFETY: the layout has at least one page.
        let start = unsafe { alloc::alloc_zeroed(layout) }.cast();
        let memory = Self { twin, start, layout: Some(layout) };
        if start.is_null() {
            return Err(Fault::new(format_args!("the host cannot allocate {whole_pages} bytes")));
        }
        call!(memory.twin.hip, hipHostRegister(start, whole_pages, 0))?;
        Ok(memory)
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let Some(layout) = self.layout else {
            let _gone = call!(self.twin.hip, hipHostFree(self.start));
            return;
        };
        if !self.start.is_null() {
            let _gone = call!(self.twin.hip, hipHostUnregister(self.start));
            // SAFETY: the memory was allocated with this layout and is not used after this.
            unsafe { alloc::dealloc(self.start.cast(), layout) };
        }
    }
}

/// Launches on one stream, each with this many arrays.
pub fn chain(session: &Session, count: usize) -> Outcome<Run<'static>> {
    let twin = Twin::new()?;
    let (stream, launches) = (Stream::new(&twin)?, session.size(1000, 20));
    let function = twin.function(&format!("touch{count}"))?;
    let arrays: Vec<Memory> =
        (0..count).map(|_| Memory::zeros(&twin, 4 * LEN)).collect::<Outcome<_>>()?;
    Ok(Box::new(move || {
        // The whole of it, not only its handle, is kept.
        let stream = &stream;
        let launch = || twin.touch(stream.handle, function, &arrays);
        timed_each(launches, launch, || twin.wait(stream.handle))
    }))
}

/// A launch, and a synchronous copy of 4 bytes; `check` gets each value.
pub fn four_bytes(
    session: &Session,
    mut check: impl FnMut(f32) -> Outcome + 'static,
) -> Outcome<Run<'static>> {
    let twin = Twin::new()?;
    let (function, turns) = (twin.function("touch1")?, session.size(100, 5));
    let memory = [Memory::zeros(&twin, 4 * LEN)?];
    Ok(Box::new(move || {
        let look = || {
            // The synchronous copy waits for this stream.
            twin.touch(null_mut(), function, &memory)?;
            let mut seen = 0.0_f32;
            let to = (&raw mut seen).cast();
            call!(twin.hip, hipMemcpyDtoH(to, memory[0].address, 4))?;
            check(seen)
        };
        timed_each(turns, look, || Ok(()))
    }))
}

/// Pinned memory and memory of the device: to upload, and to download.
pub struct Pair {
    host: [HostMemory; 2],
    memory: [Memory; 2],
    streams: [Stream; 2],
    len_bytes: usize,
}

pub type SharedPair = Outcome<Rc<RefCell<Pair>>>;

pub fn pair(len_bytes: u64, is_registered: bool) -> SharedPair {
    let (twin, len_bytes) = (Twin::new()?, len_bytes as usize);
    let host = || HostMemory::new(&twin, len_bytes, is_registered);
    let memory = || Memory::zeros(&twin, len_bytes);
    Ok(Rc::new(RefCell::new(Pair {
        host: [host()?, host()?],
        memory: [memory()?, memory()?],
        streams: [Stream::new(&twin)?, Stream::new(&twin)?],
        len_bytes,
    })))
}

/// Asynchronous copies of a pair.
pub fn copies(pair: &SharedPair, way: Way) -> Outcome<Run<'static>> {
    let pair = pair.clone()?;
    Ok(Box::new(move || {
        let Pair { host, memory, streams, len_bytes } = &*pair.borrow();
        let twin = &streams[0].twin;
        let queue = || {
            if way.goes_up() {
                let (to, from, stream) = (memory[0].address, host[0].start, streams[0].handle);
                call!(twin.hip, hipMemcpyHtoDAsync(to, from, *len_bytes, stream))?;
            }
            if way.goes_down() {
                let (to, from, stream) = (host[1].start, memory[1].address, streams[1].handle);
                call!(twin.hip, hipMemcpyDtoHAsync(to, from, *len_bytes, stream))?;
            }
            Ok(())
        };
        timed(queue, || streams.iter().try_for_each(|stream| twin.wait(stream.handle)))
    }))
}

/// Synchronous copies from and to vectors, new in each run if they are to be untouched.
pub fn plain(len_bytes: u64, way: Way, is_untouched: bool) -> Outcome<Run<'static>> {
    let (twin, len) = (Twin::new()?, (len_bytes / 4) as usize);
    let memory = Memory::zeros(&twin, len_bytes as usize)?;
    let value = if is_untouched { 0.0 } else { 1.0 };
    let (mut rising, mut falling) = (vec![value; len], vec![value; len]);
    Ok(Box::new(move || {
        let memory = &memory;
        if is_untouched {
            (rising, falling) = (vec![0.0_f32; len], vec![0.0_f32; len]);
        }
        let copy = || {
            if way.goes_up() {
                let from = rising.as_ptr().cast();
                call!(twin.hip, hipMemcpyHtoD(memory.address, from, 4 * len))?;
            }
            if way.goes_down() {
                let to = falling.as_mut_ptr().cast();
                call!(twin.hip, hipMemcpyDtoH(to, memory.address, 4 * len))?;
            }
            Ok(())
        };
        timed(copy, || Ok(()))
    }))
}
