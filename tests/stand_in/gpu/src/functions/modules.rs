//! Functions of modules, occupancy, launches.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::arguments::{In, Out};
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::{self, Handle};
use crate::interface::{interface, rules};
use crate::kernel::{self, Shape};
use crate::module::Function;

/// A function of the current context.
pub fn find(function: Handle) -> Outcome<(Arc<Context>, Arc<Function>)> {
    let context = Context::current()?;
    let function = handle::function(function)
        .ok()
        .filter(|function| function.context == context.handle)
        .ok_or(Code::INVALID_HANDLE)?;
    Ok((context, function))
}

/// Launches a function.
pub fn launch(
    function: &Function,
    stream: Handle,
    shape: Shape,
    values: In<*const c_void>,
) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    kernel::launch(&context, &stream, function, shape, values)
}

/// Writes how many blocks of a function can be resident on one multiprocessor.
pub fn active_blocks(
    count: Out<c_int>,
    function: Handle,
    threads: c_int,
    shared_bytes: usize,
) -> Outcome {
    let (_, function) = find(function)?;
    let threads =
        u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(Code::INVALID_VALUE)?;
    let fits = threads <= function.max_threads()
        && shared_bytes <= function.max_dynamic_shared_bytes() as usize;
    let blocks = interface().blocks_per_multiprocessor(threads, shared_bytes as u64);
    count.set(if fits { blocks as c_int } else { 0 })
}

/// The dynamic shared memory that a caller needs for a block of a size.
pub type SharedBytesOf = unsafe extern "C" fn(c_int) -> usize;

/// Writes the largest block that fits, and how many of them fill the device. The stand-in has no
/// reason to prefer a smaller block.
pub fn block_size(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    shared_bytes_of: Option<SharedBytesOf>,
    shared_bytes: usize,
    limit: c_int,
) -> Outcome {
    let (_, function) = find(function)?;
    let limit = u32::try_from(limit).map_err(|_| Code::INVALID_VALUE)?;
    let most = function.max_threads();
    let threads = if limit == 0 { most } else { limit.min(most) };
    let shared_bytes = match shared_bytes_of {
        // SAFETY: the caller of the driver guarantees a function that accepts any block size.
        Some(shared_bytes_of) => unsafe { shared_bytes_of(threads as c_int) },
        None => shared_bytes,
    };
    let blocks = interface().blocks_per_multiprocessor(threads, shared_bytes as u64).max(1);
    grid.set(blocks as c_int * rules().multiprocessors)?;
    block.set(threads as c_int)
}
