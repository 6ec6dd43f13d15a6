//! Code that a device has loaded.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUjit_option, CUmodule, CUresult};

use super::compile::Compiled;
use super::function::Function;
use super::once::OncePerKey;
use super::ptx;
use crate::backend::cuda::call::{check, version_text};
use crate::backend::cuda::context::Context;
use crate::backend::{BackendError, BackendErrorKind, LoadError};

/// Room for what the driver says of PTX that it cannot compile.
const LOG_BYTES: usize = 8 << 10;

/// A module. It stays loaded until the context is gone, since nobody knows whether work that runs
/// its code is still in flight when its last handle goes.
#[derive(Debug)]
pub(super) struct Module {
    handle: CUmodule,
    context: Arc<Context>,
    /// Who made its code, for errors.
    maker: String,
    /// By the names that the code has for them. Kernels of one name share one, as the driver has
    /// one object for them.
    functions: OncePerKey<String, Function>,
    /// Under which name it has the function that a name expression stands for.
    pub(super) lowered_name: Option<String>,
    /// The heads of its kernels, as PTX declares them, where that is known.
    pub(super) declarations: String,
}

// SAFETY: the handle names an object of the driver, whose functions may be called from any thread;
// each call makes the context current first.
unsafe impl Send for Module {}
// SAFETY: as for `Send`; nothing in it changes but the table of functions, which has a lock.
unsafe impl Sync for Module {}

/// One image that the driver did not take.
struct Refused {
    /// `machine code`, or what.
    kind: &'static str,
    refusal: BackendError,
    /// What the driver's own compiler said, if anything.
    log: String,
}

impl Module {
    /// Loads machine code; PTX where there is none, or where the driver does not take it for what
    /// it is: another architecture's, or a newer compiler's. The context is current. `maker` says
    /// who made it, for the error.
    pub(super) fn load(
        context: &Arc<Context>,
        code: &Compiled,
        maker: &str,
    ) -> Result<Self, LoadError> {
        let mut refused: Vec<Refused> = Vec::new();
        for (kind, image) in code.images() {
            match Self::load_image(context, code, maker, image) {
                Ok(module) => return Ok(module),
                Err((refusal, log)) => refused.push(Refused { kind, refusal, log }),
            }
            if !refused.iter().all(|refused| has_code(&refused.refusal, is_about_kind)) {
                break;
            }
        }
        Err(not_loaded(context, maker, &refused))
    }

    fn load_image(
        context: &Arc<Context>,
        code: &Compiled,
        maker: &str,
        image: &[u8],
    ) -> Result<Self, (BackendError, String)> {
        let module = Self {
            handle: load_into(image)?,
            context: Arc::clone(context),
            maker: maker.to_owned(),
            functions: OncePerKey::new(),
            lowered_name: code.lowered_name.clone(),
            declarations: code.declarations(),
        };
        // A driver that loads code when it is first needed says only now what it thinks of it.
        // Where there is other code to be had, that must be known.
        if code.images().count() > 1
            && let Some(entry) = ptx::entries(&module.declarations).first()
        {
            module.function(entry.name).map_err(|refusal| (refusal, String::new()))?;
        }
        Ok(module)
    }

    /// A function by the name that the code has for it. None if there is none. The context is
    /// current.
    pub(super) fn function(&self, name: &str) -> Result<Option<Arc<Function>>, BackendError> {
        match self.functions.get_or_make(name.to_owned(), || self.find(name)) {
            Ok(function) => Ok(Some(function)),
            Err(None) => Ok(None),
            Err(Some(refusal)) => Err(refusal),
        }
    }

