//! Initialisation, devices, errors.

use std::ffi::{CStr, c_char};

use super::driver_functions;
use crate::interface::{RULES, SHARED_BYTES_MAX};
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::functions::devices;
use resident_stand_in_gpu::interface::THREADS_MAX;
use resident_stand_in_gpu::machine::{self, settings};
use resident_stand_in_gpu::texts::{Names, texts};

/// The UUID of device 0.
const UUID: [u8; 16] = *b"resident stand-0";

driver_functions! {
    cuInit(flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        machine::initialise()
    }

    cuDriverGetVersion(version: Out<i32>) {
        version.set(settings().version)
    }

    cuDeviceGet = devices::get(device: Out<i32>, ordinal: i32);

    cuDeviceGetCount(count: Out<i32>) {
        machine::check_initialised()?;
        count.set(settings().devices as i32)
    }

    cuDeviceGetName(name: Out<u8>, len_bytes: i32, device: i32) {
        let ordinal = machine::ordinal(device)?;
        devices::name(name, len_bytes, &format!("Stand-in GPU {ordinal}"))
    }

    cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) {
        devices::uuid(uuid, device, UUID)
    }

    cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) {
        devices::uuid(uuid, device, UUID)
    }

    cuDeviceTotalMem_v2 = devices::total_memory(len_bytes: Out<usize>, device: i32);

    cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) {
        machine::ordinal(device)?;
        value.set(attribute_value(attribute, device)?)
    }

    cuDeviceGetPCIBusId(text: Out<u8>, len_bytes: i32, device: i32) {
        let ordinal = machine::ordinal(device)?;
        devices::bus_id(text, len_bytes, &format!("0000:{:02X}:00.0", ordinal + 1))
    }

    cuDeviceCanAccessPeer = devices::can_access_peer(can: Out<i32>, device: i32, peer: i32);

    cuDeviceGetP2PAttribute(value: Out<i32>, attribute: u32, source: i32, destination: i32) {
        let (source, destination) = (machine::ordinal(source)?, machine::ordinal(destination)?);
        if source == destination || !(1..=5).contains(&attribute) {
            return Err(Code::INVALID_VALUE);
        }
        // The values are: performance rank 0; access; no atomics; no CUDA arrays.
        value.set(i32::from(attribute == 2 && settings().can_access_peers))
    }

    cuGetErrorName(code: u32, text: Out<*const c_char>) {
        set_text(text, texts(Names::Cuda, code).map(|texts| texts.name))
    }

    cuGetErrorString(code: u32, text: Out<*const c_char>) {
        set_text(text, texts(Names::Cuda, code).map(|texts| texts.description))
    }
}

fn set_text(place: Out<*const c_char>, text: Option<&'static CStr>) -> Outcome {
    place.set(text.map_or(std::ptr::null(), CStr::as_ptr))?;
    text.map(drop).ok_or(Code::INVALID_VALUE)
}

/// The value of a device attribute. The result is CUDA_ERROR_INVALID_VALUE for an attribute that
/// the stand-in does not support.
fn attribute_value(attribute: u32, device: i32) -> Outcome<i32> {
    limit(attribute)
        .or_else(|| memory_attribute(attribute))
        .or_else(|| property(attribute, device))
        .or_else(|| unsupported_feature(attribute))
        .ok_or(Code::INVALID_VALUE)
}

/// Attributes of blocks, grids, on-chip memory, registers, constant memory, caches.
fn limit(attribute: u32) -> Option<i32> {
    Some(match attribute {
        1..=3 => THREADS_MAX as i32,
        4 => 64,
        5 => 0x7FFF_FFFF,
        6 | 7 => 0xFFFF,
        8 => 48 << 10,
        9 => 64 << 10,
        10 => 32,
        12 | 82 => 65_536,
        16 => RULES.multiprocessors,
        38 => 50 << 20,
        39 => 2048,
        79 | 80 => 1,
        81 => 228 << 10,
        97 => SHARED_BYTES_MAX,
        106 => 32,
        111 => 1 << 10,
        _ => return None,
    })
}

/// Copies and memory.
fn memory_attribute(attribute: u32) -> Option<i32> {
    let settings = settings();
    Some(match attribute {
        11 => i32::try_from(settings.max_pitch_bytes).unwrap_or(i32::MAX),
        14 => 512,
        15 | 19 | 31 | 41 | 78 | 91 | 99 => 1,
        30 => 512,
        37 => 5120,
        40 => 2,
        51 => 32,
        83 => 1,
        88 | 100 => i32::from(settings.reaches_pageable),
        89 => i32::from(settings.is_concurrent),
        102 => i32::from(settings.page_bytes > 0),
        113 => i32::from(settings.registers_read_only),
        115 => i32::from(settings.has_pools),
        119 => 0,
        134 => settings.numa_node,
        _ => return None,
    })
}

/// Attributes: clock rates in kHz, which have no effect; the bus number; the compute capability.
fn property(attribute: u32, device: i32) -> Option<i32> {
    let [major, minor] = settings().compute_capability;
    Some(match attribute {
        13 => 1_980_000,
        33 => device + 1,
        36 => 2_619_000,
        75 => major,
        76 => minor,
        87 => 2,
        _ => return None,
    })
}

/// Attributes of time limits, integration, modes, ECC, TCC, domains, boards, atomics, memory
/// operations, cooperative launches, handles, persistence, RDMA, clusters.
fn unsupported_feature(attribute: u32) -> Option<i32> {
    let is_known = matches!(attribute, 17 | 18 | 20 | 32 | 34 | 35 | 50 | 84..=86 | 90)
        || matches!(attribute, 92..=96 | 98 | 101 | 103..=105 | 107..=110 | 112 | 114)
        || matches!(attribute, 116..=118 | 120..=133);
    is_known.then_some(0)
}
