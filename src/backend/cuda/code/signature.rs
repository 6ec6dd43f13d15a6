//! Compiled parameters against the signature.

use cudarc::driver::sys::{CUfunction, CUresult};

use crate::backend::c_declaration::{declaration, parameter_bytes, view_bytes};
use crate::backend::cuda::call::refusal;
use crate::backend::cuda::library::DRIVER;
use crate::backend::{BackendError, ParameterLayout};

/// Drivers from 12.4 on have it.
type GetParamInfo = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> CUresult;

/// Bytes of each parameter of a function, if the driver can tell. A context is current on this
/// thread.
pub(super) fn told_by_driver(function: CUfunction) -> Result<Option<Vec<usize>>, BackendError> {
    // SAFETY: that is the function's type in `cuda.h`.
    let Some(get) = (unsafe { DRIVER.function::<GetParamInfo>("cuFuncGetParamInfo") }) else {
        return Ok(None);
    };
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is one of the current context, whose module the caller holds; the
        // driver writes two sizes.
        match unsafe { get(function, sizes.len(), &raw mut offset, &raw mut size) } {
            CUresult::CUDA_SUCCESS => sizes.push(size),
            // There is no such parameter.
            CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(Some(sizes)),
            CUresult::CUDA_ERROR_NOT_SUPPORTED => return Ok(None),
            failed => return Err(refusal(failed, "cuFuncGetParamInfo")),
        }
    }
}

/// Checks that the compiled parameters are as many, and as large, as the signature says. Views of a
/// number of dimensions that the signature leaves open get the one that was compiled.
pub(super) fn fitted(
    entry: &str,
    expected: &[ParameterLayout],
    compiled_bytes: Option<&[usize]>,
) -> Result<Box<[ParameterLayout]>, String> {
    if let Some(index) = expected.iter().position(|parameter| parameter_bytes(parameter) == Some(0))
    {
        return Err(format!(
            "parameter {index} is a scalar without bytes, which device code cannot have; leave it out of the signature"
        ));
    }
    let Some(compiled_bytes) = compiled_bytes else { return Ok(expected.into()) };
    if expected.len() != compiled_bytes.len() {
        return Err(mismatch(entry, expected, compiled_bytes));
    }
    let fitted =
        expected.iter().zip(compiled_bytes).map(|(parameter, bytes)| fit(parameter, *bytes));
    fitted.collect::<Option<Box<[_]>>>().ok_or_else(|| mismatch(entry, expected, compiled_bytes))
}

/// The parameter with nothing left open, if it takes so many bytes.
fn fit(parameter: &ParameterLayout, bytes: usize) -> Option<ParameterLayout> {
    match *parameter {
        ParameterLayout::Sized { element, ndim: None, is_read_only } => {
            let ndim = Some(bytes.checked_sub(view_bytes(0))? / (view_bytes(1) - view_bytes(0)));
            (ndim.map(view_bytes) == Some(bytes)).then_some(ParameterLayout::Sized {
                element,
                ndim,
                is_read_only,
            })
        }
        known => (parameter_bytes(&known) == Some(bytes)).then_some(known),
    }
}

#[cold]
fn mismatch(entry: &str, expected: &[ParameterLayout], compiled_bytes: &[usize]) -> String {
    let size = |parameter| {
        parameter_bytes(parameter)
            .map_or_else(|| "8 + 16 per dimension".to_owned(), |bytes| bytes.to_string())
    };
    let expected_bytes: Vec<String> = expected.iter().map(size).collect();
    let compiled: Vec<String> = compiled_bytes.iter().map(ToString::to_string).collect();
    format!(
        "the parameters of `{entry}` are not those of the signature: compiled are {} of [{}] bytes, the signature has {} of [{}] bytes; \
         declare it as\n    {}",
        compiled.len(),
        compiled.join(", "),
        expected_bytes.len(),
        expected_bytes.join(", "),
        declaration(entry, expected)
    )
}

#[cfg(test)]
mod tests {
    use super::fitted;
    use crate::backend::{ElementLayout, ParameterLayout};

    const FLOAT: ElementLayout = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };

    fn axpy() -> [ParameterLayout; 3] {
        [
            ParameterLayout::Scalar(FLOAT),
            ParameterLayout::Flat { element: FLOAT, is_read_only: true },
            ParameterLayout::Sized { element: FLOAT, ndim: Some(2), is_read_only: false },
        ]
    }

    #[test]
    fn what_fits_comes_back_as_it_is() {
        assert_eq!(*fitted("axpy", &axpy(), Some(&[4, 8, 40])).expect("fits"), axpy());
        assert_eq!(*fitted("axpy", &axpy(), None).expect("nothing to compare with"), axpy());
    }

    #[test]
    fn a_mismatch_lists_both_and_the_declaration() {
        for compiled in [&[4, 8, 24][..], &[8, 8, 40], &[4, 8], &[4, 8, 40, 8], &[]] {
            let text = fitted("axpy", &axpy(), Some(compiled)).expect_err("does not fit");
            let list = compiled.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            assert!(
                text.contains(&format!("compiled are {} of [{list}] bytes", compiled.len())),
                "{text}"
            );
            assert!(text.contains("the signature has 3 of [4, 8, 40] bytes"), "{text}");
            assert!(
                text.ends_with("void axpy(float a, const float *x, resident::View2<float> y)"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_open_number_of_dimensions_is_the_compiled_one() {
        let open = |ndim| [ParameterLayout::Sized { element: FLOAT, ndim, is_read_only: true }];
        for ndim in 0..=6 {
            assert_eq!(
                *fitted("f", &open(None), Some(&[8 + 16 * ndim])).expect("a view"),
                open(Some(ndim))
            );
        }
        for bytes in [0, 4, 16, 32, 48] {
            let text = fitted("f", &open(None), Some(&[bytes])).expect_err("no view has that size");
            assert!(text.contains("[8 + 16 per dimension]"), "{text}");
        }
    }

    #[test]
    fn a_scalar_without_bytes_is_refused() {
        let unit = ElementLayout { len_bytes: 0, align_bytes: 1, rust_name: "()" };
        let text =
            fitted("f", &[ParameterLayout::Scalar(unit)], None).expect_err("C has no such thing");
        assert!(text.contains("parameter 0"), "{text}");
    }
}
