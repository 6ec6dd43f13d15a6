//! What the programs written by hand share: cudarc's objects, and the driver's copy calls. cudarc's
//! tracking is off unless a row measures it.

use std::alloc::{self, Layout};
use std::ffi::CString;
use std::sync::Arc;

use resident::Grid;
use resident::bytemuck::{Pod, Zeroable};
use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
    LaunchConfig, PushKernelArg, ValidAsZeroBits, result, sys,
};
use resident::cudarc::nvrtc::{Ptx, result as nvrtc, sys as nvrtc_sys};

use sys::CUmemorytype;

use crate::gpu::fault::{Fault, Outcome};
use crate::gpu::ours::{PARTS, SOURCE, THREADS};

/// A separate context object with the kernels loaded.
pub struct Twin {
    pub context: Arc<CudaContext>,
    module: Arc<CudaModule>,
}

/// A grid with a thread for each element.
pub fn cover(len: usize) -> LaunchConfig {
    blocks(len.div_ceil(THREADS as usize))
}

pub fn one_block() -> LaunchConfig {
    blocks(1)
}

pub fn parts() -> LaunchConfig {
    blocks(PARTS)
}

fn blocks(count: usize) -> LaunchConfig {
    LaunchConfig { grid_dim: (count as u32, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}

impl Twin {
    /// With cudarc's tracking off: the program orders its work explicitly.
    pub fn untracked() -> Outcome<Self> {
        Self::of_source(SOURCE, &[])
    }

    /// With cudarc's default tracking.
    pub fn tracked() -> Outcome<Self> {
        Self::with_code(CudaContext::new(0)?, SOURCE, &[])
    }

    /// With cudarc's tracking off and the kernels of another source.
    pub fn of_source(source: &str, options: &[&str]) -> Outcome<Self> {
        let context = CudaContext::new(0)?;
        // SAFETY: the programs order their streams with their own events and wait before they free
        // memory.
        unsafe { context.disable_event_tracking() };
        Self::with_code(context, source, options)
    }

    fn with_code(context: Arc<CudaContext>, source: &str, options: &[&str]) -> Outcome<Self> {
        let (major, minor) = context.compute_capability()?;
        let module = context.load_module(Ptx::from_binary(machine_code(
            source,
            options,
            &format!("sm_{major}{minor}"),
        )?))?;
        Ok(Self { context, module })
    }

    pub fn function(&self, name: &str) -> Outcome<CudaFunction> {
        Ok(self.module.load_function(name)?)
    }

    pub fn stream(&self) -> Outcome<Arc<CudaStream>> {
        Ok(self.context.new_stream()?)
    }
}

/// Compiles the kernels as this library does: with NVRTC, to machine code for the GPU's
/// architecture.
fn machine_code(source: &str, options: &[&str], architecture: &str) -> Outcome<Vec<u8>> {
    let text = CString::new(source).map_err(Fault::new)?;
    let program = nvrtc::create_program(&text, None)?;
    let target = format!("--gpu-architecture={architecture}");
    let options: Vec<&str> = options.iter().copied().chain([target.as_str()]).collect();
    // SAFETY: the program was just created and is not yet destroyed.
    let compiled = unsafe { nvrtc::compile_program(program, &options) };
    let code = compiled.map_err(Fault::from).and_then(|()| machine_code_of(program));
    // SAFETY: the program is not used after this.
    unsafe { nvrtc::destroy_program(program) }?;
    code
}

fn machine_code_of(program: nvrtc_sys::nvrtcProgram) -> Outcome<Vec<u8>> {
    let mut len_bytes = 0;
    // SAFETY: the program was compiled and is not yet destroyed (`machine_code`); the call writes
    // one size.
    unsafe { nvrtc_sys::nvrtcGetCUBINSize(program, &raw mut len_bytes) }.result()?;
    let mut code = vec![0_u8; len_bytes];
    // SAFETY: as above, and the buffer has the size that the last call returned.
    unsafe { nvrtc_sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()) }.result()?;
    Ok(code)
}

/// Zeroed device memory.
pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(
    stream: &Arc<CudaStream>,
    len: usize,
) -> Outcome<CudaSlice<T>> {
    Ok(stream.alloc_zeros(len)?)
}

/// Device memory whose contents nothing has written: a copy or a kernel writes each element before
/// it is read.
pub fn new_memory<T: DeviceRepr + Pod>(
    stream: &Arc<CudaStream>,
    len: usize,
) -> Outcome<CudaSlice<T>> {
    // SAFETY: the elements are plain numbers (`Pod`).
    Ok(unsafe { stream.alloc(len) }?)
}

/// The layout of `resident::View` in device code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct View<const N: usize> {
    data: u64,
    shape: [i64; N],
    strides: [i64; N],
}

