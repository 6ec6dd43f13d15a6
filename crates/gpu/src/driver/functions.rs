//! The functions of CUDA's driver and of HIP that the backend calls. Most have the same arguments
//! in both. Addresses of devices are `u64` here: both drivers pass them as values of 64 bits. A
//! function of only one of them has no name (`""`) in the other.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::descriptors::{
    AllocationProperties, Batch, CopyDescriptor2d, CopyDescriptor3d, DeviceAccess, FillNode,
    LaunchNode, LaunchNodeOfHip, MemoryLocation, PeerDescriptor3d, VolumeOfHip,
};
use super::function::DriverFunction;
use super::graphs::{ExecutableHandle, GraphHandle, NodeHandle};
use super::library::Symbols;
use super::status::Status;
use super::{EventHandle, FunctionHandle, ModuleHandle, PoolHandle, StreamHandle};

/// A host function behind work: the driver calls it with the given pointer.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// The functions that a table is made of, as their fields. Each has the type of the function, and
/// its names in CUDA and in HIP.
macro_rules! driver_functions {
    (
        $(#[$about:meta])*
        $table:ident
        needed {
            $(
                $(#[$doc:meta])*
                $field:ident: fn($($argument:ty),* $(,)?) = $cuda:literal, $hip:literal;
            )*
        }
        optional {
            $(
                $(#[$optional_doc:meta])*
                $optional:ident: fn($($optional_argument:ty),* $(,)?)
                    = $optional_cuda:literal, $optional_hip:literal;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $table {
            $(
                $(#[$doc])*
                pub $field: DriverFunction<
                    unsafe extern "C" fn($($argument),*) -> Status,
                >,
            )*
            $(
                $(#[$optional_doc])*
                pub $optional: Option<DriverFunction<
                    unsafe extern "C" fn($($optional_argument),*)
                        -> Status,
                >>,
            )*
        }

        impl $table {
            /// Looks up all functions. The error names the first that is missing and needed.
            ///
            /// # Safety
            ///
            /// The library is a driver of the kind that the symbols name.
            pub(super) unsafe fn of(
                symbols: &Symbols,
            ) -> Result<Self, String> {
                Ok(Self {
                    $(
                        // SAFETY: the type is the function's in the driver's headers.
                        $field: unsafe { symbols.needed($cuda, $hip) }?,
                    )*
                    $(
                        // SAFETY: as above.
                        $optional: unsafe { symbols.optional($optional_cuda, $optional_hip) },
                    )*
                })
            }
        }
    };
}

driver_functions! {
    /// The functions that every driver of a GPU has, and those that older ones lack. `None` is a
    /// function that this driver lacks.
    Functions
    needed {
        initialize: fn(c_uint) = "cuInit", "hipInit";
        /// The version: 12040 for CUDA 12.4, 50221153 for HIP 5.2.
        version: fn(*mut c_int) = "cuDriverGetVersion", "hipRuntimeGetVersion";
        device_count: fn(*mut c_int) = "cuDeviceGetCount", "hipGetDeviceCount";
        /// A device's number for other calls, by its ordinal.
        device: fn(*mut c_int, c_int) = "cuDeviceGet", "hipDeviceGet";
        device_name: fn(*mut c_char, c_int, c_int) = "cuDeviceGetName", "hipDeviceGetName";
        device_attribute: fn(*mut c_int, c_int, c_int)
            = "cuDeviceGetAttribute", "hipDeviceGetAttribute";
        can_access_peer: fn(*mut c_int, c_int, c_int)
            = "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer";
        /// What is current on this thread, as [`Place::token`](super::Place) has it: the handle of
        /// a context in CUDA, the number of a device (32 bits) in HIP.
        current: fn(*mut u64) = "cuCtxGetCurrent", "hipGetDevice";
        memory_info: fn(*mut usize, *mut usize) = "cuMemGetInfo_v2", "hipMemGetInfo";

        stream_create: fn(*mut StreamHandle, c_uint)
            = "cuStreamCreate", "hipStreamCreateWithFlags";
        stream_create_with_priority: fn(*mut StreamHandle, c_uint, c_int)
            = "cuStreamCreateWithPriority", "hipStreamCreateWithPriority";
        stream_destroy: fn(StreamHandle) = "cuStreamDestroy_v2", "hipStreamDestroy";
        stream_synchronize: fn(StreamHandle) = "cuStreamSynchronize", "hipStreamSynchronize";
        stream_query: fn(StreamHandle) = "cuStreamQuery", "hipStreamQuery";
        stream_wait_event: fn(StreamHandle, EventHandle, c_uint)
            = "cuStreamWaitEvent", "hipStreamWaitEvent";
        stream_priority: fn(StreamHandle, *mut c_int)
            = "cuStreamGetPriority", "hipStreamGetPriority";
        stream_is_capturing: fn(StreamHandle, *mut c_int)
            = "cuStreamIsCapturing", "hipStreamIsCapturing";
        /// The numbers of the least and of the greatest priority.
        stream_priority_range: fn(*mut c_int, *mut c_int)
            = "cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange";

        event_create: fn(*mut EventHandle, c_uint) = "cuEventCreate", "hipEventCreateWithFlags";
        event_destroy: fn(EventHandle) = "cuEventDestroy_v2", "hipEventDestroy";
        event_record: fn(EventHandle, StreamHandle) = "cuEventRecord", "hipEventRecord";
        event_query: fn(EventHandle) = "cuEventQuery", "hipEventQuery";
        event_synchronize: fn(EventHandle) = "cuEventSynchronize", "hipEventSynchronize";
        /// Since CUDA 12.8 there is a newer version too, which cudarc binds.
        event_elapsed_time: fn(*mut f32, EventHandle, EventHandle)
            = "cuEventElapsedTime", "hipEventElapsedTime";

        allocate: fn(*mut u64, usize) = "cuMemAlloc_v2", "hipMalloc";
        free: fn(u64) = "cuMemFree_v2", "hipFree";
        allocate_host: fn(*mut *mut c_void, usize, c_uint) = "cuMemHostAlloc", "hipHostMalloc";
        free_host: fn(*mut c_void) = "cuMemFreeHost", "hipHostFree";
        register_host: fn(*mut c_void, usize, c_uint)
            = "cuMemHostRegister_v2", "hipHostRegister";
        unregister_host: fn(*mut c_void) = "cuMemHostUnregister", "hipHostUnregister";
        device_pointer_of_host: fn(*mut u64, *mut c_void, c_uint)
            = "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer";
        allocate_managed: fn(*mut u64, usize, c_uint) = "cuMemAllocManaged", "hipMallocManaged";

        copy_to_device: fn(u64, *const c_void, usize, StreamHandle)
            = "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync";
        copy_to_host: fn(*mut c_void, u64, usize, StreamHandle)
            = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        copy_on_device: fn(u64, u64, usize, StreamHandle)
            = "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync";
        set_8: fn(u64, u8, usize, StreamHandle) = "cuMemsetD8Async", "hipMemsetD8Async";
        set_16: fn(u64, u16, usize, StreamHandle) = "cuMemsetD16Async", "hipMemsetD16Async";
        /// The value is unsigned in CUDA and signed in HIP.
        set_32: fn(u64, u32, usize, StreamHandle) = "cuMemsetD32Async", "hipMemsetD32Async";

        load_module: fn(*mut ModuleHandle, *const c_void, c_uint, *mut c_int, *mut *mut c_void)
            = "cuModuleLoadDataEx", "hipModuleLoadDataEx";
        function: fn(*mut FunctionHandle, ModuleHandle, *const c_char)
            = "cuModuleGetFunction", "hipModuleGetFunction";
        /// The function; three extents of the grid and three of a block; the dynamic shared bytes;
        /// the stream; the parameters; null.
        launch: fn(
            FunctionHandle,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint,
            StreamHandle,
            *mut *mut c_void,
            *mut *mut c_void,
        ) = "cuLaunchKernel", "hipModuleLaunchKernel";
    }
    optional {
        /// Exchanges this thread's capture mode (HIP: since 5.2).
        exchange_capture_mode: fn(*mut c_int)
            = "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode";
        /// Calls a host function behind the work of a stream (HIP: since 5.3).
        launch_host_function: fn(StreamHandle, HostFunction, *mut c_void)
            = "cuLaunchHostFunc", "hipLaunchHostFunc";
        /// An attribute of an address (HIP: since 5.0).
        pointer_attribute: fn(*mut c_void, c_int, u64)
            = "cuPointerGetAttribute", "hipPointerGetAttribute";

        // Pools of memory (HIP: since 5.2).
        create_pool: fn(*mut PoolHandle, *const c_void) = "cuMemPoolCreate", "hipMemPoolCreate";
        set_pool_attribute: fn(PoolHandle, c_int, *mut c_void)
            = "cuMemPoolSetAttribute", "hipMemPoolSetAttribute";
        pool_attribute: fn(PoolHandle, c_int, *mut c_void)
            = "cuMemPoolGetAttribute", "hipMemPoolGetAttribute";
        set_pool_access: fn(PoolHandle, *const DeviceAccess, usize)
            = "cuMemPoolSetAccess", "hipMemPoolSetAccess";
        trim_pool: fn(PoolHandle, usize) = "cuMemPoolTrimTo", "hipMemPoolTrimTo";
        allocate_from_pool: fn(*mut u64, usize, PoolHandle, StreamHandle)
            = "cuMemAllocFromPoolAsync", "hipMallocFromPoolAsync";
        free_in_order: fn(u64, StreamHandle) = "cuMemFreeAsync", "hipFreeAsync";

        // Addresses without memory, and memory that is mapped to them (HIP: since 5.2).
        /// The address, the bytes, the alignment, a wish, flags.
        reserve_addresses: fn(*mut u64, usize, usize, u64, u64)
            = "cuMemAddressReserve", "hipMemAddressReserve";
        free_addresses: fn(u64, usize) = "cuMemAddressFree", "hipMemAddressFree";
        create_memory: fn(*mut u64, usize, *const AllocationProperties, u64)
            = "cuMemCreate", "hipMemCreate";
        release_memory: fn(u64) = "cuMemRelease", "hipMemRelease";
        /// The address, the bytes, the offset in the memory, its handle, flags.
        map_memory: fn(u64, usize, usize, u64, u64) = "cuMemMap", "hipMemMap";
        unmap_memory: fn(u64, usize) = "cuMemUnmap", "hipMemUnmap";
        set_memory_access: fn(u64, usize, *const DeviceAccess, usize)
            = "cuMemSetAccess", "hipMemSetAccess";
        /// The unit of memory for addresses; the last argument asks for the least or the best one.
        memory_granularity: fn(*mut usize, *const AllocationProperties, c_int)
            = "cuMemGetAllocationGranularity", "hipMemGetAllocationGranularity";

        /// Moves managed memory to a device, or to the host (-1).
        prefetch: fn(u64, usize, c_int, StreamHandle)
            = "cuMemPrefetchAsync", "hipMemPrefetchAsync";
        /// Advice on managed memory, and the device that it is about.
        advise: fn(u64, usize, c_int, c_int) = "cuMemAdvise", "hipMemAdvise";

        // Contexts. HIP has only the current device.
        set_context: fn(*mut c_void) = "cuCtxSetCurrent", "";
        set_device: fn(c_int) = "", "hipSetDevice";
        /// Lets the current device access memory of another context.
        enable_peer_context: fn(*mut c_void, c_uint) = "cuCtxEnablePeerAccess", "";
        enable_peer_device: fn(c_int, c_uint) = "", "hipDeviceEnablePeerAccess";

        // Copies of planes and volumes, and between devices. HIP's take arguments in place of
        // descriptors, whose layouts differ between its versions.
        copy_plane: fn(*const CopyDescriptor2d, StreamHandle) = "cuMemcpy2DAsync_v2", "";
        copy_volume: fn(*const CopyDescriptor3d, StreamHandle) = "cuMemcpy3DAsync_v2", "";
        copy_peer_volume: fn(*const PeerDescriptor3d, StreamHandle) = "cuMemcpy3DPeerAsync", "";
        /// The destination and its context, the source and its context, the bytes, the stream.
        copy_peer: fn(u64, *mut c_void, u64, *mut c_void, usize, StreamHandle)
            = "cuMemcpyPeerAsync", "";
        /// The destination and its pitch, the source and its pitch, width and height, the kind, the
        /// stream.
        copy_plane_of_hip: fn(u64, usize, u64, usize, usize, usize, c_int, StreamHandle)
            = "", "hipMemcpy2DAsync";
        copy_volume_of_hip: fn(*const VolumeOfHip, StreamHandle) = "", "hipMemcpy3DAsync";
        copy_peer_of_hip: fn(u64, c_int, u64, c_int, usize, StreamHandle)
            = "", "hipMemcpyPeerAsync";
        /// Many copies in one call: since CUDA 12.8. Newer drivers keep this form under this name.
        copy_batch: fn(
            *mut u64, *mut u64, *mut usize, usize,
            *mut Batch, *mut usize, usize,
            *mut usize,
            StreamHandle,
        ) = "cuMemcpyBatchAsync", "";

        // Fills of planes: the start, the pitch, the value, width and height, the stream.
        set_plane_8: fn(u64, usize, u8, usize, usize, StreamHandle) = "cuMemsetD2D8Async", "";
        set_plane_16: fn(u64, usize, u16, usize, usize, StreamHandle) = "cuMemsetD2D16Async", "";
        set_plane_32: fn(u64, usize, u32, usize, usize, StreamHandle) = "cuMemsetD2D32Async", "";
        /// As `set_plane_8`, with a value of 32 bits whose lowest byte counts.
        set_plane_of_hip: fn(u64, usize, c_int, usize, usize, StreamHandle)
            = "", "hipMemset2DAsync";

        /// What a function needs. Every version has it, but not every runtime that is not AMD's.
        function_attribute: fn(*mut c_int, c_int, FunctionHandle)
            = "cuFuncGetAttribute", "hipFuncGetAttribute";
        /// The address and the size of a variable of a module.
        module_variable: fn(*mut u64, *mut usize, ModuleHandle, *const c_char)
            = "cuModuleGetGlobal_v2", "hipModuleGetGlobal";
        // Functions of modules. HIP kernels may use all shared memory without a permission.
        set_function_attribute: fn(FunctionHandle, c_int, c_int) = "cuFuncSetAttribute", "";
        /// The offset and the size of a parameter: since CUDA 12.4.
        parameter: fn(FunctionHandle, usize, *mut usize, *mut usize) = "cuFuncGetParamInfo", "";
        /// Blocks and threads per block, the function, a callback, dynamic shared bytes, a limit.
        best_block: fn(
            *mut c_int, *mut c_int, FunctionHandle, Option<unsafe extern "C" fn(c_int) -> usize>,
            usize, c_int,
        ) = "cuOccupancyMaxPotentialBlockSize", "";
        best_block_of_hip: fn(*mut c_int, *mut c_int, FunctionHandle, usize, c_int)
            = "", "hipModuleOccupancyMaxPotentialBlockSize";

        // Graphs. A node has a graph, the nodes that it follows and their number, and what it does;
        // its executable twin can be changed. HIP describes nodes by structs of its own.
        create_graph: fn(*mut GraphHandle, c_uint) = "cuGraphCreate", "hipGraphCreate";
        destroy_graph: fn(GraphHandle) = "cuGraphDestroy", "hipGraphDestroy";
        add_launch_node: fn(
            *mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const LaunchNode,
        ) = "cuGraphAddKernelNode", "";
        add_launch_node_of_hip: fn(
            *mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const LaunchNodeOfHip,
        ) = "", "hipGraphAddKernelNode";
        change_launch_node: fn(ExecutableHandle, NodeHandle, *const LaunchNode)
            = "cuGraphExecKernelNodeSetParams", "";
        change_launch_node_of_hip: fn(ExecutableHandle, NodeHandle, *const LaunchNodeOfHip)
            = "", "hipGraphExecKernelNodeSetParams";
        /// The last argument is the context.
        add_copy_node: fn(
            *mut NodeHandle, GraphHandle, *const NodeHandle, usize,
            *const CopyDescriptor3d, *mut c_void,
        ) = "cuGraphAddMemcpyNode", "";
        /// The last arguments are the destination, the source, the bytes and the kind.
        add_copy_node_of_hip: fn(
            *mut NodeHandle, GraphHandle, *const NodeHandle, usize, u64, u64, usize, c_int,
        ) = "", "hipGraphAddMemcpyNode1D";
        change_copy_node: fn(ExecutableHandle, NodeHandle, *const CopyDescriptor3d, *mut c_void)
            = "cuGraphExecMemcpyNodeSetParams", "";
        change_copy_node_of_hip: fn(ExecutableHandle, NodeHandle, u64, u64, usize, c_int)
            = "", "hipGraphExecMemcpyNodeSetParams1D";
        add_fill_node: fn(
            *mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const FillNode, *mut c_void,
        ) = "cuGraphAddMemsetNode", "";
        /// The struct differs between versions.
        add_fill_node_of_hip: fn(
            *mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const c_void,
        ) = "", "hipGraphAddMemsetNode";
        change_fill_node: fn(ExecutableHandle, NodeHandle, *const FillNode, *mut c_void)
            = "cuGraphExecMemsetNodeSetParams", "";
        change_fill_node_of_hip: fn(ExecutableHandle, NodeHandle, *const c_void)
            = "", "hipGraphExecMemsetNodeSetParams";
        instantiate_graph: fn(*mut ExecutableHandle, GraphHandle, u64)
            = "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags";
        launch_graph: fn(ExecutableHandle, StreamHandle) = "cuGraphLaunch", "hipGraphLaunch";
        destroy_executable: fn(ExecutableHandle) = "cuGraphExecDestroy", "hipGraphExecDestroy";

        // As `prefetch` and `advise`, with a location in place of a number: since CUDA 12.2.
        prefetch_to: fn(u64, usize, MemoryLocation, c_uint, StreamHandle)
            = "cuMemPrefetchAsync_v2", "";
        advise_at: fn(u64, usize, c_int, MemoryLocation) = "cuMemAdvise_v2", "";
    }
}