    /// A function as the driver has it, or no error if there is none.
    fn find(&self, name: &str) -> Result<Function, Option<BackendError>> {
        // Nothing has a name with a zero in it.
        let name = CString::new(name).map_err(|_| None)?;
        let mut handle = null_mut();
        // SAFETY: the module stays loaded, and the name ends with a zero.
        match unsafe { sys::cuModuleGetFunction(&raw mut handle, self.handle, name.as_ptr()) } {
            CUresult::CUDA_ERROR_NOT_FOUND => Err(None),
            outcome => check(outcome, "cuModuleGetFunction")
                .and_then(|()| Function::new(handle))
                .map_err(Some),
        }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// What a refusal of a function means: its code is at fault, of which a driver that loads it
    /// when it is first needed has said nothing before; or the call is.
    #[cold]
    pub(super) fn fault(&self, refusal: BackendError) -> LoadError {
        not_loaded(
            &self.context,
            &self.maker,
            &[Refused { kind: "a function", refusal, log: String::new() }],
        )
    }
}

/// Gives an image to the driver. The context is current. Where that is refused, also the log of the
/// driver's compiler.
fn load_into(image: &[u8]) -> Result<CUmodule, (BackendError, String)> {
    // PTX is a text, which ends with a zero; machine code has its length in it.
    let image: Vec<u8> = [image, &[0]].concat();
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_BYTES)];
    let mut handle = null_mut();
    // SAFETY: the context is current, as the caller says. The image is whole: a compiler or
    // `image::check` vouches for it, or it is text that ends with a zero. Two options have two
    // values, and the log has as many bytes as the second says.
    let outcome = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut handle,
            image.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    check(outcome, "cuModuleLoadDataEx").map(|()| handle).map_err(|refusal| {
        log.truncate(log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES));
        (refusal, String::from_utf8_lossy(&log).trim().to_owned())
    })
}

/// The code is at fault, or the call that was refused last.
#[cold]
fn not_loaded(context: &Context, maker: &str, refused: &[Refused]) -> LoadError {
    match refused.last() {
        Some(last) if !has_code(&last.refusal, is_about_code) => {
            let refusal = last.refusal.clone();
            LoadError::Refused(
                context.record_loss::<()>(Err(refusal.clone())).err().unwrap_or(refusal),
            )
        }
        _ => LoadError::Program(told(context, maker, refused)),
    }
}

/// All that was tried, why each was refused, and what to do.
fn told(context: &Context, maker: &str, refused: &[Refused]) -> String {
    let (major, minor) = context.capability();
    let driver = version_text(context.driver_version());
    let why: Vec<String> = refused
        .iter()
        .map(|refused| format!("{}: {}", refused.kind, refused.refusal.detail))
        .collect();
    let logs: String = refused
        .iter()
        .filter(|refused| !refused.log.is_empty())
        .map(|refused| format!("\n{}", refused.log))
        .collect();
    format!(
        "the driver (CUDA {driver}) cannot load {maker} on sm_{major}{minor} ({}); make it for this architecture, with tools no newer than the driver \
         (`RESIDENT_NVRTC` names the NVRTC that compiles CUDA C){logs}",
        why.join("; ")
    )
}

/// Whether a refusal is the driver's, with such a code.
fn has_code(refusal: &BackendError, is_such: fn(i64) -> bool) -> bool {
    matches!(refusal.kind, BackendErrorKind::Driver { code } if is_such(code))
}

const INVALID_IMAGE: i64 = 200;
const NO_BINARY_FOR_GPU: i64 = 209;
const INVALID_PTX: i64 = 218;
const JIT_COMPILER_NOT_FOUND: i64 = 221;
const UNSUPPORTED_PTX_VERSION: i64 = 222;
const UNSUPPORTED_DEVICE_SIDE_SYNC: i64 = 223;
const INVALID_SOURCE: i64 = 300;
const SHARED_OBJECT_INIT_FAILED: i64 = 303;

/// The driver cannot use code of this kind: it is another architecture's, of another format, or of
/// tools that are newer than it.
fn is_about_kind(code: i64) -> bool {
    matches!(code, INVALID_IMAGE | NO_BINARY_FOR_GPU | INVALID_PTX | UNSUPPORTED_PTX_VERSION)
}

fn is_about_code(code: i64) -> bool {
    is_about_kind(code)
        || matches!(code, JIT_COMPILER_NOT_FOUND | UNSUPPORTED_DEVICE_SIDE_SYNC)
        || (INVALID_SOURCE..=SHARED_OBJECT_INIT_FAILED).contains(&code)
}
