//! Host memory that the user asked to be page-locked.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUpointer_attribute, CUresult};
use smallvec::SmallVec;

use super::call::refusal;
use super::context::Context;
use super::pages::{Driver, Hold, Registrations};
use crate::backend::{BackendError, PinnedRegistration};

/// All memory that this process has registered for arrays, for all devices together: a registration
/// made in one context holds in all. Its lock is held over the driver's calls, so that nobody
/// counts on what is about to go; nothing else is locked under it.
static REGISTRATIONS: Mutex<Registrations<Kept>> = Mutex::new(Registrations::new());

/// The process that made the first registration; 0 before. In the child of a fork none of them
/// counts, and somebody may hold their lock who is not there.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn registrations() -> MutexGuard<'static, Registrations<Kept>> {
    REGISTRATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process is the one that registers.
fn is_at_home() -> bool {
    let us = std::process::id();
    let before = PROCESS.compare_exchange(0, us, Ordering::Relaxed, Ordering::Relaxed);
    before.is_ok() || before == Err(us)
}

/// What stays for as long as a registration: the context in which it was made, and memory whose
/// arrays are gone.
struct Kept {
    context: Arc<Context>,
    memory: Vec<Arc<dyn Any + Send + Sync>>,
}

/// Locked pages, unlocked when this drops.
pub(super) struct Registered {
    context: Arc<Context>,
    /// Nothing of the library's where others locked the pages, who unlock them too.
    hold: Hold,
    boundaries_bytes: SmallVec<[u64; 2]>,
}

impl Registered {
    /// Locks the pages of some memory, which is not empty, for all devices. What others locked
    /// already is used as it is, and left to them; all of it must be then, since the driver copies
    /// nothing that lies half in locked memory.
    pub(super) fn lock(
        context: &Arc<Context>,
        start: *mut u8,
        len_bytes: usize,
    ) -> Result<Self, BackendError> {
        if !is_at_home() {
            return Err(refusal(CUresult::CUDA_ERROR_NOT_INITIALIZED, REGISTER));
        }
        context.enter()?;
        let bytes = start.addr()..start.addr() + len_bytes;
        let mut calls = Calls { memory: start };
        let mut registrations = registrations();
        let given_back =
            registrations.let_go_again(&mut calls, |kept| kept.context.death().is_none());
        // That may have been in another context.
        let entered = if given_back.is_empty() { Ok(()) } else { context.enter() };
        let make = || Kept { context: Arc::clone(context), memory: Vec::new() };
        let locked =
            entered.and_then(|()| registrations.lock(&bytes, page_bytes(), &mut calls, make));
        drop(registrations);
        drop(given_back);
        let hold = context.note(locked)?.ok_or_else(partly_registered)?;
        let boundaries_bytes = hold.seams.iter().map(|seam| (seam - bytes.start) as u64).collect();
        Ok(Self { context: Arc::clone(context), hold, boundaries_bytes })
    }
}

const REGISTER: &str = "cuMemHostRegister";

#[cold]
fn partly_registered() -> BackendError {
    let refused = refusal(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, REGISTER);
    let advice = "others registered a part of this memory and not all of it: unregister that part first, or register all of it";
    BackendError { detail: format!("{}: {advice}", refused.detail), ..refused }
}

impl PinnedRegistration for Registered {
    fn unregister(&mut self) -> bool {
        if !is_at_home() {
            return true;
        }
        let mut registrations = registrations();
        let given_back =
            registrations.unlock(&mut self.hold, &mut Calls { memory: std::ptr::null_mut() });
        let is_free = registrations.kept(&self.hold).is_none();
        drop(registrations);
        // Memory and contexts are let go of with no lock held.
        drop(given_back);
        is_free
    }

    fn keep_until_unregistered(&mut self, memory: Arc<dyn Any + Send + Sync>) {
        if is_at_home()
            && let Some(kept) = registrations().kept(&self.hold)
        {
            kept.memory.push(memory);
        }
    }

    fn boundaries_bytes(&self) -> &[u64] {
        &self.boundaries_bytes
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.unregister();
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registered(of {})", self.context.ordinal())
    }
}

