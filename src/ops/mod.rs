//! Operations on arrays, without kernels of your own.
//!
//! ```
//! use resident::ndarray::{Array2, Axis};
//! use resident::{Device, Result, SmartArray, ops};
//!
//! # fn main() -> Result<()> {
//! let _here = Device::cpu().enter();
//! let table = SmartArray::from(Array2::<f32>::ones((300, 200)));
//! let mut sums = SmartArray::<f32, _>::uninit(200);
//! ops::sum_axis(&table, Axis(0), &mut sums)?;       // uploads the table; the sums stay there
//! let mut halves = SmartArray::<f32, _>::uninit(200);
//! ops::div(&sums, &SmartArray::full(1, 2.0), &mut halves)?;
//! assert_eq!(halves.max()?, 150.0);                 // brings one number to the host
//! # Ok(()) }
//! ```
//!
//! | operations | on |
//! |---|---|
//! | `+`, `-`, `*`, `/` and the sign `-`: [operators](#operators) | corresponding elements, into a new array |
//! | [`add`], [`sub`], [`mul`], [`div`], [`scaled_add`] | corresponding elements |
//! | [`map`], [`clamp`], [`select`], [`cast`], [`copy`] | corresponding elements |
//! | [`equal`], [`not_equal`], [`less`], [`less_equal`], [`greater`], [`greater_equal`] | corresponding elements, into a mask of `u8` |
//! | [`logical_and`], [`logical_or`], [`logical_xor`], [`logical_not`] | elements of masks |
//! | [`product`], [`count_nonzero`], [`any`], [`all`] | all elements |
//! | [`sum`], [`min`], [`max`], [`mean`], [`norm_l2`], [`argmin`], [`argmax`] | all elements |
//! | the same with `_axis`, such as [`sum_axis`] | the elements along an axis |
//! | [`var`](crate::SmartArray::var), [`std`](crate::SmartArray::std) | all elements |
//! | [`dot`], [`matmul`] | two lines or tables |
//! | [`csr_matvec`], [`csr_matmul`] | a sparse matrix, and a line or table |
//! | [`cumulative_sum`], [`exclusive_sum`], and with `_axis` | all elements, or those along an axis |
//! | [`cumulative_product`] | all elements |
//! | [`random_uniform`], [`random_normal`] | each element, by its place |
//! | [`compress`](crate::SmartArray::compress), [`unique`](crate::SmartArray::unique), [`bincount`] | all elements, into as many as there are |
//! | [`sort`], [`argsort`] | the elements along the last axis |
//! | [`searchsorted`] | a sorted line, and values to be found in it |
//! | [`concatenate`], [`stack`] | arrays side by side, into a new array |
//! | [`range`](crate::SmartArray::range), [`linspace`](crate::SmartArray::linspace) | evenly spaced numbers, in a new array |
//! | [`gather`], [`scatter`] | elements whose places are given, as `u64` in row-major order |
//! | [`Elementwise`] | corresponding elements, by statements that a text gives |
//! | [`Reduction`] | all elements, or those along an axis, by expressions that texts give |
//!
//! Arguments are arrays and views of this library: coherent arrays, device arrays and parts of
//! either, of any strides. Operands broadcast to the shape of the result, as in NumPy. Results go
//! into an array that exists, but for operators and some others; a number goes into an array of one
//! element. The methods of arrays, such as [`SmartArray::sum`](crate::SmartArray::sum), bring it to
//! the host.
//!
//! A result is no operand of the same call: `ops::add(&x, &y, &mut y)` borrows `y` twice (E0502).
//! For `y += a x` there is [`scaled_add`], and for other changes in place an [`Elementwise`] with
//! an [`InOut`](crate::InOut).
//!
//! An operation runs on the current stream, and with `_on` on the given stream, as
//! launches of a [`Kernel`](crate::Kernel) do: it copies what is out of date there, it is ordered
//! after other uses of the same bytes, and it returns when it is queued. Its result is newest on
//! that device. Only [`gather`], [`scatter`] and products of sparse matrices wait, for the check of
//! their indices.
//!
//! On an NVIDIA GPU, operations are CUDA C, which is compiled at first use for each type and number
//! of axes. On the embedded device they are Rust, on all cores from 1,048,576 elements on, in
//! builds without optimisation from 131,072. An operation there whose arrays have up to 262,144
//! elements in all runs on the calling thread before it returns, if the stream is idle: that takes
//! less time than waking another thread.
//!
//! # Elements
//!
//! | elements | operations |
//! |---|---|
//! | `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`: [`Number`] | all |
//! | `f16` and `bf16` of the crate `half`: [`Ordered`] | arithmetic, comparisons, `clamp`, `cast`, `copy`, `select`, `gather`, `scatter`, `compress` |
//! | `Complex<f32>` and `Complex<f64>` of the crate `num_complex`: [`Scalar`] | arithmetic, `sum`, `product`, `mean`, `dot`, `matmul`, `count_nonzero`, `any`, `all`, `equal`, `not_equal`, `cast`, `copy`, `select`, `gather`, `scatter`, `compress` |
//!
//! [`Elementwise`] and the inputs of a [`Reduction`] take all of them. [`Arithmetic`] says what
//! integers do at their ends, and how complex numbers are multiplied and divided. What needs an
//! order, such as `min` and `sort`, does not compile for complex numbers:
//!
//! ```compile_fail,E0277
//! # use num_complex::Complex;
//! # use resident::SmartArray;
//! let z = SmartArray::from([Complex::new(1.0, 2.0)]);
//! z.min()?; // `z.sum()?` would compile
//! # Ok::<(), resident::Error>(())
//! ```
//!
//! # Operators
//!
//! `(&a + &b)?` is a new [`SmartArray`](crate::SmartArray), or the error of the operation: an
//! operator never panics. Operands are arrays and views of this library, also device arrays, by
//! reference or by value. Both broadcast, as in ndarray, and a number may stand on either side.
//!
//! ```
//! use resident::{Device, SmartArray, ndarray::{Axis, s}};
//!
//! let _here = Device::cpu().enter();
//! let x = SmartArray::from([1.0_f32, 2.0, 3.0]);
//! let y = SmartArray::from([10.0_f32, 20.0, 30.0]);
//! let z = ((&x * 2.0)? + &y)?;
//! assert_eq!(z.to_vec()?, [12.0, 24.0, 36.0]);
//! let table = (x.view().insert_axis(Axis(1)) - y.slice(s![1..]))?;  // a column and a row
//! assert_eq!(table.shape(), [3, 2]);
//! assert_eq!((1.0 / (-x)?)?.get(1)?, -0.5);
//! # Ok::<(), resident::Error>(())
//! ```
//!
//! The elements are those that [`add`], [`sub`], [`mul`] and [`div`] compute. Both operands have
//! elements of one type: [`cast`] converts. Each operator is one pass over memory and allocates its
//! result; [`Elementwise`] computes a whole expression in one pass.
//!
//! The work is done where the operands are newest: on the current device if it has the newest
//! contents of one of them, else on the first device that has, on its current stream. If no device
//! has any, it is done on the current device, which then uploads them. A device array is computed
//! with on its own device. The result is column-major if the operands of its shape are, and
//! row-major else.
//!
//! There is no `a += &b`, since its error could not be returned: use [`add`] into an existing
//! array, [`scaled_add`]`(1.0, &b, &mut a)` or [`Elementwise`] with [`InOut`](crate::InOut).
//!
//! # Sums
//!
//! Sums of floats are made of short groups, which are added in pairs, pairs of pairs and so on. The
//! sum of `n` elements `x` differs from the exact sum by at most `(20 + 2 log2 n) EPSILON sum |x|`,
//! if nothing overflows; in the place of the parenthesis, ndarray's `sum` allows `n / 16`. The
//! groups depend on shape and strides alone, so that a sum is the same in each run on one device.
//! Results of different kinds of devices may differ in their last bits.
//!
//! [`cumulative_sum`] adds up to 2,048 elements one after the other, to a sum as above;
//! [`cumulative_product`] multiplies in the same order.
//!
//! # Memory
//!
//! Reductions of more than some thousand elements use memory of the device for intermediate
//! results, at most an eighth of the operand's bytes, or as much as the operand for rows of few
//! elements. [`argmin`], [`argmax`] and [`cumulative_sum`] of a part with gaps first copy it on the
//! device.
//!
//! # Errors
//!
//! Besides [`Shape`](crate::Error::Shape), operations return what
//! [`Kernel::launch_on`](crate::Kernel::launch_on) returns: for example,
//! [`Uninitialised`](crate::Error::Uninitialised) if an operand was never written,
//! [`WrongDevice`](crate::Error::WrongDevice) for a device array of another device, and
//! [`OutOfMemory`](crate::Error::OutOfMemory). On an error nothing has been written to the result,
//! unless a launch after the first is refused.
//!
//! An operand that repeats elements, such as a broadcast view, takes no memory for them, but time.
//! Where no result has room for each of them (sums, products, running sums, the best of several,
//! indices), more than 2³⁴ are [`Shape`](crate::Error::Shape).

