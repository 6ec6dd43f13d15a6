//! The driver's objects of one graph.

use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::StreamHandle;
use crate::driver::graphs::{ExecutableHandle, GraphHandle, NodeHandle, NodeWork};
use resident_backend::BackendError;

/// A graph, and once it is instantiated the executable one. It is dropped only when no launch of it
/// is in flight, or the streams of such launches are gone. Then the driver frees it when they have
/// completed: CUDA's manual says so of `cuGraphExecDestroy`, and AMD's runtime counts its users
/// (ROCm's clr, `GraphExec`). Other runtimes of HIP may not.
pub(crate) struct Executable {
    context: Arc<Context>,
    graph: GraphHandle,
    nodes: Vec<NodeHandle>,
    executable: ExecutableHandle,
}

// SAFETY: the handles only name objects of the driver, which may be used on any thread, by one at a
// time: `&mut self`, or the lock around the chain's graph.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// A graph without nodes. The context is current.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, BackendError> {
        let graph = context.record_death(context.driver().create_graph())?;
        let (nodes, executable) = (Vec::new(), null_mut());
        Ok(Self { context: Arc::clone(context), graph, nodes, executable })
    }

    /// The number of its nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }

    /// Adds a node that follows others, given by their indices.
    ///
    /// # Safety
    ///
    /// The context is current. A launch's parameters are those of its function, which is loaded
    /// there.
    pub(super) unsafe fn add(
        &mut self,
        after: &[usize],
        work: NodeWork<'_>,
    ) -> Result<(), BackendError> {
        let after: SmallVec<[NodeHandle; 4]> =
            after.iter().map(|index| self.nodes[*index]).collect();
        let (driver, place) = (self.context.driver(), self.context.place());
        // SAFETY: `self` keeps the graph and its nodes; the caller promises the rest.
        let added = unsafe { driver.add_node(self.graph, &after, place, work) };
        self.nodes.push(self.context.record_death(added)?);
        Ok(())
    }

    /// Makes it executable. The context is current.
    pub(super) fn instantiate(&mut self) -> Result<(), BackendError> {
        // SAFETY: the context is current (the caller's promise), and `self` keeps the graph.
        let made = unsafe { self.context.driver().instantiate(self.graph) };
        self.executable = self.context.record_death(made)?;
        Ok(())
    }

    /// Changes what a node does in later launches.
    ///
    /// # Safety
    ///
    /// As [`add`](Self::add). The graph is instantiated, and no other thread uses it.
    pub(super) unsafe fn change(
        &self,
        node: usize,
        work: NodeWork<'_>,
    ) -> Result<(), BackendError> {
        let (driver, place) = (self.context.driver(), self.context.place());
        // SAFETY: `self` keeps both graphs; the caller promises the rest.
        let changed = unsafe { driver.change_node(self.executable, self.nodes[node], place, work) };
        self.context.record_death(changed)
    }

    /// Queues it.
    ///
    /// # Safety
    ///
    /// The context is current, and the stream's. The graph is instantiated, and no other thread
    /// uses it. The memory of its nodes lives until they complete, and other uses are ordered.
    #[inline]
    pub(crate) unsafe fn launch(&self, stream: StreamHandle) -> Result<(), BackendError> {
        // SAFETY: `self` keeps the executable graph; the caller promises the rest.
        let queued = unsafe { self.context.driver().launch_graph(self.executable, stream) };
        self.context.record_death(queued)
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // If the context is dead or the process ends, the driver frees them itself.
        if self.context.make_current().is_err() {
            return;
        }
        let driver = self.context.driver();
        let _relaxed = Relaxed::enter(driver);
        // SAFETY: `self` owned both, and no launch is in flight.
        unsafe { driver.destroy_graph(self.graph, self.executable) };
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executable({} nodes on {})", self.nodes.len(), self.context.name())
    }
}
