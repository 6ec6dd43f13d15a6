//! Graphs of explicit nodes.

use std::ffi::c_void;

use crate::arguments::{In, Out};
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::functions::modules::find;
use crate::graph::{Executable, Graph, NodeWork};
use crate::handle::{self, Handle};
use crate::kernel::Shape;

/// Creates a graph.
pub fn create(graph: Out<Handle>, flags: u32) -> Outcome {
    graph.check()?;
    let context = Context::current()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    graph.set(Graph::new(&context).handle)
}

/// Destroys a graph. What was instantiated of it stays.
pub fn destroy(graph: Handle) -> Outcome {
    handle::graph(graph)?;
    handle::remove(graph);
    Ok(())
}

/// Adds a node.
pub fn add(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    work: NodeWork,
) -> Outcome {
    node.check()?;
    Context::current()?;
    let after = (0..count).map(|index| after.nth(index)).collect::<Outcome<Vec<Handle>>>()?;
    node.set(handle::graph(graph)?.add(&after, work)?)
}

/// A launch of a function of the current context.
pub fn launch_node(
    function: Handle,
    shape: Shape,
    values: *const c_void,
    extra: *const c_void,
) -> Outcome<NodeWork> {
    let (_, function) = find(function)?;
    if !extra.is_null() {
        return Err(Code::NOT_SUPPORTED);
    }
    NodeWork::launch(function, shape, In::at(values))
}

/// Instantiates a graph.
pub fn instantiate(executable: Out<Handle>, graph: Handle, flags: u64) -> Outcome {
    executable.check()?;
    let context = Context::current()?;
    if flags != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    executable.set(Executable::new(&context, &*handle::graph(graph)?)?.handle)
}

/// Changes a node of an executable graph.
pub fn change(executable: Handle, node: Handle, work: NodeWork) -> Outcome {
    Context::current()?;
    handle::executable(executable)?.change(node, work)
}

/// Launches an executable graph of the stream's context.
pub fn launch(executable: Handle, stream: Handle) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    let executable = handle::executable(executable)?;
    if executable.context != context.handle {
        return Err(Code::INVALID_VALUE);
    }
    executable.launch(&context, &stream)
}

/// Destroys an executable graph.
pub fn destroy_executable(executable: Handle) -> Outcome {
    let known = handle::executable(executable)?;
    handle::remove(executable);
    known.destroy();
    Ok(())
}
