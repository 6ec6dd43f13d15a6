//! The fields of `__cuda_array_interface__`, by which Python's libraries pass memory of GPUs.

use std::any::Any;

use dlpark::ffi::{DLDataType, DLDataTypeCode};
use ndarray::Dimension;

use super::super::tensor_element::TensorElement;
use super::no_gpu;
use crate::array::{
    DeviceArray, DeviceMut, DevicePart, DeviceRef, Layout, ReadOnlyDeviceArray,
    layout_without_gaps, lowest_address,
};
use crate::device::{Device, Stream, call_error};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::ForeignMemory;
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;
use resident_gpu::GpuStreamHandle;

/// The version of the protocol that [`CudaArrayInterface`] follows.
const VERSION: u32 = 3;

/// The fields of a `__cuda_array_interface__` dictionary, version 3, as [Numba's documentation]
/// defines them. [`DeviceRef::cuda_array_interface`] makes them, and
/// [`DeviceArray::from_cuda_array_interface`] takes them.
///
/// [Numba's documentation]: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CudaArrayInterface {
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The element type as NumPy writes it, such as `<f4`.
    pub typestr: String,
    /// The address of the element with index 0, 0, ..., or 0 if there are no elements; and whether
    /// the memory is read-only.
    pub data: (u64, bool),
    /// The stride of each axis in bytes; `None` if the elements are contiguous in row-major order.
    pub strides: Option<Vec<isize>>,
    /// The version of the protocol.
    pub version: u32,
    /// The handle of the stream after whose work the memory may be used: 1 is the legacy default
    /// stream, 2 the per-thread default stream. `None` if it may be used at once.
    pub stream: Option<u64>,
}

impl CudaArrayInterface {
    /// An interface to row-major memory that may be written at once. Set other fields as needed.
    #[must_use]
    pub fn new(shape: Vec<usize>, typestr: String, address: u64) -> Self {
        Self {
            shape,
            typestr,
            data: (address, false),
            strides: None,
            version: VERSION,
            stream: None,
        }
    }
}

impl<D: Dimension> DevicePart<'_, D> {
    fn interface<T: TensorElement>(&self, access: Access) -> Result<CudaArrayInterface> {
        let stream = self.stream_ref();
        let Some(cudarc) = stream.cuda_handle().and_then(GpuStreamHandle::stream) else {
            return Err(no_gpu("a CUDA array interface", stream.device_ref()));
        };
        let (layout, element_bytes) = (self.layout(), size_of::<T>() as isize);
        let strides = layout.strides().iter().map(|stride| stride * element_bytes).collect();
        let handle = match cudarc.cu_stream() as u64 {
            // The protocol does not allow 0: the legacy default stream is 1.
            0 => 1,
            handle => handle,
        };
        Ok(CudaArrayInterface {
            shape: layout.shape().to_vec(),
            typestr: typestr_of::<T>()?,
            data: (if layout.len() == 0 { 0 } else { *self.address() }, !access.writes()),
            strides: (!layout.is_c_contiguous()).then_some(strides),
            version: VERSION,
            stream: Some(handle),
        })
    }
}

impl<T: TensorElement, D: Dimension> DeviceRef<'_, T, D> {
    /// The fields of `__cuda_array_interface__` for this guard, read-only: for CuPy, PyTorch or
    /// Numba to read the memory in place. The consumer waits for the guard's stream, whose handle
    /// is in the fields. Keep the guard until the consumer's work is complete, or queued on the
    /// guard's stream. Makes no driver call.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the guard is not on an NVIDIA GPU; [`Error::Foreign`] if NumPy has no
    /// such elements.
    #[track_caller]
    pub fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
        self.part.interface::<T>(Access::Read).at(call_site())
    }
}

impl<T: TensorElement, D: Dimension> DeviceMut<'_, T, D> {
    /// As [`DeviceRef::cuda_array_interface`], for consumers that may also write the memory.
    ///
    /// ```no_run
    /// use resident::{Device, DeviceArray};
    ///
    /// let stream = Device::cuda(0)?.stream();
    /// let mut table = DeviceArray::<f32, _>::zeros_on(&stream, (2, 3))?;
    /// let mut guard = table.gpu_mut_on(&stream)?;
    /// let fields = guard.cuda_array_interface()?;
    /// assert_eq!((fields.typestr.as_str(), fields.shape.as_slice()), ("<f4", &[2, 3][..]));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DeviceRef::cuda_array_interface`].
    #[track_caller]
    pub fn cuda_array_interface(&mut self) -> Result<CudaArrayInterface> {
        self.part.interface::<T>(Access::ReadWrite).at(call_site())
    }
}

impl<T: TensorElement, D: Dimension> DeviceArray<T, D> {
    /// As [`from_cuda_array_interface_on`](Self::from_cuda_array_interface_on), on the current
    /// stream.
    ///
    /// # Safety
    ///
    /// As [`from_cuda_array_interface_on`](Self::from_cuda_array_interface_on).
    ///
    /// # Errors
    ///
    /// As [`from_cuda_array_interface_on`](Self::from_cuda_array_interface_on).
    #[track_caller]
    pub unsafe fn from_cuda_array_interface(
        interface: &CudaArrayInterface,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let site = call_site();
        let stream = Stream::current().at(site)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { import(&stream, interface, Access::ReadWrite, Box::new(owner), site) }
    }

