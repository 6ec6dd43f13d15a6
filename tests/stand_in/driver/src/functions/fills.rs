//! Fills.

use super::driver_functions;
use resident_stand_in_gpu::code::Outcome;
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::copy::Return;
use resident_stand_in_gpu::fill::{self, run};
use resident_stand_in_gpu::handle::Handle;

driver_functions! {
    // CUDA does not wait for a fill of device memory.
    cuMemsetD8_v2(address: u64, value: u8, count: usize) {
        submit(address, &[value], run(count), 0)
    }

    cuMemsetD16_v2(address: u64, value: u16, count: usize) {
        submit(address, &value.to_ne_bytes(), run(count), 0)
    }

    cuMemsetD32_v2(address: u64, value: u32, count: usize) {
        submit(address, &value.to_ne_bytes(), run(count), 0)
    }

    cuMemsetD8Async(address: u64, value: u8, count: usize, stream: Handle) {
        submit(address, &[value], run(count), stream)
    }

    cuMemsetD16Async(address: u64, value: u16, count: usize, stream: Handle) {
        submit(address, &value.to_ne_bytes(), run(count), stream)
    }

    cuMemsetD32Async(address: u64, value: u32, count: usize, stream: Handle) {
        submit(address, &value.to_ne_bytes(), run(count), stream)
    }

    cuMemsetD2D8Async(
        address: u64,
        pitch_bytes: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        submit(address, &[value], (width as u64, height as u64, pitch_bytes as u64), stream)
    }

    cuMemsetD2D16Async(
        address: u64,
        pitch_bytes: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        submit(
            address,
            &value.to_ne_bytes(),
            (width as u64, height as u64, pitch_bytes as u64),
            stream,
        )
    }

    cuMemsetD2D32Async(
        address: u64,
        pitch_bytes: usize,
        value: u32,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        submit(
            address,
            &value.to_ne_bytes(),
            (width as u64, height as u64, pitch_bytes as u64),
            stream,
        )
    }
}

fn submit(address: u64, pattern: &[u8], rows: (u64, u64, u64), stream: Handle) -> Outcome {
    let context = Context::current()?;
    let stream = context.stream(stream)?;
    fill::submit(&context, &stream, address, pattern, rows, Return::Early)
}