// One folder for each operation, or for several that share their code: the public functions, the
// shapes and kernels (`mod.rs`), the bodies in Rust (`host.rs`) and in CUDA C (`kernel.cu`).
mod best;
mod compaction;
mod cumulative;
mod dot;
mod elementwise;
mod elementwise_kernel;
mod indexed;
mod joining;
mod masks;
mod matmul;
mod operators;
mod random;
mod reduce;
mod reduction_kernel;
mod sequences;
mod sorting;
mod sparse;
mod variance;

// What they have in common.
mod align;
mod arithmetic;
mod c_type;
mod cache;
mod call;
mod language;
mod methods;
mod operation;
mod outcome;
mod right;
mod rows;
mod source;
mod to_odd;
// In builds with all features only: the kernels of all operations and types take long to compile,
// and nothing is done without a real NVRTC.
#[cfg(all(test, feature = "nccl"))]
mod tests;

use crate::launch::parallel;

pub use arithmetic::{Arithmetic, Float, Index, Number, Ordered, Scalar};
pub use best::functions::{
    argmax, argmax_axis, argmax_axis_on, argmax_on, argmin, argmin_axis, argmin_axis_on, argmin_on,
};
pub use compaction::functions::{bincount, bincount_on};
pub use cumulative::functions::{
    cumulative_product, cumulative_product_on, cumulative_sum, cumulative_sum_axis,
    cumulative_sum_axis_on, cumulative_sum_on, exclusive_sum, exclusive_sum_axis,
    exclusive_sum_axis_on, exclusive_sum_on,
};
pub use dot::functions::{dot, dot_on};
pub use elementwise::Unary;
pub use elementwise::functions::{
    add, add_on, cast, cast_on, clamp, clamp_on, copy, copy_on, div, div_on, map, map_on, mul,
    mul_on, scaled_add, scaled_add_on, select, select_on, sub, sub_on,
};
pub use elementwise_kernel::{Elementwise, ElementwiseParameter, ElementwiseSignature};
pub use indexed::functions::{gather, gather_on, scatter, scatter_on};
pub use joining::functions::{concatenate, concatenate_on, stack, stack_on};
pub use masks::functions::{
    equal, equal_on, greater, greater_equal, greater_equal_on, greater_on, less, less_equal,
    less_equal_on, less_on, logical_and, logical_and_on, logical_not, logical_not_on, logical_or,
    logical_or_on, logical_xor, logical_xor_on, not_equal, not_equal_on,
};
pub use matmul::functions::{matmul, matmul_on};
pub use operators::RightOperand;
pub use random::functions::{random_normal, random_normal_on, random_uniform, random_uniform_on};
pub use reduce::functions::{
    all, all_axis, all_axis_on, all_on, any, any_axis, any_axis_on, any_on, count_nonzero,
    count_nonzero_axis, count_nonzero_axis_on, count_nonzero_on, max, max_axis, max_axis_on,
    max_on, mean, mean_axis, mean_axis_on, mean_on, min, min_axis, min_axis_on, min_on, norm_l2,
    norm_l2_axis, norm_l2_axis_on, norm_l2_on, product, product_axis, product_axis_on, product_on,
    sum, sum_axis, sum_axis_on, sum_on,
};
pub use reduction_kernel::{Reduction, ReductionInput, ReductionInputs};
pub use right::Right;
pub use sorting::functions::{argsort, argsort_on, searchsorted, searchsorted_on, sort, sort_on};
pub use sparse::functions::{csr_matmul, csr_matmul_on, csr_matvec, csr_matvec_on};
