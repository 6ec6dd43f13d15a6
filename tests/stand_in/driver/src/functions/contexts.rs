//! The functions for primary contexts, other contexts, and the current context.

use std::ffi::c_void;

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::capture;
use resident_stand_in_gpu::code::Code;
use resident_stand_in_gpu::context::{self, Context};
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::machine;

driver_functions! {
    cuDevicePrimaryCtxRetain(context: Out<Handle>, device: i32) {
        context.check()?;
        context.set(machine::retain(device)?.handle)
    }

    cuDevicePrimaryCtxRelease_v2 = machine::release(device: i32);

    cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        let (known, is_active) = machine::primary_state(device)?;
        flags.set(known)?;
        active.set(i32::from(is_active))
    }

    cuDevicePrimaryCtxSetFlags_v2 = machine::set_primary_flags(device: i32, flags: u32);

    // Parameters for affinity and graphics are not supported.
    cuCtxCreate_v4(
        context: Out<Handle>,
        parameters: In<*const c_void>,
        flags: u32,
        device: i32,
    ) {
        context.check()?;
        if !parameters.is_null() || flags != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let made = machine::create(device)?;
        context::push_current(made.handle);
        context.set(made.handle)
    }

    cuCtxDestroy_v2(context: Handle) {
        machine::destroy(context)?;
        if context::current_handle() == Some(context) {
            context::set_current(0);
        }
        Ok(())
    }

    cuCtxGetCurrent(context: Out<Handle>) {
        machine::check_initialised()?;
        context.set(context::current_handle().unwrap_or(0))
    }

    cuCtxSetCurrent(context: Handle) {
        machine::check_initialised()?;
        if context != 0 {
            handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?;
        }
        context::set_current(context);
        Ok(())
    }

    cuCtxPushCurrent_v2(context: Handle) {
        machine::check_initialised()?;
        handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?;
        context::push_current(context);
        Ok(())
    }

    cuCtxPopCurrent_v2(context: Out<Handle>) {
        machine::check_initialised()?;
        let popped = context::pop_current().ok_or(Code::INVALID_CONTEXT)?;
        context.set_if_wanted(popped);
        Ok(())
    }

    cuCtxSynchronize() {
        let context = Context::current()?;
        capture::check_wait(context.handle)?;
        context.wait_for_all()
    }

    cuCtxGetDevice(device: Out<i32>) {
        device.set(Context::current_if_lost()?.device.ordinal as i32)
    }

    cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        Context::current()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    cuCtxGetApiVersion(context: Handle, version: Out<u32>) {
        if context != 0 {
            handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?;
        }
        version.set(3020)
    }

    cuCtxGetFlags(flags: Out<u32>) {
        let context = Context::current()?;
        flags.set(machine::primary_state(context.device.ordinal as i32)?.0)
    }

    cuCtxSetFlags(flags: u32) {
        let context = Context::current()?;
        machine::set_primary_flags(context.device.ordinal as i32, flags)
    }

    cuCtxEnablePeerAccess(peer: Handle, flags: u32) {
        let context = Context::current()?;
        let peer = handle::context(peer).map_err(|_| Code::INVALID_CONTEXT)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if peer.device.ordinal == context.device.ordinal {
            return Err(Code::INVALID_CONTEXT);
        }
        if !machine::settings().can_access_peers {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        context.enable_peer(peer.device.ordinal)
    }

    cuCtxDisablePeerAccess(peer: Handle) {
        let context = Context::current()?;
        let peer = handle::context(peer).map_err(|_| Code::INVALID_CONTEXT)?;
        context.disable_peer(peer.device.ordinal)
    }
}
