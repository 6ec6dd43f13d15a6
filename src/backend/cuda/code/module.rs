//! Code that a device has loaded.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction, CUjit_option, CUmodule, CUresult};

use super::compile::Compiled;
use crate::backend::cuda::call::{check, describe, refusal, version_text};
use crate::backend::cuda::context::Context;
use crate::backend::{BackendError, LoadError};

/// Room for what the driver says of PTX that it cannot compile.
const LOG_BYTES: usize = 8 << 10;

/// A module. It stays loaded until the context is gone, since nobody knows whether work that runs its code is still in flight when its last handle goes.
#[derive(Debug)]
pub(super) struct Module {
    handle: CUmodule,
    context: Arc<Context>,
    /// Under which name it has the function that a name expression stands for.
    pub(super) lowered_name: Option<String>,
    /// The heads of its kernels, as PTX declares them, where that is known.
    pub(super) declarations: String,
}

// SAFETY: the handle names an object of the driver, whose functions may be called from any thread; each call makes the context current first.
unsafe impl Send for Module {}
// SAFETY: as for `Send`; nothing in it changes.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a cubin, a fatbin or PTX. The context is current. `maker` says who made it, for the error.
    pub(super) fn load(context: &Arc<Context>, code: &Compiled, maker: &str) -> Result<Self, LoadError> {
        // PTX is a text, which ends with a zero; machine code has its length in it.
        let image: Vec<u8> = [&code.image[..], &[0]].concat();
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_BYTES)];
        let mut handle = null_mut();
        // SAFETY: the context is current, as the caller says. The image is whole: a compiler or `image::check` vouches for it, or it is text that ends
        // with a zero. Two options have two values, and the log has as many bytes as the second says.
        let outcome =
            unsafe { sys::cuModuleLoadDataEx(&raw mut handle, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr()) };
        if outcome != CUresult::CUDA_SUCCESS {
            return Err(not_loaded(context, outcome, maker, &log));
        }
        Ok(Self { handle, context: Arc::clone(context), lowered_name: code.lowered_name.clone(), declarations: code.declarations.clone() })
    }

    /// A function by the name that the code has for it. None if there is none. The context is current.
    pub(super) fn function(&self, name: &str) -> Result<Option<CUfunction>, LoadError> {
        let name = CString::new(name).map_err(|_| LoadError::Program(format!("the entry's name {name:?} holds a zero byte")))?;
        let mut function = null_mut();
        // SAFETY: the module stays loaded, and the name ends with a zero.
        match unsafe { sys::cuModuleGetFunction(&raw mut function, self.handle, name.as_ptr()) } {
            CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            outcome => {
                self.context.note(check(outcome, "cuModuleGetFunction")).map_err(LoadError::Refused)?;
                Ok(Some(function))
            }
        }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

/// The code is at fault, or the call.
#[cold]
fn not_loaded(context: &Context, outcome: CUresult, maker: &str, log: &[u8]) -> LoadError {
    let refused: BackendError = match is_about_code(outcome) {
        false => refusal(outcome, "cuModuleLoadDataEx"),
        true => {
            let (major, minor) = context.capability();
            let driver = version_text(context.driver_version());
            let log: Vec<u8> = log.iter().copied().take_while(|byte| *byte != 0).collect();
            let log = String::from_utf8_lossy(&log);
            let says = if log.trim().is_empty() { String::new() } else { format!("\n{}", log.trim()) };
            return LoadError::Program(format!(
                "the driver (CUDA {driver}) cannot load {maker} on sm_{major}{minor}: {}; make it for this architecture, with tools no newer than the \
                 driver{says}",
                describe(outcome)
            ));
        }
    };
    LoadError::Refused(context.note::<()>(Err(refused.clone())).err().unwrap_or(refused))
}

fn is_about_code(outcome: CUresult) -> bool {
    const INVALID_IMAGE: i64 = 200;
    const NO_BINARY_FOR_GPU: i64 = 209;
    const INVALID_PTX: i64 = 218;
    const UNSUPPORTED_DEVICE_SIDE_SYNC: i64 = 223;
    const JIT_COMPILER_NOT_FOUND: i64 = 221;
    const INVALID_SOURCE: i64 = 300;
    const SHARED_OBJECT_INIT_FAILED: i64 = 303;
    let code = outcome as i64;
    matches!(code, INVALID_IMAGE | NO_BINARY_FOR_GPU | INVALID_PTX)
        || (JIT_COMPILER_NOT_FOUND..=UNSUPPORTED_DEVICE_SIDE_SYNC).contains(&code)
        || (INVALID_SOURCE..=SHARED_OBJECT_INIT_FAILED).contains(&code)
}
