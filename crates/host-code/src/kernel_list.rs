//! The kernels that a compiled library lists: the other side of `kernels.hpp`.

use std::ffi::{CStr, CString, c_char, c_uint};

use super::runtime::RunBlocks;
use resident_code::parameter_types::ParameterType;

/// A kernel of a library, which must stay loaded while it is used.
#[derive(Clone, Debug)]
pub(super) struct ListedKernel {
    /// The name of its function, or a name expression.
    pub(super) name: String,
    /// The same for C.
    pub(super) c_name: CString,
    pub(super) run: RunBlocks,
    /// The size of each parameter.
    pub(super) parameter_bytes: Vec<usize>,
    pub(super) types: Vec<ParameterType>,
    /// What `__launch_bounds__` says, if it says anything.
    pub(super) threads_max: Option<u32>,
    /// The static shared memory, once it is known (`static_shared.rs`).
    pub(super) shared_bytes: u64,
}

/// `resident_host_kernels`.
pub(super) type KernelList = unsafe extern "C" fn() -> *const RawKernel;

/// `listed_kernel`.
#[repr(C)]
pub(super) struct RawKernel {
    name: *const c_char,
    run: RunBlocks,
    sizes: *const c_uint,
    types: *const ParameterType,
    count: c_uint,
    threads_max: c_uint,
    next: *const Self,
}

/// The kernels, in the order of the source.
///
/// # Safety
///
/// The function is that of a library that was compiled with `kernels.hpp`.
pub(super) unsafe fn read(list: KernelList) -> Vec<ListedKernel> {
    let mut kernels = Vec::new();
    // SAFETY: the caller promises that it is this function, which has no preconditions.
    let mut next = unsafe { list() };
    // SAFETY: the list has static elements, and ends with null.
    while let Some(kernel) = unsafe { next.as_ref() } {
        kernels.push(ListedKernel::read(kernel));
        next = kernel.next;
    }
    kernels.reverse();
    kernels
}

impl ListedKernel {
    fn read(raw: &RawKernel) -> Self {
        let count = raw.count as usize;
        // SAFETY: the name is a literal of the library, which is loaded.
        let c_name = unsafe { CStr::from_ptr(raw.name) }.to_owned();
        // SAFETY: `kernels.hpp` stores an array of at least this length.
        let sizes = unsafe { std::slice::from_raw_parts(raw.sizes, count) };
        // SAFETY: as above.
        let types = unsafe { std::slice::from_raw_parts(raw.types, count) };
        Self {
            name: c_name.to_string_lossy().into_owned(),
            c_name,
            run: raw.run,
            parameter_bytes: sizes.iter().map(|bytes| *bytes as usize).collect(),
            types: types.to_vec(),
            threads_max: Some(raw.threads_max).filter(|threads| *threads > 0),
            shared_bytes: 0,
        }
    }
}
