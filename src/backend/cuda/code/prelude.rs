//! What is put in front of sources: the views of sized parameters. Line numbers in the compiler's
//! log stay the user's.

use crate::backend::ParameterLayout;

/// `resident::View` and its like.
const PRELUDE: &str = include_str!("prelude.cuh");

/// Whether a source needs the prelude: where the signature has sized parameters, and where it
/// speaks of `resident` itself, so that all kernels of one source are compiled alike whatever their
/// own signatures say.
pub(super) fn is_needed(text: &str, parameters: &[ParameterLayout]) -> bool {
    text.contains("resident")
        || parameters.iter().any(|parameter| matches!(parameter, ParameterLayout::Sized { .. }))
}

/// The prelude, then the source as line 1 of the file that it is called after.
pub(super) fn before(text: &str, file: &str) -> String {
    let file = file.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    format!("{PRELUDE}\n#line 1 \"{file}\"\n{text}")
}

#[cfg(test)]
mod tests {
    use super::{PRELUDE, before, is_needed};
    use crate::backend::{ElementLayout, ParameterLayout};

    #[test]
    fn the_line_after_the_directive_is_the_users_first() {
        let text = before("first\nsecond\n", "C:\\kernels\\\"odd\".cu");
        let lines: Vec<&str> =
            text.lines().skip(PRELUDE.lines().count()).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, ["#line 1 \"C:\\\\kernels\\\\\\\"odd\\\".cu\"", "first", "second"]);
        assert_eq!(
            before("x", "two\nlines.cu").lines().filter(|line| line.starts_with("#line")).count(),
            1
        );
        assert!(
            before("x", "two\nlines.cu").contains("\"two lines.cu\"\nx"),
            "a name cannot end the directive"
        );
    }

    #[test]
    fn sized_parameters_and_sources_that_name_it_get_the_prelude() {
        let element = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };
        let flat = ParameterLayout::Flat { element, is_read_only: true };
        let sized = ParameterLayout::Sized { element, ndim: Some(2), is_read_only: true };
        assert!(!is_needed("__global__ void f(float *x)", &[flat]));
        assert!(is_needed("__global__ void f(float *x)", &[flat, sized]));
        assert!(is_needed(
            "__global__ void f(float *x); __global__ void g(resident::View2<float> y)",
            &[flat]
        ));
    }
}
