//! The declarations of views, which are put before the source. The compiler's log keeps the line
//! numbers of the source.

use crate::backend::ParameterLayout;

/// `resident::View` and related names.
const PRELUDE: &str = include_str!("prelude.cuh");

/// Whether a source needs the prelude: if the signature has sized parameters (views), or if the
/// text contains `resident`. The second condition makes all kernels of one source compile alike,
/// whatever their signatures.
pub(super) fn is_needed(text: &str, parameters: &[ParameterLayout]) -> bool {
    text.contains("resident")
        || parameters.iter().any(|parameter| matches!(parameter, ParameterLayout::Sized { .. }))
}

/// The prelude, followed by the source from line 1 of `file` on.
pub(super) fn prepend_to(text: &str, file: &str) -> String {
    let file = file.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    format!("{PRELUDE}\n#line 1 \"{file}\"\n{text}")
}

#[cfg(test)]
mod tests {
    use super::{PRELUDE, is_needed, prepend_to};
    use crate::backend::{ElementLayout, ParameterLayout};

    #[test]
    fn the_line_after_the_directive_is_line_1_of_the_source() {
        let text = prepend_to("first\nsecond\n", "C:\\kernels\\\"odd\".cu");
        let lines: Vec<&str> =
            text.lines().skip(PRELUDE.lines().count()).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, ["#line 1 \"C:\\\\kernels\\\\\\\"odd\\\".cu\"", "first", "second"]);
        assert_eq!(
            prepend_to("x", "two\nlines.cu")
                .lines()
                .filter(|line| line.starts_with("#line"))
                .count(),
            1
        );
        assert!(
            prepend_to("x", "two\nlines.cu").contains("\"two lines.cu\"\nx"),
            "a name cannot end the directive"
        );
    }

    #[test]
    fn sized_parameters_and_sources_that_name_resident_get_the_prelude() {
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
