//! Handles. Each has a stream, a pointer mode, and the kernels as functions of the context
//! in which the handle was created.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::kernels::ALL;
use resident_stand_in_client::above_driver::{Kernel, Launcher};
use resident_stand_in_client::library::Library;

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

/// The stand-in driver, with the kernels registered.
fn launcher() -> Outcome<&'static Launcher> {
    static LAUNCHER: OnceLock<Result<Launcher, String>> = OnceLock::new();
    let find = || Launcher::new(&Library::open(Path::new("libcuda.so"))?, &ALL);
    LAUNCHER.get_or_init(find).as_ref().map_err(|_| Status::NOT_INITIALIZED)
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
    let launcher = launcher()?;
    let module = launcher.module(&ALL).map_err(|_| Status::NOT_INITIALIZED)?;
    let function = |kernel: &Kernel| {
        let function = launcher.function(module, kernel).map_err(|_| Status::INTERNAL_ERROR)?;
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
        let function = *self.functions.get(kernel.name).ok_or(Status::INTERNAL_ERROR)?;
        let words: Vec<[u8; 8]> = words.iter().map(|word| word.0).collect();
        let launched = launcher()?.launch((kernel, function), self.stream, &words);
        launched.map_err(|_| Status::EXECUTION_FAILED)
    }
}
