//! A module: code that a device has loaded.

use std::ffi::{CString, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::Arc;

use super::compile::{Compiled, Lowered, name_in_code};
use super::described_code::DescribedCode;
use super::function::LoadedFunction;
use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{ModuleHandle, status};
use resident_backend::{BackendError, BackendErrorKind, LoadError};
use resident_code::code_object;
use resident_code::once::OncePerKey;

/// The size of the buffer for the error log of the driver's PTX compiler.
const LOG_BYTES: usize = 8 << 10;

/// A module. It stays loaded until its context is destroyed: when its last handle drops, work that
/// executes its code may still be in flight.
#[derive(Debug)]
pub(super) struct Module {
    handle: ModuleHandle,
    context: Arc<Context>,
    /// The code's name in error messages.
    description: String,
    /// The functions by their names in the code. Kernels with the same function share one value,
    /// because the driver has one object for the function.
    functions: OncePerKey<String, LoadedFunction>,
    /// The image that the driver was given, if it uses the image as long as the module is loaded:
    /// for good. It then tells the sizes of parameters, too.
    image: Option<ManuallyDrop<Vec<u8>>>,
    /// The lowered names of the functions that name expressions select.
    lowered: Lowered,
    /// The types of kernels' parameters, and the source's variables, as the code tells them.
    pub(super) described: DescribedCode,
    /// The kernels in the code, as far as it tells them.
    pub(super) kernel_names: Vec<String>,
}

// SAFETY: the handle names an object of the driver, whose functions may be called from any thread;
// each call makes the context current first.
unsafe impl Send for Module {}
// SAFETY: as for `Send`; only the table of functions changes, and it is behind a lock.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the first image that the driver accepts: machine code, or PTX if the driver cannot use
    /// the machine code (because it is for another architecture, or from a newer compiler). The
    /// context is current.
    pub(super) fn load(
        context: &Arc<Context>,
        code: &Compiled,
        description: &str,
    ) -> Result<Self, LoadError> {
        let mut refused: Vec<RefusedImage> = Vec::new();
        for (kind, image) in code.images() {
            match Self::load_image(context, code, description, image) {
                Ok(module) => return Ok(module),
                Err((error, log)) => refused.push(RefusedImage { kind, error, log }),
            }
            if !refused.iter().all(|refused| has_code(&refused.error, is_about_kind)) {
                break;
            }
        }
        Err(load_error(context, description, &refused))
    }

    fn load_image(
        context: &Arc<Context>,
        code: &Compiled,
        description: &str,
        image: &[u8],
    ) -> Result<Self, (BackendError, String)> {
        // PTX has to end with a zero. Machine code contains its length.
        let image: Vec<u8> = [image, &[0]].concat();
        let module = Self {
            handle: load_into_context(context, &image)?,
            context: Arc::clone(context),
            description: description.to_owned(),
            functions: OncePerKey::new(),
            image: context.driver().vendor.keeps_images.then(|| ManuallyDrop::new(image)),
            lowered: code.lowered.clone(),
            described: DescribedCode::of(code),
            kernel_names: code.kernel_names(),
        };
        // With lazy loading the driver checks code only when the first function is looked up. If
        // there is another image to load instead, the check must happen now.
        if code.images().count() > 1
            && let Some(name) = module.kernel_names.first()
        {
            module.function(name).map_err(|error| (error, String::new()))?;
        }
        Ok(module)
    }

    /// The name in the code of the function that an entry names.
    pub(super) fn name_of<'a>(&'a self, entry: &'a str) -> &'a str {
        name_in_code(&self.lowered, &self.kernel_names, entry)
    }

    /// A variable by its name in the code: where it is, and its length in bytes. `None` if there is
    /// no such variable. The context is current.
    pub(super) fn variable(&self, name: &str) -> Result<Option<(u64, usize)>, BackendError> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        let driver = self.context.driver();
        let Some(ask) = &driver.module_variable else {
            return Err(driver.lacks(["cuModuleGetGlobal_v2", "hipModuleGetGlobal"]));
        };
        let (mut address, mut len_bytes) = (0, 0);
        let (at, len) = (&raw mut address, &raw mut len_bytes);
        // SAFETY: the module stays loaded, the name ends with a zero, and the driver writes an
        // address and a size.
        match unsafe { (ask.function)(at, len, self.handle, name.as_ptr()) } {
            status::NOT_FOUND => Ok(None),
            outcome => ask.check(outcome).map(|()| Some((address, len_bytes))),
        }
    }

    /// A function by its name in the code, `None` if there is no such function. The context is
    /// current.
    pub(super) fn function(&self, name: &str) -> Result<Option<Arc<LoadedFunction>>, BackendError> {
        match self.functions.get_or_make(name.to_owned(), || self.look_up(name)) {
            Ok(function) => Ok(Some(function)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Asks the driver for a function. `Err(None)` if there is no such function.
    fn look_up(&self, name: &str) -> Result<LoadedFunction, Option<BackendError>> {
        // No function has a zero byte in its name.
        let name = CString::new(name).map_err(|_| None)?;
        let mut handle = null_mut();
        let driver = self.context.driver();
        let ask = &driver.function;
        // SAFETY: the module stays loaded, and the name ends with a zero.
        match unsafe { (ask.function)(&raw mut handle, self.handle, name.as_ptr()) } {
            status::NOT_FOUND => Err(None),
            outcome => ask
                .check(outcome)
                // SAFETY: the module is loaded in the current context, and is never unloaded.
                .and_then(|()| unsafe { LoadedFunction::new(driver, handle) })
                .map_err(Some),
        }
    }

    /// The size in bytes of each parameter of a function, if the driver or the code tells them.
    /// The context is current.
    pub(super) fn parameter_bytes(
        &self,
        function: &LoadedFunction,
        name: &str,
    ) -> Result<Option<Vec<usize>>, LoadError> {
        if let Some(image) = &self.image {
            return Ok(code_object::parameter_bytes(image, name)?);
        }
        // SAFETY: the context is current, and the module stays loaded.
        unsafe { self.context.driver().parameter_bytes(function.handle()) }
            .map_err(|error| self.load_error(error))
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The error for a refused call about a function. With lazy loading the cause may be the code.
    #[cold]
    pub(super) fn load_error(&self, error: BackendError) -> LoadError {
        let refused = RefusedImage { kind: "a function", error, log: String::new() };
        load_error(&self.context, &self.description, &[refused])
    }
}

/// Loads an image into the current context. On failure also returns the log of the driver's
/// compiler.
fn load_into_context(
    context: &Context,
    image: &[u8],
) -> Result<ModuleHandle, (BackendError, String)> {
    // `CU_JIT_ERROR_LOG_BUFFER` and its size, and HIP's, which ignores them.
    const OPTIONS: [c_int; 2] = [5, 6];
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = OPTIONS;
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_BYTES)];
    let mut handle = null_mut();
    let driver = context.driver();
    let _relaxed = Relaxed::enter(driver);
    let load = &driver.load_module;
    // SAFETY: the context is current (the caller's promise). The image is text that ends with a
    // zero, or whole machine code: it comes from the compiler, or from the caller of `Kernel::cuda`
    // or `Kernel::hip`, who guarantees it. If the driver uses it later, `Module` keeps it. There
    // are two options with one value each; the second value is the length of the log.
    let outcome = unsafe {
        (load.function)(
            &raw mut handle,
            image.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    load.check(outcome).map(|()| handle).map_err(|error| {
        log.truncate(log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES));
        (error, String::from_utf8_lossy(&log).trim().to_owned())
    })
}

/// An image that the driver refused.
struct RefusedImage {
    /// `machine code`, `PTX`.
    kind: &'static str,
    error: BackendError,
    /// The log of the driver's compiler, possibly empty.
    log: String,
}

/// Decides by the last error whether the error is in the code or in the call.
#[cold]
fn load_error(context: &Context, description: &str, refused: &[RefusedImage]) -> LoadError {
    match refused.last() {
        Some(last) if !has_code(&last.error, is_about_code) => {
            let error = last.error.clone();
            LoadError::Refused(
                context.record_death::<()>(Err(error.clone())).err().unwrap_or(error),
            )
        }
        _ => LoadError::Program(load_error_text(context, description, refused)),
    }
}

/// The text of a load error: each image, the reason why it was refused, and the next step.
fn load_error_text(context: &Context, description: &str, refused: &[RefusedImage]) -> String {
    let driver = context.driver();
    let vendor = driver.vendor.name;
    let version = driver.version_text();
    let architecture = context.architecture();
    let compiler = driver.vendor.compiler_hint;
    let reason = |image: &RefusedImage| format!("{}: {}", image.kind, image.error.detail);
    let reasons: Vec<String> = refused.iter().map(reason).collect();
    let logs = refused.iter().filter(|image| !image.log.is_empty());
    let logs: String = logs.map(|image| format!("\n{}", image.log)).collect();
    format!(
        "the driver ({vendor} {version}) cannot load {description} on {architecture} ({}); \
         make it for this architecture, with tools no newer than the driver \
         ({compiler}){logs}",
        reasons.join("; ")
    )
}

/// Whether an error came from the driver with a result code for which `is_such` returns true.
fn has_code(error: &BackendError, is_such: fn(i64) -> bool) -> bool {
    matches!(error.kind, BackendErrorKind::Driver { code } if is_such(code))
}

const INVALID_IMAGE: i64 = 200;
const NO_BINARY_FOR_GPU: i64 = 209;
const INVALID_PTX: i64 = 218;
const JIT_COMPILER_NOT_FOUND: i64 = 221;
const UNSUPPORTED_PTX_VERSION: i64 = 222;
const UNSUPPORTED_DEVICE_SIDE_SYNC: i64 = 223;
const INVALID_SOURCE: i64 = 300;
const SHARED_OBJECT_INIT_FAILED: i64 = 303;

/// Whether the driver cannot use this kind of code: the code is for another architecture, has
/// another format, or was made by tools that are newer than the driver.
fn is_about_kind(code: i64) -> bool {
    matches!(code, INVALID_IMAGE | NO_BINARY_FOR_GPU | INVALID_PTX | UNSUPPORTED_PTX_VERSION)
}

fn is_about_code(code: i64) -> bool {
    is_about_kind(code)
        || matches!(code, JIT_COMPILER_NOT_FOUND | UNSUPPORTED_DEVICE_SIDE_SYNC)
        || (INVALID_SOURCE..=SHARED_OBJECT_INIT_FAILED).contains(&code)
}
