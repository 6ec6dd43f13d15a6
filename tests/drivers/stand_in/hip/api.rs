//! The C functions, found by their names in the loaded libraries, and short forms for tests.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Debug;

use libloading::os::unix::Library;
use resident_stand_in_hip::Settings;

/// A stream, an event, a module, a function, a pool or a program.
pub(super) type Handle = u64;

/// Declares functions of a library as fields of a table. Those of which the types say all that the
/// manual requires are safe: the stand-ins look up handles and addresses of devices. The others,
/// which take raw pointers or addresses of the host, are unsafe.
macro_rules! tables {
    ($(
        #[doc = $doc:literal]
        $table:ident from $file:literal {
            $($safe:ident($($safe_kind:ty),* $(,)?);)*
        } raw {
            $($name:ident($($kind:ty),* $(,)?);)*
        }
    )*) => {$(
        #[doc = $doc]
        #[allow(non_snake_case, reason = "the names of C")]
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $table {
            $(pub(super) $safe: extern "C" fn($($safe_kind),*) -> u32,)*
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> u32,)*
        }

        impl $table {
            fn find() -> Self {
                Self::find_in(&open($file))
            }

            /// The functions of a library, which stays loaded.
            pub(super) fn find_in(library: &Library) -> Self {
                Self {
                    $(
                        // SAFETY: the functions have these types in HIP's headers.
                        $safe: *unsafe { library.get(stringify!($safe)) }.expect("it is exported"),
                    )*
                    $(
                        // SAFETY: as above.
                        $name: *unsafe { library.get(stringify!($name)) }.expect("it is exported"),
                    )*
                }
            }
        }
    )*};
}

tables! {
    /// HIP's functions in version 5.2.
    Hip from "libamdhip64.so" {
        hipInit(u32);
        hipDriverGetVersion(&mut i32);
        hipRuntimeGetVersion(&mut i32);
        hipGetDeviceCount(&mut i32);
        hipGetDevice(&mut i32);
        hipSetDevice(i32);
        hipDeviceGet(&mut i32, i32);
        hipDeviceGetAttribute(&mut i32, u32, i32);
        hipGetDeviceProperties(&mut [u8; 793], i32);
        hipDeviceCanAccessPeer(&mut i32, i32, i32);
        hipDeviceEnablePeerAccess(i32, u32);
        hipGetLastError();
        hipPeekAtLastError();
        hipDeviceGetStreamPriorityRange(&mut i32, &mut i32);
        hipStreamCreateWithFlags(&mut Handle, u32);
        hipStreamCreateWithPriority(&mut Handle, u32, i32);
        hipStreamDestroy(Handle);
        hipStreamSynchronize(Handle);
        hipStreamQuery(Handle);
        hipStreamWaitEvent(Handle, Handle, u32);
        hipStreamGetPriority(Handle, &mut i32);
        hipStreamIsCapturing(Handle, &mut u32);
        hipStreamBeginCapture(Handle, u32);
        hipStreamEndCapture(Handle, &mut Handle);
        hipThreadExchangeStreamCaptureMode(&mut u32);
        hipEventCreateWithFlags(&mut Handle, u32);
        hipEventDestroy(Handle);
        hipEventRecord(Handle, Handle);
        hipEventQuery(Handle);
        hipEventSynchronize(Handle);
        hipEventElapsedTime(&mut f32, Handle, Handle);
        hipMalloc(&mut u64, usize);
        hipFree(u64);
        hipMallocFromPoolAsync(&mut u64, usize, Handle, Handle);
        hipFreeAsync(u64, Handle);
        hipMemPoolCreate(&mut Handle, &[u32; 22]);
        hipMemPoolDestroy(Handle);
        hipMemPoolSetAttribute(Handle, u32, &mut u64);
        hipMemPoolGetAttribute(Handle, u32, &mut u64);
        hipMemPoolTrimTo(Handle, usize);
        hipMemAddressReserve(&mut u64, usize, usize, u64, u64);
        hipMemAddressFree(u64, usize);
        hipMemCreate(&mut Handle, usize, &[u32; 8], u64);
        hipMemRelease(Handle);
        hipMemMap(u64, usize, usize, Handle, u64);
        hipMemUnmap(u64, usize);
        hipMemSetAccess(u64, usize, &[i32; 3], usize);
        hipMemGetAllocationGranularity(&mut usize, &[u32; 8], u32);
        hipMemGetInfo(&mut usize, &mut usize);
        hipHostMalloc(&mut u64, usize, u32);
        hipHostFree(u64);
        hipHostUnregister(u64);
        hipHostGetDevicePointer(&mut u64, u64, u32);
        hipMallocManaged(&mut u64, usize, u32);
        hipMemPrefetchAsync(u64, usize, i32, Handle);
        hipMemAdvise(u64, usize, u32, i32);
        hipPointerGetAttributes(&mut [u64; 4], u64);
        hipMemcpyDtoDAsync(u64, u64, usize, Handle);
        hipMemcpyPeerAsync(u64, i32, u64, i32, usize, Handle);
        hipMemsetD8Async(u64, u8, usize, Handle);
        hipMemsetD16Async(u64, u16, usize, Handle);
        hipMemsetD32Async(u64, i32, usize, Handle);
        hipMemset2DAsync(u64, usize, i32, usize, usize, Handle);
        hipModuleUnload(Handle);
        hipFuncGetAttribute(&mut i32, u32, Handle);
        hipModuleOccupancyMaxPotentialBlockSize(&mut i32, &mut i32, Handle, usize, i32);
    } raw {
        hipDeviceGetName(*mut u8, i32, i32);
        hipStreamAddCallback(
            Handle, unsafe extern "C" fn(Handle, u32, *mut c_void), *mut c_void, u32);
        hipMemPoolSetAccess(Handle, *const [i32; 3], usize);
        hipHostRegister(u64, usize, u32);
        hipPointerGetAttribute(*mut c_void, u32, u64);
        hipMemcpyHtoDAsync(u64, u64, usize, Handle);
        hipMemcpyDtoHAsync(u64, u64, usize, Handle);
        hipMemcpyAsync(u64, u64, usize, u32, Handle);
        hipMemcpy2DAsync(u64, usize, u64, usize, usize, usize, u32, Handle);
        hipMemcpy3DAsync(*const [u64; 20], Handle);
        hipModuleLoadData(*mut Handle, *const u8);
        hipModuleLoadDataEx(*mut Handle, *const u8, u32, *mut u32, *mut *mut c_void);
        hipModuleGetFunction(*mut Handle, Handle, *const c_char);
        hipModuleLaunchKernel(
            Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *const *const c_void,
            *const *const c_void);
    }

    /// hiprtc's functions.
    Hiprtc from "libhiprtc.so" {
        hiprtcVersion(&mut c_int, &mut c_int);
    } raw {
        hiprtcCreateProgram(
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char,
            *const *const c_char);
        hiprtcDestroyProgram(*mut Handle);
        hiprtcAddNameExpression(Handle, *const c_char);
        hiprtcCompileProgram(Handle, c_int, *const *const c_char);
        hiprtcGetLoweredName(Handle, *const c_char, *mut *const c_char);
        hiprtcGetProgramLogSize(Handle, *mut usize);
        hiprtcGetProgramLog(Handle, *mut c_char);
        hiprtcGetCodeSize(Handle, *mut usize);
        hiprtcGetCode(Handle, *mut c_char);
    }
}