// SAFETY: the type has the C layout of the kernels' structure and contains only numbers.
unsafe impl<const N: usize> DeviceRepr for View<N> {}

impl View<2> {
    /// One value per pixel, row by row.
    pub fn plane(data: u64, (rows, columns): (usize, usize)) -> Self {
        let (rows, columns) = (rows as i64, columns as i64);
        Self { data, shape: [rows, columns], strides: [columns, 1] }
    }
}

impl View<3> {
    /// So many channels per pixel, row by row.
    pub fn picture(data: u64, (rows, columns, channels): (usize, usize, usize)) -> Self {
        let (rows, columns, channels) = (rows as i64, columns as i64, channels as i64);
        Self { data, shape: [rows, columns, channels], strides: [columns * channels, channels, 1] }
    }
}

/// The grid as cudarc takes it.
pub fn launch_config(grid: Grid) -> LaunchConfig {
    let (blocks, threads) = (grid.blocks(), grid.threads());
    LaunchConfig {
        grid_dim: (blocks.x, blocks.y, blocks.z),
        block_dim: (threads.x, threads.y, threads.z),
        shared_mem_bytes: 0,
    }
}

/// Launches a kernel with inputs and one output.
pub fn touch(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    inputs: &[&CudaSlice<f32>],
    output: &mut CudaSlice<f32>,
) -> Outcome {
    let mut launch = stream.launch_builder(function);
    inputs.iter().for_each(|input| {
        launch.arg(*input);
    });
    launch.arg(output);
    // SAFETY: the function takes this many pointers to floats and accesses one element of each per
    // thread; each array has an element for all 256 threads.
    unsafe { launch.launch(one_block()) }?;
    Ok(())
}

/// `y = factor * x + offset` on addresses of slices or managed memory.
pub fn affine(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    numbers: (f32, f32),
    (x, y): (u64, u64),
    len: usize,
) -> Outcome {
    let len_passed = len as u64;
    let mut launch = stream.launch_builder(function);
    launch.arg(&numbers.0).arg(&numbers.1).arg(&x).arg(&y).arg(&len_passed);
    // SAFETY: these are the parameters of the function, and there are `len` floats at both
    // addresses.
    unsafe { launch.launch(cover(len)) }?;
    Ok(())
}

/// Sums `len` floats at an address, into one partial sum per block.
pub fn partial_sum(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    x: u64,
    sums: &mut CudaSlice<f32>,
    len: usize,
) -> Outcome {
    let len_passed = len as u64;
    let mut launch = stream.launch_builder(function);
    launch.arg(&x).arg(sums).arg(&len_passed);
    // SAFETY: these are the parameters of the function; there are `len` floats, and a partial sum
    // for each block.
    unsafe { launch.launch(parts()) }?;
    Ok(())
}

/// The address of a slice, for driver calls on `stream`.
pub fn address<T>(slice: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    slice.device_ptr(stream).0
}

/// A copy of rows between two ranges of memory, each given by its kind, address and pitch.
pub fn rows(
    source: (CUmemorytype, u64, usize),
    destination: (CUmemorytype, u64, usize),
    [width_bytes, height]: [usize; 2],
) -> sys::CUDA_MEMCPY2D {
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: source.0,
        srcHost: std::ptr::with_exposed_provenance(source.1 as usize),
        srcDevice: source.1,
        srcArray: std::ptr::null_mut(),
        srcPitch: source.2,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: destination.0,
        dstHost: std::ptr::with_exposed_provenance_mut(destination.1 as usize),
        dstDevice: destination.1,
        dstArray: std::ptr::null_mut(),
        dstPitch: destination.2,
        WidthInBytes: width_bytes,
        Height: height,
    }
}

