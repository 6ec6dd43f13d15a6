//! The declarations that are put before the source. The compiler's log keeps the line numbers of
//! the source.

/// `resident::View` and related names; and for AMD's compilers, which alone do not skip it, what
/// they lack of CUDA C.
const PRELUDE: &str = concat!(include_str!("prelude.cuh"), include_str!("prelude_amd.cuh"));

/// What AMD's compilers may lack without the prelude.
const LACKING: [&str; 7] =
    ["__shfl_", "__ballot_sync", "__any_sync", "__all_sync", "__syncwarp", "INFINITY", "NAN"];

/// Whether a source names something of the prelude: `resident`, or what AMD's compilers lack.
/// Answering by the text alone makes all kernels of one source compile alike.
pub(crate) fn is_named_in(text: &str) -> bool {
    text.contains("resident") || LACKING.iter().any(|name| text.contains(name))
}

/// The prelude, followed by the source from line 1 of `file` on.
pub(crate) fn prepend_to(text: &str, file: &str) -> String {
    let file = file.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    format!("{PRELUDE}\n#line 1 \"{file}\"\n{text}")
}

#[cfg(test)]
mod tests {
    use super::{PRELUDE, prepend_to};

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
}
