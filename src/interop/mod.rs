//! Objects and memory of other libraries: device memory of any owner; cudarc's objects, beside the
//! same GPU (feature `cuda`); DLPack's tensors (feature `dlpack`). With both features, also what
//! Python's libraries name `__cuda_array_interface__`.

#[cfg(feature = "cuda")]
mod cudarc;
mod device_memory;
#[cfg(feature = "dlpack")]
mod dlpack;
#[cfg(feature = "dlpack")]
mod tensor_element;

#[cfg(all(feature = "cuda", feature = "dlpack"))]
pub use self::cudarc::CudaArrayInterface;
#[cfg(feature = "nccl")]
pub use self::cudarc::nccl;
#[cfg(feature = "cublas")]
pub(crate) use self::cudarc::product;
#[cfg(feature = "dlpack")]
pub use self::tensor_element::TensorElement;
