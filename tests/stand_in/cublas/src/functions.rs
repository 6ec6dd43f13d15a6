//! cuBLAS's functions.

use std::ffi::c_int;

use crate::handle::{self, Handle, Outcome, Status, Word};
use crate::kernels::{ADD, DOT, DOUBLE, Multiply, SINGLE};
use resident_stand_in_client::library_functions;

/// `CUBLAS_POINTER_MODE_DEVICE`; the host mode is 0.
const ON_DEVICE: u32 = 1;

library_functions! {
    Status;

    cublasCreate_v2(place: *mut u64) {
        set(place, handle::create()?)
    }

    cublasDestroy_v2(handle: u64) {
        handle::destroy(handle)
    }

    cublasSetStream_v2(handle: u64, stream: u64) {
        handle::change(handle, |handle| handle.stream = stream)
    }

    cublasGetStream_v2(handle: u64, place: *mut u64) {
        set(place, handle::find(handle)?.stream)
    }

    cublasSetPointerMode_v2(handle: u64, mode: u32) {
        if mode > ON_DEVICE {
            return Err(Status::INVALID_VALUE);
        }
        handle::change(handle, |handle| handle.has_numbers_on_device = mode == ON_DEVICE)
    }

    cublasGetPointerMode_v2(handle: u64, place: *mut u32) {
        set(place, u32::from(handle::find(handle)?.has_numbers_on_device))
    }

    cublasDdot_v2(
        handle: u64,
        n: c_int,
        x: u64,
        x_step: c_int,
        y: u64,
        y_step: c_int,
        product: u64,
    ) {
        let handle = with_numbers(handle, true)?;
        forwards(&[x_step, y_step])?;
        handle.launch(
            &DOT,
            &[n.into(), x.into(), x_step.into(), y.into(), y_step.into(), product.into()],
        )
    }

    cublasDaxpy_v2(
        handle: u64,
        n: c_int,
        factor: u64,
        x: u64,
        x_step: c_int,
        y: u64,
        y_step: c_int,
    ) {
        let handle = with_numbers(handle, true)?;
        forwards(&[x_step, y_step])?;
        handle.launch(
            &ADD,
            &[n.into(), factor.into(), x.into(), x_step.into(), y.into(), y_step.into()],
        )
    }
}

/// Defines cuBLAS's product for one type of numbers.
macro_rules! product {
    ($name:ident, $number:ty, $kernels:expr) => {
        library_functions! {
            Status;
            $name(
                handle: u64,
                a_turned: u32,
                b_turned: u32,
                m: c_int,
                n: c_int,
                k: c_int,
                alpha: *const $number,
                a: u64,
                a_column: c_int,
                b: u64,
                b_column: c_int,
                beta: *const $number,
                c: u64,
                c_column: c_int,
            ) {
                let a = Factor { is_turned: a_turned, address: a, column: a_column };
                let b = Factor { is_turned: b_turned, address: b, column: b_column };
                let (alpha, beta) = (get(alpha)?, get(beta)?);
                let is_into = beta == 0.0 && c_column == m;
                let product = Product { sizes: [m, n, k], a, b, c, c_column };
                product.launch(&$kernels, handle, is_into, [alpha.into(), beta.into()])
            }
        }
    };
}

product!(cublasSgemm_v2, f32, SINGLE);
product!(cublasDgemm_v2, f64, DOUBLE);

/// A matrix that is read.
struct Factor {
    is_turned: u32,
    address: u64,
    column: c_int,
}

struct Product {
    sizes: [c_int; 3],
    a: Factor,
    b: Factor,
    c: u64,
    c_column: c_int,
}

impl Product {
    fn launch(
        &self,
        multiply: &Multiply,
        handle: u64,
        is_into: bool,
        [alpha, beta]: [Word; 2],
    ) -> Outcome {
        let handle = with_numbers(handle, false)?;
        let Self { sizes: [m, n, k], a, b, c, c_column } = self;
        let rows = |factor: &Factor, plain: c_int, turned: c_int| {
            if factor.is_turned == 0 { plain } else { turned }
        };
        let least = [(a.column, rows(a, *m, *k)), (b.column, rows(b, *k, *n)), (*c_column, *m)];
        if self.sizes.iter().any(|size| *size < 0)
            || least.iter().any(|(distance, rows)| *distance < (*rows).max(1))
            || a.is_turned.max(b.is_turned) > 2
        {
            return Err(Status::INVALID_VALUE);
        }
        let turned = |factor: &Factor| Word::from(i32::from(factor.is_turned != 0));
        let sizes = [turned(a), turned(b), (*m).into(), (*n).into(), (*k).into(), alpha];
        let matrices = [
            a.address.into(),
            a.column.into(),
            b.address.into(),
            b.column.into(),
            beta,
            (*c).into(),
            (*c_column).into(),
        ];
        let kernel = if is_into { &multiply.into } else { &multiply.into_both };
        handle.launch(kernel, &[sizes.as_slice(), &matrices].concat())
    }
}

/// The object of the handle, if it has this pointer mode.
fn with_numbers(handle: u64, on_device: bool) -> Outcome<Handle> {
    let handle = handle::find(handle)?;
    if handle.has_numbers_on_device == on_device { Ok(handle) } else { Err(Status::NOT_SUPPORTED) }
}

fn forwards(steps: &[c_int]) -> Outcome {
    if steps.iter().all(|step| *step > 0) { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
}

fn set<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: guaranteed by the caller (cuBLAS's manual).
    unsafe { place.write(value) };
    Ok(())
}

fn get<T: Copy>(place: *const T) -> Outcome<T> {
    // SAFETY: guaranteed by the caller (cuBLAS's manual).
    if place.is_null() { Err(Status::INVALID_VALUE) } else { Ok(unsafe { place.read() }) }
}
