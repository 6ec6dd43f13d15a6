//! Modules, functions, occupancy, launches.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::driver_functions;
use crate::code::{INVALID_PTX, UNSUPPORTED_PTX_VERSION};
use crate::interface::{SHARED_BYTES_MAX, driver_has};
use resident_stand_in_gpu::arguments::{In, Out, Text};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::modules::{self, SharedBytesOf, find};
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::kernel::Shape;
use resident_stand_in_gpu::machine;
use resident_stand_in_gpu::module::{Function, Module};

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
        find_module(module)?.unload();
        Ok(())
    }

    cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        function.check()?;
        function.set(find_module(module)?.function(&name.string()?)?.handle)
    }

    cuModuleGetGlobal_v2(address: Out<u64>, len_bytes: Out<usize>, module: Handle, name: Text) {
        let (start, len) = find_module(module)?.variable(&name.string()?)?;
        address.set_if_wanted(start);
        len_bytes.set_if_wanted(len);
        Ok(())
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

    cuOccupancyMaxActiveBlocksPerMultiprocessor = modules::active_blocks(
        count: Out<c_int>,
        function: Handle,
        threads: c_int,
        shared_bytes: usize,
    );

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
        modules::active_blocks(count, function, threads, shared_bytes)
    }

    cuOccupancyMaxPotentialBlockSize = modules::block_size(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_bytes_of: Option<SharedBytesOf>,
        shared_bytes: usize,
        limit: c_int,
    );

    cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_bytes_of: Option<SharedBytesOf>,
        shared_bytes: usize,
        limit: c_int,
        flags: u32,
    ) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        modules::block_size(grid, block, function, shared_bytes_of, shared_bytes, limit)
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
        let (_, function) = find(function)?;
        if !extra.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
        };
        modules::launch(&function, stream, shape, values)
    }
}

/// A module of the current context.
fn find_module(module: Handle) -> Outcome<Arc<Module>> {
    let context = Context::current()?;
    let module = handle::module(module).ok().filter(|module| module.context == context.handle);
    module.ok_or(Code::INVALID_HANDLE)
}

fn load(module: Out<Handle>, image: Text) -> Outcome {
    module.check()?;
    let context = Context::current()?;
    module.set(Module::load(&context, &image.get()?)?.handle)
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
    log.set_all(text.bytes().take(written).chain([0]).take(room_bytes))?;
    values.place(room).set(written)
}
