//! The functions that a preprocessed source defines, outside of others.

use resident_code::words::{code_only, words};

/// A function: its name, what stands before its name, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Function<'t> {
    pub(super) name: &'t str,
    pub(super) specifiers: &'t str,
    pub(super) at: usize,
}

/// What may have arguments before a function's name, or before a class's.
const ATTRIBUTES: [&str; 8] = [
    "__launch_bounds__",
    "__attribute__",
    "__align__",
    "__builtin_align__",
    "alignas",
    "decltype",
    "noexcept",
    "explicit",
];

/// The functions in namespaces and classes, in order. The text has no directives.
pub(super) fn functions(text: &str) -> Vec<Function<'_>> {
    let code = code_only(text);
    let bytes = code.as_bytes();
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => at = closing(&code, at),
            b';' | b'}' => start = at + 1,
            b'{' => match kind(&code[start..at]) {
                Kind::Scope => start = at + 1,
                Kind::Function(name) => {
                    let name = start + name.start..start + name.end;
                    found.push(Function {
                        name: &text[name.clone()],
                        specifiers: &text[start..name.start],
                        at: name.start,
                    });
                    at = closing(&code, at);
                    start = at + 1;
                }
                Kind::Value => at = closing(&code, at),
            },
            _ => {}
        }
        at += 1;
    }
    found
}

/// What a brace opens.
enum Kind {
    /// A namespace or a class.
    Scope,
    /// The body of a function, whose name is here.
    Function(std::ops::Range<usize>),
    /// An initialiser, or an enumeration.
    Value,
}

/// What the brace opens that stands behind this part of a declaration.
fn kind(head: &str) -> Kind {
    let declaration = template_len(head);
    let rest = &head[declaration..];
    let first = |wanted: &[&str]| words(rest).any(|(_, word)| wanted.contains(&word));
    let open = parameters_start(rest);
    if first(&["namespace"]) || rest.trim() == "extern" || head.trim().is_empty() {
        return Kind::Scope;
    }
    match open {
        None if first(&["enum"]) => Kind::Value,
        None if first(&["class", "struct", "union"]) && !rest.contains('=') => Kind::Scope,
        None => Kind::Value,
        Some((name, open)) => {
            let is_value = rest[..open].contains('=') && !rest[..open].contains("operator");
            let behind = rest.get(closing(rest, open) + 1..).unwrap_or_default();
            // A member that a constructor initialises with braces.
            let is_member = behind.contains(':') && behind.trim_end().ends_with(is_of_name);
            if is_value || is_member {
                return Kind::Value;
            }
            Kind::Function(declaration + name.start..declaration + name.end)
        }
    }
}

/// The length of `template <..>` at the start of a declaration.
fn template_len(head: &str) -> usize {
    let mut end = 0;
    while let Some(at) = head[end..].find("template").map(|at| end + at) {
        if !head[end..at].trim().is_empty() {
            break;
        }
        let mut depth = 0_i32;
        let len = head[at..].find(|letter| {
            depth += i32::from(letter == '<') - i32::from(letter == '>');
            letter == '>' && depth == 0
        });
        match len {
            Some(len) => end = at + len + 1,
            None => break,
        }
    }
    end
}

/// The name before the first parenthesis that is not an attribute's, and that parenthesis.
fn parameters_start(head: &str) -> Option<(std::ops::Range<usize>, usize)> {
    let mut from = 0;
    loop {
        let open = from + head[from..].find('(')?;
        let before = head[..open].trim_end();
        let start = before.rfind(|letter| !is_of_name(letter)).map_or(0, |last| last + 1);
        let name = &before[start..];
        if ATTRIBUTES.contains(&name) {
            from = closing(head, open) + 1;
            continue;
        }
        return Some((start..before.len(), open));
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Where the bracket ends that opens at a place; the last place if it does not end.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    let len = code[open..].find(|letter| {
        depth = match letter {
            '(' | '{' => depth + 1,
            ')' | '}' => depth.saturating_sub(1),
            _ => depth,
        };
        depth == 0
    });
    len.map_or(code.len().saturating_sub(1), |len| open + len)
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn functions_are_found_in_namespaces_and_classes() {
        let text = "
            struct __align__(8) Pair { float a, b; __device__ float sum() const { return a + b; }
                Pair(float x) : a(x), b{x} { } Pair() = default; };
            namespace ns { template <typename T> inline T twice(T x) { if (x) { } return x; } }
            extern \"C\" { __global__ void k(int *x) { auto f = [](int a) { return a; }; } }
            enum Kind { A, B }; const float table[2] = {1, 2}; int one{1};
            struct Pair make(int a = (1)) { return {}; } class B : public Pair { };
            __device__ Pair operator+(Pair a, Pair b) { return a; }
            template <int n> struct S { static constexpr int value = n; void f() {} };
            int declared(int x); typedef struct { int x; } Plain;
        ";
        let names: Vec<&str> = functions(text).iter().map(|function| function.name).collect();
        assert_eq!(names, ["sum", "Pair", "twice", "k", "make", "", "f"]);
        let specifiers: Vec<&str> =
            functions(text).iter().map(|function| function.specifiers.trim()).collect();
        assert_eq!(specifiers[2], "template <typename T> inline T");
        assert!(functions("int f() {").len() == 1 && functions("}} ( ;").is_empty());
    }
}
