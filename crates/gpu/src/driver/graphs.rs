//! Graphs of explicit nodes: launches, and copies and fills of bytes one after another. Only such
//! copies and fills can be changed in an executable graph.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::copies::{CopyEnd, CopyEnds, Extents, Pitch};
use super::descriptors::{
    CopyDescriptor3d, FillNode, LaunchNode, LaunchNodeOfHip, OldFillNodeOfHip,
};
use super::{Driver, FunctionHandle, Place, StreamHandle};
use resident_backend::BackendError;
use resident_backend::grid::Grid;

/// `CUgraph`, `hipGraph_t`.
pub(crate) type GraphHandle = *mut c_void;
/// `CUgraphNode`, `hipGraphNode_t`.
pub(crate) type NodeHandle = *mut c_void;
/// `CUgraphExec`, `hipGraphExec_t`.
pub(crate) type ExecutableHandle = *mut c_void;

/// `hipMemcpyDeviceToDevice`.
const KIND_ON_DEVICE: c_int = 3;
/// The first version of HIP whose struct for fills is CUDA's.
const FILL_NODES_OF_CUDA: c_int = 70_000_000;

/// The work of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeWork<'a> {
    /// The driver copies the parameters before it returns.
    Launch {
        function: FunctionHandle,
        grid: &'a Grid,
        parameters: *mut *mut c_void,
    },
    Line(LineWork),
}

/// A copy or a fill of bytes one after another, in memory of one device. Not empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineWork {
    Copy {
        to: u64,
        from: u64,
        len_bytes: u64,
    },
    /// Sets `count` elements of 1, 2 or 4 bytes.
    Set {
        to: u64,
        value: u32,
        element_bytes: u32,
        count: u64,
    },
}

impl LineWork {
    /// Whether a node that does the one can be changed to do the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A node, and what it belongs to: the graph and the nodes that it follows, or the executable graph
/// in which it is changed.
#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    Add(GraphHandle, &'a [NodeHandle]),
    Change(ExecutableHandle, NodeHandle),
}

/// Calls the function of CUDA or of HIP that adds or changes a node.
macro_rules! node_call {
    (
        $driver:ident, $target:ident,
        $add:ident $change:ident ($($own:expr),*),
        $add_of_hip:ident $change_of_hip:ident ($($hip:expr),*)
    ) => {{
        let mut new = null_mut();
        let lacks = || $driver.lacks(["cuGraphCreate", "hipGraphCreate"]);
        let outcome = match $target {
            Target::Add(graph, after) => {
                let (new, first, count) = (&raw mut new, after.as_ptr(), after.len());
                match (&$driver.$add, &$driver.$add_of_hip) {
                    (Some(add), _) => {
                        // SAFETY: the driver reads structs and parameters during the call, and
                        // writes one handle. The caller promises the rest.
                        let added = unsafe { (add.function)(new, graph, first, count, $($own),*) };
                        add.check(added)
                    }
                    (None, Some(add)) => {
                        // SAFETY: as above.
                        let added = unsafe { (add.function)(new, graph, first, count, $($hip),*) };
                        add.check(added)
                    }
                    (None, None) => Err(lacks()),
                }
            }
            Target::Change(executable, node) => {
                match (&$driver.$change, &$driver.$change_of_hip) {
                    (Some(change), _) => {
                        // SAFETY: as above.
                        let changed = unsafe { (change.function)(executable, node, $($own),*) };
                        change.check(changed)
                    }
                    (None, Some(change)) => {
                        // SAFETY: as above.
                        let changed = unsafe { (change.function)(executable, node, $($hip),*) };
                        change.check(changed)
                    }
                    (None, None) => Err(lacks()),
                }
            }
        };
        outcome.map(|()| new)
    }};
}

impl Driver {
    /// Whether the driver has all functions of graphs.
    pub(crate) fn has_graphs(&self) -> bool {
        let has_cudas = self.add_launch_node.is_some()
            && self.change_launch_node.is_some()
            && self.add_copy_node.is_some()
            && self.change_copy_node.is_some()
            && self.add_fill_node.is_some()
            && self.change_fill_node.is_some();
        let has_hips = self.add_launch_node_of_hip.is_some()
            && self.change_launch_node_of_hip.is_some()
            && self.add_copy_node_of_hip.is_some()
            && self.change_copy_node_of_hip.is_some()
            && self.add_fill_node_of_hip.is_some()
            && self.change_fill_node_of_hip.is_some();
        (has_cudas || has_hips)
            && self.create_graph.is_some()
            && self.destroy_graph.is_some()
            && self.instantiate_graph.is_some()
            && self.launch_graph.is_some()
            && self.destroy_executable.is_some()
    }

    /// A graph without nodes, which the caller destroys.
    pub(crate) fn create_graph(&self) -> Result<GraphHandle, BackendError> {
        let Some(create) = &self.create_graph else {
            return Err(self.lacks(["cuGraphCreate", "hipGraphCreate"]));
        };
        let mut graph = null_mut();
        // SAFETY: the driver writes one handle.
        create.check(unsafe { (create.function)(&raw mut graph, 0) }).map(|()| graph)
    }

