//! The stand-in driver as a small, old machine: no memory pools, little memory, no peer access, a
//! driver of CUDA 12.0.

use resident::cudarc::driver::sys::{self, CUresult};
use resident::cudarc::driver::{CudaContext, result};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::Settings;
use std::sync::Arc;

use crate::shared::{SCALE, code};
use support::own_process;

fn context(ordinal: usize) -> Arc<CudaContext> {
    let settings = Settings::new()
        .devices(2)
        .memory(1 << 20)
        .without_pools()
        .peers(false)
        .driver_version(12_000)
        .compute_capability(7, 5);
    resident_stand_in::load(settings).expect("the stand-in loads");
    CudaContext::new(ordinal).expect("a device")
}

#[test]
fn without_pools_memory_is_had_all_the_same() {
    own_process!();
    let context = context(0);
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
fn memory_is_bounded_and_comes_back() {
    own_process!();
    let context = context(1);
    context.bind_to_thread().expect("a context");
    assert_eq!(context.mem_get_info(), Ok((1 << 20, 1 << 20)));
    // SAFETY: freed memory is not used.
    unsafe {
        let most = result::malloc_sync(900_000).expect("there is enough memory");
        assert_eq!(
            code(result::malloc_sync(200_000).map(drop)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        );
        result::free_sync(most).expect("it is there");
        let again = result::malloc_sync(200_000).expect("there is enough memory again");
        assert_eq!(context.mem_get_info(), Ok(((1 << 20) - 200_000, 1 << 20)));
        result::free_sync(again).expect("it is there");
    }
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
    own_process!();
    let context = context(0);
    let load = |version: &str, target: &str| {
        let text = SCALE.replace("8.0", version).replace("sm_80", target);
        context.load_module(Ptx::from_src(text)).map(drop)
    };
    load("8.0", "sm_75").expect("the newest accepted version");
    assert_eq!(code(load("8.1", "sm_75")), CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_eq!(code(load("8.0", "sm_80")), CUresult::CUDA_ERROR_INVALID_PTX);
    let mut version = 0;
    // SAFETY: the pointer's target lives during the call.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .expect("the version is always available");
    assert_eq!(version, 12_000);
}
