//! Types of parameters: how they are passed, and how C++ names them in a symbol.

#![forbid(unsafe_code)]

use std::collections::HashMap;

/// How a parameter is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) len_bytes: usize,
    pub(crate) alignment: usize,
    /// `f` for floating point, `u` for integers and pointers, nothing for structs.
    pub(crate) letter: Option<char>,
}

/// A type as it is written: its last declarator a pointer or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Type {
    pub(crate) layout: Layout,
    /// Its part of a symbol.
    pub(crate) symbol: String,
}

/// Types that the source makes: aliases and structs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) aliases: HashMap<String, Vec<String>>,
    pub(crate) structs: HashMap<String, Layout>,
}

/// The scalars: words, bytes, letter, and their letter in a symbol.
const SCALARS: [(&str, usize, char, &str); 42] = [
    ("bool", 1, 'u', "b"),
    ("char", 1, 'u', "c"),
    ("signed char", 1, 'u', "a"),
    ("unsigned char", 1, 'u', "h"),
    ("short", 2, 'u', "s"),
    ("short int", 2, 'u', "s"),
    ("unsigned short", 2, 'u', "t"),
    ("unsigned short int", 2, 'u', "t"),
    ("int", 4, 'u', "i"),
    ("signed", 4, 'u', "i"),
    ("signed int", 4, 'u', "i"),
    ("unsigned", 4, 'u', "j"),
    ("unsigned int", 4, 'u', "j"),
    ("long", 8, 'u', "l"),
    ("long int", 8, 'u', "l"),
    ("unsigned long", 8, 'u', "m"),
    ("unsigned long int", 8, 'u', "m"),
    ("long long", 8, 'u', "x"),
    ("long long int", 8, 'u', "x"),
    ("signed long long", 8, 'u', "x"),
    ("unsigned long long", 8, 'u', "y"),
    ("unsigned long long int", 8, 'u', "y"),
    ("float", 4, 'f', "f"),
    ("double", 8, 'f', "d"),
    ("int8_t", 1, 'u', "a"),
    ("uint8_t", 1, 'u', "h"),
    ("int16_t", 2, 'u', "s"),
    ("uint16_t", 2, 'u', "t"),
    ("int32_t", 4, 'u', "i"),
    ("uint32_t", 4, 'u', "j"),
    ("int64_t", 8, 'u', "l"),
    ("uint64_t", 8, 'u', "m"),
    ("size_t", 8, 'u', "m"),
    ("ptrdiff_t", 8, 'u', "l"),
    ("intptr_t", 8, 'u', "l"),
    ("uintptr_t", 8, 'u', "m"),
    ("uchar", 1, 'u', "h"),
    ("ushort", 2, 'u', "t"),
    ("uint", 4, 'u', "j"),
    ("ulong", 8, 'u', "m"),
    ("__half", 2, 'u', "6__half"),
    ("__nv_bfloat16", 2, 'u', "13__nv_bfloat16"),
];

/// CUDA's vectors: of what, how many bytes of each, and the alignment.
const VECTORS: [(&str, usize, usize); 9] = [
    ("float2", 8, 8),
    ("float3", 12, 4),
    ("float4", 16, 16),
    ("int2", 8, 8),
    ("int3", 12, 4),
    ("int4", 16, 16),
    ("double2", 16, 16),
    ("uint2", 8, 8),
    ("uchar4", 4, 4),
];

/// Reads a type from its words, qualifiers and all. Nothing: it is not known.
pub(crate) fn read(words: &[String], names: &Names) -> Option<Type> {
    let stars = words.iter().filter(|word| matches!(word.as_str(), "*" | "&")).count();
    let first_star = words.iter().position(|word| matches!(word.as_str(), "*" | "&")).unwrap_or(words.len());
    let is_const = words[..first_star].iter().any(|word| word == "const");
    let qualifiers = ["const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "struct", "typename", "*", "&"];
    let core: Vec<String> = words.iter().filter(|word| !qualifiers.contains(&word.as_str())).cloned().collect();
    if stars == 0 {
        return value(&core, names);
    }
    // What is pointed to may be void, or a type that is only named.
    let pointee = value(&core, names).map(|pointee| pointee.symbol);
    let pointee = pointee.or_else(|| (core == ["void"]).then(|| "v".to_owned())).or_else(|| named(&core))?;
    let symbol = format!("{}{}{pointee}", "P".repeat(stars), if is_const { "K" } else { "" });
    Some(Type { layout: Layout { len_bytes: 8, alignment: 8, letter: Some('u') }, symbol })
}

fn value(core: &[String], names: &Names) -> Option<Type> {
    let text = core.iter().filter(|word| *word != "std" && *word != "::").cloned().collect::<Vec<_>>().join(" ");
    if let Some((_, len_bytes, letter, symbol)) = SCALARS.iter().find(|scalar| scalar.0 == text) {
        let layout = Layout { len_bytes: *len_bytes, alignment: *len_bytes, letter: Some(*letter) };
        return Some(Type { layout, symbol: (*symbol).to_owned() });
    }
    if let Some(words) = names.aliases.get(&text).filter(|words| **words != core) {
        return read(words, names);
    }
    let symbol = named(core)?;
    if let Some((_, len_bytes, alignment)) = VECTORS.iter().find(|vector| vector.0 == text) {
        return Some(Type { layout: Layout { len_bytes: *len_bytes, alignment: *alignment, letter: None }, symbol });
    }
    let layout = names.structs.get(&text).copied().or_else(|| view(core))?;
    Some(Type { layout, symbol })
}

/// `resident::View2<..>`: a pointer, two extents, two strides.
fn view(core: &[String]) -> Option<Layout> {
    let name = core.iter().find(|word| !matches!(word.as_str(), "resident" | "::"))?;
    let dimensions: usize = name.strip_prefix("View")?.parse().ok()?;
    let is_view = core.contains(&"<".to_owned());
    is_view.then_some(Layout { len_bytes: 8 + 16 * dimensions, alignment: 8, letter: None })
}

/// The symbol of a named type: lengths and names, arguments between I and E.
fn named(core: &[String]) -> Option<String> {
    let end = core.iter().position(|word| word == "<").unwrap_or(core.len());
    let names: Vec<&String> = core[..end].iter().filter(|word| *word != "::").collect();
    let is_name = |word: &&&String| word.chars().all(|character| character.is_alphanumeric() || character == '_');
    if names.is_empty() || names.iter().take_while(is_name).count() != names.len() {
        return None;
    }
    let path: String = names.iter().map(|name| format!("{}{name}", name.len())).collect();
    let arguments: String =
        core[end..].iter().filter(|word| !matches!(word.as_str(), "<" | ">" | "," | "::")).map(String::as_str).collect();
    let arguments = if arguments.is_empty() { String::new() } else { format!("I{}{arguments}E", arguments.len()) };
    Some(if names.len() > 1 { format!("N{path}{arguments}E") } else { format!("{path}{arguments}") })
}