    /// Adds a node that follows others.
    ///
    /// # Safety
    ///
    /// The place is current, and the graph and the nodes are alive. A launch's parameters are those
    /// of its function, which belongs to the place.
    pub(crate) unsafe fn add_node(
        &self,
        graph: GraphHandle,
        after: &[NodeHandle],
        place: Place,
        work: NodeWork<'_>,
    ) -> Result<NodeHandle, BackendError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.add_or_change(Target::Add(graph, after), place, work) }
    }

    /// Changes the work of a node for later launches of an executable graph.
    ///
    /// # Safety
    ///
    /// As [`add_node`](Self::add_node). The node's graph was instantiated as this one, and both are
    /// alive.
    pub(crate) unsafe fn change_node(
        &self,
        executable: ExecutableHandle,
        node: NodeHandle,
        place: Place,
        work: NodeWork<'_>,
    ) -> Result<(), BackendError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.add_or_change(Target::Change(executable, node), place, work) }.map(drop)
    }

    /// An executable graph, which the caller destroys.
    ///
    /// # Safety
    ///
    /// The context is current, and the graph is alive.
    pub(crate) unsafe fn instantiate(
        &self,
        graph: GraphHandle,
    ) -> Result<ExecutableHandle, BackendError> {
        let names = ["cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"];
        let Some(instantiate) = &self.instantiate_graph else { return Err(self.lacks(names)) };
        let mut executable = null_mut();
        // SAFETY: the caller's promise; the driver writes one handle.
        let outcome = unsafe { (instantiate.function)(&raw mut executable, graph, 0) };
        instantiate.check(outcome).map(|()| executable)
    }

    /// Queues an executable graph. No other thread changes or launches it meanwhile.
    ///
    /// # Safety
    ///
    /// The context of both is current, and both are alive. The memory that the nodes access lives
    /// until they complete, and other uses of it are ordered.
    #[inline]
    pub(crate) unsafe fn launch_graph(
        &self,
        executable: ExecutableHandle,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        let Some(launch) = &self.launch_graph else {
            return Err(self.lacks(["cuGraphLaunch", "hipGraphLaunch"]));
        };
        // SAFETY: the caller's promise is passed on.
        launch.check(unsafe { (launch.function)(executable, stream) })
    }

    /// Destroys an executable graph, if there is one, and a graph.
    ///
    /// # Safety
    ///
    /// Nothing uses them any more.
    pub(crate) unsafe fn destroy_graph(&self, graph: GraphHandle, executable: ExecutableHandle) {
        if let Some(destroy) = self.destroy_executable.as_ref().filter(|_| !executable.is_null()) {
            // SAFETY: the caller's promise is passed on.
            let _freed_with_the_context = unsafe { (destroy.function)(executable) };
        }
        if let Some(destroy) = &self.destroy_graph {
            // SAFETY: as above.
            let _freed_with_the_context = unsafe { (destroy.function)(graph) };
        }
    }

    /// The new node; null if one was changed.
    ///
    /// # Safety
    ///
    /// As [`add_node`](Self::add_node) or [`change_node`](Self::change_node).
    unsafe fn add_or_change(
        &self,
        target: Target<'_>,
        place: Place,
        work: NodeWork<'_>,
    ) -> Result<NodeHandle, BackendError> {
        match work {
            NodeWork::Launch { function, grid, parameters } => {
                let (own, of_hip) = describe_launch(function, grid, parameters);
                node_call!(self, target,
                    add_launch_node change_launch_node (&raw const own),
                    add_launch_node_of_hip change_launch_node_of_hip (&raw const of_hip))
            }
            NodeWork::Line(LineWork::Copy { to, from, len_bytes }) => {
                let (volume, len) = (describe_copy(to, from, len_bytes), len_bytes as usize);
                node_call!(self, target,
                    add_copy_node change_copy_node (&raw const volume, place.context()),
                    add_copy_node_of_hip change_copy_node_of_hip (to, from, len, KIND_ON_DEVICE))
            }
            NodeWork::Line(LineWork::Set { to, value, element_bytes, count }) => {
                let (own, old) = describe_fill(to, value, element_bytes, count as usize);
                let is_old = self.version() < FILL_NODES_OF_CUDA;
                let of_hip = if is_old { (&raw const old).cast() } else { (&raw const own).cast() };
                node_call!(self, target,
                    add_fill_node change_fill_node (&raw const own, place.context()),
                    add_fill_node_of_hip change_fill_node_of_hip (of_hip))
            }
        }
    }
}

fn describe_launch(
    function: FunctionHandle,
    grid: &Grid,
    parameters: *mut *mut c_void,
) -> (LaunchNode, LaunchNodeOfHip) {
    let blocks = grid.blocks();
    let blocks = [blocks.x, blocks.y, blocks.z];
    let threads = grid.threads();
    let threads = [threads.x, threads.y, threads.z];
    let (shared_bytes, extra) = (grid.dynamic_shared_bytes(), null_mut());
    (
        LaunchNode { function, blocks, threads, shared_bytes, parameters, extra },
        LaunchNodeOfHip { threads, extra, function, blocks, parameters, shared_bytes },
    )
}

/// One line, which has no pitch.
fn describe_copy(to: u64, from: u64, len_bytes: u64) -> CopyDescriptor3d {
    let pitch = Pitch { line_bytes: 0, plane_lines: 0 };
    let (width_bytes, height, depth) = (len_bytes, 1, 1);
    let line =
        Extents { width_bytes, height, depth, source_pitch: pitch, destination_pitch: pitch };
    let (source, destination) = (CopyEnd::Device(from, None), CopyEnd::Device(to, None));
    line.between(CopyEnds { source, destination }, [null_mut(); 2])
}

fn describe_fill(
    address: u64,
    value: u32,
    element_bytes: u32,
    width: usize,
) -> (FillNode, OldFillNodeOfHip) {
    let (height, pitch_bytes) = (1, 0);
    (
        FillNode { address, pitch_bytes, value, element_bytes, width, height },
        OldFillNodeOfHip { address, element_bytes, height, pitch_bytes, value, width },
    )
}
