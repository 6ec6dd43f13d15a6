//! Graphs of explicit nodes.

use std::ffi::c_void;

use super::copies::check_within;
use super::hip_functions;
use crate::code::{INVALID_DEVICE_FUNCTION, INVALID_DIRECTION};
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::copy::{End, Extent, Place};
use resident_stand_in_gpu::fill::Rows;
use resident_stand_in_gpu::functions::graphs;
use resident_stand_in_gpu::graph::NodeWork;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::kernel::Shape;
use resident_stand_in_gpu::machine::settings;

/// `hipKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct LaunchNode {
    block: [u32; 3],
    extra: *const c_void,
    function: Handle,
    grid: [u32; 3],
    values: *const c_void,
    shared_bytes: u32,
}

/// `hipMemsetParams` before HIP 7.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct OldFillNode {
    address: u64,
    element_bytes: u32,
    height: usize,
    pitch_bytes: usize,
    value: u32,
    width: usize,
}

/// `hipMemsetParams` since HIP 7.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct FillNode {
    address: u64,
    pitch_bytes: usize,
    value: u32,
    element_bytes: u32,
    width: usize,
    height: usize,
}

hip_functions! {
    hipGraphCreate = graphs::create(graph: Out<Handle>, flags: u32);
    hipGraphDestroy = graphs::destroy(graph: Handle);

    hipGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, launch: In<LaunchNode>
    ) {
        graphs::add(node, graph, after, count, launch_node(launch)?)
    }

    hipGraphExecKernelNodeSetParams(executable: Handle, node: Handle, launch: In<LaunchNode>) {
        graphs::change(executable, node, launch_node(launch)?)
    }

    hipGraphAddMemcpyNode1D(
        node: Out<Handle>,
        graph: Handle,
        after: In<Handle>,
        count: usize,
        destination: u64,
        source: u64,
        len_bytes: usize,
        kind: u32,
    ) {
        graphs::add(node, graph, after, count, copy_node(destination, source, len_bytes, kind)?)
    }

    hipGraphExecMemcpyNodeSetParams1D(
        executable: Handle,
        node: Handle,
        destination: u64,
        source: u64,
        len_bytes: usize,
        kind: u32,
    ) {
        graphs::change(executable, node, copy_node(destination, source, len_bytes, kind)?)
    }

    hipGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, fill: In<u64>
    ) {
        graphs::add(node, graph, after, count, fill_node(fill)?)
    }

    hipGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, fill: In<u64>) {
        graphs::change(executable, node, fill_node(fill)?)
    }

    hipGraphInstantiateWithFlags = graphs::instantiate(
        executable: Out<Handle>, graph: Handle, flags: u64
    );

    hipGraphLaunch = graphs::launch(executable: Handle, stream: Handle);
    hipGraphExecDestroy = graphs::destroy_executable(executable: Handle);
}

/// Older versions take no functions of modules (ROCm's clr, `ihipValidateKernelParams`).
fn launch_node(launch: In<LaunchNode>) -> Outcome<NodeWork> {
    if settings().version < 50_300_000 {
        return Err(INVALID_DEVICE_FUNCTION);
    }
    let LaunchNode { block, extra, function, grid, values, shared_bytes } = launch.get()?;
    graphs::launch_node(function, Shape { grid, block, shared_bytes }, values, extra)
}

/// Only copies within the device, the kind 3.
fn copy_node(destination: u64, source: u64, len_bytes: usize, kind: u32) -> Outcome<NodeWork> {
    if kind != 3 {
        return Err(INVALID_DIRECTION);
    }
    if destination == 0 || source == 0 || source == destination || len_bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let [destination, source] = [destination, source].map(Place::of_device);
    check_within(destination, len_bytes as u64)?;
    check_within(source, len_bytes as u64)?;
    let [destination, source] = [destination, source].map(End::run);
    Ok(NodeWork::Copy { destination, source, extent: Extent::run(len_bytes as u64) })
}

fn fill_node(fill: In<u64>) -> Outcome<NodeWork> {
    let FillNode { address, pitch_bytes, value, element_bytes, width, height } = read_fill(fill)?;
    if !matches!(element_bytes, 1 | 2 | 4) || height != 1 {
        return Err(Code::INVALID_VALUE);
    }
    check_within(Place::of_device(address), (width * element_bytes as usize) as u64)?;
    let pattern = value.to_le_bytes()[..element_bytes as usize].to_vec();
    Ok(NodeWork::Fill { address, pattern, rows: Rows::new(width, height, pitch_bytes) })
}

/// The struct, whose layout differs between versions.
fn read_fill(fill: In<u64>) -> Outcome<FillNode> {
    let start = fill.address();
    if settings().version >= 70_000_000 {
        return In::<FillNode>::at(start).get();
    }
    let OldFillNode { address, element_bytes, height, pitch_bytes, value, width } =
        In::<OldFillNode>::at(start).get()?;
    Ok(FillNode { address, pitch_bytes, value, element_bytes, width, height })
}
