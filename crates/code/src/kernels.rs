//! The kernels that a source defines: their names, their launch bounds, and where their bodies are.

use std::ops::Range;

use crate::words::{code_only, words};

const GLOBAL: &str = "__global__";
const LAUNCH_BOUNDS: &str = "__launch_bounds__";

/// What may stand between `__global__` and a kernel's name, with arguments.
const ATTRIBUTES: [&str; 6] =
    [LAUNCH_BOUNDS, "__attribute__", "__align__", "__cluster_dims__", "__maxnreg__", "alignas"];

/// The definition of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// The function's name, without namespaces.
    pub name: String,
    /// The arguments of `__launch_bounds__`, or nothing.
    pub launch_bounds: String,
    pub is_template: bool,
    /// `template <typename T>`, or nothing.
    pub template_header: String,
    /// Where `__global__` stands.
    pub start: usize,
    /// From the brace that opens to the one that closes, both included.
    pub body: Range<usize>,
}

/// The kernels that a source defines, in order. Comments and literals are no code.
pub fn definitions(text: &str) -> Vec<Definition> {
    let code = code_only(text);
    let mut found: Vec<Definition> = Vec::new();
    for (start, word) in words(&code) {
        let is_inside = found.last().is_some_and(|last| start < last.body.end);
        if word == GLOBAL && !is_inside {
            found.extend(definition(&code, start));
        }
    }
    found
}

/// The source with the call of a macro behind the body of each kernel that is no template and whose
/// name no other has, on the same lines; and the names of these kernels. There the compiler knows
/// them.
pub fn listed(text: &str, call: impl Fn(&Definition) -> String) -> (String, Vec<String>) {
    let kernels: Vec<_> =
        with_own_names(text).into_iter().filter(|kernel| !kernel.is_template).collect();
    let names = kernels.iter().map(|kernel| kernel.name.clone()).collect();
    (with_text_behind(text, &kernels, call), names)
}

/// The kernels whose names no other kernel of the source has.
pub fn with_own_names(text: &str) -> Vec<Definition> {
    let all = definitions(text);
    let count = |name: &str| all.iter().filter(|other| other.name == name).count();
    all.iter().filter(|one| count(&one.name) == 1).cloned().collect()
}

/// The source with a text behind the bodies of some of its kernels, on the same lines.
pub fn with_text_behind(
    text: &str,
    kernels: &[Definition],
    behind: impl Fn(&Definition) -> String,
) -> String {
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for kernel in kernels {
        result.push_str(&text[done..kernel.body.end]);
        result.push(' ');
        result.push_str(&behind(kernel));
        done = kernel.body.end;
    }
    result + &text[done..]
}

/// The definition whose `__global__` starts at a place, unless it is only a declaration.
fn definition(code: &str, start: usize) -> Option<Definition> {
    let mut launch_bounds = String::new();
    let mut at = start + GLOBAL.len();
    loop {
        let open = at + code[at..].find(['(', ';', '{'])?;
        let close = closing(code, open)?;
        let before = code[at..open].trim_end();
        let name_start = before.rfind(|letter| !is_of_name(letter)).map_or(0, |last| last + 1);
        let name = &before[name_start..];
        if !code[open..].starts_with('(') || name.is_empty() {
            return None;
        }
        let behind = close + 1;
        let body = behind + code[behind..].find(|letter: char| !letter.is_whitespace())?;
        // A name behind the parentheses: it is a macro of attributes.
        if !ATTRIBUTES.contains(&name) && !code[body..].starts_with(is_of_name) {
            let is_body = code[body..].starts_with('{');
            let body = body..closing(code, body)? + 1;
            let name = name.to_owned();
            let template = template(&code[..start]);
            let (is_template, template_header) = (template.is_some(), template.unwrap_or_default());
            return is_body.then_some(Definition {
                name,
                launch_bounds,
                is_template,
                template_header,
                start,
                body,
            });
        }
        if name == LAUNCH_BOUNDS {
            launch_bounds = code[open + 1..close].trim().to_owned();
        }
        at = close + 1;
    }
}

/// Also `##`, in the body of a macro.
fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '#'
}

/// The word `template` and the parameters behind it, if the declaration that begins at the end of
/// the code is that of a template. The parameters are missing if they cannot be told.
fn template(before: &str) -> Option<String> {
    let start = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let declaration = &before[start..];
    let (at, _) = words(declaration).find(|(_, word)| *word == "template")?;
    let end = closing_angle(&declaration[at..]).map_or(at, |len| at + len + 1);
    Some(declaration[at..end].to_owned())
}

/// Where the angle bracket ends that opens first. Others between parentheses compare.
fn closing_angle(code: &str) -> Option<usize> {
    let (mut angles, mut parentheses) = (0_usize, 0_usize);
    code.find(|letter| {
        match letter {
            '(' => parentheses += 1,
            ')' => parentheses = parentheses.saturating_sub(1),
            '<' if parentheses == 0 => angles += 1,
            '>' if parentheses == 0 => {
                angles = angles.saturating_sub(1);
                return angles == 0;
            }
            _ => {}
        }
        false
    })
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

#[cfg(test)]
mod tests {
    use super::{definitions, listed};

    #[test]
    fn definitions_have_names_bounds_and_bodies() {
        let text = r#"
            // __global__ void commented(int *x) { }
            __global__ void declared(int *x);
            extern "C" __global__ void __launch_bounds__(64, 2) bounded(int *x) { if (x) { } }
            namespace ns { template <typename T> __global__ void scale(T *x) { x[0] = ')'; } }
            __global__ __attribute__((cold)) void last(float (*f)(int)) {}
            __global__ BOUNDS(32) void by_macro(int x) {}
        "#;
        let found = definitions(text);
        let all: Vec<_> = found
            .iter()
            .map(|one| (&*one.name, &*one.launch_bounds, one.is_template, &text[one.body.clone()]))
            .collect();
        assert_eq!(
            all,
            [
                ("bounded", "64, 2", false, "{ if (x) { } }"),
                ("scale", "", true, "{ x[0] = ')'; }"),
                ("last", "", false, "{}"),
                ("by_macro", "", false, "{}"),
            ]
        );
        assert!(definitions("__global__ void open(int x) {").is_empty());
    }

    #[test]
    fn templates_have_their_parameters() {
        for (text, header) in [
            ("template <int n> __global__ void f() {}", "template <int n>"),
            (
                "int x; template<typename T, class = A<B<T>>, bool b = (1 > 0)>\n\
                 static __global__ void f() {}",
                "template<typename T, class = A<B<T>>, bool b = (1 > 0)>",
            ),
            ("template <int n> struct S {}; __global__ void f() {}", ""),
        ] {
            let found = definitions(text);
            let headers: Vec<&str> = found.iter().map(|one| &*one.template_header).collect();
            assert_eq!(headers, [header], "{text}");
        }
    }

    #[test]
    fn kernels_are_listed_where_the_compiler_knows_them() {
        let text = "__global__ void f() { }\ntemplate <int n> __global__ void g() {}\n\
                    namespace a { __global__ void h() {} } namespace b { __global__ void h() {} }";
        let (result, names) = listed(text, |kernel| format!("LIST({})", kernel.name));
        assert_eq!(result, text.replacen("{ }", "{ } LIST(f)", 1));
        assert_eq!(names, ["f"]);
    }
}
