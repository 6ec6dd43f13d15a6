//! Types of parameters: their layout, and their mangled names.

#![forbid(unsafe_code)]

use std::collections::HashMap;

/// The layout of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) len_bytes: usize,
    pub(crate) alignment: usize,
    /// The kind: `f` for floating point, `u` for integers and pointers, empty for structs.
    pub(crate) letter: Option<char>,
}

/// A parsed type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Type {
    pub(crate) layout: Layout,
    /// Its mangled name.
    pub(crate) symbol: String,
}

/// Types that the source declares: aliases and structs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) aliases: HashMap<String, Vec<String>>,
    pub(crate) structs: HashMap<String, Layout>,
}

/// The scalar types: tokens, size in bytes, kind, and mangled name.
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

/// CUDA's vector types: name, bytes of an element, and alignment.
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

/// Words that qualify a type or make it a pointer.
const QUALIFIERS: [&str; 10] = [
    "const",
    "volatile",
    "__restrict__",
    "__restrict",
    "restrict",
    "__grid_constant__",
    "struct",
    "typename",
    "*",
    "&",
];

/// Parses a type with its qualifiers. Returns `None` for an unknown type.
pub(crate) fn read(words: &[String], names: &Names) -> Option<Type> {
    let (core, outside) = split_qualifiers(words);
    let is_star = |word: &&String| matches!(word.as_str(), "*" | "&");
    let stars = outside.iter().filter(|word| is_star(word)).count();
    let is_const = outside.iter().take_while(|word| !is_star(word)).any(|word| *word == "const");
    if stars == 0 {
        return value(&core, names);
    }
    // The target of a pointer may be void or an undeclared type.
    let pointee = value(&core, names).map(|pointee| pointee.symbol);
    let pointee = pointee
        .or_else(|| (core == ["void"]).then(|| "v".to_owned()))
        .or_else(|| named(&core, names))?;
    let symbol = format!("{}{}{pointee}", "P".repeat(stars), if is_const { "K" } else { "" });
    Some(Type { layout: Layout { len_bytes: 8, alignment: 8, letter: Some('u') }, symbol })
}

/// Separates the type from the tokens around it. Words inside `<>` belong to the type.
fn split_qualifiers(words: &[String]) -> (Vec<String>, Vec<&String>) {
    let (mut core, mut outside, mut depth) = (Vec::new(), Vec::new(), 0_i32);
    for word in words {
        depth += i32::from(word == "<") - i32::from(word == ">");
        if depth == 0 && QUALIFIERS.contains(&word.as_str()) {
            outside.push(word);
        } else {
            core.push(word.clone());
        }
    }
    (core, outside)
}

fn value(core: &[String], names: &Names) -> Option<Type> {
    let text = core
        .iter()
        .filter(|word| *word != "std" && *word != "::")
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    if let Some((_, len_bytes, letter, symbol)) = SCALARS.iter().find(|scalar| scalar.0 == text) {
        let layout = Layout { len_bytes: *len_bytes, alignment: *len_bytes, letter: Some(*letter) };
        return Some(Type { layout, symbol: (*symbol).to_owned() });
    }
    if let Some(words) = names.aliases.get(&text).filter(|words| **words != core) {
        return read(words, names);
    }
    let symbol = named(core, names)?;
    if let Some((_, len_bytes, alignment)) = VECTORS.iter().find(|vector| vector.0 == text) {
        return Some(Type {
            layout: Layout { len_bytes: *len_bytes, alignment: *alignment, letter: None },
            symbol,
        });
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

/// The mangled name of a named type: lengths and names, with arguments between I and E.
fn named(core: &[String], names: &Names) -> Option<String> {
    let end = core.iter().position(|word| word == "<").unwrap_or(core.len());
    let path: Vec<&String> = core[..end].iter().filter(|word| *word != "::").collect();
    let is_name = |word: &&String| {
        word.chars().all(|character| character.is_alphanumeric() || character == '_')
    };
    if path.is_empty() || !path.iter().all(is_name) {
        return None;
    }
    let is_nested = path.len() > 1;
    let path: String = path.iter().map(|name| format!("{}{name}", name.len())).collect();
    let arguments =
        arguments(core.get(end + 1..core.len().saturating_sub(1)).unwrap_or_default(), names);
    Some(if is_nested { format!("N{path}{arguments}E") } else { format!("{path}{arguments}") })
}

/// The mangled names of template arguments; an argument that is not a type is copied.
fn arguments(words: &[String], names: &Names) -> String {
    if words.is_empty() {
        return String::new();
    }
    let symbol = |words: &[String]| {
        read(words, names).map_or_else(|| words.concat(), |known| qualified(words, &known.symbol))
    };
    format!("I{}E", words.split(|word| word == ",").map(symbol).collect::<String>())
}

/// The mangled name of a template argument, marked as const if it is.
fn qualified(words: &[String], symbol: &str) -> String {
    let is_const_value =
        words.iter().any(|word| word == "const") && !words.iter().any(|word| word == "*");
    if is_const_value { format!("K{symbol}") } else { symbol.to_owned() }
}
