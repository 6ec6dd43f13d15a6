//! Device arrays to and from other libraries without a copy, as DLPack tensors.
//!
//! The functions take streams, where Python's `__dlpack__(stream=..)` takes numbers: their docs say
//! which stream a number is.

use std::sync::Arc;

use dlpark::allocation::dynamic::Initialized;
use dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType};
use dlpark::metadata::Dynamic;
use dlpark::tensor::TensorRef;
use dlpark::versioned::Dlpack;
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use ndarray::Dimension;

use super::tensor_element::{TensorElement, are_values_of};
use crate::array::{
    DeviceArray, HandedOut, Layout, ReadOnlyDeviceArray, layout_without_gaps, lowest_address,
};
use crate::device::{Device, Stream, call_error};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::{DeviceKind, ForeignMemory};
use resident_core::Access;

impl<T: TensorElement, D: Dimension> DeviceArray<T, D> {
    /// The array as a DLPack tensor, which owns it: for another library to use without a copy.
    /// Waits until the contents are complete. The array's memory is freed when the tensor's deleter
    /// is called.
    ///
    /// `M` is the tensor's form: `dlpark::versioned::Dlpack` or `dlpark::legacy::Dlpack`. Memory of
    /// the embedded device, and of emulated ones, is the CPU's; that of a GPU is CUDA memory of the
    /// device with its number. As an object with `__dlpack__` and `__dlpack_device__`, NumPy,
    /// PyTorch and CuPy take it: see [`tensors_of_python`](crate::guide::tensors_of_python).
    ///
    /// The array is given away, since the other library may write the memory at any time. A program
    /// that goes on using the contents has three ways, the first two without a copy:
    ///
    /// - The other library only reads: [`ReadOnlyDeviceArray::to_dlpack`] shares the array.
    /// - The other library writes and then gives the tensor back: take it over again, which leads
    ///   to the same memory.
    /// - Both write what is theirs: hand out a copy.
    ///
    /// ```
    /// use resident::{Device, DeviceArray, dlpark::versioned::Dlpack, ndarray::Ix2};
    ///
    /// let stream = Device::cpu().stream();
    /// let table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 0.5)?;
    /// let tensor: Dlpack = table.into_dlpack()?;
    /// assert_eq!(tensor.validate().expect("a tensor").shape(), [2, 3]);
    /// // SAFETY: nothing else has the tensor any more.
    /// let mut table = unsafe { DeviceArray::<f32, Ix2>::from_dlpack_on(&stream, tensor) }?;
    /// let copy: Dlpack = table.to_contiguous()?.into_dlpack()?;
    /// table.fill(2.0)?;                                   // the copy does not change
    /// assert_eq!(table.copy_to_host()?.sum(), 12.0);
    /// # drop(copy);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The array is dropped then.
    ///
    /// - [`Uninitialised`](Error::Uninitialised) or [`Lost`](Error::Lost) if elements have no
    ///   contents.
    /// - [`Backend`](Error::Backend) or [`DeviceLost`](Error::DeviceLost) if the device refuses a
    ///   call.
    /// - [`InsideKernel`](Error::InsideKernel) inside a kernel body.
    #[track_caller]
    pub fn into_dlpack<M: ManagedTensorBase>(self) -> Result<Managed<M>> {
        let (site, stream) = (call_site(), self.device().current_stream());
        export_waiting(&Arc::new(self), Access::ReadWrite, &stream, site)
    }

    /// As [`into_dlpack`](Self::into_dlpack), for a consumer that queues its work on `stream`: the
    /// one whose handle Python passes to `__dlpack__(stream=..)`. Does not wait: work queued there
    /// from now on comes after all uses of the array. When the deleter is called, the memory is
    /// freed after the work that is queued on the stream then. A consumer on the CPU follows no
    /// stream: use [`into_dlpack`](Self::into_dlpack) there, or wait for the stream first.
    ///
    /// A binding for Python gets a number. By the array API standard it is, on CUDA: `None` or 1,
    /// the legacy default stream (`Stream::legacy`); 2, the per-thread default stream, which has
    /// no counterpart here, so use `into_dlpack`; -1, a consumer that orders nothing, for which
    /// any stream of the device is right; any other number but 0, a stream's handle
    /// (`Stream::adopt`). On ROCm, `None` and 0 are the default stream, and 1 and 2 are no stream:
    /// use `into_dlpack` for them, which waits.
    ///
    /// # Errors
    ///
    /// As [`into_dlpack`](Self::into_dlpack), and [`WrongDevice`](Error::WrongDevice) if the stream
    /// is one of another device.
    #[track_caller]
    pub fn into_dlpack_on<M: ManagedTensorBase>(self, stream: &Stream) -> Result<Managed<M>> {
        export(&Arc::new(self), Access::ReadWrite, stream, call_site())
    }

