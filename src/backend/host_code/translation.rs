//! A source as the C++ compiler gets it: between two headers, with dynamic shared memory replaced.

use std::path::Path;

use crate::backend::Program;
use crate::backend::c_declaration::identifier;
use crate::backend::code::{includes, prelude};

/// What CUDA C needs beyond C++17.
const CUDA_ON_HOST: &str = include_str!("cuda_on_host.hpp");

/// The functions that the library calls.
const ENTRY: &str = include_str!("entry.hpp");

/// The text for the compiler, and its options.
#[derive(Debug)]
pub(super) struct Translation {
    text: String,
    options: Vec<String>,
    entry: String,
    /// Whether the code depends on no other file. Only such code is stored on disk.
    pub(super) is_self_contained: bool,
}

impl Translation {
    pub(super) fn new(program: &Program, text: &str, path: Option<&Path>) -> Result<Self, String> {
        let source = &program.source;
        let entry = source.entry.as_deref().unwrap_or(&program.kernel);
        let file = path.map_or_else(
            || format!("{}.cu", identifier(&program.kernel)),
            |path| path.display().to_string(),
        );
        let mut options = vec![format!("-DRESIDENT_ENTRY={entry}")];
        options.extend(source.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
        options.extend(translated(&source.options));
        let folder = path.and_then(Path::parent);
        let folders = source.includes.iter().map(|folder| &**folder).chain(folder);
        options.extend(folders.map(|folder| format!("-I{}", folder.display())));
        let source_text = prelude::prepend_to(&with_dynamic_shared(text), &file);
        Ok(Self {
            text: format!("{CUDA_ON_HOST}\n{source_text}\n#line 1 \"entry.hpp\"\n{ENTRY}"),
            options,
            entry: entry.to_owned(),
            is_self_contained: source.includes.is_empty()
                && !includes(text)
                && !source.options.iter().any(|option| option.contains("include")),
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn options(&self) -> &[String] {
        &self.options
    }

    pub(super) fn entry(&self) -> &str {
        &self.entry
    }

    /// What of the source decides over the code.
    pub(super) fn key(&self) -> Vec<u8> {
        [&self.options.join("\0"), "\0\0", &self.text].concat().into_bytes()
    }
}

/// NVRTC's options in the spelling of C++ compilers. Those that concern GPUs alone are left out.
fn translated(options: &[std::sync::Arc<str>]) -> Vec<String> {
    let mut words = options.iter().flat_map(|option| option.split_whitespace()).peekable();
    let mut translated = vec![String::from("-ffp-contract=off")];
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let mut value = || value.or_else(|| words.next()).unwrap_or_default();
        match name {
            "--fmad" | "-fmad" if value() == "true" => {
                translated.push(String::from("-ffp-contract=fast"));
            }
            "--use_fast_math" | "-use_fast_math" => {
                translated.push(String::from("-ffp-contract=fast"));
            }
            "--define-macro" | "-D" => translated.push(format!("-D{}", value())),
            "--undefine-macro" | "-U" => translated.push(format!("-U{}", value())),
            "--include-path" | "-I" => translated.push(format!("-I{}", value())),
            "--pre-include" | "-include" => {
                translated.extend([String::from("-include"), value().to_owned()]);
            }
            "--std" | "-std" => translated.push(format!("-std={}", value())),
            "--device-debug" | "-G" => translated.push(String::from("-O0")),
            _ if name.starts_with("-D") || name.starts_with("-I") || name.starts_with("-U") => {
                translated.push(word.to_owned());
            }
            _ => {}
        }
    }
    translated
}

/// Replaces each `extern __shared__ T name[];` by a reference to the memory of the launch, on the
/// same line.
fn with_dynamic_shared(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find_in_code(rest, "extern") {
        let (before, behind) = rest.split_at(at);
        result.push_str(before);
        match declaration(behind) {
            Some((replaced, len)) => {
                result.push_str(&replaced);
                rest = &behind[len..];
            }
            None => {
                result.push_str("extern");
                rest = &behind["extern".len()..];
            }
        }
    }
    result + rest
}

/// The replacement of a declaration at the start of a text, and the declaration's length.
fn declaration(text: &str) -> Option<(String, usize)> {
    let end = text.find(';')?;
    let words = text[.."extern".len()].len();
    let inner = text[words..end].trim();
    let inner = inner.strip_prefix("__shared__").or_else(|| {
        let (alignment, rest) = inner.split_once("__shared__")?;
        alignment.trim().starts_with("__align__").then_some(rest)
    })?;
    let name_and_type = inner.trim().strip_suffix(']')?.trim_end().strip_suffix('[')?.trim_end();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let start = name_and_type.rfind(|letter| !is_word(letter))? + 1;
    let (kind, name) = name_and_type.split_at(start);
    let kind = without_alignment(kind);
    let lines = text[..end].matches('\n').count();
    let replaced = format!(
        "{kind} *const {name} = resident::host::dynamic_shared<{kind}>();{}",
        "\n".repeat(lines)
    );
    Some((replaced, end + 1))
}

/// A type without `__align__(..)`.
fn without_alignment(kind: &str) -> String {
    match kind.split_once("__align__") {
        Some((before, behind)) => {
            let rest = behind.split_once(')').map_or("", |(_, rest)| rest);
            format!("{} {}", before.trim(), rest.trim()).trim().to_owned()
        }
        None => kind.trim().to_owned(),
    }
}

/// Where a word stands in code: not in a comment, in a string, or in another word.
fn find_in_code(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if let Some(comment) = rest.strip_prefix("//") {
            at += 2 + comment.find('\n').unwrap_or(comment.len());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
        } else if bytes[at] == b'"' || bytes[at] == b'\'' {
            at += literal_len(&bytes[at..]);
        } else if is_word_byte(bytes[at]) {
            let len = bytes[at..].iter().take_while(|byte| is_word_byte(**byte)).count();
            if &bytes[at..at + len] == word.as_bytes() {
                return Some(at);
            }
            at += len;
        } else {
            at += 1;
        }
    }
    None
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a string or a character in quotes.
fn literal_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::{translated, with_dynamic_shared};

    #[test]
    fn dynamic_shared_memory_becomes_a_pointer_on_the_same_line() {
        for (text, expected) in [
            (
                "f() { extern __shared__ float tile[]; }",
                "f() { float *const tile = resident::host::dynamic_shared<float>(); }",
            ),
            (
                "extern __shared__ __align__(16) unsigned char bytes [ ] ;",
                "unsigned char *const bytes = \
                 resident::host::dynamic_shared<unsigned char>();",
            ),
            (
                "extern\n__shared__ double2 x[];\nint y;",
                "double2 *const x = resident::host::dynamic_shared<double2>();\n\nint y;",
            ),
        ] {
            assert_eq!(with_dynamic_shared(text), expected);
        }
        for unchanged in [
            "extern \"C\" __global__ void f(float *x) { }",
            "// extern __shared__ float x[];\n",
            "/* extern __shared__ float x[]; */",
            "const char *t = \"extern __shared__ float x[];\";",
            "extern int x; __shared__ float y[3];",
            "myextern __shared__ float x[4];",
        ] {
            assert_eq!(with_dynamic_shared(unchanged), unchanged);
        }
    }

    #[test]
    fn options_are_those_of_cpp_compilers() {
        let options =
            ["--fmad=true", "-arch=sm_90", "--std", "c++20", "-DN=3", "--maxrregcount=32"];
        let options = options.map(Into::into);
        assert_eq!(
            translated(&options),
            ["-ffp-contract=off", "-ffp-contract=fast", "-std=c++20", "-DN=3"]
        );
        assert_eq!(translated(&["--fmad=false".into()]), ["-ffp-contract=off"]);
    }
}
