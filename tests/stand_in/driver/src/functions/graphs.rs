//! Graphs of explicit nodes.

use std::ffi::c_void;

use super::copies::{Copy3, ends_of_volume};
use super::driver_functions;
use crate::interface::driver_has;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::fill::Rows;
use resident_stand_in_gpu::functions::graphs;
use resident_stand_in_gpu::graph::NodeWork;
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::kernel::Shape;

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct LaunchNode {
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    values: *const c_void,
    extra: *const c_void,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
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

driver_functions! {
    cuGraphCreate = graphs::create(graph: Out<Handle>, flags: u32);
    cuGraphDestroy = graphs::destroy(graph: Handle);

    cuGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, launch: In<LaunchNode>
    ) {
        graphs::add(node, graph, after, count, launch_node(launch)?)
    }

    cuGraphExecKernelNodeSetParams(executable: Handle, node: Handle, launch: In<LaunchNode>) {
        graphs::change(executable, node, launch_node(launch)?)
    }

    cuGraphAddMemcpyNode(
        node: Out<Handle>,
        graph: Handle,
        after: In<Handle>,
        count: usize,
        copy: In<Copy3>,
        context: Handle,
    ) {
        graphs::add(node, graph, after, count, copy_node(copy, context)?)
    }

    cuGraphExecMemcpyNodeSetParams(
        executable: Handle, node: Handle, copy: In<Copy3>, context: Handle
    ) {
        graphs::change(executable, node, copy_node(copy, context)?)
    }

    cuGraphAddMemsetNode(
        node: Out<Handle>,
        graph: Handle,
        after: In<Handle>,
        count: usize,
        fill: In<FillNode>,
        context: Handle,
    ) {
        graphs::add(node, graph, after, count, fill_node(fill, context)?)
    }

    cuGraphExecMemsetNodeSetParams(
        executable: Handle, node: Handle, fill: In<FillNode>, context: Handle
    ) {
        graphs::change(executable, node, fill_node(fill, context)?)
    }

    cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: u64) {
        driver_has(11_040)?;
        graphs::instantiate(executable, graph, flags)
    }

    cuGraphLaunch = graphs::launch(executable: Handle, stream: Handle);
    cuGraphExecDestroy = graphs::destroy_executable(executable: Handle);
}

fn launch_node(launch: In<LaunchNode>) -> Outcome<NodeWork> {
    let LaunchNode { function, grid, block, shared_bytes, values, extra } = launch.get()?;
    graphs::launch_node(function, Shape { grid, block, shared_bytes }, values, extra)
}

fn copy_node(copy: In<Copy3>, context: Handle) -> Outcome<NodeWork> {
    handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?.check()?;
    let (destination, source, extent) = ends_of_volume(copy.get()?)?;
    Ok(NodeWork::Copy { destination, source, extent })
}

fn fill_node(fill: In<FillNode>, context: Handle) -> Outcome<NodeWork> {
    handle::context(context).map_err(|_| Code::INVALID_CONTEXT)?.check()?;
    let FillNode { address, pitch_bytes, value, element_bytes, width, height } = fill.get()?;
    if !matches!(element_bytes, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    let pattern = value.to_le_bytes()[..element_bytes as usize].to_vec();
    Ok(NodeWork::Fill { address, pattern, rows: Rows::new(width, height, pitch_bytes) })
}
