//! `hipDeviceProp_t`, whose layout changed with HIP 6.

use super::devices::architecture_version;
use super::hip_functions;
use crate::interface::{GRID_MAX, MULTIPROCESSORS, SHARED_BYTES, wave_size};
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::interface::THREADS_MAX;
use resident_stand_in_gpu::machine::{self, settings};

/// The structure of HIP 5, and of `hipGetDeviceProperties` in all versions.
const R0000_BYTES: usize = 792;
/// The structure of HIP 6.
const R0600_BYTES: usize = 1472;

hip_functions! {
    hipGetDeviceProperties(properties: Out<[u8; R0000_BYTES]>, device: i32) {
        let mut structure = [0; R0000_BYTES];
        machine::ordinal(device)?;
        fields(device).iter().for_each(|(at, _, value)| put(&mut structure, *at, value));
        properties.set(structure)
    }

    hipGetDevicePropertiesR0600(properties: Out<[u8; R0600_BYTES]>, device: i32) {
        let mut structure = [0; R0600_BYTES];
        machine::ordinal(device)?;
        fields(device).iter().for_each(|(_, at, value)| put(&mut structure, *at, value));
        properties.set(structure)
    }
}

fn put(structure: &mut [u8], at: usize, value: &[u8]) {
    structure[at..at + value.len()].copy_from_slice(value);
}

/// Offsets in both structures, and values.
fn fields(device: i32) -> Vec<(usize, usize, Vec<u8>)> {
    let settings = settings();
    let [major, minor] = architecture_version();
    let word = |number: u64| number.to_ne_bytes().to_vec();
    let int = |number: i32| number.to_ne_bytes().to_vec();
    let three = |numbers: [i32; 3]| numbers.iter().flat_map(|number| int(*number)).collect();
    let threads = THREADS_MAX as i32;
    vec![
        // name, totalGlobalMem, sharedMemPerBlock, regsPerBlock, warpSize
        (0, 0, format!("Stand-in AMD GPU {device}").into_bytes()),
        (256, 288, word(settings.memory_bytes)),
        (264, 296, word(SHARED_BYTES as u64)),
        (272, 304, int(65_536)),
        (276, 308, int(wave_size())),
        // maxThreadsPerBlock, maxThreadsDim, maxGridSize
        (280, 320, int(threads)),
        (284, 324, three([threads; 3])),
        (296, 336, three(GRID_MAX.map(|limit| limit as i32))),
        // clockRate, memoryClockRate, memoryBusWidth, totalConstMem
        (308, 348, int(1_700_000)),
        (312, 608, int(1_600_000)),
        (316, 612, int(4096)),
        (320, 352, word(0x7FFF_FFFF)),
        // major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor
        (328, 360, int(major)),
        (332, 364, int(minor)),
        (336, 388, int(MULTIPROCESSORS)),
        (340, 616, int(8 << 20)),
        (344, 624, int(2048)),
        // concurrentKernels, pciBusID, canMapHostMemory, memPitch
        (360, 576, int(1)),
        (368, 584, int(device + 0x81)),
        (388, 400, int(1)),
        (712, 312, word(settings.max_pitch_bytes)),
        // managedMemory, concurrentManagedAccess, maxSharedMemoryPerMultiProcessor, gcnArchName
        (772, 652, int(1)),
        (780, 676, int(i32::from(settings.is_concurrent))),
        (376, 1416, word(SHARED_BYTES as u64)),
        (396, 1160, settings.architecture_name().as_bytes().to_vec()),
    ]
}
