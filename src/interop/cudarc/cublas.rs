//! Products by cuBLAS, on NVIDIA GPUs, where its library is found.

use std::any::TypeId;
use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::cublas::result::{self, CublasError};
use cudarc::cublas::{CudaBlas, sys};
use cudarc::driver::CudaStream;

use crate::array::{Axes, Operand, OperandMut, may_be_on};
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_gpu::GpuStreamHandle;
use sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};

/// `out = a b`. Returns `false`, and writes nothing that counts, where the library's own kernel has
/// to run: on other devices, for other types and layouts, and if cuBLAS is not there or refuses.
pub(crate) fn product<T: Element>(
    stream: &Stream,
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    out: &mut OperandMut<'_, T>,
    site: CallSite,
) -> Result<bool> {
    let Some(raw) = stream.cuda_handle().and_then(GpuStreamHandle::stream) else {
        return Ok(false);
    };
    let Some(precision) = Precision::of::<T>() else { return Ok(false) };
    let Some(product) = Product::of(a.axes(), b.axes(), out.axes()) else { return Ok(false) };
    let device = stream.device_ref();
    let are_here = may_be_on(a, device) && may_be_on(b, device) && may_be_on(&*out, device);
    if !are_here || !is_present() {
        return Ok(false);
    }
    let (a, b) = (a.guard(stream, "cuBLAS", site)?, b.guard(stream, "cuBLAS", site)?);
    let out = OperandMut::of(out).into_guard(Access::Overwrite, stream, "cuBLAS", site)?;
    let addresses = Addresses { a: a.address(), b: b.address(), out: out.address() };
    Ok(product.queue(precision, raw, addresses).is_ok())
}

/// Whether the library can be loaded: cudarc panics where it cannot.
fn is_present() -> bool {
    static IS_PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loading the library runs its initialisers alone, as of any library.
    *IS_PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

#[derive(Clone, Copy)]
enum Precision {
    Single,
    Double,
}

impl Precision {
    fn of<T: Element>() -> Option<Self> {
        let element = TypeId::of::<T>();
        if element == TypeId::of::<f32>() {
            return Some(Self::Single);
        }
        (element == TypeId::of::<f64>()).then_some(Self::Double)
    }
}

struct Addresses {
    a: u64,
    b: u64,
    out: u64,
}

/// A table of two axes, with its steps in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Table {
    rows: usize,
    columns: usize,
    row_step: isize,
    column_step: isize,
}

impl Table {
    fn of(axes: &Axes) -> Option<Self> {
        let (&[rows, columns], &[row_step, column_step]) = (axes.shape(), axes.strides()) else {
            return None;
        };
        Some(Self { rows, columns, row_step, column_step })
    }

    fn transposed(self) -> Self {
        let Self { rows, columns, row_step, column_step } = self;
        Self { rows: columns, columns: rows, row_step: column_step, column_step: row_step }
    }

    /// The distance of columns, if each column lies unbroken in memory: BLAS's leading dimension.
    /// Steps along an axis of one index have no meaning.
    fn column_distance(self) -> Option<c_int> {
        if self.row_step != 1 && self.rows > 1 {
            return None;
        }
        let distance = if self.columns > 1 { self.column_step } else { self.rows as isize };
        let is_apart = distance >= self.rows as isize;
        c_int::try_from(distance).ok().filter(|_| is_apart)
    }

    /// BLAS's operation that makes the table of what lies in memory, and its leading dimension.
    fn read(self) -> Option<(sys::cublasOperation_t, c_int)> {
        let turned = || Some((CUBLAS_OP_T, self.transposed().column_distance()?));
        self.column_distance().map(|distance| (CUBLAS_OP_N, distance)).or_else(turned)
    }
}

/// A product in BLAS's terms, whose tables are column-major. A row-major result is the transposed
/// product of the transposed tables in the other order.
#[derive(PartialEq, Debug)]
struct Product {
    is_swapped: bool,
    sizes: [c_int; 3],
    operations: [sys::cublasOperation_t; 2],
    distances: [c_int; 3],
}

impl Product {
    /// `None` if cuBLAS cannot address the tables.
    fn of(a: &Axes, b: &Axes, out: &Axes) -> Option<Self> {
        let (a, b, out) = (Table::of(a)?, Table::of(b)?, Table::of(out)?);
        let turned = || Self::column_major(b.transposed(), a.transposed(), out.transposed(), true);
        Self::column_major(a, b, out, false).or_else(turned)
    }

