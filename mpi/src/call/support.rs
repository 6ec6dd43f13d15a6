//! Whether the MPI library says that it can use device memory. `mpi_sys` binds no such function, as
//! libraries need not have one, so they are looked up by name.

use std::ffi::{CStr, c_int, c_void};

use resident::DeviceKind;

use super::session::Session;

/// `false` too if the library has no function that says so.
pub(crate) fn says_it_uses_memory_of(kind: DeviceKind, _session: &Session) -> bool {
    let names: &[&CStr] = match kind {
        DeviceKind::Cuda => &[c"MPIX_Query_cuda_support"],
        DeviceKind::Hip => &[c"MPIX_Query_rocm_support", c"MPIX_Query_hip_support"],
        // Its memory is the host's; the path is the same.
        _ => &[c"MPIX_Query_cuda_support", c"MPIX_Query_rocm_support"],
    };
    names.iter().filter_map(|name| look_up(name)).any(|query| {
        // SAFETY: libraries that have these functions declare them as `int f(void)`; the session
        // proves that MPI runs.
        unsafe { query() == 1 }
    })
}

fn look_up(name: &CStr) -> Option<unsafe extern "C" fn() -> c_int> {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then(|| {
        // SAFETY: it is the address of a function of this type, as `says_it_uses_memory_of` says.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(address) }
    })
}
