//! The functions that a preprocessed source defines or declares, outside of others, and variables.

use std::ops::Range;

use resident_code::words::{code_only, words};

/// A function: its name, what stands before its name, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Function<'t> {
    pub(super) name: &'t str,
    pub(super) specifiers: &'t str,
    pub(super) at: usize,
    /// Where its first specifier stands.
    pub(super) start: usize,
    /// From the brace that opens to the one that closes, both included.
    pub(super) body: Range<usize>,
    /// Whether it is defined in a class.
    pub(super) is_member: bool,
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
    let mut found = Vec::new();
    walk(text, &mut |part| found.extend(part.function()));
    found
}

/// The variables in namespaces that have no specifier such as `const` or `__device__`, in order:
/// their names and where they are declared.
pub(super) fn plain_variables(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    walk(text, &mut |part| {
        if let Part::Declaration { start, code } = part
            && let Some(name) = plain_variable(code)
        {
            let name = start + name.start..start + name.end;
            found.push((&text[name.clone()], name.start));
        }
    });
    found
}

/// A function that is declared in a namespace: its name, where that stands, and what stands before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Declared<'t> {
    pub(super) name: &'t str,
    pub(super) specifiers: &'t str,
    pub(super) at: usize,
}

/// The functions that are declared in namespaces, in order, with those that are defined there or in
/// classes. What may be a variable, as `S x(y)`, is none.
pub(super) fn declared_functions(text: &str) -> Vec<Declared<'_>> {
    let mut found = Vec::new();
    walk(text, &mut |part| match part {
        Part::Function(Function { name, specifiers, at, .. }) => {
            found.push(Declared { name, specifiers, at });
        }
        Part::Declaration { start, code } => {
            if let Some(name) = declared_function(code) {
                let (specifiers, at) = (&text[start..start + name.start], start + name.start);
                found.push(Declared { name: &text[at..start + name.end], specifiers, at });
            }
        }
    });
    found
}

/// A part of a namespace or a class.
enum Part<'t, 'c> {
    Function(Function<'t>),
    /// A declaration in a namespace, without its semicolon, and where it starts.
    Declaration {
        start: usize,
        code: &'c str,
    },
}

impl<'t> Part<'t, '_> {
    fn function(self) -> Option<Function<'t>> {
        match self {
            Self::Function(function) => Some(function),
            Self::Declaration { .. } => None,
        }
    }
}

/// Visits the parts of namespaces and classes, in order.
fn walk<'t>(text: &'t str, visit: &mut dyn FnMut(Part<'t, '_>)) {
    let code = code_only(text);
    let bytes = code.as_bytes();
    let (mut start, mut at) = (0, 0);
    // Whether each scope around is a class.
    let mut classes = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'(' => at = closing(&code, at),
            b';' => {
                if !classes.contains(&true) {
                    visit(Part::Declaration { start, code: &code[start..at] });
                }
                start = at + 1;
            }
            b'}' => {
                // What follows a class, up to the semicolon, is its variables.
                start = if classes.pop() == Some(true) { start } else { at + 1 };
            }
            b'{' => match kind(&code[start..at]) {
                Kind::Scope { is_class } => {
                    classes.push(is_class);
                    start = at + 1;
                }
                Kind::Function(name) => {
                    let name = start + name.start..start + name.end;
                    let end = closing(&code, at);
                    let specifiers = &text[start..name.start];
                    visit(Part::Function(Function {
                        name: &text[name.clone()],
                        specifiers,
                        at: name.start,
                        start: name.start - specifiers.trim_start().len(),
                        body: at..end + 1,
                        is_member: classes.contains(&true),
                    }));
                    (at, start) = (end, end + 1);
                }
                Kind::Value => at = closing(&code, at),
            },
            _ => {}
        }
        at += 1;
    }
}

/// Words of declarations that are no variable of the host, or may be none.
const OTHER_DECLARATIONS: [&str; 24] = [
    "__constant__",
    "__device__",
    "__global__",
    "__managed__",
    "__shared__",
    "asm",
    "class",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "enum",
    "extern",
    "friend",
    "namespace",
    "operator",
    "static_assert",
    "struct",
    "template",
    "thread_local",
    "typedef",
    "union",
    "using",
];

/// The name in the declaration of a variable without a specifier, if it is one without a doubt: a
/// type, a name, and at most brackets and a value behind it.
fn plain_variable(code: &str) -> Option<Range<usize>> {
    let is_other = |word| OTHER_DECLARATIONS.contains(&word);
    if code.contains('#') || words(code).any(|(_, word)| is_other(word)) {
        return None;
    }
    let end = code.find(['=', '[', '{', ',']).unwrap_or(code.len());
    let head = &code[..end];
    if head.contains(['(', ')', '}', ':']) {
        return None;
    }
    let (at, name) = words(head).last()?;
    let has_type = words(head).count() > 1 && head[at + name.len()..].trim().is_empty();
    has_type.then(|| at..at + name.len())
}

/// Words of declarations that are of no function, or of one that is declared elsewhere.
const NO_DECLARATIONS_OF_FUNCTIONS: [&str; 7] =
    ["asm", "friend", "operator", "return", "static_assert", "typedef", "using"];

