//! The names of integers: those of C, and those that the text gives them.

use super::tokens::Region;

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

/// The names that may be integers: besides those of C, the text's types for them, and the
/// parameters of its templates.
pub(super) fn integers<'t>(regions: &[Region<'t>]) -> Vec<&'t str> {
    let mut names = NAMES.to_vec();
    for region in regions {
        let all = 0..region.len();
        // A macro, `typedef int name;` and `using name = int;`
        if let Some(name) = region.macro_name
            && !region.is_empty()
            && all.clone().all(|at| is_integer(&names, region.text(at)))
        {
            names.push(name);
        }
        for at in all {
            let behind = integer_end(region, at + 1, &names);
            match region.text(at) {
                "typedef" if behind > at + 1 && region.is(behind + 1, ";") => {
                    names.push(region.text(behind));
                }
                "=" if region.is(behind, ";") && region.is(at.wrapping_sub(2), "using") => {
                    names.push(region.before(at));
                }
                "typename" | "class" if matches!(region.before(at), "<" | ",") => {
                    names.push(region.text(at + 1));
                }
                _ => {}
            }
        }
    }
    names
}

pub(super) fn is_integer(names: &[&str], word: &str) -> bool {
    WORDS.contains(&word) || names.contains(&word)
}

/// Behind the words of an integer's type that starts at a place; that place if none does.
pub(super) fn integer_end(region: &Region<'_>, start: usize, names: &[&str]) -> usize {
    let words = (start..region.len()).take_while(|at| WORDS.contains(&region.text(*at))).count();
    if words > 0 {
        return start + words;
    }
    let name =
        if region.is(start, "std") && region.is(start + 1, "::") { start + 2 } else { start };
    if names.contains(&region.text(name)) { name + 1 } else { start }
}