    /// As [`from_dlpack_on`](Self::from_dlpack_on), on the current stream.
    ///
    /// # Safety
    ///
    /// As [`from_dlpack_on`](Self::from_dlpack_on).
    ///
    /// # Errors
    ///
    /// As [`from_dlpack_on`](Self::from_dlpack_on).
    #[track_caller]
    pub unsafe fn from_dlpack<M: ManagedTensorBase + 'static>(tensor: Managed<M>) -> Result<Self> {
        let site = call_site();
        // SAFETY: the caller's promise is passed on.
        unsafe { import(&Stream::current().at(site)?, tensor, Access::ReadWrite, site) }
    }

    /// An array over a DLPack tensor of another library, without a copy. Does not wait: the array
    /// is used after the work queued on `stream` so far, the stream whose handle a consumer passes
    /// to `__dlpack__(stream=..)`. The tensor's deleter is called on any thread, after the last use
    /// of the array's memory.
    ///
    /// Tensors of the CPU belong to the embedded device, or to an emulated one; CUDA tensors to the
    /// GPU of their number. Elements of `bool` come in as `u8`: write 0 and 1 only.
    ///
    /// # Safety
    ///
    /// The tensor describes initialised memory truly. Until its deleter is called, nothing else
    /// writes the memory, and nothing else reads it while this library writes it. The deleter may
    /// be called on any thread.
    ///
    /// # Errors
    ///
    /// The tensor is dropped then.
    ///
    /// - [`Foreign`](Error::Foreign) if the tensor is on another device than `stream`, has other
    ///   elements than `T`, is read-only ([`ReadOnlyDeviceArray::from_dlpack_on`] takes it), or has
    ///   gaps, repeated elements, or elements that are not aligned.
    /// - [`Shape`](Error::Shape) if it has another number of axes than `D`.
    /// - [`Backend`](Error::Backend) if an array uses some of the memory already: on a device, or
    ///   as pinned host memory (pinned, mapped and managed arrays; arrays that are page-locked or
    ///   lent). Other host memory of a `SmartArray` is not compared.
    #[track_caller]
    pub unsafe fn from_dlpack_on<M: ManagedTensorBase + 'static>(
        stream: &Stream,
        tensor: Managed<M>,
    ) -> Result<Self> {
        // SAFETY: the caller's promise is passed on.
        unsafe { import(stream, tensor, Access::ReadWrite, call_site()) }
    }
}

