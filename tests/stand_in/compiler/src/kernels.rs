//! The kernels of a source: puts `RESIDENT_KERNEL` behind the body of each, where its name is known
//! to the compiler.

#![forbid(unsafe_code)]

/// The source, with the kernels that are no templates listed, on the same lines.
pub(crate) fn with_list(text: &str) -> String {
    let code = without_comments(text);
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    while let Some(found) = code[done..].find(GLOBAL).map(|at| done + at) {
        let behind = found + GLOBAL.len();
        let end = match definition(&code, behind) {
            Some(kernel) if !is_template(&code[..found]) => {
                result.push_str(&text[done..kernel.end]);
                result.push_str(&format!(" RESIDENT_KERNEL({}, {})", kernel.name, kernel.bounds));
                kernel.end
            }
            _ => {
                result.push_str(&text[done..behind]);
                behind
            }
        };
        done = end;
    }
    result + &text[done..]
}

const GLOBAL: &str = "__global__";

/// What may stand between `__global__` and a kernel's name, with arguments.
const ATTRIBUTES: [&str; 6] = [
    "__launch_bounds__",
    "__attribute__",
    "__align__",
    "__cluster_dims__",
    "__maxnreg__",
    "alignas",
];

/// The definition of a kernel.
#[derive(Clone, Copy, Debug)]
struct Definition<'a> {
    name: &'a str,
    /// The arguments of `__launch_bounds__`.
    bounds: &'a str,
    /// Where its body ends.
    end: usize,
}

/// The definition whose `__global__` ends at `at`, unless it is only a declaration.
fn definition(code: &str, mut at: usize) -> Option<Definition<'_>> {
    let mut bounds = "";
    loop {
        let open = at + code[at..].find(['(', ';', '{'])?;
        let close = closing(code, open)?;
        let before = code[at..open].trim_end();
        let start = before.rfind(|letter| !is_of_name(letter)).map_or(0, |last| last + 1);
        let name = &before[start..];
        if !code[open..].starts_with('(') || name.is_empty() {
            return None;
        }
        if !ATTRIBUTES.contains(&name) {
            let body =
                close + 1 + code[close + 1..].find(|letter: char| !letter.is_whitespace())?;
            let is_body = code[body..].starts_with('{');
            return is_body.then_some(Definition { name, bounds, end: closing(code, body)? + 1 });
        }
        if name == ATTRIBUTES[0] {
            bounds = code[open + 1..close].trim();
        }
        at = close + 1;
    }
}

/// Also `##`, in the body of a macro.
fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '#'
}

/// Whether the declaration that begins at the end of the code is that of a template.
fn is_template(before: &str) -> bool {
    let start = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
    before[start..].split(|letter| !is_of_name(letter)).any(|word| word == "template")
}

/// Where the bracket ends that opens at `open`.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    code[open..]
        .find(|letter| {
            depth = match letter {
                '(' | '{' => depth + 1,
                ')' | '}' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0
        })
        .map(|len| open + len)
}

/// The text with blanks for comments, for literals, and for what is not ASCII: as long as before.
fn without_comments(text: &str) -> String {
    let mut code = Vec::with_capacity(text.len());
    while code.len() < text.len() {
        let rest = &text.as_bytes()[code.len()..];
        let len = match rest {
            [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n'),
            [b'/', b'*', ..] => rest[2..].windows(2).position(|two| two == b"*/").map(|at| at + 4),
            [b'"', ..] => Some(literal_len(rest)),
            // A character, and not a separator of digits.
            [b'\'', ..] if !code.last().is_some_and(u8::is_ascii_alphanumeric) => {
                Some(literal_len(rest))
            }
            [b'\\', b'\n', ..] => Some(1),
            [byte, ..] if byte.is_ascii() => {
                code.push(*byte);
                continue;
            }
            _ => Some(1),
        };
        code.extend(std::iter::repeat_n(b' ', len.unwrap_or(rest.len())));
    }
    String::from_utf8(code).unwrap_or_default()
}

/// The length of a string or of a character in quotes, which end with the line at the latest.
fn literal_len(rest: &[u8]) -> usize {
    let mut len = 1;
    while len < rest.len() && rest[len] != rest[0] && rest[len] != b'\n' {
        len += if rest[len] == b'\\' { 2 } else { 1 };
    }
    (len + 1).min(rest.len())
}