    fn column_major(a: Table, b: Table, out: Table, is_swapped: bool) -> Option<Self> {
        let out_distance = out.column_distance()?;
        let ((of_a, a_distance), (of_b, b_distance)) = (a.read()?, b.read()?);
        let size = |len: usize| c_int::try_from(len).ok();
        Some(Self {
            is_swapped,
            sizes: [size(out.rows)?, size(out.columns)?, size(a.columns)?],
            operations: [of_a, of_b],
            distances: [a_distance, b_distance, out_distance],
        })
    }

    /// Queues it on the stream.
    fn queue(
        &self,
        precision: Precision,
        stream: &CudaStream,
        Addresses { a, b, out }: Addresses,
    ) -> Result<(), CublasError> {
        let [a, b] = if self.is_swapped { [b, a] } else { [a, b] };
        let ([rows, columns, inner], [of_a, of_b]) = (self.sizes, self.operations);
        let [a_distance, b_distance, out_distance] = self.distances;
        with_handle(stream, |handle| match precision {
            // SAFETY: `Product::of` computed sizes and distances from the axes of the operands,
            // whose memory the guards of `product` keep, ordered on this stream. The numbers are
            // read before the call returns, as pointer mode is the host's.
            Precision::Single => unsafe {
                result::sgemm(
                    handle,
                    of_a,
                    of_b,
                    rows,
                    columns,
                    inner,
                    &1.0,
                    a as *const f32,
                    a_distance,
                    b as *const f32,
                    b_distance,
                    &0.0,
                    out as *mut f32,
                    out_distance,
                )
            },
            // SAFETY: as above.
            Precision::Double => unsafe {
                result::dgemm(
                    handle,
                    of_a,
                    of_b,
                    rows,
                    columns,
                    inner,
                    &1.0,
                    a as *const f64,
                    a_distance,
                    b as *const f64,
                    b_distance,
                    &0.0,
                    out as *mut f64,
                    out_distance,
                )
            },
        })
    }
}

/// Calls `run` with the handle of the stream's GPU, which uses the stream meanwhile.
fn with_handle(
    stream: &CudaStream,
    run: impl FnOnce(sys::cublasHandle_t) -> Result<(), CublasError>,
) -> Result<(), CublasError> {
    /// The handle of each GPU that has one, by its number. They live as long as the process.
    static HANDLES: Mutex<Vec<(usize, CudaBlas)>> = Mutex::new(Vec::new());

    let context = stream.context();
    context.record_err(context.bind_to_thread());
    let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
    let number = context.ordinal();
    let known = handles.iter().position(|(of, _)| *of == number);
    let at = match known {
        Some(at) => at,
        None => {
            handles.push((number, CudaBlas::new(context.default_stream())?));
            handles.len() - 1
        }
    };
    let handle = *handles[at].1.handle();
    // SAFETY: the lock keeps other threads from the handle, and the stream outlives `run`.
    unsafe { result::set_stream(handle, stream.cu_stream().cast()) }?;
    run(handle)
}

#[cfg(test)]
mod tests {
    use super::{CUBLAS_OP_N, CUBLAS_OP_T, Table};

    fn table(shape: [usize; 2], steps: [isize; 2]) -> Table {
        Table { rows: shape[0], columns: shape[1], row_step: steps[0], column_step: steps[1] }
    }

    #[test]
    fn tables_that_blas_addresses_have_unbroken_rows_or_columns() {
        assert_eq!(table([3, 4], [1, 3]).read(), Some((CUBLAS_OP_N, 3)));
        assert_eq!(table([3, 4], [1, 7]).read(), Some((CUBLAS_OP_N, 7)));
        assert_eq!(table([3, 4], [4, 1]).read(), Some((CUBLAS_OP_T, 4)));
        assert_eq!(table([3, 4], [9, 1]).read(), Some((CUBLAS_OP_T, 9)));
        // One row or column, whose other step says nothing.
        assert_eq!(table([1, 4], [77, 1]).read(), Some((CUBLAS_OP_N, 1)));
        assert_eq!(table([1, 4], [77, 5]).read(), Some((CUBLAS_OP_N, 5)));
        assert_eq!(table([3, 1], [1, -9]).read(), Some((CUBLAS_OP_N, 3)));
        assert_eq!(table([3, 1], [6, 0]).read(), Some((CUBLAS_OP_T, 6)));
    }

    #[test]
    fn other_tables_are_left_to_the_kernel() {
        for steps in [[2, 8], [0, 1], [1, 0], [1, 2], [-4, 1], [1, -3], [4, -1]] {
            assert_eq!(table([3, 4], steps).read(), None, "{steps:?}");
        }
        assert_eq!(table([3, 4], [1, 1 << 31]).read(), None);
    }
}
