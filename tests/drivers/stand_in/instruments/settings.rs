//! Settings have an effect: no memory pools, no peer access, a driver of CUDA 12.0, registration by
//! whole pages. Tests of the library's behaviour on such machines rely on it.

use resident::cudarc::driver::sys::{self, CUresult};
use resident::cudarc::driver::{CudaContext, DriverError, result};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::Settings;
use std::sync::Arc;

use crate::kernels::PTX;
use crate::shared::{code, done};
use support::{in_own_process, own_process};

fn context(ordinal: usize) -> Arc<CudaContext> {
    let settings = Settings::new()
        .devices(2)
        .without_pools()
        .peers(false)
        .driver_version(12_000)
        .compute_capability(7, 5);
    resident_stand_in::load(settings).expect("the stand-in loads");
    CudaContext::new(ordinal).expect("a device")
}

#[test]
fn without_pools_memory_is_had_all_the_same() {
    let context = in_own_process!(context(0));
    assert!(!context.has_async_alloc());
    let stream = context.new_stream().expect("a stream");
    let memory = stream.clone_htod(&[1_u8, 2]).expect("a copy");
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [1, 2]);
    // SAFETY: the call is refused.
    let outcome = unsafe { result::malloc_async(stream.cu_stream(), 16) }.map(drop);
    assert_eq!(code(outcome), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    // SAFETY: the call only queries.
    let outcome = unsafe { result::device::get_default_mem_pool(0) }.map(drop);
    assert_eq!(code(outcome), CUresult::CUDA_ERROR_NOT_SUPPORTED);
}

#[test]
fn peers_do_not_reach_each_other() {
    own_process!();
    let (one, other) = (context(0), context(1));
    let mut can = 1;
    // SAFETY: the pointer's target lives during the call.
    unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, 0, 1) }.result().expect("both are there");
    assert_eq!(can, 0);
    one.bind_to_thread().expect("a context");
    // SAFETY: the context is live.
    let refused = unsafe { sys::cuCtxEnablePeerAccess(other.cu_ctx(), 0) }.result();
    assert_eq!(code(refused), CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

#[test]
fn an_old_driver_takes_only_old_ptx() {
    let context = in_own_process!(context(0));
    let load = |version: &str, target: &str| {
        let text = PTX.replace("7.0", version).replace("sm_70", target);
        context.load_module(Ptx::from_src(text)).map(drop)
    };
    load("8.0", "sm_75").expect("the newest accepted version");
    assert_eq!(code(load("8.1", "sm_75")), CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_eq!(code(load("8.0", "sm_80")), CUresult::CUDA_ERROR_INVALID_PTX);
    let mut version = 0;
    // SAFETY: the pointer's target lives during the call.
    done(unsafe { sys::cuDriverGetVersion(&raw mut version) });
    assert_eq!(version, 12_000);
}

/// The kind that the driver reports for an address: 1 is host memory.
fn memory_kind(address: *const u8) -> Result<u32, DriverError> {
    let mut kind = 0_u32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the driver writes 32 bits, and does not dereference the address.
    let outcome = unsafe {
        sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address.addr() as u64)
    };
    outcome.result().map(|()| kind)
}

#[test]
fn memory_is_pinned_by_whole_pages() {
    own_process!();
    resident_stand_in::load(Settings::new().locks_whole_pages()).expect("the stand-in loads");
    let context = CudaContext::new(0).expect("a device");
    context.bind_to_thread().expect("a context");
    let mut memory = vec![0_u8; 4 * 4096];
    let start = memory.as_mut_ptr();
    let start = start.wrapping_add(start.align_offset(4096));
    let register = |offset: usize, len_bytes: usize| {
        // SAFETY: memory of the test, live until it is unregistered below.
        unsafe { sys::cuMemHostRegister_v2(start.wrapping_add(offset).cast(), len_bytes, 0) }
            .result()
    };
    let unregister = |offset: usize| {
        // SAFETY: registered below, and nothing uses it any more.
        done(unsafe { sys::cuMemHostUnregister(start.wrapping_add(offset).cast()) });
    };
    let kind_at = |offset: usize| memory_kind(start.wrapping_add(offset));
    register(100, 4096).expect("two pages");
    assert_eq!([0, 8191].map(kind_at), [Ok(1); 2], "all of both");
    assert!(kind_at(8192).is_err());
    assert_eq!(
        code(register(8000, 1000)),
        CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        "another's page"
    );
    register(8192, 100).expect("the next page");
    [100, 8192].into_iter().for_each(unregister);
    register(8000, 1000).expect("nobody's");
    unregister(8000);
}

#[test]
fn a_process_has_one_machine() {
    let _context = in_own_process!(context(0));
    assert!(resident_stand_in::load(Settings::new()).is_err(), "it is loaded with other settings");
}
