//! What chains rely on in graphs: lines without a pitch, edges, changes that concern later launches
//! only, and that a graph may be destroyed while it runs.

use std::ptr::null_mut;
use std::sync::Arc;

use resident::cudarc::driver::sys::{self, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS};
use resident::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};

use crate::driver::boxes::{DEVICE, copy_3d};
use crate::driver::choice::with_stream;
use crate::shared::{Gate, done};

const LEN: usize = 64;

/// A graph that fills one range with a word, and copies it to another one.
struct FillAndCopy {
    context: Arc<CudaContext>,
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: [sys::CUgraphNode; 2],
}

fn fill(to: u64, value: u32) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS { dst: to, pitch: 0, value, elementSize: 4, width: LEN, height: 1 }
}

fn copy(from: u64, to: u64) -> CUDA_MEMCPY3D {
    let mut copy = copy_3d(DEVICE, DEVICE);
    (copy.srcDevice, copy.dstDevice) = (from, to);
    (copy.WidthInBytes, copy.Height, copy.Depth) = (4 * LEN, 1, 1);
    copy
}

impl FillAndCopy {
    fn new(context: &Arc<CudaContext>, fill: CUDA_MEMSET_NODE_PARAMS, copy: CUDA_MEMCPY3D) -> Self {
        context.bind_to_thread().expect("a context");
        let (mut graph, mut executable, mut nodes) = (null_mut(), null_mut(), [null_mut(); 2]);
        let [first, second] = &mut nodes;
        // SAFETY: the graph and the structs are alive; the driver writes handles.
        unsafe {
            done(sys::cuGraphCreate(&raw mut graph, 0));
            let own = context.cu_ctx();
            done(sys::cuGraphAddMemsetNode(first, graph, std::ptr::null(), 0, &fill, own));
            done(sys::cuGraphAddMemcpyNode(second, graph, first, 1, &copy, own));
            done(sys::cuGraphInstantiateWithFlags(&raw mut executable, graph, 0));
        }
        Self { context: Arc::clone(context), graph, executable, nodes }
    }

    fn launch(&self, stream: &CudaStream) {
        // SAFETY: both are alive.
        done(unsafe { sys::cuGraphLaunch(self.executable, stream.cu_stream()) });
    }

    fn change(&self, fill: CUDA_MEMSET_NODE_PARAMS, copy: CUDA_MEMCPY3D) {
        let (own, [first, second]) = (self.context.cu_ctx(), self.nodes);
        // SAFETY: the graph, its nodes and the structs are alive.
        unsafe {
            done(sys::cuGraphExecMemsetNodeSetParams(self.executable, first, &fill, own));
            done(sys::cuGraphExecMemcpyNodeSetParams(self.executable, second, &copy, own));
        }
    }

    fn destroy(self) {
        // SAFETY: nothing uses them any more, except launches in flight.
        unsafe {
            done(sys::cuGraphExecDestroy(self.executable));
            done(sys::cuGraphDestroy(self.graph));
        }
    }
}

fn ranges(stream: &Arc<CudaStream>) -> [CudaSlice<u32>; 3] {
    [(); 3].map(|()| stream.alloc_zeros(LEN).expect("memory"))
}

fn address(range: &CudaSlice<u32>, stream: &CudaStream) -> u64 {
    range.device_ptr(stream).0
}

fn assert_has(stream: &Arc<CudaStream>, range: &CudaSlice<u32>, value: u32) {
    assert_eq!(stream.clone_dtoh(range).expect("a download"), [value; LEN]);
}

#[test]
fn a_graph_runs_in_the_order_of_its_edges() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let ranges = ranges(&stream);
    let [one, two, _] = ranges.each_ref().map(|range| address(range, &stream));
    let graph = FillAndCopy::new(&context, fill(one, 7), copy(one, two));
    graph.launch(&stream);
    assert_has(&stream, &ranges[0], 7);
    assert_has(&stream, &ranges[1], 7);
    graph.destroy();
}

#[test]
fn a_change_concerns_later_launches_only() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let ranges = ranges(&stream);
    let [one, two, three] = ranges.each_ref().map(|range| address(range, &stream));
    let graph = FillAndCopy::new(&context, fill(one, 7), copy(one, two));
    stream.synchronize().expect("nothing fails");
    let gate = Gate::in_front_of(&stream);
    graph.launch(&stream);
    graph.change(fill(one, 8), copy(one, three));
    graph.launch(&stream);
    gate.open();
    for (range, value) in ranges.iter().zip([8, 7, 8]) {
        assert_has(&stream, range, value);
    }
    graph.destroy();
}

#[test]
fn a_graph_that_is_destroyed_runs_to_its_end() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let ranges = ranges(&stream);
    let [one, two, _] = ranges.each_ref().map(|range| address(range, &stream));
    let graph = FillAndCopy::new(&context, fill(one, 7), copy(one, two));
    stream.synchronize().expect("nothing fails");
    let gate = Gate::in_front_of(&stream);
    graph.launch(&stream);
    graph.destroy();
    gate.open();
    assert_has(&stream, &ranges[1], 7);
}

#[test]
fn what_a_graph_cannot_be_is_refused() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let ranges = ranges(&stream);
    let [one, two, _] = ranges.each_ref().map(|range| address(range, &stream));
    let graph = FillAndCopy::new(&context, fill(one, 7), copy(one, two));
    let nothing = CUDA_MEMCPY3D { WidthInBytes: 0, ..copy(one, two) };
    let [fill_node, copy_node] = graph.nodes;
    let own = context.cu_ctx();
    // SAFETY: the graph, its nodes and the structs are alive.
    let refused = unsafe {
        [
            sys::cuGraphExecMemcpyNodeSetParams(graph.executable, copy_node, &nothing, own),
            sys::cuGraphExecMemcpyNodeSetParams(graph.executable, fill_node, &copy(one, two), own),
            sys::cuGraphExecMemsetNodeSetParams(graph.executable, copy_node, &fill(one, 1), own),
        ]
    };
    assert_eq!(refused, [sys::CUresult::CUDA_ERROR_INVALID_VALUE; 3]);
    graph.launch(&stream);
    assert_has(&stream, &ranges[1], 7);
    graph.destroy();
}
