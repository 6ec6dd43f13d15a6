//! The declarations that are put before the source. The compiler's log keeps the line numbers of
//! the source.

/// `resident::View` and related names; and for AMD's compilers, which alone do not skip it, what
/// they lack of CUDA C.
pub const TEXT: &str = concat!(include_str!("prelude.cuh"), include_str!("prelude_amd.cuh"));

/// What describes the parameters of kernels, behind the prelude.
pub const PARAMETERS: &str = include_str!("parameters.cuh");

/// `INFINITY` and `NAN`, which NVRTC and hiprtc lack.
pub(crate) const INFINITY: &str = "__int_as_float(0x7f800000)";
pub(crate) const NAN: &str = "__int_as_float(0x7fffffff)";

/// The prelude, followed by the source from line 1 of `file` on.
pub fn prepend_to(text: &str, file: &str) -> String {
    format!("{TEXT}{}", from_line_1(text, file))
}

/// A text, from line 1 of `file` on.
pub fn from_line_1(text: &str, file: &str) -> String {
    let file = file.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    format!("\n#line 1 \"{file}\"\n{text}")
}

#[cfg(test)]
mod tests {
    use super::{TEXT, prepend_to};

    #[test]
    fn the_line_after_the_directive_is_line_1_of_the_source() {
        let text = prepend_to("first\nsecond\n", "C:\\kernels\\\"odd\".cu");
        let lines: Vec<&str> =
            text.lines().skip(TEXT.lines().count()).filter(|line| !line.is_empty()).collect();
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
}