/// The library in this file, or that is loaded under this name.
pub(super) fn open(file: &str) -> Library {
    // SAFETY: the stand-in with this SONAME is loaded, and has no initialisers of its own. Others
    // are AMD's, whose initialisers run in all their users.
    unsafe { Library::new(file) }.expect("it is loaded")
}

/// Loads the stand-in.
pub(super) fn load(settings: Settings) -> Hip {
    resident_stand_in_hip::load(settings).expect("the stand-in loads");
    Hip::find()
}

/// As [`load`], with a stream.
pub(super) fn with_stream(settings: Settings) -> (Hip, Handle) {
    let hip = load(settings);
    (hip, hip.stream())
}

/// The compiler.
pub(super) fn hiprtc() -> Hiprtc {
    resident_stand_in_hiprtc::load().expect("the stand-in loads");
    Hiprtc::find()
}

/// Whether HIP's library has a function with this name.
pub(super) fn has(name: &str) -> bool {
    let library = open("libamdhip64.so");
    // SAFETY: the address is not used.
    unsafe { library.get::<*const c_void>(name) }.is_ok()
}

/// A function that older versions have not.
pub(super) fn function<F: Copy>(name: &str) -> F {
    let library = open("libamdhip64.so");
    // SAFETY: the caller names the function's type in HIP's headers.
    *unsafe { library.get::<F>(name) }.expect("it is exported")
}

/// The text that `hipGetErrorName` or `hipGetErrorString` returns.
pub(super) fn text(function_name: &str, code: u32) -> String {
    let get: unsafe extern "C" fn(u32) -> *const c_char = function(function_name);
    // SAFETY: both functions take any number and return a static text.
    unsafe { CStr::from_ptr(get(code)) }.to_str().expect("it is ASCII").to_owned()
}

/// Fails unless a call succeeded.
#[track_caller]
pub(super) fn ok(code: u32) {
    assert_eq!(code, 0, "hipError_t");
}

/// The result that a call writes.
#[track_caller]
pub(super) fn get<T: Default>(call: impl FnOnce(&mut T) -> u32) -> T {
    let mut value = T::default();
    ok(call(&mut value));
    value
}

/// The address of host memory.
pub(super) fn at<T>(values: &[T]) -> u64 {
    values.as_ptr().expose_provenance() as u64
}

/// The address of host memory that is written.
pub(super) fn at_mut<T>(values: &mut [T]) -> u64 {
    values.as_mut_ptr().expose_provenance() as u64
}

