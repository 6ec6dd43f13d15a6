//! Modules, functions, occupancy, launches.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::devices::architecture_version;
use super::hip_functions;
use crate::image;
use crate::interface::SHARED_BYTES;
use resident_stand_in_gpu::arguments::{In, Out, Text};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::modules::{self, find};
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::kernel::Shape;
use resident_stand_in_gpu::module::{Function, Module};

/// What the words of `extra` say: `HIP_LAUNCH_PARAM_BUFFER_POINTER`, `_SIZE` and `_END`.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

hip_functions! {
    hipModuleLoadData(module: Out<Handle>, start: In<u8>) {
        load(module, start)
    }

    // Options are for other compilers.
    hipModuleLoadDataEx(
        module: Out<Handle>,
        start: In<u8>,
        _count: u32,
        _options: In<u32>,
        _values: In<*mut c_void>,
    ) {
        load(module, start)
    }

    hipModuleUnload(module: Handle) {
        find_module(module)?.unload();
        Ok(())
    }

    hipModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        function.check()?;
        function.set(find_module(module)?.function(&name.string()?)?.handle)
    }

    hipModuleGetGlobal(address: Out<u64>, len_bytes: Out<usize>, module: Handle, name: Text) {
        let (start, len) = find_module(module)?.variable(&name.string()?)?;
        address.set_if_wanted(start);
        len_bytes.set_if_wanted(len);
        Ok(())
    }

    hipFuncGetAttribute(value: Out<c_int>, attribute: u32, function: Handle) {
        let (_, function) = find(function)?;
        let [major, minor] = architecture_version();
        value.set(match attribute {
            0 => function.max_threads() as c_int,
            // What a host function has none of: static shared, constant and local memory; caching
            // of globals; a carve-out.
            1..=3 | 7 | 9 => 0,
            4 => 32,
            5 | 6 => 10 * major + minor,
            8 => SHARED_BYTES,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    hipModuleOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_bytes: usize,
        limit: c_int,
    ) {
        modules::block_size(grid, block, function, None, shared_bytes, limit)
    }

    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor = modules::active_blocks(
        count: Out<c_int>,
        function: Handle,
        threads: c_int,
        shared_bytes: usize,
    );

    hipModuleLaunchKernel(
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
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
        };
        if extra.is_null() {
            return modules::launch(&function, stream, shape, values);
        }
        if !values.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let values = packed(&function, extra)?;
        modules::launch(&function, stream, shape, In::at(values.as_ptr().cast()))
    }
}

fn load(module: Out<Handle>, start: In<u8>) -> Outcome {
    module.check()?;
    let context = Context::current()?;
    let image = image::at(start)?;
    module.set(Module::load(&context, &image)?.handle)
}

/// A module of any device.
fn find_module(module: Handle) -> Outcome<Arc<Module>> {
    Context::current()?;
    handle::module(module)
}

/// Pointers to the parameters in the buffer that `extra` names.
fn packed(function: &Function, extra: In<*const c_void>) -> Outcome<Vec<*const c_void>> {
    let (mut buffer, mut len_bytes) = (std::ptr::null::<c_void>(), 0);
    let mut index = 0;
    loop {
        let value = |offset: usize| extra.nth(index + offset);
        match value(0)?.addr() {
            BUFFER_POINTER => buffer = value(1)?,
            BUFFER_SIZE => len_bytes = In::<usize>::at(value(1)?).get()?,
            END => break,
            _ => return Err(Code::INVALID_VALUE),
        }
        index += 2;
    }
    let slots = &function.entry.parameters;
    let end_bytes = slots.last().map_or(0, |slot| slot.offset_bytes + slot.len_bytes);
    if buffer.is_null() || len_bytes < end_bytes {
        return Err(Code::INVALID_VALUE);
    }
    Ok(slots.iter().map(|slot| buffer.wrapping_byte_add(slot.offset_bytes)).collect())
}
