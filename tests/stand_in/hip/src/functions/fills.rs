//! Fills.

use super::copies::check_within;
use super::hip_functions;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::copy::Place;
use resident_stand_in_gpu::fill::{self, Rows};
use resident_stand_in_gpu::handle::Handle;

hip_functions! {
    hipMemsetD8Async(address: u64, value: u8, count: usize, stream: Handle) {
        submit(address, &[value], Rows::one(count), stream)
    }

    hipMemsetD16Async(address: u64, value: u16, count: usize, stream: Handle) {
        submit(address, &value.to_ne_bytes(), Rows::one(count), stream)
    }

    hipMemsetD32Async(address: u64, value: i32, count: usize, stream: Handle) {
        submit(address, &value.to_ne_bytes(), Rows::one(count), stream)
    }

    hipMemsetAsync(address: u64, value: i32, len_bytes: usize, stream: Handle) {
        submit(address, &[value as u8], Rows::one(len_bytes), stream)
    }

    hipMemset2DAsync(
        address: u64,
        pitch_bytes: usize,
        value: i32,
        width_bytes: usize,
        height: usize,
        stream: Handle,
    ) {
        let rows = Rows::new(width_bytes, height, pitch_bytes);
        submit(address, &[value as u8], rows, stream)
    }
}

fn submit(address: u64, pattern: &[u8], rows: Rows, stream: Handle) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    let Rows { count, height, pitch_bytes } = rows;
    let width_bytes = count.checked_mul(pattern.len() as u64).ok_or(Code::INVALID_VALUE)?;
    if width_bytes > 0 && height > 0 {
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let gaps = (height - 1).checked_mul(pitch_bytes).ok_or(Code::INVALID_VALUE)?;
        let span_bytes = gaps.checked_add(width_bytes).ok_or(Code::INVALID_VALUE)?;
        check_within(Place::of_device(address), span_bytes)?;
    }
    fill::submit(&context, &stream, address, pattern, rows)
}
