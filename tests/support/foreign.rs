//! Memory that this library did not allocate, on any device, and DLPack tensors over it.
//!
//! A sweep lets each driver call fail once, so calls are made again if they are refused.

use std::sync::Arc;

use resident::dlpark::DlpackFlags;
use resident::dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLManagedTensorVersioned};
use resident::dlpark::metadata::Dynamic;
use resident::dlpark::versioned::Dlpack;
use resident::{Device, DeviceKind};

/// Elements in memory of a device that other code allocated. Freed when the last handle drops.
pub struct ForeignMemory {
    device: Device,
    address: u64,
    len: usize,
}

impl ForeignMemory {
    /// Allocates memory for these elements.
    #[must_use]
    pub fn of(device: &Device, elements: &[u32]) -> Arc<Self> {
        let address = match device.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => cuda::allocate(device, elements),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => hip::allocate(device, elements),
            _ => Box::into_raw(Box::<[u32]>::from(elements)).cast::<u32>().expose_provenance(),
        };
        Arc::new(Self { device: device.clone(), address: address as u64, len: elements.len() })
    }

    /// The address of the first element.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The elements.
    ///
    /// # Safety
    ///
    /// No work writes them.
    #[must_use]
    pub unsafe fn elements(&self) -> Vec<u32> {
        match self.device.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => cuda::download(&self.device, self.address, self.len),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => hip::download(self.address, self.len),
            // SAFETY: `of` made the memory of this many elements, and nothing writes it, as the
            // caller promises.
            _ => unsafe { std::slice::from_raw_parts(self.start(), self.len) }.to_vec(),
        }
    }

    fn start(&self) -> *mut u32 {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }
}

impl Drop for ForeignMemory {
    fn drop(&mut self) {
        match self.device.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => cuda::free(&self.device, self.address),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => hip::free(self.address),
            _ => {
                let elements = std::ptr::slice_from_raw_parts_mut(self.start(), self.len);
                // SAFETY: `of` made the memory from such a box, and this is the last handle.
                drop(unsafe { Box::from_raw(elements) });
            }
        }
    }
}

/// Makes a driver call, and again if it is refused.
#[cfg(any(feature = "cuda", feature = "hip"))]
fn called<T, E: std::fmt::Debug>(call: impl Fn() -> Result<T, E>) -> T {
    call().or_else(|_refusal| call()).expect("a call of the driver")
}

/// What a tensor says of its memory.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The lengths of its axes.
    pub shape: [i64; 2],
    /// In elements.
    pub strides: [i64; 2],
    /// From the memory's start to the element with index 0, 0.
    pub offset_bytes: u64,
    /// The elements' type.
    pub dtype: DLDataType,
    /// The device; `None` for that of the memory.
    pub device: Option<DLDevice>,
    /// Read-only and the like.
    pub flags: DlpackFlags,
}

impl Form {
    /// Elements in row-major order from the memory's start.
    #[must_use]
    pub fn rows(shape: [i64; 2]) -> Self {
        Self {
            shape,
            strides: [shape[1], 1],
            offset_bytes: 0,
            dtype: DLDataType::U32,
            device: None,
            flags: DlpackFlags::empty(),
        }
    }

    /// A tensor that has a handle of the memory until its deleter is called.
    ///
    /// # Panics
    ///
    /// If DLPack has no such tensor.
    #[must_use]
    pub fn tensor(self, memory: &Arc<ForeignMemory>) -> Dlpack {
        let device = self.device.unwrap_or_else(|| dl_device(&memory.device));
        Self { device: Some(device), ..self }.tensor_at(memory.address, Arc::clone(memory))
    }

    /// A tensor over memory at an address, which has this owner until its deleter is called: of the
    /// CPU, if the form names no device.
    ///
    /// # Panics
    ///
    /// If DLPack has no such tensor.
    #[must_use]
    pub fn tensor_at(self, address: u64, owner: impl Send + Sync + 'static) -> Dlpack {
        let prepared = Dynamic::new(self.shape, self.strides);
        let prepared = prepared.prepare_as::<DLManagedTensorVersioned>().expect("two axes");
        let mut tensor = prepared.initialize(Box::new(owner));
        tensor.set_data(std::ptr::with_exposed_provenance_mut(address as usize));
        tensor.set_device(self.device.unwrap_or(DLDevice::CPU));
        tensor.set_dtype(self.dtype).set_byte_offset(self.offset_bytes);
        tensor.set_flags(self.flags).expect("no copy");
        // SAFETY: the memory lives as long as its handle. If a test describes it wrongly, it
        // expects that the tensor is refused.
        unsafe { tensor.finish() }
    }
}

