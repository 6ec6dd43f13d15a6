//! Modules, functions, occupancy, launches.

use std::ffi::{c_int, c_void};

use super::driver_functions;
use crate::code::{INVALID_PTX, UNSUPPORTED_PTX_VERSION};
use crate::interface::{Cuda, MULTIPROCESSORS, SHARED_BYTES_MAX, driver_has};
use resident_stand_in_gpu::arguments::{In, Out, Text};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::interface::Interface;
use resident_stand_in_gpu::kernel::{self, Shape};
use resident_stand_in_gpu::machine;
use resident_stand_in_gpu::module::{Function, Module};
use std::sync::Arc;

/// `CUjit_option`: the buffer for the error log, and its size.
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

driver_functions! {
    cuModuleLoadData(module: Out<Handle>, image: Text) {
        load(module, image)
    }

    cuModuleLoadDataEx(
        module: Out<Handle>,
        image: Text,
        count: u32,
        options: In<u32>,
        values: In<*mut c_void>,
    ) {
        let outcome = load(module, image);
        if outcome.is_err() {
            write_log(outcome, count, options, values)?;
        }
        outcome
    }

    cuModuleUnload(module: Handle) {
        let context = Context::current()?;
        let module = handle::module(module)
            .ok()
            .filter(|module| module.context == context.handle)
            .ok_or(Code::INVALID_HANDLE)?;
        module.unload();
        Ok(())
    }

    cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        function.check()?;
        let context = Context::current()?;
        let module = handle::module(module)
            .ok()
            .filter(|module| module.context == context.handle)
            .ok_or(Code::INVALID_HANDLE)?;
        function.set(module.function(&name.string()?)?.handle)
    }

    cuFuncGetModule(module: Out<Handle>, function: Handle) {
        module.set(find(function)?.1.module)
    }

    cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: Handle) {
        value.set(attribute_of(&find(function)?.1, attribute)?)
    }

    cuFuncSetAttribute(function: Handle, attribute: u32, value: i32) {
        set_attribute_of(&find(function)?.1, attribute, value)
    }

    // Cache configurations are hints and have no effect.
    cuFuncSetCacheConfig(function: Handle, configuration: u32) {
        find(function)?;
        if configuration > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    cuFuncGetParamInfo(
        function: Handle,
        index: usize,
        offset_bytes: Out<usize>,
        len_bytes: Out<usize>,
    ) {
        driver_has(12_040)?;
        let (_, function) = find(function)?;
        let slot = function.entry.parameters.get(index).ok_or(Code::INVALID_VALUE)?;
        offset_bytes.set(slot.offset_bytes)?;
        len_bytes.set_if_wanted(slot.len_bytes);
        Ok(())
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<c_int>,
        function: Handle,
        threads: c_int,
        shared_bytes: usize,
    ) {
        active_blocks(count, function, threads, shared_bytes)
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>,
        function: Handle,
        threads: c_int,
        shared_bytes: usize,
        flags: u32,
    ) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        active_blocks(count, function, threads, shared_bytes)
    }

    cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_bytes_of: Option<unsafe extern "C" fn(c_int) -> usize>,
        shared_bytes: usize,
        limit: c_int,
    ) {
        block_size(grid, block, function, shared_bytes_of, shared_bytes, limit)
    }

    cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_bytes_of: Option<unsafe extern "C" fn(c_int) -> usize>,
        shared_bytes: usize,
        limit: c_int,
        flags: u32,
    ) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        block_size(grid, block, function, shared_bytes_of, shared_bytes, limit)
    }

    cuLaunchKernel(
        function: Handle,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared_bytes: u32,
        stream: Handle,
        values: In<*const c_void>,
        extra: In<*const c_void>,
    ) {
        let (context, function) = find(function)?;
        let stream = context.stream(stream)?;
        if !extra.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
        };
        kernel::launch(&context, &stream, &function, shape, values)
    }
}