impl<T: TensorElement, D: Dimension> ReadOnlyDeviceArray<T, D> {
    /// The array as a DLPack tensor that is marked read-only, for another library to read without a
    /// copy while the program reads it too. Waits until the contents are complete. The tensor is a
    /// handle of the array, as a clone is.
    ///
    /// Only the versioned form can say that it is read-only. Python asks for it by
    /// `__dlpack__(max_version=(1, 0))`; raise its `BufferError` if it does not, as NumPy does.
    ///
    /// ```
    /// use resident::{Device, DeviceArray, ReadOnlyDeviceArray, dlpark::DlpackFlags};
    ///
    /// let stream = Device::cpu().stream();
    /// let table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 0.5)?;
    /// let table = ReadOnlyDeviceArray::from(table);
    /// let tensor = table.to_dlpack()?;                   // for the other library
    /// assert!(tensor.flags().contains(DlpackFlags::READ_ONLY));
    /// assert_eq!(table.copy_to_host()?.sum(), 3.0);      // the program still reads it
    /// drop(tensor);                                      // the other library is done
    /// let mut table = table.into_device_array().expect("the last handle");
    /// table.fill_on(&stream, 2.0)?;
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::into_dlpack`]; the array stays as it is.
    #[track_caller]
    pub fn to_dlpack(&self) -> Result<Dlpack> {
        let (site, stream) = (call_site(), self.device().current_stream());
        export_waiting(&self.shared(), Access::Read, &stream, site)
    }

    /// As [`to_dlpack`](Self::to_dlpack), for a consumer that queues its work on `stream`: see
    /// [`DeviceArray::into_dlpack_on`].
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::into_dlpack_on`]; the array stays as it is.
    #[track_caller]
    pub fn to_dlpack_on(&self, stream: &Stream) -> Result<Dlpack> {
        export(&self.shared(), Access::Read, stream, call_site())
    }

    /// As [`from_dlpack_on`](Self::from_dlpack_on), on the current stream.
    ///
    /// # Safety
    ///
    /// As [`from_dlpack_on`](Self::from_dlpack_on).
    ///
    /// # Errors
    ///
    /// As [`from_dlpack_on`](Self::from_dlpack_on).
    #[track_caller]
    pub unsafe fn from_dlpack<M: ManagedTensorBase + 'static>(tensor: Managed<M>) -> Result<Self> {
        let site = call_site();
        // SAFETY: the caller's promise is passed on.
        unsafe { import(&Stream::current().at(site)?, tensor, Access::Read, site) }
            .map(Self::of_others)
    }

    /// An array over a DLPack tensor of another library, which may be read-only, without a copy. As
    /// [`DeviceArray::from_dlpack_on`], but nothing of this library writes the memory, so the other
    /// library may read it at any time.
    ///
    /// # Safety
    ///
    /// The tensor describes initialised memory truly. Until its deleter is called, nothing writes
    /// the memory. The deleter may be called on any thread.
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::from_dlpack_on`], but a read-only tensor is none.
    #[track_caller]
    pub unsafe fn from_dlpack_on<M: ManagedTensorBase + 'static>(
        stream: &Stream,
        tensor: Managed<M>,
    ) -> Result<Self> {
        // SAFETY: the caller's promise is passed on.
        unsafe { import(stream, tensor, Access::Read, call_site()) }.map(Self::of_others)
    }
}

/// The array as a tensor, for a consumer that follows no stream.
fn export_waiting<T: TensorElement, D: Dimension, M: ManagedTensorBase>(
    array: &Arc<DeviceArray<T, D>>,
    access: Access,
    stream: &Stream,
    site: CallSite,
) -> Result<Managed<M>> {
    let array = HandedOut::waiting(Arc::clone(array), access, stream, "into_dlpack", site)?;
    tensor_of(array, access, stream.device_ref(), site)
}

/// The array as a tensor, which is a handle of it.
fn export<T: TensorElement, D: Dimension, M: ManagedTensorBase>(
    array: &Arc<DeviceArray<T, D>>,
    access: Access,
    stream: &Stream,
    site: CallSite,
) -> Result<Managed<M>> {
    let array = HandedOut::new(Arc::clone(array), access, stream, "into_dlpack", site)?;
    tensor_of(array, access, stream.device_ref(), site)
}

/// The tensor that owns a handle of an array.
fn tensor_of<T: TensorElement, D: Dimension, M: ManagedTensorBase>(
    handed_out: HandedOut<T, D>,
    access: Access,
    device: &Device,
    site: CallSite,
) -> Result<Managed<M>> {
    let (array, data) = (handed_out.array(), handed_out.data());
    let offset_bytes = handed_out.offset_bytes();
    let shape: Vec<i64> = array.shape().iter().map(|len| *len as i64).collect();
    let strides: Vec<i64> = array.strides().iter().map(|stride| *stride as i64).collect();
    let prepared = Dynamic::new(shape, strides).prepare_as::<M>();
    let prepared = prepared.map_err(|fault| refused(fault.to_string()).at(site))?;
    let mut tensor: Initialized<M> = prepared.initialize(Box::new(handed_out));
    tensor.set_data(data.cast()).set_device(dl_device(device)).set_dtype(T::DTYPE);
    tensor.set_byte_offset(if data.is_null() { 0 } else { offset_bytes });
    if !access.writes() {
        let marked = tensor.set_flags(DlpackFlags::READ_ONLY);
        marked.map_err(|fault| refused(fault.to_string()).at(site))?;
    }
    // SAFETY: `hand_out` made the memory ready for work on `stream`; for consumers on the CPU
    // `export_waiting` waited, and `into_dlpack_on` asks its caller to. The tensor has a handle of
    // the array, so the memory lives until the deleter drops it. Nothing else uses it if that is
    // the only handle; otherwise nothing writes it (`ReadOnlyDeviceArray`), which the flag says.
    // Shape and strides are those of the memory.
    Ok(unsafe { tensor.finish() })
}

/// An array over a tensor's memory.
///
/// # Safety
///
/// As [`DeviceArray::from_dlpack_on`]; if `access` does not write, the caller never lets the array
/// be written, and then as [`ReadOnlyDeviceArray::from_dlpack_on`].
unsafe fn import<T: TensorElement, D: Dimension, M: ManagedTensorBase + 'static>(
    stream: &Stream,
    tensor: Managed<M>,
    access: Access,
    site: CallSite,
) -> Result<DeviceArray<T, D>> {
    let device = stream.device_ref();
    let view = tensor.validate().map_err(|fault| refused(fault.to_string()).at(site))?;
    check::<T>(&view, tensor.flags(), access, device).at(site)?;
    let layout = layout_of::<T, D>(&view).at(site)?;
    let len_bytes = (layout.len() * size_of::<T>()) as u64;
    if len_bytes == 0 {
        let dim = layout.dim().clone();
        return DeviceArray::uninit_on(stream, dim).map_err(|error| error.at(site));
    }
    let start = start_of::<T, D>(&view, &layout).at(site)?;
    let memory = ForeignMemory { start, len_bytes, owner: Box::new(tensor) };
    // SAFETY: the caller promises that the tensor describes initialised memory that nothing else
    // writes until its deleter is called, which its drop does; the checks have shown that this
    // device can access the memory, and that it has no gaps. If it is read-only, the array is never
    // written, as the caller promises.
    let address = unsafe { device.backend().take_over(memory) };
    let address = address
        .map_err(|error| call_error(device, "a tensor", "taking a tensor over", &error))
        .at(site)?;
    Ok(DeviceArray::over_memory(layout, stream, address, site))
}

/// The device in DLPack's terms.
fn dl_device(device: &Device) -> DLDevice {
    match device.kind() {
        DeviceKind::Cuda => DLDevice::cuda(device.ordinal() as i32),
        DeviceKind::Hip => {
            DLDevice { device_type: DLDeviceType::ROCM, device_id: device.ordinal() as i32 }
        }
        _ => DLDevice::CPU,
    }
}

/// Checks device, elements and flags.
fn check<T: TensorElement>(
    tensor: &TensorRef<'_>,
    flags: DlpackFlags,
    access: Access,
    device: &Device,
) -> Result<()> {
    if tensor.device() != dl_device(device) {
        let (kind, number) = tensor.device().into();
        return Err(foreign(
            format!("a tensor on DLPack device ({kind}, {number})"),
            format!("one that {device} can access; pass a stream of the tensor's device"),
        ));
    }
    if !are_values_of::<T>(tensor.dtype()) {
        return Err(foreign(
            format!("a tensor whose elements are {}", name_of(tensor.dtype())),
            format!("elements of type {}; convert the tensor, or name its type", name_of(T::DTYPE)),
        ));
    }
    if access.writes() && flags.contains(DlpackFlags::READ_ONLY) {
        return Err(foreign(
            String::from("a read-only tensor"),
            String::from(
                "one that may be written; use `ReadOnlyDeviceArray::from_dlpack_on`, or copy it \
                 first",
            ),
        ));
    }
    Ok(())
}

/// A type as NumPy names it, such as `float32`.
fn name_of(dtype: DLDataType) -> String {
    let kind = match dtype.code {
        DLDataTypeCode::INT => "int",
        DLDataTypeCode::UINT => "uint",
        DLDataTypeCode::FLOAT => "float",
        DLDataTypeCode::BFLOAT => "bfloat",
        DLDataTypeCode::COMPLEX => "complex",
        DLDataTypeCode::BOOL => "bool",
        _ => "of another kind, bits ",
    };
    let lanes = if dtype.lanes == 1 { String::new() } else { format!(" x {}", dtype.lanes) };
    format!("{kind}{}{lanes}", dtype.bits)
}

fn layout_of<T: Element, D: Dimension>(tensor: &TensorRef<'_>) -> Result<Layout<D>> {
    if D::NDIM.is_some_and(|ndim| ndim != tensor.ndim()) {
        return Err(Error::Shape {
            call: CalledAt::UNKNOWN,
            operation: String::from("from_dlpack"),
            expected: format!(
                "a tensor of {} axes, as the array's type says",
                D::NDIM.unwrap_or_default()
            ),
            seen: format!("one of shape {:?}", tensor.shape()),
            instead: "name a type with as many axes, or `IxDyn`".into(),
        });
    }
    let mut dim = D::zeros(tensor.ndim());
    let axes = dim.slice_mut().iter_mut().zip(tensor.shape());
    axes.for_each(|(axis, len)| *axis = *len as usize);
    let of_axis = |stride: &i64| isize::try_from(*stride).unwrap_or(isize::MIN);
    let strides = tensor.strides().map(|all| all.iter().map(of_axis).collect::<Vec<_>>());
    layout_without_gaps::<T, D>(dim, strides.as_deref()).map_err(|expected| {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        let strides = strides.map_or(String::new(), |all| format!(" with strides {all:?}"));
        foreign(format!("a tensor of shape {shape:?}{strides}"), expected)
    })
}

/// The lowest element's address.
fn start_of<T, D: Dimension>(tensor: &TensorRef<'_>, layout: &Layout<D>) -> Result<*mut u8> {
    let (data, offset_bytes) = (tensor.data_ptr().cast::<u8>().cast_mut(), tensor.byte_offset());
    let first = (data.addr() as u64).checked_add(offset_bytes).filter(|_| !data.is_null());
    let start = first.and_then(|first| lowest_address::<T, D>(first, layout));
    let start = start.ok_or_else(|| {
        foreign(
            format!("a tensor with data at {data:p} and byte offset {offset_bytes}"),
            format!("elements at an address that is a multiple of {} and not 0", align_of::<T>()),
        )
    })?;
    Ok(data.with_addr(start as usize))
}

fn refused(fault: String) -> Error {
    foreign(fault, String::from("a valid DLPack tensor"))
}

fn foreign(seen: String, expected: String) -> Error {
    Error::Foreign { call: CalledAt::UNKNOWN, seen, expected }
}
