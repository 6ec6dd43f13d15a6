//! The names of the kernels in PTX: for error messages, and to try out a module that is loaded
//! lazily.

/// The names of all kernels, in the order of the text. Comments that begin with `//` are ignored.
pub(super) fn kernel_names(text: &str) -> Vec<String> {
    text.lines().filter_map(kernel_name).map(str::to_owned).collect()
}

/// `axpy` for `.visible .entry axpy(`.
fn kernel_name(line: &str) -> Option<&str> {
    let (code, _comment) = line.split_once("//").unwrap_or((line, ""));
    let (_, after) = code.split_once(".entry")?;
    let name = after.strip_prefix(char::is_whitespace)?.trim_start();
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '%');
    let end = name.find(|letter| !is_part(letter)).unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::kernel_names;

    #[test]
    fn every_entry_has_a_name() {
        let text = "
.version 9.5
	// .globl	axpy
.extern .func  (.param .b32 func_retval0) vprintf
.visible .entry axpy(
	.param .f32 axpy_param_0
)
{ ret; }
.weak .entry _Z5scaleIfEvT_PS0_(.param .u64 x) { ret; }
.entry bare
// as in .entry f(.param .u32 t)
.entry
.entrypoint of nothing
";
        assert_eq!(kernel_names(text), ["axpy", "_Z5scaleIfEvT_PS0_", "bare"]);
        assert!(kernel_names("").is_empty());
    }
}