fn load(module: Out<Handle>, image: Text) -> Outcome {
    module.check()?;
    let context = Context::current()?;
    module.set(Module::load(&context, &image.get()?)?.handle)
}

/// A function of the current context.
fn find(function: Handle) -> Outcome<(Arc<Context>, Arc<Function>)> {
    let context = Context::current()?;
    let function = handle::function(function)
        .ok()
        .filter(|function| function.context == context.handle)
        .ok_or(Code::INVALID_HANDLE)?;
    Ok((context, function))
}

fn attribute_of(function: &Function, attribute: u32) -> Outcome<i32> {
    let [major, minor] = machine::settings().compute_capability;
    Ok(match attribute {
        0 => function.max_threads() as i32,
        // Attributes that are 0 because a host function has none: static shared, constant and
        // local memory, and caching of globals.
        1..=3 | 7 => 0,
        4 => 32,
        5 => function.version,
        6 => 10 * major + minor,
        8 => function.max_dynamic_shared_bytes(),
        9 => -1,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Dynamic shared memory, and the carve-out, which is a hint.
fn set_attribute_of(function: &Function, attribute: u32, value: i32) -> Outcome {
    match attribute {
        8 if (0..=SHARED_BYTES_MAX).contains(&value) => {
            function.set_max_dynamic_shared_bytes(value);
        }
        9 if (-1..=100).contains(&value) => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

/// Writes the error log of a refused image, and the length of the log, if the caller provides a
/// buffer.
fn write_log(outcome: Outcome, count: u32, options: In<u32>, values: In<*mut c_void>) -> Outcome {
    let options =
        (0..count as usize).map(|index| options.nth(index)).collect::<Outcome<Vec<u32>>>()?;
    let place = |option| options.iter().position(|known| *known == option);
    let (Some(log), Some(room)) = (place(ERROR_LOG), place(ERROR_LOG_BYTES)) else { return Ok(()) };
    let text = match outcome {
        Err(code) if code == INVALID_PTX => {
            "ptxas fatal   : no PTX that the stand-in can read, or one for newer devices than this"
        }
        Err(code) if code == UNSUPPORTED_PTX_VERSION => {
            "ptxas fatal   : PTX of a newer version than the driver's"
        }
        _ => "device kernel image is invalid",
    };
    // The size is passed as a number in place of a pointer.
    let room_bytes = values.nth(room)?.addr();
    let log = Out::<u8>::at(values.nth(log)?);
    let written = text.len().min(room_bytes.saturating_sub(1));
    text.bytes()
        .take(written)
        .chain([0])
        .take(room_bytes)
        .enumerate()
        .try_for_each(|(index, byte)| log.nth(index).set(byte))?;
    values.place(room).set(written)
}

fn active_blocks(
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
    count.set(if fits {
        Cuda.blocks_per_multiprocessor(threads, shared_bytes as u64) as c_int
    } else {
        0
    })
}

/// The largest block that fits. The stand-in has no reason to prefer a smaller block.
fn block_size(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    shared_bytes_of: Option<unsafe extern "C" fn(c_int) -> usize>,
    shared_bytes: usize,
    limit: c_int,
) -> Outcome {
    let (_, function) = find(function)?;
    let limit = u32::try_from(limit).map_err(|_| Code::INVALID_VALUE)?;
    let threads =
        if limit == 0 { function.max_threads() } else { limit.min(function.max_threads()) };
    let shared_bytes = match shared_bytes_of {
        // SAFETY: the caller of the driver guarantees a function that accepts any block size.
        Some(shared_bytes_of) => unsafe { shared_bytes_of(threads as c_int) },
        None => shared_bytes,
    };
    let blocks = Cuda.blocks_per_multiprocessor(threads, shared_bytes as u64).max(1);
    grid.set(blocks as c_int * MULTIPROCESSORS)?;
    block.set(threads as c_int)
}
