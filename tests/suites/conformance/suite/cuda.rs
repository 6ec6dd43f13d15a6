//! The kernels of the suite in CUDA C. A gate is time: a tenth of a second, since the host cannot
//! hold a kernel back.

/// All of them.
pub(crate) const SOURCE: &str = include_str!("kernels.cu");