/// What the device has, once it has it.
pub fn fetch<T: DeviceRepr, S: DevicePtr<T>>(
    stream: &Arc<CudaStream>,
    memory: &S,
) -> Outcome<Vec<T>> {
    let values = stream.clone_dtoh(memory)?;
    stream.synchronize()?;
    Ok(values)
}

/// A column of an array with rows of so many values. cudarc has no copy with a stride, so this is a
/// call of the driver.
pub fn fetch_column(
    stream: &Arc<CudaStream>,
    memory: &CudaSlice<f32>,
    (columns, index): (usize, usize),
) -> Outcome<Vec<f32>> {
    let (height, value) = (memory.len() / columns, size_of::<f32>());
    let mut column = vec![0.0_f32; height];
    let start = address(memory, stream) + (index * value) as u64;
    let device = (CUmemorytype::CU_MEMORYTYPE_DEVICE, start, columns * value);
    let host = column.as_mut_ptr().expose_provenance() as u64;
    let copy = rows(device, (CUmemorytype::CU_MEMORYTYPE_HOST, host, value), [value, height]);
    stream.context().bind_to_thread()?;
    // SAFETY: the array has this many rows of that pitch, and the vector a value for each. The
    // stream is waited for before the vector is read or freed.
    unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.cu_stream()) }.result()?;
    stream.synchronize()?;
    Ok(column)
}

/// The driver's copy calls, from and to any host memory.
pub mod bare {
    use super::{CudaStream, Outcome, Pod, result};

    /// `cuMemcpyHtoDAsync`. The caller waits for the stream before it frees or writes `from`, and
    /// there is room for it at `to`.
    pub fn upload<T: Pod>(stream: &CudaStream, to: u64, from: &[T]) -> Outcome {
        // SAFETY: the callers in these benchmarks wait for the stream within the same run and copy
        // between buffers of the same length.
        Ok(unsafe { result::memcpy_htod_async(to, from, stream.cu_stream()) }?)
    }

    /// `cuMemcpyDtoHAsync`, as above.
    pub fn download<T: Pod>(stream: &CudaStream, to: &mut [T], from: u64) -> Outcome {
        // SAFETY: as above.
        Ok(unsafe { result::memcpy_dtoh_async(to, from, stream.cu_stream()) }?)
    }

    /// `cuMemcpyHtoD`.
    pub fn upload_sync<T: Pod>(to: u64, from: &[T]) -> Outcome {
        // SAFETY: the callers copy between buffers of the same length.
        Ok(unsafe { result::memcpy_htod_sync(to, from) }?)
    }

    /// `cuMemcpyDtoH`.
    pub fn download_sync<T: Pod>(to: &mut [T], from: u64) -> Outcome {
        // SAFETY: the callers copy between buffers of the same length.
        Ok(unsafe { result::memcpy_dtoh_sync(to, from) }?)
    }
}

/// How the memory was allocated.
enum Kind {
    Pinned,
    Registered(Layout),
    Managed,
}

/// Host memory that is registered with CUDA or allocated by it. The memory belongs to the primary
/// context.
pub struct HostMemory<T> {
    start: *mut T,
    len: usize,
    kind: Kind,
    context: Arc<CudaContext>,
}

impl<T: Pod + Zeroable> HostMemory<T> {
    /// `cuMemHostAlloc`, cached and zeroed.
    pub fn pinned(context: &Arc<CudaContext>, len: usize) -> Outcome<Self> {
        context.bind_to_thread()?;
        // SAFETY: a context is current.
        let start = unsafe { result::malloc_host(len * size_of::<T>(), 0) }?;
        Ok(Self::zeroed(start.cast(), len, Kind::Pinned, context))
    }

    /// Zeroed whole pages of host memory, registered by `cuMemHostRegister`.
    pub fn registered(context: &Arc<CudaContext>, len: usize) -> Outcome<Self> {
        context.bind_to_thread()?;
        let layout = pages::<T>(len)?;
        // SAFETY: the layout has at least one page.
        let memory = unsafe { alloc::alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(Fault::new(format_args!(
                "the host cannot allocate {} bytes",
                layout.size()
            )));
        }
        let registered = Self::zeroed(memory.cast(), len, Kind::Registered(layout), context);
        // SAFETY: the memory is live until `drop`, which unregisters it.
        unsafe { sys::cuMemHostRegister_v2(memory.cast(), layout.size(), 0) }.result()?;
        Ok(registered)
    }

