//! Fills.

use super::driver_functions;
use resident_stand_in_gpu::code::Outcome;
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::fill::{self, Rows};
use resident_stand_in_gpu::handle::Handle;

/// The fills with a type of pattern: of one row at once and in stream order, and of many rows. CUDA
/// does not wait for a fill of device memory.
macro_rules! fills {
    ($($pattern:ident: $now:ident $queued:ident $rows:ident;)*) => {driver_functions! {$(
        $now(address: u64, value: $pattern, count: usize) {
            submit(address, &value.to_ne_bytes(), Rows::one(count), 0)
        }

        $queued(address: u64, value: $pattern, count: usize, stream: Handle) {
            submit(address, &value.to_ne_bytes(), Rows::one(count), stream)
        }

        $rows(
            address: u64,
            pitch_bytes: usize,
            value: $pattern,
            width: usize,
            height: usize,
            stream: Handle,
        ) {
            submit(address, &value.to_ne_bytes(), Rows::new(width, height, pitch_bytes), stream)
        }
    )*}};
}

fills! {
    u8: cuMemsetD8_v2 cuMemsetD8Async cuMemsetD2D8Async;
    u16: cuMemsetD16_v2 cuMemsetD16Async cuMemsetD2D16Async;
    u32: cuMemsetD32_v2 cuMemsetD32Async cuMemsetD2D32Async;
}

fn submit(address: u64, pattern: &[u8], rows: Rows, stream: Handle) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    fill::submit(&context, &stream, address, pattern, rows)
}
