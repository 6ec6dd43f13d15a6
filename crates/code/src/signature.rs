//! Compares compiled parameters with the signature.

use crate::c_declaration::{declaration, parameter_bytes, types, view_bytes};
use crate::parameter_types::{ParameterType, in_c};
use resident_backend::ParameterLayout;

/// Compares the number and sizes of the compiled parameters with the signature. A view whose number
/// of dimensions the signature leaves open gets the compiled number. Does nothing if
/// `compiled_bytes` is `None`. `compiled_types`, where they are known, are for the message.
pub fn check(
    entry: &str,
    expected: &[ParameterLayout],
    compiled_bytes: Option<&[usize]>,
    compiled_types: &[ParameterType],
) -> Result<Box<[ParameterLayout]>, String> {
    if let Some(index) = expected.iter().position(|parameter| parameter_bytes(parameter) == Some(0))
    {
        return Err(format!(
            "parameter {index} is a scalar without bytes, which device code cannot have; leave it \
             out of the signature"
        ));
    }
    let Some(compiled_bytes) = compiled_bytes else { return Ok(expected.into()) };
    if expected.len() != compiled_bytes.len() {
        return Err(mismatch(entry, expected, compiled_bytes, compiled_types));
    }
    let pairs = expected.iter().zip(compiled_bytes);
    let resolved = pairs.map(|(parameter, len_bytes)| resolve(parameter, *len_bytes));
    let resolved = resolved.collect::<Option<Box<[_]>>>();
    resolved.ok_or_else(|| mismatch(entry, expected, compiled_bytes, compiled_types))
}

/// The parameter with the number of dimensions for which it takes this many bytes, if there is one.
fn resolve(parameter: &ParameterLayout, len_bytes: usize) -> Option<ParameterLayout> {
    let resolved = match *parameter {
        ParameterLayout::Sized { element, ndim: None, access } => {
            let axes_bytes = len_bytes.checked_sub(view_bytes(0))?;
            let ndim = Some(axes_bytes / (view_bytes(1) - view_bytes(0)));
            ParameterLayout::Sized { element, ndim, access }
        }
        known => known,
    };
    (parameter_bytes(&resolved) == Some(len_bytes)).then_some(resolved)
}

#[cold]
fn mismatch(
    entry: &str,
    expected: &[ParameterLayout],
    compiled_bytes: &[usize],
    compiled_types: &[ParameterType],
) -> String {
    let size = |parameter| {
        parameter_bytes(parameter)
            .map_or_else(|| "8 + 16 per dimension".to_owned(), |bytes| bytes.to_string())
    };
    let expected_bytes: Vec<String> = expected.iter().map(size).collect();
    let compiled: Vec<String> = compiled_bytes.iter().map(ToString::to_string).collect();
    let by_type = if compiled_types.len() == compiled_bytes.len() {
        let (seen, expected) = (in_c(compiled_types), types(expected).join(", "));
        format!("the source has ({seen}), the signature has ({expected}); ")
    } else {
        String::new()
    };
    format!(
        "the parameters of `{entry}` are not those of the signature: {by_type}compiled are {} of \
         [{}] bytes, the signature has {} of [{}] bytes; declare it as\n    {}",
        compiled.len(),
        compiled.join(", "),
        expected_bytes.len(),
        expected_bytes.join(", "),
        declaration(entry, expected)
    )
}

#[cfg(test)]
mod tests {
    use super::check;
    use resident_backend::{ElementLayout, ParameterLayout};
    use resident_core::Access;

    const FLOAT: ElementLayout = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };

    fn axpy() -> [ParameterLayout; 3] {
        [
            ParameterLayout::Scalar(FLOAT),
            ParameterLayout::Flat { element: FLOAT, access: Access::Read },
            ParameterLayout::Sized { element: FLOAT, ndim: Some(2), access: Access::ReadWrite },
        ]
    }

    #[test]
    fn parameters_that_agree_are_returned() {
        assert_eq!(*check("axpy", &axpy(), Some(&[4, 8, 40]), &[]).expect("they agree"), axpy());
        assert_eq!(*check("axpy", &axpy(), None, &[]).expect("nothing to compare with"), axpy());
    }

    #[test]
    fn a_mismatch_names_both_and_the_declaration() {
        for compiled in [&[4, 8, 24][..], &[8, 8, 40], &[4, 8], &[4, 8, 40, 8], &[]] {
            let text = check("axpy", &axpy(), Some(compiled), &[]).expect_err("they differ");
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
    fn an_open_number_of_dimensions_becomes_the_compiled_one() {
        let open = |ndim| [ParameterLayout::Sized { element: FLOAT, ndim, access: Access::Read }];
        for ndim in 0..=6 {
            assert_eq!(
                *check("f", &open(None), Some(&[8 + 16 * ndim]), &[]).expect("a view"),
                open(Some(ndim))
            );
        }
        for bytes in [0, 4, 16, 32, 48] {
            let text =
                check("f", &open(None), Some(&[bytes]), &[]).expect_err("no view has that size");
            assert!(text.contains("[8 + 16 per dimension]"), "{text}");
        }
    }

    #[test]
    fn a_scalar_without_bytes_is_refused() {
        let unit = ElementLayout { len_bytes: 0, align_bytes: 1, rust_name: "()" };
        let text = check("f", &[ParameterLayout::Scalar(unit)], None, &[])
            .expect_err("C has no such thing");
        assert!(text.contains("parameter 0"), "{text}");
    }
}
