//! Fills.

use super::driver_functions;
use resident_stand_in_gpu::code::Outcome;
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::fill::{self, Rows};
use resident_stand_in_gpu::handle::Handle;

driver_functions! {
    // CUDA does not wait for a fill of device memory.
    cuMemsetD8_v2(address: u64, value: u8, count: usize) {
        submit(address, &[value], Rows::one(count), 0)
    }

    cuMemsetD16_v2(address: u64, value: u16, count: usize) {
        submit(address, &value.to_ne_bytes(), Rows::one(count), 0)
    }

    cuMemsetD32_v2(address: u64, value: u32, count: usize) {
        submit(address, &value.to_ne_bytes(), Rows::one(count), 0)
    }

    cuMemsetD8Async(address: u64, value: u8, count: usize, stream: Handle) {
        submit(address, &[value], Rows::one(count), stream)
    }

    cuMemsetD16Async(address: u64, value: u16, count: usize, stream: Handle) {
        submit(address, &value.to_ne_bytes(), Rows::one(count), stream)
    }

    cuMemsetD32Async(address: u64, value: u32, count: usize, stream: Handle) {
        submit(address, &value.to_ne_bytes(), Rows::one(count), stream)
    }

    cuMemsetD2D8Async(
        address: u64,
        pitch_bytes: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        submit(address, &[value], Rows::new(width, height, pitch_bytes), stream)
    }

    cuMemsetD2D16Async(
        address: u64,
        pitch_bytes: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        submit(address, &value.to_ne_bytes(), Rows::new(width, height, pitch_bytes), stream)
    }

    cuMemsetD2D32Async(
        address: u64,
        pitch_bytes: usize,
        value: u32,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        submit(address, &value.to_ne_bytes(), Rows::new(width, height, pitch_bytes), stream)
    }
}

fn submit(address: u64, pattern: &[u8], rows: Rows, stream: Handle) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    fill::submit(&context, &stream, address, pattern, rows)
}