/// Words with which a parameter begins, and no value.
const WORDS_OF_PARAMETERS: [&str; 16] = [
    "bool", "char", "class", "const", "double", "enum", "float", "int", "long", "short", "signed",
    "struct", "unsigned", "void", "volatile", "wchar_t",
];

/// The name in the declaration of a function, if it is one without a doubt.
fn declared_function(code: &str) -> Option<Range<usize>> {
    let is_other = |word| NO_DECLARATIONS_OF_FUNCTIONS.contains(&word);
    if code.contains(['#', '=', '{']) || words(code).any(|(_, word)| is_other(word)) {
        return None;
    }
    let start = template_len(code);
    let (name, open) = parameters_start(&code[start..])?;
    let (name, open) = (start + name.start..start + name.end, start + open);
    let before = code[start..name.start].trim_end();
    let has_type = words(before).any(|(_, word)| word != "extern");
    let is_name = !name.is_empty() && !WORDS_OF_PARAMETERS.contains(&&code[name.clone()]);
    let behind = code.get(closing(code, open)..)?;
    let is_function = has_type
        && is_name
        && !before.ends_with("::")
        && behind.starts_with(')')
        && !behind.contains(['[', '('])
        && (before.ends_with("void") || are_parameters(&code[open + 1..closing(code, open)]));
    is_function.then_some(name)
}

/// Whether a text between parentheses is a list of parameters, and no list of values: a type comes
/// first, or one and a name are somewhere in it.
fn are_parameters(list: &str) -> bool {
    let list = list.trim();
    let Some((at, first)) = words(list).next() else {
        return list.is_empty() || list.starts_with("...");
    };
    let behind = list[at + first.len()..].trim_start();
    let is_type = at == 0 && WORDS_OF_PARAMETERS.contains(&first) && !behind.starts_with('(');
    let ends = words(list).map(|(at, word)| at + word.len());
    let mut pairs = ends.zip(words(list).skip(1));
    is_type || pairs.any(|(end, (next, _))| list[end..next].trim().is_empty())
}

/// What a brace opens.
enum Kind {
    Scope {
        /// Or a namespace.
        is_class: bool,
    },
    /// The body of a function, whose name is here.
    Function(Range<usize>),
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
        return Kind::Scope { is_class: false };
    }
    match open {
        None if first(&["enum"]) => Kind::Value,
        None if first(&["class", "struct", "union"]) && !rest.contains('=') => {
            Kind::Scope { is_class: true }
        }
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
fn parameters_start(head: &str) -> Option<(Range<usize>, usize)> {
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
    use super::{declared_functions, functions, plain_variables};

    #[test]
    fn plain_variables_are_found_in_namespaces() {
        let text = "
            int one; static float two[2] = {1, 2}; namespace ns { float4 three{}, more; }
            extern \"C\" { unsigned long long four = 4; } ns::Pair *five = 0;
            const int a = 1; constexpr float b[2] = {1, 2}; __device__ int c; extern int d;
            struct Pair { int e; static int f; } g; struct Other { int h; } i = {1};
            template <typename T> struct S { T j; }; template <typename T> T k; using l = int;
            typedef int m; int n(int); int o(1); enum P { Q } r; class Late; int Late::s = 1;
            __global__ void t() { int u; static int v = 1; for (int w = 0; w < 3; w++) ; }
            __constant__ float x[2] = {1, 2}; static_assert(sizeof(int) == 4, \"\"); ; union Y;
            enum { A = 1, B }; __device__ Pair z = {1}; #pragma once\n int aa;
        ";
        let names: Vec<&str> = plain_variables(text).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["one", "two", "three", "four"]);
        let (name, at) = plain_variables(text)[1];
        assert_eq!(&text[at..at + 3], name);
        assert!(plain_variables("int a").is_empty() && plain_variables("}} ; } = ;").is_empty());
    }

    #[test]
    fn declared_functions_are_told_from_variables() {
        let text = "
            extern \"C\" void one(int); int two(); namespace ns { float3 three(const float3 &a); }
            extern \"C\" { void four(long *, int); } template <typename T> T five(T a);
            unsigned long long six(void) noexcept; auto seven(S s) -> int; int eight(...);
            [[noreturn]] void nine(S *a); int eleven(S *a, T b);
            __device__ int ten(int a) { return a; }
            const int a(3); S b(c); S d(e * f); dim3 g(sizeof(int)); int (*h)(int);
            unsigned int (*i)(int); const float j(float(3)); typedef int k(int); using l = int(int);
            static_assert(sizeof(int) == 4, \"\"); int S::m(int); template int n<int>(int);
            template <> int o<int>(int); S operator+(S, S); struct P { int q(int); }; macro(x);
            struct R { friend int r(int); } s; int t = u(3); extern const S v(w), x; int y(int)[3];
        ";
        let names: Vec<&str> = declared_functions(text).iter().map(|one| one.name).collect();
        assert_eq!(
            names,
            [
                "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "eleven",
                "ten"
            ]
        );
        let first = declared_functions(text)[0];
        assert!(text[first.at..].starts_with("one(int)") && first.specifiers.contains("extern"));
    }

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
