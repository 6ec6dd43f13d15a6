//! The names of variables in a source, by their symbols in compiled code.

/// How compilers name a namespace without a name, and the one that NVRTC puts around what only its
/// source sees.
const WITHOUT_NAME: [&str; 2] = ["_GLOBAL__N_", "_INTERNAL_"];

/// The name in the source: `ns::coef` of `_ZN2ns4coefE`, `coef` of `coef` and `_ZL4coef`.
/// Namespaces without a name are left out, as in sources. Other symbols are returned as they are.
pub fn name_in_source(symbol: &str) -> String {
    parts(symbol).map_or_else(|| symbol.to_owned(), |parts| parts.join("::"))
}

/// Says that a source has no variable of a name, and which it has, by their symbols.
#[cold]
pub fn missing<'a>(name: &str, symbols: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<String> =
        symbols.map(|symbol| format!("`{}`", name_in_source(symbol))).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!(
        "the source has no `__device__`, `__constant__` or `__managed__` variable `{name}`; those \
         that it has: {known}"
    )
}

fn parts(symbol: &str) -> Option<Vec<&str>> {
    let mangled = symbol.strip_prefix("_Z")?;
    let (mut rest, is_nested) = match mangled.strip_prefix('N') {
        Some(rest) => (rest, true),
        None => (mangled, false),
    };
    let mut parts = Vec::new();
    loop {
        let (part, behind) = part(rest)?;
        if !WITHOUT_NAME.iter().any(|start| part.starts_with(start)) {
            parts.push(part);
        }
        rest = behind;
        let end = if is_nested { rest.strip_prefix('E') } else { Some(rest) };
        // Compilers number local copies behind a dot.
        if end.is_some_and(|end| end.is_empty() || end.starts_with('.')) {
            return (!parts.is_empty()).then_some(parts);
        }
        if !is_nested {
            return None;
        }
    }
}

/// A name behind its length, and what follows; an `L` says that others do not see it.
fn part(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('L').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let len: usize = text[..digits].parse().ok()?;
    let name = text[digits..].get(..len)?;
    Some((name, &text[digits + len..]))
}

#[cfg(test)]
mod tests {
    use super::name_in_source;

    #[test]
    fn symbols_have_the_names_of_the_source() {
        for (symbol, name) in [
            ("coef", "coef"),
            ("_ZL4coef", "coef"),
            ("_ZL4coef.0", "coef"),
            ("_ZN2ns4coefE", "ns::coef"),
            ("_ZN2nsL4coefE", "ns::coef"),
            ("_ZN3sim4deep1dE", "sim::deep::d"),
            ("_ZN12_GLOBAL__N_14anonE", "anon"),
            ("_ZN2ns12_GLOBAL__N_14anonE", "ns::anon"),
            ("_ZN27_INTERNAL_00000000_4_x_cu_k3sim5stepsE", "sim::steps"),
            ("_ZN27_INTERNAL_00000000_4_x_cu_k29_GLOBAL__N__00000000_4_x_cu_k4anonE", "anon"),
        ] {
            assert_eq!(name_in_source(symbol), name);
        }
    }

    #[test]
    fn other_symbols_stay() {
        for symbol in ["", "_Z", "_ZN", "_ZN2nsE9", "_Z2tvIiE", "_ZZ1kvE3x10", "_ZN9long", "_ZNE"] {
            assert_eq!(name_in_source(symbol), symbol);
        }
    }
}