/// A device as DLPack names it.
#[must_use]
pub fn dl_device(device: &Device) -> DLDevice {
    let device_id = device.ordinal() as i32;
    match device.kind() {
        DeviceKind::Cuda => DLDevice::cuda(device_id),
        DeviceKind::Hip => DLDevice { device_type: DLDeviceType::ROCM, device_id },
        _ => DLDevice::CPU,
    }
}

/// CUDA's driver as other code of the process calls it.
#[cfg(feature = "cuda")]
mod cuda {
    use resident::Device;
    use resident::cudarc::driver::result;

    use super::called;

    fn make_current(device: &Device) {
        let context = device.cuda_context().expect("a GPU");
        called(|| context.bind_to_thread());
    }

    pub(super) fn allocate(device: &Device, elements: &[u32]) -> usize {
        make_current(device);
        // SAFETY: the copy below writes the memory before anything reads it.
        let address = called(|| unsafe { result::malloc_sync(size_of_val(elements)) });
        // SAFETY: the memory has room for the elements.
        called(|| unsafe { result::memcpy_htod_sync(address, elements) });
        address as usize
    }

    pub(super) fn download(device: &Device, address: u64, len: usize) -> Vec<u32> {
        make_current(device);
        called(|| {
            let mut elements = vec![0; len];
            // SAFETY: `allocate` made the memory for this many elements.
            unsafe { result::memcpy_dtoh_sync(&mut elements, address) }.map(|()| elements)
        })
    }

    pub(super) fn free(device: &Device, address: u64) {
        make_current(device);
        // SAFETY: `allocate` made the memory, and this is its last use.
        called(|| unsafe { result::free_sync(address) });
    }
}

/// HIP's runtime as other code of the process calls it.
#[cfg(feature = "hip")]
mod hip {
    use std::ffi::c_int;
    use std::sync::OnceLock;

    use libloading::Library;
    use resident::Device;

    use super::called;

    struct Functions {
        set_device: unsafe extern "C" fn(c_int) -> u32,
        allocate: unsafe extern "C" fn(*mut u64, usize) -> u32,
        free: unsafe extern "C" fn(u64) -> u32,
        upload: unsafe extern "C" fn(u64, *const u32, usize) -> u32,
        download: unsafe extern "C" fn(*mut u32, u64, usize) -> u32,
    }

    fn functions() -> &'static Functions {
        static FOUND: OnceLock<Functions> = OnceLock::new();
        FOUND.get_or_init(|| {
            let named = std::env::var("RESIDENT_HIP").into_iter();
            let names = ["", ".7", ".6", ".5"].map(|version| format!("libamdhip64.so{version}"));
            // SAFETY: the runtime is loaded already.
            let open = |name: String| unsafe { Library::new(name) }.ok();
            let found = named.chain(names).find_map(open).expect("HIP's runtime");
            // It is never unloaded.
            let library = Box::leak(Box::new(found));
            // SAFETY: the function has this type in HIP's headers, as those below.
            let set_device = *unsafe { library.get("hipSetDevice") }.expect("a function");
            // SAFETY: as above.
            let allocate = *unsafe { library.get("hipMalloc") }.expect("a function");
            // SAFETY: as above.
            let free = *unsafe { library.get("hipFree") }.expect("a function");
            // SAFETY: as above.
            let upload = *unsafe { library.get("hipMemcpyHtoD") }.expect("a function");
            // SAFETY: as above.
            let download = *unsafe { library.get("hipMemcpyDtoH") }.expect("a function");
            Functions { set_device, allocate, free, upload, download }
        })
    }

    fn checked(status: u32) -> Result<(), u32> {
        if status == 0 { Ok(()) } else { Err(status) }
    }

    pub(super) fn allocate(device: &Device, elements: &[u32]) -> usize {
        let (functions, len_bytes) = (functions(), size_of_val(elements));
        // SAFETY: the function takes any number.
        called(|| checked(unsafe { (functions.set_device)(device.ordinal() as c_int) }));
        let address = called(|| {
            let mut address = 0;
            // SAFETY: the function writes one address.
            checked(unsafe { (functions.allocate)(&raw mut address, len_bytes) }).map(|()| address)
        });
        // SAFETY: the memory has room for the elements.
        called(|| checked(unsafe { (functions.upload)(address, elements.as_ptr(), len_bytes) }));
        address as usize
    }

    pub(super) fn download(address: u64, len: usize) -> Vec<u32> {
        called(|| {
            let mut elements = vec![0_u32; len];
            let (to, len_bytes) = (elements.as_mut_ptr(), 4 * len);
            // SAFETY: `allocate` made the memory for this many elements.
            checked(unsafe { (functions().download)(to, address, len_bytes) }).map(|()| elements)
        })
    }

    pub(super) fn free(address: u64) {
        // SAFETY: `allocate` made the memory, and this is its last use.
        called(|| checked(unsafe { (functions().free)(address) }));
    }
}
