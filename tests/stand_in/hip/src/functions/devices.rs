//! Initialisation, versions, devices, peers, errors.

use std::ffi::c_char;

use super::hip_functions;
use crate::code::texts;
use crate::interface::{
    GRID_MAX, Hip, MULTIPROCESSORS, SHARED_BYTES, current_device, peek, set_current_device,
    take_last, wave_size,
};
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::capture;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::devices;
use resident_stand_in_gpu::interface::{THREADS_MAX, choose};
use resident_stand_in_gpu::machine::{self, settings};

hip_functions! {
    hipInit(flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // HIP has no other code for a machine without devices here.
        machine::initialise().map_err(|_| Code::INVALID_DEVICE)
    }

    hipDriverGetVersion(version: Out<i32>) {
        version.set(settings().version)
    }

    hipRuntimeGetVersion(version: Out<i32>) {
        version.set(settings().version)
    }

    hipGetDeviceCount(count: Out<i32>) {
        count.set(settings().devices as i32)?;
        if settings().devices == 0 { Err(Code::NO_DEVICE) } else { Ok(()) }
    }

    hipGetDevice(device: Out<i32>) {
        device.set(current_device())
    }

    hipSetDevice(device: i32) {
        machine::ordinal(device)?;
        set_current_device(device);
        Ok(())
    }

    hipDeviceGet = devices::get(device: Out<i32>, ordinal: i32);

    hipDeviceGetName(name: Out<u8>, len_bytes: i32, device: i32) {
        let ordinal = machine::ordinal(device)?;
        devices::name(name, len_bytes, &format!("Stand-in AMD GPU {ordinal}"))
    }

    hipDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) {
        devices::uuid(uuid, device, *b"resident HIP - 0")
    }

    hipDeviceGetPCIBusId(text: Out<u8>, len_bytes: i32, device: i32) {
        let ordinal = machine::ordinal(device)?;
        devices::bus_id(text, len_bytes, &format!("0000:{:02x}:00.0", ordinal + 0x81))
    }

    hipDeviceTotalMem = devices::total_memory(len_bytes: Out<usize>, device: i32);

    hipDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) {
        machine::ordinal(device)?;
        value.set(attribute_value(attribute, device)?)
    }

    hipDeviceSynchronize() {
        let context = Context::current()?;
        capture::check_wait(context.handle)?;
        context.wait_for_all()
    }

    hipDeviceCanAccessPeer = devices::can_access_peer(can: Out<i32>, device: i32, peer: i32);

    hipDeviceEnablePeerAccess(peer: i32, flags: u32) {
        let context = Context::current()?;
        let peer = machine::ordinal(peer)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if peer == context.device.ordinal || !settings().can_access_peers {
            return Err(Code::INVALID_DEVICE);
        }
        context.enable_peer(peer)
    }

    hipDeviceDisablePeerAccess(peer: i32) {
        let context = Context::current()?;
        context.disable_peer(machine::ordinal(peer)?)
    }
}

/// Returns the result of the thread's last call, and forgets it.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "HIP's name")]
extern "C" fn hipGetLastError() -> u32 {
    take_last("hipGetLastError")
}

/// Returns the result of the thread's last call.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "HIP's name")]
extern "C" fn hipPeekAtLastError() -> u32 {
    peek("hipPeekAtLastError")
}

/// The name of a code. Not recorded, as it cannot fail.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "HIP's name")]
extern "C" fn hipGetErrorName(code: u32) -> *const c_char {
    texts(code).name.as_ptr()
}

/// The description of a code; before HIP 6, its name.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "HIP's name")]
extern "C" fn hipGetErrorString(code: u32) -> *const c_char {
    choose(&Hip);
    let texts = texts(code);
    if settings().version < 60_000_000 { texts.name.as_ptr() } else { texts.description.as_ptr() }
}

/// The value of a device attribute; hipErrorInvalidValue if HIP or the stand-in has none.
fn attribute_value(attribute: u32, device: i32) -> Outcome<i32> {
    limit(attribute)
        .or_else(|| memory_attribute(attribute))
        .or_else(|| property(attribute, device))
        .ok_or(Code::INVALID_VALUE)
}

/// Attributes of blocks, grids, registers and shared memory.
fn limit(attribute: u32) -> Option<i32> {
    Some(match attribute {
        8 => 1,
        25 => 32,
        26..=28 | 56 => THREADS_MAX as i32,
        29..=31 => GRID_MAX[attribute as usize - 29] as i32,
        57 => 2048,
        63 | 10_015 => MULTIPROCESSORS,
        71 | 72 => 65_536,
        74..=76 | 10_002 => SHARED_BYTES,
        83 => 0x7FFF_FFFF,
        87 => wave_size(),
        _ => return None,
    })
}

/// Copies and memory.
fn memory_attribute(attribute: u32) -> Option<i32> {
    let settings = settings();
    let is_new = settings.version >= 60_000_000;
    Some(match attribute {
        2 | 78 | 85 | 90 if !is_new => return None,
        2 => 2,
        3 | 24 | 78 | 85 | 90 => 1,
        9 => i32::from(settings.is_concurrent),
        13 => 0,
        65 | 66 => i32::from(settings.reaches_pageable),
        19 => 8 << 20,
        58 => i32::try_from(settings.max_pitch_bytes).unwrap_or(i32::MAX),
        59 => 4096,
        84 => i32::try_from(settings.memory_bytes).unwrap_or(i32::MAX),
        88 => i32::from(settings.has_pools),
        89 if is_new => i32::from(settings.page_bytes > 0),
        10_011 => 1,
        _ => return None,
    })
}

/// Clock rates in kHz, which have no effect; the place on the bus; the version of the architecture;
/// what is no feature of the devices.
fn property(attribute: u32, device: i32) -> Option<i32> {
    let [major, minor] = architecture_version();
    Some(match attribute {
        0 | 6 | 10 | 11 | 16 | 17 | 18 | 68 | 69 => 0,
        5 => 1_700_000,
        23 => major,
        60 => 1_600_000,
        61 => minor,
        67 => device + 0x81,
        10_013 | 10_016 => 1,
        _ => return None,
    })
}

/// 9.0 for gfx90a, 10.3 for gfx1030.
pub(super) fn architecture_version() -> [i32; 2] {
    let settings = settings();
    let name = settings.architecture_name().split(':').next().unwrap_or_default();
    let digits = name.trim_start_matches("gfx");
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    // The last two digits are the minor version and the stepping.
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    [number(Some(major)), number(rest.get(..1))]
}
