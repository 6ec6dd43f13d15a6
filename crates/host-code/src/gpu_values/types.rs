//! The names of integers: those of C, and those that the text gives them.

use super::tokens::Tokens;

/// The words of the types themselves.
pub(super) const WORDS: [&str; 6] = ["char", "int", "long", "short", "signed", "unsigned"];

/// Words of other types.
pub(super) const OTHER_WORDS: [&str; 6] = ["bool", "const", "double", "float", "void", "volatile"];

const NAMES: [&str; 16] = [
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
    "ssize_t",
    "uint",
    "ushort",
    "ulong",
];

/// The names that may be integers: besides those of C, the text's enumerations and types for
/// others, and the parameters of its templates.
pub(super) fn integers<'t>(tokens: &Tokens<'t>) -> Vec<&'t str> {
    let mut names = NAMES.to_vec();
    for at in 0..tokens.len() {
        let before = tokens.before(at);
        match tokens.text(at) {
            // `typedef int name;` and `using name = int;`
            "typedef" => names.extend(last_name(tokens, at + 1)),
            "=" if tokens.is(at.wrapping_sub(2), "using")
                && last_name(tokens, at + 1).is_some() =>
            {
                names.push(before);
            }
            "enum" => {
                let is_scoped = matches!(tokens.text(at + 1), "class" | "struct");
                names.push(tokens.text(at + 1 + usize::from(is_scoped)));
            }
            "typename" | "class" if matches!(before, "<" | ",") => names.push(tokens.text(at + 1)),
            _ => {}
        }
    }
    names.retain(|name| !matches!(*name, "{" | ":" | ">" | "," | "=" | "..." | ""));
    names
}

/// The last name before a semicolon, if what stands before it may be an integer's type.
fn last_name<'t>(tokens: &Tokens<'t>, start: usize) -> Option<&'t str> {
    let end = (start..tokens.len()).find(|at| tokens.is(*at, ";"))?;
    let mut words = (start..end).map(|at| tokens.text(at));
    let is_other = |word| matches!(word, "*" | "&" | "&&" | "(" | "[" | "{" | "struct" | "union");
    let is_float = |at| OTHER_WORDS.contains(&tokens.text(at)) && !tokens.is(at + 1, ">");
    let may_be_integer = !words.any(is_other) && !(start..end).any(is_float);
    tokens.get(end - 1).filter(|last| may_be_integer && last.is_word()).map(|last| last.text)
}

pub(super) fn is_integer(names: &[&str], word: &str) -> bool {
    WORDS.contains(&word) || names.contains(&word)
}

/// Behind the type of a number that starts at a place; that place if it is none without a doubt.
pub(super) fn type_end(tokens: &Tokens<'_>, start: usize, names: &[&str]) -> usize {
    let is_qualifier = |at: &usize| matches!(tokens.text(*at), "const" | "volatile");
    let first = start + (start..tokens.len()).take_while(is_qualifier).count();
    let words = (first..tokens.len()).take_while(|at| WORDS.contains(&tokens.text(*at))).count();
    let named = match tokens.text(first) {
        _ if words > 0 => Some(first + words),
        "typename" => path_end(tokens, first + 1),
        "decltype" => tokens.closing(first + 1).map(|close| close + 1),
        name if names.contains(&name) && !tokens.is(first + 1, "::") => Some(first + 1),
        "std" if names.contains(&tokens.text(first + 2)) => Some(first + 3),
        _ => None,
    };
    named.unwrap_or(start)
}

/// Behind a name with those of its namespaces and records, and the arguments of their templates.
pub(super) fn path_end(tokens: &Tokens<'_>, start: usize) -> Option<usize> {
    let name = start + usize::from(tokens.is(start, "::"));
    tokens.get(name).filter(|token| token.is_word())?;
    let end = match tokens.text(name + 1) {
        "<" => tokens.template_end(name + 1)? + 1,
        _ => name + 1,
    };
    if tokens.is(end, "::") { path_end(tokens, end + 1) } else { Some(end) }
}
