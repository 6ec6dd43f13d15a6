//! What all compilers of CUDA C share.
//!
//! - `prelude`: the views that are declared before the source. `numbers`, `headers`: what C's
//!   headers have and NVRTC lacks. `words`: the words of a source.
//!   `kernels`: the kernels that it defines; `late_instance`: those that are not in its module.
//! - `signature`: the compiled parameters compared with the signature.
//! - `code_object`: the kernels and parameters that AMD's compiler describes in its code.
//! - `variable_names`: the names of variables, by their symbols.
//! - `cache`: compiled code on disk. `once`: values that are made once per key.

use std::path::Path;

pub mod c_declaration;
pub mod cache;
pub mod code_object;
pub mod headers;
pub mod kernels;
pub mod late_instance;
pub mod numbers;
pub mod once;
pub mod parameter_types;
pub mod prelude;
pub mod signature;
pub mod variable_names;
pub mod words;

/// The text of a file of CUDA C, or why it cannot be read.
pub fn read_source(path: &Path) -> Result<String, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(without_byte_order_mark(&text).to_owned()),
        Err(error) => Err(format!("the file {} cannot be read: {error}", path.display())),
    }
}

/// A text without the mark that some editors write first. Compilers skip it at the start of a file,
/// but declarations are put before the text.
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Whether a text may include another file, whose changes would not change the key. If the text
/// includes a file, this returns true; it may also return true for other texts.
pub fn includes(text: &str) -> bool {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    joined.lines().any(|line| {
        line.contains("include")
            && (line.contains('#') || line.contains("%:") || line.contains("??="))
    })
}

/// As [`includes`], but files other than the headers that every compiler gets.
pub fn includes_others(text: &str) -> bool {
    let is_other = |line: &&str| !headers::included_file(line).is_some_and(headers::is_known);
    includes(&text.lines().filter(is_other).collect::<Vec<_>>().join("\n"))
}