    /// An array over memory of a GPU that a `__cuda_array_interface__` describes, without a copy.
    /// Does not wait: uses of the array come after the work that is queued on the interface's
    /// stream and on `stream`. `owner` keeps the memory; it is dropped on any thread, after the
    /// last use of the array's memory, or with an error.
    ///
    /// ```no_run
    /// use resident::{CudaArrayInterface, Device, DeviceArray, ndarray::Ix2};
    ///
    /// # let (address, owner) = (0, ());
    /// let stream = Device::cuda(0)?.stream();
    /// let fields = CudaArrayInterface::new(vec![2, 3], "<f4".into(), address);
    /// // SAFETY: `owner` keeps the six elements, which nothing else uses.
    /// let table = unsafe {
    ///     DeviceArray::<f32, Ix2>::from_cuda_array_interface_on(&stream, &fields, owner)
    /// }?;
    /// println!("{}", table.copy_to_host()?);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// The fields describe initialised memory truly, and `interface.stream` is a stream of the
    /// memory's GPU. Until `owner` is dropped the memory stays allocated, nothing else writes it,
    /// and nothing else reads it while this library writes it.
    ///
    /// # Errors
    ///
    /// - [`Error::Foreign`] if the driver knows the memory as that of another GPU, or of none; if
    ///   the elements are not `T`, are read-only (for which there is
    ///   [`ReadOnlyDeviceArray::from_cuda_array_interface_on`]), or have gaps, repetitions, or a
    ///   wrong alignment; if the version is not 2 or 3, or the stream is 0, which version 3 does
    ///   not allow.
    /// - [`Error::Shape`] if it has another number of axes than `D`.
    /// - [`Error::NoDevice`] if `stream` is not on an NVIDIA GPU.
    /// - [`Error::Backend`] if an array uses the memory already, or the driver refuses a call.
    #[track_caller]
    pub unsafe fn from_cuda_array_interface_on(
        stream: &Stream,
        interface: &CudaArrayInterface,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        // SAFETY: the caller's promise is passed on.
        unsafe { import(stream, interface, Access::ReadWrite, Box::new(owner), call_site()) }
    }
}

