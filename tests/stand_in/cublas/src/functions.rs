//! cuBLAS's functions.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::handle::{self, Handle, Outcome, Status, Word};
use crate::kernels::{ADD, DOT, MULTIPLY, MULTIPLY_INTO};

/// `CUBLAS_POINTER_MODE_DEVICE`; the host mode is 0.
const ON_DEVICE: u32 = 1;

/// Defines functions that are exported under cuBLAS's names and never unwind.
macro_rules! library_functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        /// Implements the function of cuBLAS's manual, as far as the stand-in supports it.
        ///
        /// # Safety
        ///
        /// As in cuBLAS's manual: pointers must be valid.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "cuBLAS's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            let outcome = catch_unwind(AssertUnwindSafe(move || -> Outcome { $body }));
            outcome.unwrap_or(Err(Status::INTERNAL_ERROR)).err().map_or(0, |status| status.0)
        }
    )*};
}

library_functions! {
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

    cublasSgemm_v2(
        handle: u64,
        a_turned: u32,
        b_turned: u32,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const f32,
        a: u64,
        a_column: c_int,
        b: u64,
        b_column: c_int,
        beta: *const f32,
        c: u64,
        c_column: c_int,
    ) {
        let handle = with_numbers(handle, false)?;
        let rows = |is_turned: u32, plain: c_int, turned: c_int| {
            if is_turned == 0 { plain } else { turned }
        };
        let least =
            [(a_column, rows(a_turned, m, k)), (b_column, rows(b_turned, k, n)), (c_column, m)];
        if [m, n, k].iter().any(|size| *size < 0)
            || least.iter().any(|(distance, rows)| *distance < (*rows).max(1))
            || a_turned.max(b_turned) > 2
        {
            return Err(Status::INVALID_VALUE);
        }
        let (alpha, beta) = (get(alpha)?, get(beta)?);
        let turned = |operation: u32| Word::from(i32::from(operation != 0));
        let sizes =
            [turned(a_turned), turned(b_turned), m.into(), n.into(), k.into(), alpha.into()];
        let matrices = [
            a.into(),
            a_column.into(),
            b.into(),
            b_column.into(),
            beta.into(),
            c.into(),
            c_column.into(),
        ];
        let kernel = if beta == 0.0 && c_column == m { &MULTIPLY_INTO } else { &MULTIPLY };
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