impl Hip {
    /// A stream that does not wait for the NULL stream.
    pub(super) fn stream(&self) -> Handle {
        get(|stream| (self.hipStreamCreateWithFlags)(stream, 1))
    }

    /// Memory of the current device.
    pub(super) fn memory(&self, len_bytes: usize) -> u64 {
        get(|address| (self.hipMalloc)(address, len_bytes))
    }

    /// Memory of the current device with these values, and a wait.
    pub(super) fn upload<T>(&self, values: &[T], stream: Handle) -> u64 {
        let address = self.memory(size_of_val(values));
        let source = at(values);
        // SAFETY: the values live until the wait ends.
        ok(unsafe { (self.hipMemcpyHtoDAsync)(address, source, size_of_val(values), stream) });
        ok((self.hipStreamSynchronize)(stream));
        address
    }

    /// Values of device memory, after a wait.
    pub(super) fn download<T: Default + Clone + Debug>(
        &self,
        address: u64,
        len: usize,
        stream: Handle,
    ) -> Vec<T> {
        let mut values = vec![T::default(); len];
        let (place, len_bytes) = (at_mut(&mut values), size_of_val(&*values));
        // SAFETY: there is room for as many values, which have no invalid bits.
        ok(unsafe { (self.hipMemcpyDtoHAsync)(place, address, len_bytes, stream) });
        ok((self.hipStreamSynchronize)(stream));
        values
    }

    /// A module of an image.
    pub(super) fn module(&self, image: &[u8]) -> Result<Handle, u32> {
        let mut module = 0;
        // SAFETY: the image is a code object, whose length its header tells.
        match unsafe { (self.hipModuleLoadData)(&raw mut module, image.as_ptr()) } {
            0 => Ok(module),
            code => Err(code),
        }
    }

    /// A function of a module.
    pub(super) fn function(&self, module: Handle, name: &str) -> Result<Handle, u32> {
        let name = CString::new(name).expect("a name");
        let mut function = 0;
        // SAFETY: the name ends with a zero.
        match unsafe { (self.hipModuleGetFunction)(&raw mut function, module, name.as_ptr()) } {
            0 => Ok(function),
            code => Err(code),
        }
    }

    /// Launches blocks of threads along x. Each parameter is given by a pointer to its value.
    pub(super) fn launch(
        &self,
        function: Handle,
        [blocks, threads]: [u32; 2],
        stream: Handle,
        values: &[*const c_void],
    ) -> u32 {
        // SAFETY: the test passes as many values as the kernel has parameters.
        unsafe {
            (self.hipModuleLaunchKernel)(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream,
                values.as_ptr(),
                std::ptr::null(),
            )
        }
    }
}

/// The result of a compilation: code and log.
pub(super) struct Compiled {
    pub(super) outcome: Result<Vec<u8>, u32>,
    pub(super) log: String,
    /// The lowered names of the name expressions.
    pub(super) names: Vec<String>,
}

impl Hiprtc {
    /// Compiles a source.
    pub(super) fn compile(&self, source: &str, options: &[&str], names: &[&str]) -> Compiled {
        let text = |text: &str| CString::new(text).expect("a text");
        let source = text(source);
        // SAFETY: texts end with a zero and live until the calls return.
        unsafe {
            let mut program: Handle = get(|program| {
                (self.hiprtcCreateProgram)(
                    program,
                    source.as_ptr(),
                    c"source.cu".as_ptr(),
                    0,
                    std::ptr::null(),
                    std::ptr::null(),
                )
            });
            let expressions: Vec<CString> = names.iter().map(|name| text(name)).collect();
            for expression in &expressions {
                ok((self.hiprtcAddNameExpression)(program, expression.as_ptr()));
            }
            let options: Vec<CString> = options.iter().map(|option| text(option)).collect();
            let pointers: Vec<*const c_char> =
                options.iter().map(|option| option.as_ptr()).collect();
            let code =
                (self.hiprtcCompileProgram)(program, pointers.len() as c_int, pointers.as_ptr());
            let log_bytes = get(|len| (self.hiprtcGetProgramLogSize)(program, len));
            let mut log = vec![0_u8; log_bytes];
            ok((self.hiprtcGetProgramLog)(program, log.as_mut_ptr().cast()));
            let code_bytes = get(|len| (self.hiprtcGetCodeSize)(program, len));
            let mut image = vec![0_u8; code_bytes];
            ok((self.hiprtcGetCode)(program, image.as_mut_ptr().cast()));
            let lowered = |expression: &CString| {
                let mut name = std::ptr::null();
                match (self.hiprtcGetLoweredName)(program, expression.as_ptr(), &raw mut name) {
                    0 => CStr::from_ptr(name).to_str().expect("ASCII").to_owned(),
                    code => format!("error {code}"),
                }
            };
            let names = expressions.iter().map(lowered).collect();
            ok((self.hiprtcDestroyProgram)(&raw mut program));
            Compiled {
                outcome: if code == 0 { Ok(image) } else { Err(code) },
                log: String::from_utf8(log).expect("UTF-8"),
                names,
            }
        }
    }
}