impl<T: TensorElement, D: Dimension> ReadOnlyDeviceArray<T, D> {
    /// An array over memory of a GPU that a `__cuda_array_interface__` describes, which may be
    /// read-only, without a copy. As [`DeviceArray::from_cuda_array_interface_on`], but nothing of
    /// this library writes the memory, so other code may read it at any time.
    ///
    /// # Safety
    ///
    /// The fields describe initialised memory truly, and `interface.stream` is a stream of the
    /// memory's GPU. Until `owner` is dropped the memory stays allocated, and nothing writes it.
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::from_cuda_array_interface_on`], but a read-only interface is none.
    #[track_caller]
    pub unsafe fn from_cuda_array_interface_on(
        stream: &Stream,
        interface: &CudaArrayInterface,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        // SAFETY: the caller's promise is passed on.
        unsafe { import(stream, interface, Access::Read, Box::new(owner), call_site()) }
            .map(Self::of_others)
    }
}

/// An array over the memory that an interface describes.
///
/// # Safety
///
/// As [`DeviceArray::from_cuda_array_interface_on`]; if `access` does not write, the caller never
/// lets the array be written, and then as [`ReadOnlyDeviceArray::from_cuda_array_interface_on`].
unsafe fn import<T: TensorElement, D: Dimension>(
    stream: &Stream,
    interface: &CudaArrayInterface,
    access: Access,
    owner: Box<dyn Any + Send + Sync>,
    site: CallSite,
) -> Result<DeviceArray<T, D>> {
    let device = stream.device_ref();
    let Some(raw) = stream.cuda_handle() else {
        return Err(no_gpu("memory of a CUDA array interface", device).at(site));
    };
    let error_of =
        |operation, error| call_error(device, "a CUDA array interface", operation, &error).at(site);
    check::<T>(interface, access).at(site)?;
    let layout = layout_of::<T, D>(interface).at(site)?;
    let len_bytes = (layout.len() * size_of::<T>()) as u64;
    if len_bytes == 0 {
        let dim = layout.dim().clone();
        return DeviceArray::uninit_on(stream, dim).map_err(|error| error.at(site));
    }
    let start = start_of::<T, D>(interface, &layout).at(site)?;
    let owning_gpu = raw.gpu_of(start).map_err(|error| error_of("asking", error))?;
    if owning_gpu != Some(device.ordinal()) {
        return Err(not_of(device, start, owning_gpu).at(site));
    }
    if let Some(handle) = interface.stream {
        // SAFETY: the caller promises that it is a stream of the memory's GPU.
        let waited = unsafe { raw.wait_for_handle(handle) };
        waited.map_err(|error| error_of("waiting for its stream", error))?;
    }
    let start = std::ptr::without_provenance_mut(start as usize);
    // SAFETY: the caller promises that the fields describe initialised memory that `owner`
    // keeps and nothing else writes; the checks have shown that it belongs to this GPU and has
    // no gaps.
    let address = unsafe { device.backend().take_over(ForeignMemory { start, len_bytes, owner }) };
    let address = address.map_err(|error| error_of("taking memory over", error))?;
    Ok(DeviceArray::over_memory(layout, stream, address, site))
}

/// NumPy's name of the element type.
fn typestr_of<T: TensorElement>() -> Result<String> {
    let DLDataType { code, bits, lanes } = T::DTYPE;
    let kind = match code {
        DLDataTypeCode::INT => 'i',
        DLDataTypeCode::UINT => 'u',
        DLDataTypeCode::FLOAT => 'f',
        DLDataTypeCode::COMPLEX => 'c',
        DLDataTypeCode::BOOL => 'b',
        _ => '?',
    };
    if kind == '?' || lanes != 1 {
        let seen = format!("elements of type {}", std::any::type_name::<T>());
        return Err(foreign(seen, "elements for which NumPy has a name; use DLPack"));
    }
    let order = match (bits, cfg!(target_endian = "little")) {
        (..=8, _) => '|',
        (_, true) => '<',
        (_, false) => '>',
    };
    Ok(format!("{order}{kind}{}", bits / 8))
}

fn check<T: TensorElement>(interface: &CudaArrayInterface, access: Access) -> Result<()> {
    let expected = typestr_of::<T>()?;
    // NumPy's bool is a byte, and comes in as one.
    let is_bool = expected == "|u1" && interface.typestr == "|b1";
    if interface.typestr != expected && !is_bool {
        let seen = format!("an interface whose elements are {:?}", interface.typestr);
        let expected = format!("{expected:?}; convert the array, or name its type");
        return Err(foreign(seen, &expected));
    }
    if access.writes() && interface.data.1 {
        return Err(foreign(
            String::from("a read-only interface"),
            "one that may be written; use `ReadOnlyDeviceArray::from_cuda_array_interface_on`, or \
             copy it first",
        ));
    }
    if !(2..=VERSION).contains(&interface.version) {
        return Err(foreign(
            format!("an interface of version {}", interface.version),
            "version 2 or 3 of the protocol",
        ));
    }
    if interface.stream == Some(0) {
        return Err(foreign(
            String::from("an interface with stream 0"),
            "1 for the legacy default stream, 2 for the per-thread default stream, or a handle",
        ));
    }
    Ok(())
}

fn layout_of<T: Element, D: Dimension>(interface: &CudaArrayInterface) -> Result<Layout<D>> {
    let CudaArrayInterface { shape, strides, .. } = interface;
    if D::NDIM.is_some_and(|ndim| ndim != shape.len()) {
        return Err(Error::Shape {
            call: CalledAt::UNKNOWN,
            operation: String::from("from_cuda_array_interface"),
            expected: format!("{} axes", D::NDIM.unwrap_or_default()),
            seen: format!("{shape:?}"),
            instead: "name a type with as many axes, or `IxDyn`".into(),
        });
    }
    let mut dim = D::zeros(shape.len());
    dim.slice_mut().copy_from_slice(shape);
    let layout = match strides {
        None => layout_without_gaps::<T, D>(dim, None),
        Some(strides) => in_elements::<T>(strides, shape.len())
            .and_then(|strides| layout_without_gaps::<T, D>(dim, Some(&strides))),
    };
    layout.map_err(|expected| {
        let seen = format!("an interface of shape {shape:?} with strides {strides:?}");
        foreign(seen, &expected)
    })
}

/// Strides in elements, from those in bytes. `Err` with what is expected.
fn in_elements<T>(strides: &[isize], ndim: usize) -> std::result::Result<Vec<isize>, String> {
    let element_bytes = size_of::<T>() as isize;
    let is_whole = strides.iter().all(|stride| stride % element_bytes == 0);
    if !is_whole || strides.len() != ndim {
        return Err(format!("{ndim} strides that are multiples of {element_bytes} bytes"));
    }
    Ok(strides.iter().map(|stride| stride / element_bytes).collect())
}

/// The lowest element's address.
fn start_of<T, D: Dimension>(interface: &CudaArrayInterface, layout: &Layout<D>) -> Result<u64> {
    let (first, _) = interface.data;
    lowest_address::<T, D>(first, layout).ok_or_else(|| {
        let align = align_of::<T>();
        let expected = format!("elements at an address that is a multiple of {align} and not 0");
        foreign(format!("an interface with data at {first:#x}"), &expected)
    })
}

fn not_of(device: &Device, start: u64, owning_gpu: Option<usize>) -> Error {
    let seen = match owning_gpu {
        Some(ordinal) => format!("memory of cuda:{ordinal} at {start:#x}"),
        None => format!("memory at {start:#x} that the driver does not know"),
    };
    foreign(seen, &format!("memory of {device}; pass a stream of the memory's device"))
}

fn foreign(seen: String, expected: &str) -> Error {
    Error::Foreign { call: CalledAt::UNKNOWN, seen, expected: String::from(expected) }
}