    /// `cuMemAllocManaged`, zeroed. Refuses more than half of the GPU's free memory: on one
    /// machine, the program hangs if managed memory exceeds it.
    pub fn managed(context: &Arc<CudaContext>, len: usize) -> Outcome<Self> {
        context.bind_to_thread()?;
        let (len_bytes, free_bytes) = (len * size_of::<T>(), context.mem_get_info()?.0);
        if len_bytes > free_bytes / 2 {
            return Err(Fault::new(format_args!(
                "cannot allocate {len_bytes} bytes of managed memory: {free_bytes} are free on \
                 the GPU"
            )));
        }
        // SAFETY: a context is current.
        let address = unsafe {
            result::malloc_managed(len_bytes, sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL)
        }?;
        Ok(Self::zeroed(
            std::ptr::with_exposed_provenance_mut(address as usize),
            len,
            Kind::Managed,
            context,
        ))
    }

    fn zeroed(start: *mut T, len: usize, kind: Kind, context: &Arc<CudaContext>) -> Self {
        // SAFETY: the driver has just allocated `len` elements here, and nothing else uses them
        // yet.
        unsafe { start.write_bytes(0, len) };
        Self { start, len, kind, context: Arc::clone(context) }
    }

    /// The memory's address on the device.
    pub fn address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    /// The memory as a slice on the host. The callers wait for the device before they access the
    /// slice.
    pub fn host(&mut self) -> &mut [T] {
        // SAFETY: all elements are initialised (`zeroed`), every bit pattern is valid (`Pod`), and
        // the callers wait for the device before they access the memory.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// `cuMemPrefetchAsync`, of managed memory: to the GPU, or to the host.
    pub fn prefetch(&self, stream: &CudaStream, to_gpu: bool) -> Outcome {
        type Prefetch = unsafe extern "C" fn(u64, usize, i32, sys::CUstream) -> sys::CUresult;
        const HOST: i32 = -1;
        // SAFETY: the driver is loaded, because it allocated the memory.
        let driver = unsafe { sys::culib() };
        // This is the first version of the function. Later versions take a structure that differs
        // between CUDA versions.
        // SAFETY: this is the type of the first version.
        let prefetch =
            unsafe { driver.get::<Prefetch>(b"cuMemPrefetchAsync\0") }.map_err(Fault::new)?;
        let target = if to_gpu { self.context.cu_device() } else { HOST };
        // SAFETY: the memory is managed and has this many bytes.
        Ok(unsafe {
            prefetch(self.address(), self.len * size_of::<T>(), target, stream.cu_stream())
        }
        .result()?)
    }
}

/// A layout of whole pages, because two registrations may not share a page.
fn pages<T>(len: usize) -> Outcome<Layout> {
    const PAGE_BYTES: usize = 4096;
    Layout::from_size_align((len * size_of::<T>()).max(1).next_multiple_of(PAGE_BYTES), PAGE_BYTES)
        .map_err(Fault::new)
}

impl<T> Drop for HostMemory<T> {
    fn drop(&mut self) {
        // A lost context has already freed the memory.
        if self.context.bind_to_thread().is_err() {
            return;
        }
        let _freed = match self.kind {
            // SAFETY: the memory was allocated by `cuMemHostAlloc` and is not used after this.
            Kind::Pinned => unsafe { result::free_host(self.start.cast()) },
            Kind::Registered(layout) => {
                // SAFETY: the memory is registered, or `registered` failed and the driver returns
                // an error.
                let undone = unsafe { sys::cuMemHostUnregister(self.start.cast()) };
                // SAFETY: the memory was allocated with this layout and is not used after this.
                unsafe { alloc::dealloc(self.start.cast(), layout) };
                undone.result()
            }
            // SAFETY: the memory was allocated by `cuMemAllocManaged` and is not used after this.
            Kind::Managed => unsafe { result::free_sync(self.start.expose_provenance() as u64) },
        };
    }
}
