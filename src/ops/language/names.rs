//! Which names parameters and local variables may have.

use super::functions;
use super::types::Type;
use resident_code::c_declaration::is_identifier;

/// A name that a text may use without declaring it.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Variable<'n> {
    pub(in crate::ops) name: &'n str,
    pub(in crate::ops) kind: Type,
    /// Whether the text assigns it.
    pub(in crate::ops) is_output: bool,
    /// Whether the element is stored with fewer digits, as `f16` or `bf16`.
    pub(in crate::ops) is_half: bool,
}

/// Words of C, C++ and CUDA C that are no names, except those that texts have.
const RESERVED: [&str; 98] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "const_cast",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "M_PI",
    "INFINITY",
    "NAN",
    "defined",
];

/// Whether a word has a meaning of its own, so that it is no name of a variable.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || functions::is_function(word)
}

/// The name of a variable in the CUDA C that is written: none of a macro, a function or a type.
pub(in crate::ops) fn c_name(name: &str) -> String {
    format!("u_{name}")
}

/// Whether a word can be the name of a parameter or a local variable; what is wrong with it
/// otherwise.
pub(super) fn fault_of(name: &str) -> Option<&'static str> {
    if !is_identifier(name) {
        Some("is not a name of C: letters, digits and `_`, of which the first is no digit")
    } else if is_reserved(name) {
        Some("has a meaning in C or CUDA C; choose another name")
    } else if name.starts_with("__") {
        Some("begins as names of compilers do; choose another name")
    } else {
        None
    }
}

/// Refuses names of parameters that are not as many as the parameters, are the same, or are not
/// names.
pub(in crate::ops) fn check(names: &[Box<str>], count: usize) -> Result<(), String> {
    if names.len() != count {
        return Err(format!(
            "there are {} names for {count} parameters; give one for each, in order",
            names.len()
        ));
    }
    for (index, name) in names.iter().enumerate() {
        if let Some(fault) = fault_of(name) {
            let name = name.escape_debug();
            return Err(format!("the name `{name}` of parameter {index} {fault}"));
        }
        if let Some(earlier) = names[..index].iter().position(|other| other == name) {
            return Err(format!(
                "parameters {earlier} and {index} have the name `{name}`; choose different ones"
            ));
        }
    }
    Ok(())
}