/// The driver's calls. To register, the context is current, and `memory` is where all that is asked
/// for lies.
struct Calls {
    memory: *mut u8,
}

impl Driver<Kept> for Calls {
    type Refusal = BackendError;

    fn register(&mut self, bytes: &Range<usize>) -> Result<bool, BackendError> {
        const PORTABLE: u32 = 1;
        let start = self.memory.with_addr(bytes.start);
        // SAFETY: the bytes lie in the caller's memory, who keeps it for as long as the lock;
        // registering changes nothing of what it holds.
        let outcome = unsafe { sys::cuMemHostRegister_v2(start.cast(), bytes.len(), PORTABLE) };
        match outcome {
            CUresult::CUDA_SUCCESS => Ok(true),
            CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED => Ok(false),
            other => Err(refusal(other, REGISTER)),
        }
    }

    fn knows(&mut self, bytes: &Range<usize>) -> bool {
        let (first, last) = (registration_at(bytes.start), registration_at(bytes.end - 1));
        first.is_some() && first == last
    }

    fn unregister(&mut self, start: usize, kept: &Kept) -> bool {
        // A context whose kernel failed keeps its registrations: it is asked all the same, and
        // memory that it does not let go of stays where it is.
        if kept.context.enter().is_err() {
            // SAFETY: the handle is that of a retained primary context, which `cudarc` keeps.
            let _dead = unsafe { sys::cuCtxSetCurrent(kept.context.cudarc().cu_ctx()) };
        }
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: registered by `register`; arrays whose memory lies in its pages have left, and
        // work in flight keeps its arrays, so nothing uses it any more.
        let outcome = unsafe { sys::cuMemHostUnregister(start) };
        match outcome {
            // Not registered: nobody has these pages any more.
            CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED => true,
            other => {
                let _noted = kept.context.note::<()>(Err(refusal(other, "cuMemHostUnregister")));
                false
            }
        }
    }
}

/// The number of the registration whose pages this address lies in, 0 if the driver does not tell;
/// none if it is ordinary memory. A context is current.
fn registration_at(address: usize) -> Option<u64> {
    const HOST: u64 = 1;
    let kind = attribute(address, CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    let number =
        || attribute(address, CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID).unwrap_or(0);
    (kind == Some(HOST)).then(number)
}

fn attribute(address: usize, attribute: CUpointer_attribute) -> Option<u64> {
    let mut value = 0_u64;
    // SAFETY: the driver writes one number of 32 or 64 bits; the address is a name to it, which it
    // does not follow.
    let asked = unsafe {
        sys::cuPointerGetAttribute((&raw mut value).cast(), attribute, address as sys::CUdeviceptr)
    };
    (asked == CUresult::CUDA_SUCCESS).then_some(value)
}

/// The system's pages: from the vector that Linux hands to each process, else what nearly all have.
fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    *PAGE_BYTES.get_or_init(|| {
        std::fs::read("/proc/self/auxv")
            .ok()
            .and_then(|entries| told_page_bytes(&entries))
            .unwrap_or(4096)
    })
}

/// The vector is made of pairs of words: what is told, and the value.
fn told_page_bytes(entries: &[u8]) -> Option<usize> {
    const PAGE_SIZE: usize = 6;
    let words = entries.chunks_exact(size_of::<usize>()).filter_map(|word| word.try_into().ok());
    let words: Vec<usize> = words.map(usize::from_ne_bytes).collect();
    let told = words.chunks_exact(2).find(|pair| pair[0] == PAGE_SIZE).map(|pair| pair[1]);
    told.filter(|bytes| bytes.is_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::{page_bytes, told_page_bytes};

    #[test]
    fn the_system_tells_its_pages() {
        let entries = [3_usize, 1 << 40, 6, 65536, 0, 0].map(usize::to_ne_bytes).concat();
        assert_eq!(told_page_bytes(&entries), Some(65536));
        assert_eq!([&entries[..20], &[][..]].map(told_page_bytes), [None; 2]);
        assert!(page_bytes().is_power_of_two());
    }
}
