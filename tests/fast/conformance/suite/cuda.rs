//! The kernels of the suite in CUDA C. A gate is a delay of a tenth of a second, since the host
//! cannot block a kernel on a GPU.

/// The source of all kernels.
pub(crate) const SOURCE: &str = include_str!("kernels.cu");
